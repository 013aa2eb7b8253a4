//! Features at `storage format`: which release is meant, and the level of each feature that comes with it.

use anyhow::{anyhow, bail};
use callboard_protocol::features::{FEATURES, Feature, FeatureLevel, KRAFT_VERSION, METADATA_VERSION};

/// The level of `metadata.version` that is new but stable: what a cluster gets when nobody says otherwise.
const LATEST_STABLE: i16 = 33;
/// The first level of `metadata.version` with SCRAM credentials: 3.5-IV2.
pub const FIRST_WITH_SCRAM: i16 = 11;

/// A level of `metadata.version`.
pub type Release = &'static FeatureLevel;

fn releases() -> &'static [FeatureLevel] {
    Feature::by_name(METADATA_VERSION).map_or(&[], |feature| feature.levels)
}

fn stable_or(with_unstable: bool) -> impl DoubleEndedIterator<Item = Release> {
    releases().iter().filter(move |release| with_unstable || release.level <= LATEST_STABLE)
}

/// The release of that name: `4.4-IV2`, or `4.4` for the last of 4.4. Without a name the latest that is stable.
///
/// # Errors
/// There is none, or it is not stable and `with_unstable` is false.
pub fn release_named(name: Option<&str>, with_unstable: bool) -> anyhow::Result<Release> {
    let is_it = |release: &Release| match name {
        Some(text) => {
            release.name == text || release.name.split_once("-IV").is_some_and(|(short, _)| short == text)
        }
        None => release.level == LATEST_STABLE,
    };
    let message = || {
        let names: Vec<_> = stable_or(with_unstable).map(|release| release.name).collect();
        let text = name.unwrap_or_default();
        anyhow!("Unknown metadata.version '{text}'. Supported metadata.version are: {}", names.join(", "))
    };
    stable_or(with_unstable).rev().find(is_it).ok_or_else(message)
}

/// The release of that level.
///
/// # Errors
/// There is none.
pub fn release_at(level: i16) -> anyhow::Result<Release> {
    let bound = |release: Option<&FeatureLevel>| release.map_or(0, |release| release.level);
    let (first, last) = (bound(releases().first()), bound(releases().last()));
    let message = || {
        anyhow!(
            "No MetadataVersion with feature level {level}. Valid feature levels are from {first} to {last}."
        )
    };
    releases().iter().find(|release| release.level == level).ok_or_else(message)
}

/// The level of each feature but `metadata.version` that comes with a release.
pub fn defaults(release: Release) -> impl Iterator<Item = (&'static str, i16)> {
    let level_of = |name: &str| releases().iter().find(|r| r.name == name).map_or(i16::MAX, |r| r.level);
    FEATURES.iter().filter(|feature| feature.name != METADATA_VERSION).map(move |feature| {
        let included = feature.levels.iter().filter(|l| level_of(l.metadata_version) <= release.level);
        (feature.name, included.map(|l| l.level).max().unwrap_or(0))
    })
}

/// Reads `feature=level`.
///
/// # Errors
/// The text has another form.
pub fn parse_feature(text: &str) -> anyhow::Result<(String, i16)> {
    let Some((name, level)) = text.split_once('=') else {
        bail!("Can't parse feature=level string {text}: equals sign not found.");
    };
    let number = level.trim().parse();
    let level = number.map_err(|_| {
        anyhow!("Can't parse feature=level string {text}: unable to parse {level} as a short.")
    })?;
    Ok((name.trim().to_owned(), level))
}

/// Checks that a feature other than `metadata.version` has this level.
///
/// # Errors
/// It has not.
pub fn check_level(feature: &Feature, level: i16) -> anyhow::Result<()> {
    if feature.level(level).is_none() {
        bail!("No feature:{} with feature level {level}", feature.name);
    }
    Ok(())
}

/// The level of `metadata.version` that a level of another feature needs at least.
pub fn needed_release(feature: &str, level: i16) -> Option<i16> {
    (feature == "eligible.leader.replicas.version" && level == 1).then_some(23)
}

/// The levels a cluster starts with: `metadata.version` first, the others by name, without those at level 0 and
/// without `kraft.version`, which is in control records. With it, the level asked for `kraft.version`.
#[derive(Debug)]
pub struct Chosen {
    /// The release.
    pub release: Release,
    /// What goes into the bootstrap records.
    pub levels: Vec<(&'static str, i16)>,
    /// `--feature kraft.version=…`.
    pub kraft_version: Option<i16>,
}

/// Chooses the levels for `--release-version` and `--feature`.
///
/// # Errors
/// Unknown names or levels, or levels that need a later release.
pub fn choose(release_version: Option<&str>, wanted: &[String]) -> anyhow::Result<Chosen> {
    let mut asked = std::collections::BTreeMap::new();
    for text in wanted {
        let (name, level) = parse_feature(text)?;
        asked.insert(name, level);
    }
    let release = match asked.remove(METADATA_VERSION) {
        Some(_) if release_version.is_some() => {
            bail!("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.");
        }
        Some(level) => release_at(level)?,
        None => release_named(release_version, false)?,
    };
    let mut levels: std::collections::BTreeMap<&'static str, i16> = defaults(release).collect();
    let kraft_version = asked.get(KRAFT_VERSION).copied();
    for (name, level) in asked {
        let Some(feature) = Feature::by_name(&name) else {
            let mut names: Vec<_> = levels.keys().copied().collect();
            names.sort_unstable();
            bail!("Unsupported feature: {name}. Supported features are: {}", names.join(", "));
        };
        check_level(feature, level)?;
        if let Some(needed) = needed_release(&name, level).filter(|needed| release.level < *needed) {
            bail!(
                "{name} could not be set to {level} because it depends on {METADATA_VERSION} level {needed}"
            );
        }
        levels.insert(feature.name, level);
    }
    levels.remove(KRAFT_VERSION);
    let others = levels.into_iter().filter(|(_, level)| *level != 0);
    Ok(Chosen {
        release,
        levels: std::iter::once((METADATA_VERSION, release.level)).chain(others).collect(),
        kraft_version,
    })
}
