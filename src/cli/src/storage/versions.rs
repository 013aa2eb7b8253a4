//! `storage version-mapping` and `storage feature-dependencies`.

use std::io::Write;

use anyhow::{anyhow, bail};
use callboard_protocol::features::{Feature, METADATA_VERSION};

use super::features;

/// Prints the level of each feature that comes with a release.
///
/// # Errors
/// There is no such release.
pub fn version_mapping(release_version: Option<&str>, out: &mut impl Write) -> anyhow::Result<()> {
    let release = features::release_named(release_version, true)?;
    writeln!(out, "{METADATA_VERSION}={} ({})", release.level, release_version.unwrap_or(release.name))?;
    for (name, level) in features::defaults(release) {
        writeln!(out, "{name}={level}")?;
    }
    Ok(())
}

/// Prints what each feature's level needs.
///
/// # Errors
/// There is no such feature or level.
pub fn feature_dependencies(wanted: &[String], out: &mut impl Write) -> anyhow::Result<()> {
    for text in wanted {
        let (name, level) = features::parse_feature(text)?;
        let shown = if name == METADATA_VERSION {
            format!("{name}={level} ({})", features::release_at(level)?.name)
        } else {
            let feature = Feature::by_name(&name).ok_or_else(|| anyhow!("Unknown feature: {name}"))?;
            if feature.level(level).is_none() {
                bail!("Feature level {level} is not supported for feature {name}");
            }
            format!("{name}={level}")
        };
        match features::needed_release(&name, level) {
            Some(needed) => {
                let release = features::release_at(needed)?;
                writeln!(out, "{shown} requires:\n    {METADATA_VERSION}={needed} ({})", release.name)?;
            }
            None => writeln!(out, "{shown} has no dependencies.")?,
        }
    }
    Ok(())
}
