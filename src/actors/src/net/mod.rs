//! The edge: listeners, and the connections that come in through them.

mod connection;
mod dispatch;
mod frame;
mod limits;
mod listener;
mod outbox;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use callboard_protocol::ByteString;

pub use connection::ConnectionBounds;
pub use dispatch::{Answering, Begun, Dispatch, Progress, Reply};
pub use frame::FrameError;
pub use limits::{Admittance, ConnectionLimits, QueuePlace, RequestQueue};
pub use listener::{BoundListener, ListenError, PendingConnection, bind, serve};
pub use outbox::{FileRegion, Outgoing};

/// Which APIs a listener serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerKind {
    /// Clients and other brokers.
    Broker,
    /// Brokers and controllers, as `controller.listener.names` says.
    Controller,
}

/// A listener as its connections know it.
#[derive(Debug)]
pub struct ListenerInfo {
    /// Its name in `listeners`, in upper case.
    pub name: String,
    /// Which APIs it serves.
    pub kind: ListenerKind,
}

/// What is known of one connection.
#[derive(Debug)]
pub struct ConnectionInfo {
    /// A number of its own within the node.
    pub id: u64,
    /// The client's address.
    pub peer: SocketAddr,
    /// The listener it came in through.
    pub listener: Arc<ListenerInfo>,
    /// Name and version of the client's software, once it has sent them in ApiVersions.
    pub software: OnceLock<(ByteString, ByteString)>,
}

/// Why a connection was closed.
#[derive(Debug, thiserror::Error)]
pub enum CloseReason {
    /// The client closed it.
    #[error("the client closed the connection")]
    End,
    /// Nothing came for `connections.max.idle.ms`.
    #[error("idle for longer than connections.max.idle.ms")]
    Idle,
    /// The frame's length is not acceptable.
    #[error("bad frame: {0}")]
    Frame(#[from] FrameError),
    /// The request's bytes are not what its header says.
    #[error("bad request: {0}")]
    Request(String),
    /// The API or the version is not served on this listener.
    #[error("API key {api_key} version {version} is not served on this listener")]
    NotServed {
        /// As the header has it.
        api_key: i16,
        /// As the header has it.
        version: i16,
    },
    /// A Produce request with acks 0 failed: closing is all that can tell the client.
    #[error("a produce request without acknowledgement failed: {0}")]
    UnacknowledgedProduce(String),
    /// The answer could not be made.
    #[error("no answer could be made: {0}")]
    Answer(String),
    /// Reading failed.
    #[error("reading failed: {0}")]
    Read(#[source] io::Error),
    /// Writing failed.
    #[error("writing failed: {0}")]
    Write(#[source] io::Error),
}
