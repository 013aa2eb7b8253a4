//! Listeners: a bound port, and the task that takes connections from it.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use super::connection::Connection;
use super::limits::{Admittance, ConnectionLimits, ConnectionTicket};
use super::{CloseReason, ConnectionBounds, ConnectionInfo, Dispatch, ListenerInfo};

/// How long accepting rests after an error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(1);

/// Why a listener could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The host does not resolve.
    #[error("listener {name}: cannot resolve {host}:{port}: {source}")]
    Resolve {
        /// The listener.
        name: String,
        /// Its host.
        host: String,
        /// Its port.
        port: u16,
        /// What the resolver said.
        source: io::Error,
    },
    /// The port cannot be had.
    #[error("listener {name}: cannot listen on {address}: {source}")]
    Bind {
        /// The listener.
        name: String,
        /// The address tried.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// A port that is bound; the system queues connections until [`serve`] takes them.
#[derive(Debug)]
pub struct BoundListener {
    /// What its connections know of it.
    pub info: Arc<ListenerInfo>,
    /// Where it listens: the port is the real one if port 0 was asked for.
    pub address: SocketAddr,
    socket: std::net::TcpListener,
}

/// Binds `host:port`; an empty host is every interface. `backlog` is `socket.listen.backlog.size`.
///
/// # Errors
/// The host does not resolve or the port cannot be had.
pub fn bind(info: ListenerInfo, host: &str, port: u16, backlog: i32) -> Result<BoundListener, ListenError> {
    let address = resolve(&info.name, host, port)?;
    let bound = open(address, backlog).and_then(|socket| Ok((socket.local_addr()?, socket)));
    let (address, socket) =
        bound.map_err(|source| ListenError::Bind { name: info.name.clone(), address, source })?;
    Ok(BoundListener { info: Arc::new(info), address, socket })
}

fn resolve(name: &str, host: &str, port: u16) -> Result<SocketAddr, ListenError> {
    if host.is_empty() {
        return Ok(SocketAddr::from(([0, 0, 0, 0], port)));
    }
    let host_only = host.trim_start_matches('[').trim_end_matches(']');
    let failed = |source| ListenError::Resolve { name: name.to_owned(), host: host.to_owned(), port, source };
    let mut addresses: Vec<_> = (host_only, port).to_socket_addrs().map_err(failed)?.collect();
    // A name such as localhost stands for both families; clients try IPv4 first.
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses.into_iter().next().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))
}

fn open(address: SocketAddr, backlog: i32) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

/// Takes connections until the task is dropped, and hands each to `spawn`,
/// which places it on a shard.
///
/// # Errors
/// The socket cannot be used by this runtime.
pub async fn serve(
    listener: BoundListener,
    dispatch: Arc<dyn Dispatch>,
    limits: Arc<ConnectionLimits>,
    bounds: ConnectionBounds,
    spawn: impl Fn(PendingConnection),
) -> io::Result<()> {
    let socket = TcpListener::from_std(listener.socket)?;
    loop {
        let (stream, peer) = match socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(listener = %listener.info.name, %error, "accepting a connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(ticket) = admit(&limits, peer, &listener.info).await else { continue };
        let info = Arc::new(ConnectionInfo {
            id: NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed),
            peer,
            listener: listener.info.clone(),
            software: std::sync::OnceLock::new(),
        });
        // Registered anew on the shard that serves it.
        let Ok(stream) = stream.into_std() else { continue };
        spawn(PendingConnection { stream, info, dispatch: dispatch.clone(), bounds: bounds.clone(), ticket });
    }
}

/// Counts the connection; at `max.connections` no other is accepted until one closes.
async fn admit(
    limits: &Arc<ConnectionLimits>,
    peer: SocketAddr,
    listener: &ListenerInfo,
) -> Option<ConnectionTicket> {
    let mut told = false;
    loop {
        match limits.admit(peer.ip()) {
            Admittance::Admitted(ticket) => return Some(ticket),
            Admittance::TooManyFromAddress => {
                tracing::info!(listener = %listener.name, %peer, "connection refused: max.connections.per.ip");
                return None;
            }
            Admittance::Full => {
                if !told {
                    tracing::warn!(listener = %listener.name, "max.connections reached: waiting for one to close");
                    told = true;
                }
                limits.one_closed().await;
            }
        }
    }
}

/// A connection accepted but not yet served.
#[derive(Debug)]
pub struct PendingConnection {
    stream: std::net::TcpStream,
    /// What is known of it.
    pub info: Arc<ConnectionInfo>,
    dispatch: Arc<dyn Dispatch>,
    bounds: ConnectionBounds,
    ticket: ConnectionTicket,
}

impl PendingConnection {
    /// Serves the connection until it closes.
    pub async fn serve(self) {
        let info = self.info.clone();
        let reason = match self.run().await {
            Ok(reason) => reason,
            Err(error) => CloseReason::Read(error),
        };
        let (connection, peer, listener) = (info.id, info.peer, &info.listener.name);
        match reason {
            // An answer that cannot be made is this node's fault, not the client's.
            CloseReason::Answer(_) => {
                tracing::error!(connection, %peer, listener, %reason, "connection closed")
            }
            _ => tracing::debug!(connection, %peer, listener, %reason, "connection closed"),
        }
    }

    async fn run(self) -> io::Result<CloseReason> {
        let Self { stream, info, dispatch, bounds, ticket: _ticket } = self;
        let stream = TcpStream::from_std(stream)?;
        stream.set_nodelay(true)?;
        Ok(Connection::new(stream, info, dispatch, &bounds).serve().await)
    }
}
