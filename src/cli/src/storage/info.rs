//! `storage info`: what the log directories are.

use std::io::Write;

use callboard_actors::supervision::Exit;
use callboard_metadata::config::BrokerConfig;
use callboard_storage::MetaProperties;

use super::format::all_directories;

/// Prints the directories that are there, what they belong to and what is wrong with them.
///
/// # Errors
/// `out` cannot be written.
pub fn run(config: &BrokerConfig, out: &mut impl Write) -> anyhow::Result<Exit> {
    let mut found = Vec::new();
    let mut problems = Vec::new();
    let mut first: Option<MetaProperties> = None;
    for dir in all_directories(config) {
        let shown = dir.display();
        if !dir.exists() {
            problems.push(format!("{shown} does not exist"));
            continue;
        }
        if !dir.is_dir() {
            problems.push(format!("{shown} is not a directory"));
            continue;
        }
        found.push(shown.to_string());
        match MetaProperties::read(&dir) {
            Ok(None) => problems.push(format!("{shown} is not formatted.")),
            Ok(Some(meta)) => {
                let expected = first.get_or_insert_with(|| meta.clone());
                if (&expected.cluster_id, expected.node_id) != (&meta.cluster_id, meta.node_id) {
                    problems.push(format!(
                        "Metadata for {shown} was {}, but other directories featured {}",
                        describe(&meta),
                        describe(expected)
                    ));
                }
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    print(out, "Found log director", &found, ["y", "ies"])?;
    if let Some(meta) = &first {
        writeln!(out, "Found metadata: {}\n", describe(meta))?;
    }
    print(out, "Found problem", &problems, ["", "s"])?;
    Ok(if problems.is_empty() { Exit::Clean } else { Exit::Refused })
}

fn print(out: &mut impl Write, title: &str, lines: &[String], endings: [&str; 2]) -> std::io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let ending = if lines.len() == 1 { endings[0] } else { endings[1] };
    writeln!(out, "{title}{ending}:")?;
    for line in lines {
        writeln!(out, "  {line}")?;
    }
    writeln!(out)
}

fn describe(meta: &MetaProperties) -> String {
    let directory = meta.directory_id.map(|id| format!("directory.id={id}, ")).unwrap_or_default();
    format!("{{cluster.id={}, {directory}node.id={}, version=1}}", meta.cluster_id, meta.node_id)
}
