//! How a node registers with the controller.

use callboard_metadata::config::{BrokerConfig, Listener};
use callboard_metadata::features::SUPPORTED;
use callboard_protocol::ByteString;
use callboard_protocol::messages::{
    BrokerRegistrationRequest, ControllerRegistrationRequest, broker_registration_request,
    controller_registration_request,
};

use super::directories::{Directories, random_id};
use super::listeners::Ports;
use crate::supervision::Random;

/// The broker's registration: a new incarnation at each start.
pub(super) fn of_broker(
    config: &BrokerConfig,
    directories: &Directories,
    ports: &Ports,
    random: &mut Random,
) -> BrokerRegistrationRequest {
    let listener = |listener: &Listener| {
        let (host, port) = advertised(listener, ports);
        broker_registration_request::Listener {
            name: listener.name.as_str().into(),
            host,
            port,
            security_protocol: listener.security_protocol.wire_code(),
            ..Default::default()
        }
    };
    let features = SUPPORTED.iter().map(|(name, range)| broker_registration_request::Feature {
        name: (*name).into(),
        min_supported_version: range.min,
        max_supported_version: range.max,
        ..Default::default()
    });
    BrokerRegistrationRequest {
        broker_id: config.node_id,
        cluster_id: directories.cluster_id.as_str().into(),
        incarnation_id: random_id(random),
        listeners: config.advertised_listeners.iter().map(listener).collect(),
        features: features.collect(),
        rack: config.rack.as_deref().map(ByteString::from),
        log_dirs: directories.data.iter().map(|directory| directory.id).collect(),
        previous_broker_epoch: directories.previous_broker_epoch,
        ..Default::default()
    }
}

/// The controller's registration.
pub(super) fn of_controller(
    config: &BrokerConfig,
    ports: &Ports,
    random: &mut Random,
) -> ControllerRegistrationRequest {
    let listener = |listener: &Listener| {
        let (host, port) = advertised(listener, ports);
        controller_registration_request::Listener {
            name: listener.name.as_str().into(),
            host,
            port,
            security_protocol: listener.security_protocol.wire_code(),
            ..Default::default()
        }
    };
    let features = SUPPORTED.iter().map(|(name, range)| controller_registration_request::Feature {
        name: (*name).into(),
        min_supported_version: range.min,
        max_supported_version: range.max,
        ..Default::default()
    });
    ControllerRegistrationRequest {
        controller_id: config.node_id,
        incarnation_id: random_id(random),
        listeners: config.advertised_controller_listeners.iter().map(listener).collect(),
        features: features.collect(),
        ..Default::default()
    }
}

/// Host and port under which a listener is found: the machine's name for an empty host, the port it is bound to for
/// port 0.
fn advertised(listener: &Listener, ports: &Ports) -> (ByteString, u16) {
    let host = match listener.address.host.as_str() {
        "" => rustix::system::uname().nodename().to_string_lossy().as_ref().into(),
        host => host.into(),
    };
    let port = match listener.address.port {
        0 => ports.port_of(&listener.name).unwrap_or(0),
        port => port,
    };
    (host, port)
}
