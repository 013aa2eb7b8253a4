//! The listeners of a node: bound at the start, served once the broker has been let in.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use callboard_metadata::config::{BrokerConfig, Listener, SecurityProtocol};
use tokio::sync::watch;

use super::{Services, StartError};
use crate::api::Api;
use crate::control::lifecycle::BrokerLifecycle;
use crate::net::{
    BoundListener, ConnectionBounds, ConnectionLimits, Dispatch, ListenerInfo, ListenerKind,
    PendingConnection, RequestQueue,
};
use crate::supervision::{Placement, SupervisorRef, SupervisorSpec};

/// The bound ports of a node.
#[derive(Debug)]
pub(super) struct Ports {
    bound: Vec<BoundListener>,
}

impl Ports {
    /// Binds all listeners.
    ///
    /// # Errors
    /// A port cannot be had, or a protocol is not served.
    pub(super) fn bind(config: &BrokerConfig) -> Result<Self, StartError> {
        let kinds = [
            (&config.listeners, ListenerKind::Broker),
            (&config.controller_listeners, ListenerKind::Controller),
        ];
        let mut bound = Vec::new();
        for (listeners, kind) in kinds {
            for listener in listeners {
                bound.push(bind(listener, kind, config)?);
            }
        }
        Ok(Self { bound })
    }

    /// The port a listener is bound to.
    pub(super) fn port_of(&self, name: &str) -> Option<u16> {
        self.bound.iter().find(|bound| bound.info.name == name).map(|bound| bound.address.port())
    }

    /// Each listener's name and address.
    pub(super) fn addresses(&self) -> Vec<(String, SocketAddr)> {
        self.bound.iter().map(|bound| (bound.info.name.clone(), bound.address)).collect()
    }
}

fn bind(listener: &Listener, kind: ListenerKind, config: &BrokerConfig) -> Result<BoundListener, StartError> {
    if listener.security_protocol != SecurityProtocol::Plaintext {
        let (name, protocol) = (listener.name.clone(), listener.security_protocol.to_string());
        return Err(StartError::Protocol { name, protocol });
    }
    let info = ListenerInfo { name: listener.name.clone(), kind };
    let backlog = i32::try_from(config.socket_listen_backlog_size).unwrap_or(i32::MAX);
    Ok(crate::net::bind(info, &listener.address.host, listener.address.port, backlog)?)
}

/// Serves the controller's listeners at once and the broker's once it has been let in; tells when all are served.
pub(super) fn serve_when_let_in(
    parent: &SupervisorRef,
    ports: Ports,
    services: &Arc<Services>,
    lifecycle: &BrokerLifecycle,
) -> watch::Receiver<bool> {
    let (tell, ready) = watch::channel(false);
    let serving = Serving::new(parent, services);
    let (broker, controller): (Vec<_>, Vec<_>) =
        ports.bound.into_iter().partition(|bound| bound.info.kind == ListenerKind::Broker);
    for listener in controller {
        serving.start(parent, listener);
    }
    let (lifecycle, acceptors) = (lifecycle.clone(), parent.clone());
    parent.spawn_task("opening", Placement::On(0), move || async move {
        if !lifecycle.running().await {
            return;
        }
        for listener in broker {
            serving.start(&acceptors, listener);
        }
        tell.send_replace(true);
        // The watchers see an end of the channel as an end of the node.
        std::future::pending::<()>().await;
    });
    ready
}

/// What all listeners share.
#[derive(Clone)]
struct Serving {
    dispatch: Arc<dyn Dispatch>,
    limits: Arc<ConnectionLimits>,
    bounds: ConnectionBounds,
    connections: SupervisorRef,
}

impl Serving {
    fn new(parent: &SupervisorRef, services: &Arc<Services>) -> Self {
        let config = &services.config;
        let size = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
        let queue = RequestQueue::new(size(config.queued_max_requests), config.queued_max_request_bytes);
        let bounds = ConnectionBounds {
            max_request_bytes: size(config.socket_request_max_bytes),
            max_idle: config.connections_max_idle_ms.map(Duration::from_millis),
            queue: Arc::new(queue),
        };
        let limits = ConnectionLimits::new(
            size(config.max_connections),
            size(config.max_connections_per_ip),
            overrides(config),
        );
        Self {
            dispatch: Arc::new(Api::new(Arc::clone(services))),
            limits,
            bounds,
            connections: parent.supervisor(SupervisorSpec::new("connections").stop_together()),
        }
    }

    fn start(&self, parent: &SupervisorRef, listener: BoundListener) {
        let serving = self.clone();
        let name = format!("acceptor-{}", listener.info.name);
        parent.spawn_task(name, Placement::Spread, move || async move {
            let connections = serving.connections.clone();
            let spawn = move |pending: PendingConnection| {
                let name = format!("connection-{}", pending.info.id);
                connections.spawn_task(name, Placement::Spread, move || pending.serve());
            };
            let info = Arc::clone(&listener.info);
            let served =
                crate::net::serve(listener, serving.dispatch, serving.limits, serving.bounds, spawn).await;
            if let Err(error) = served {
                tracing::error!(listener = %info.name, %error, "a listener failed");
            }
        });
    }
}

/// `max.connections.per.ip.overrides` by address; a host that does not resolve is left out with a warning.
fn overrides(config: &BrokerConfig) -> BTreeMap<IpAddr, usize> {
    let mut found = BTreeMap::new();
    for (host, limit) in &config.max_connections_per_ip_overrides {
        match (host.as_str(), 0).to_socket_addrs() {
            Ok(addresses) => {
                let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
                found.extend(addresses.map(|address| (address.ip(), limit)));
            }
            Err(error) => {
                tracing::warn!(host, %error, "max.connections.per.ip.overrides: the host does not resolve")
            }
        }
    }
    found
}
