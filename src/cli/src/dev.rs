//! `callboard dev`: one node that is broker and controller, for development.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use callboard_actors::supervision::Exit;
use callboard_storage::MetaProperties;

use crate::args::DevArgs;
use crate::server;
use crate::settings::{self, Loaded};
use crate::storage::format;

/// The node's id.
const NODE_ID: i32 = 1;

/// Starts the node, in a directory that is formatted when it is new.
///
/// # Errors
/// Why it does not start.
pub fn run(args: DevArgs) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(&args.data_dir).with_context(|| args.data_dir.display().to_string())?;
    let data_dir = args.data_dir.canonicalize().with_context(|| args.data_dir.display().to_string())?;
    let loaded = load(args.port, &data_dir, settings::environment(), args.overrides)?;
    if MetaProperties::read(&loaded.config.metadata_log_dir)?.is_none() {
        format::run_standalone(&loaded.config)?;
    }
    let (addresses, dir) = (server::describe(&loaded.config.listeners), data_dir.display().to_string());
    server::run(loaded, move || {
        // Nobody may be reading; the node runs all the same.
        let _ = writeln!(std::io::stdout(), "Callboard is ready on {addresses}, data in {dir}");
    })
}

/// The settings of a node alone: its own, then the environment's and the command line's.
fn load(
    port: u16,
    data_dir: &Path,
    environment: impl IntoIterator<Item = (String, String)>,
    overrides: Vec<(String, String)>,
) -> anyhow::Result<Loaded> {
    let base = base(port, data_dir);
    let names: Vec<String> = base.iter().map(|(name, _)| name.clone()).collect();
    let mut loaded = settings::load(base, environment, overrides)?;
    // What nobody asked for needs no remark.
    loaded.remarks.without_effect.retain(|name| !names.contains(name));
    Ok(loaded)
}

fn base(port: u16, data_dir: &Path) -> Vec<(String, String)> {
    let controller = format!("localhost:{}", port.saturating_add(1));
    let listeners = format!("PLAINTEXT://localhost:{port},CONTROLLER://{controller}");
    let pairs = [
        ("process.roles", "broker,controller".to_owned()),
        ("node.id", NODE_ID.to_string()),
        ("listeners", listeners),
        ("controller.listener.names", "CONTROLLER".to_owned()),
        ("controller.quorum.bootstrap.servers", controller),
        ("log.dirs", data_dir.display().to_string()),
        // One node can hold one replica.
        ("offsets.topic.replication.factor", "1".to_owned()),
        ("transaction.state.log.replication.factor", "1".to_owned()),
        ("transaction.state.log.min.isr", "1".to_owned()),
        ("share.coordinator.state.topic.replication.factor", "1".to_owned()),
        ("share.coordinator.state.topic.min.isr", "1".to_owned()),
        // Nobody else is about to join a group.
        ("group.initial.rebalance.delay.ms", "0".to_owned()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_alone_has_both_roles_and_the_ports_asked_for() {
        let overrides = vec![("num.partitions".to_owned(), "3".to_owned())];
        let loaded = load(19_092, Path::new("/data"), [], overrides).unwrap();
        let config = loaded.config;
        assert!(config.roles.broker && config.roles.controller);
        assert_eq!(config.listeners[0].address.to_string(), "localhost:19092");
        assert_eq!(config.controller_listeners[0].address.to_string(), "localhost:19093");
        assert_eq!(config.log_dirs, [Path::new("/data")]);
        assert_eq!(config.num_partitions, 3);
        assert!(loaded.remarks.without_effect.is_empty(), "{:?}", loaded.remarks);
    }
}
