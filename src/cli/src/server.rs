//! Runs a node until it is told to stop.

use std::time::Instant;

use anyhow::{Context as _, anyhow};
use callboard_actors::node::{DirectoryError, Node, StartError};
use callboard_actors::supervision::{self, Exit};
use callboard_metadata::config::{BrokerConfig, Listener};
use callboard_storage::StorageError;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::ServerArgs;
use crate::settings::{self, Loaded};

/// Starts the node that a properties file describes.
///
/// # Errors
/// Why it does not start.
pub fn run_file(args: ServerArgs) -> anyhow::Result<Exit> {
    run(settings::load_file(&args.file, args.overrides)?, || {})
}

/// Runs a node until a signal stops it or it gives up. `when_ready` is called once it serves clients.
///
/// # Errors
/// Why it does not start.
pub fn run(loaded: Loaded, when_ready: impl FnOnce()) -> anyhow::Result<Exit> {
    loaded.log_remarks();
    supervision::run(serve(loaded.config, when_ready)).context("cannot start the event loop")?
}

async fn serve(config: BrokerConfig, when_ready: impl FnOnce()) -> anyhow::Result<Exit> {
    let started = Instant::now();
    let mut signals = Signals::install()?;
    let node_id = config.node_id;
    let listeners = format!("{},{}", describe(&config.listeners), describe(&config.controller_listeners));
    let node = Node::start(config).await.map_err(explain)?;
    let stopped_early = tokio::select! {
        ready = node.ready() => { ready.map_err(explain)?; None }
        name = signals.next() => Some(name),
    };
    if let Some(signal) = stopped_early {
        return Ok(stop(&node, node_id, signal).await);
    }
    let start_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(node_id, cluster_id = node.services().cluster_id, listeners, start_ms, "ready");
    when_ready();
    tokio::select! {
        exit = node.stopped() => {
            tracing::error!(node_id, code = exit.code(), reason = %exit, "the node gave up");
            Ok(exit)
        }
        name = signals.next() => Ok(stop(&node, node_id, name).await),
    }
}

async fn stop(node: &Node, node_id: i32, signal: &str) -> Exit {
    let exit = node.shutdown().await;
    tracing::info!(node_id, signal, reason = %exit, "stopped");
    exit
}

/// Adds what to do about it to the reasons a user meets first.
fn explain(error: StartError) -> anyhow::Error {
    match error {
        StartError::Directory(DirectoryError::NotFormatted(dir)) => anyhow!(
            "log directory {} is not formatted. Format it with: callboard storage format --config FILE --cluster-id \
             \"$(callboard storage random-uuid)\" --standalone",
            dir.display()
        ),
        StartError::Directory(DirectoryError::Storage(StorageError::Locked { path })) => anyhow!(
            "log directory {} is in use: another node holds {}",
            path.parent().unwrap_or(&path).display(),
            path.display()
        ),
        other => other.into(),
    }
}

/// Listeners as a user would write them.
pub fn describe(listeners: &[Listener]) -> String {
    let show = |listener: &Listener| format!("{}://{}", listener.name, listener.address);
    listeners.iter().map(show).collect::<Vec<_>>().join(",")
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
