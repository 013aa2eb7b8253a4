//! Runs a node until it is told to stop.

use std::time::Instant;

use callboard_actors::node::Node;
use callboard_actors::supervision;
use callboard_metadata::config::{BrokerConfig, Listener};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::ServerArgs;
use crate::directories;
use crate::exit::Exit;
use crate::settings::{self, Loaded};

/// Starts the node that a properties file describes.
///
/// # Errors
/// Why it does not start.
pub fn run_file(args: ServerArgs) -> anyhow::Result<Exit> {
    run(settings::load_file(&args.file, args.overrides)?)
}

/// Runs a node until a signal stops it or it gives up.
///
/// # Errors
/// Why it does not start.
pub fn run(loaded: Loaded) -> anyhow::Result<Exit> {
    let cluster_id = directories::check(&loaded.config)?;
    loaded.log_remarks();
    supervision::run(serve(loaded.config, cluster_id))?
}

async fn serve(config: BrokerConfig, cluster_id: String) -> anyhow::Result<Exit> {
    let started = Instant::now();
    let mut signals = Signals::install()?;
    let (node_id, listeners) = (config.node_id, describe(&config));
    let node = Node::start(config).await?;
    tokio::select! {
        ready = node.ready() => ready?,
        name = signals.next() => {
            tracing::info!(node_id, signal = name, "stopping before it was ready");
            node.shutdown().await;
            return Ok(Exit::Success);
        }
    }
    let start_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(node_id, cluster_id, listeners, start_ms, "ready");
    tokio::select! {
        reason = node.stopped() => {
            tracing::error!(node_id, %reason, "the node gave up");
            Ok(Exit::Failed)
        }
        name = signals.next() => {
            node.shutdown().await;
            tracing::info!(node_id, signal = name, "stopped");
            Ok(Exit::Success)
        }
    }
}

/// The listeners as a user would write them.
fn describe(config: &BrokerConfig) -> String {
    let show = |listener: &Listener| format!("{}://{}", listener.name, listener.address);
    config.listeners.iter().chain(&config.controller_listeners).map(show).collect::<Vec<_>>().join(",")
}

/// The signals that ask a process to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn install() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for one, and gives its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
