//! The listeners of a node: whom each serves, and whether they go together with its roles.

use std::collections::BTreeMap;

use super::broker::Roles;
use super::error::ConfigError;
use super::listener::{self, Listener, SecurityProtocol};
use super::settings::Settings;

/// The listeners of a node, sorted by whom they serve.
pub(crate) struct NodeListeners {
    pub(crate) broker: Vec<Listener>,
    pub(crate) controller: Vec<Listener>,
    pub(crate) advertised_broker: Vec<Listener>,
    pub(crate) advertised_controller: Vec<Listener>,
    pub(crate) inter_broker_name: String,
    pub(crate) controller_names: Vec<String>,
}

impl NodeListeners {
    pub(crate) fn from_settings(s: &Settings, roles: Roles) -> Result<Self, ConfigError> {
        let controller_names: Vec<String> =
            s.list("controller.listener.names").iter().map(|name| name.to_ascii_uppercase()).collect();
        let protocols = protocols(s, &controller_names)?;
        let entries = s.list("listeners");
        let all = listener::parse_listeners("listeners", &entries, &protocols)?;
        check_ports(&entries, &all)?;
        for listener in &all {
            check_supported(&entries, listener)?;
        }
        let is_controller = |listener: &Listener| controller_names.contains(&listener.name);
        check_roles(&all, &controller_names, roles)?;
        let advertised = match s.explicit("advertised.listeners") {
            Some(_) => {
                let entries = s.list("advertised.listeners");
                let advertised = listener::parse_listeners("advertised.listeners", &entries, &protocols)?;
                check_advertised(&entries, &advertised, &all)?;
                advertised
            }
            None => Vec::new(),
        };
        let (controller, broker): (Vec<_>, Vec<_>) = all.into_iter().partition(is_controller);
        let (mut advertised_controller, mut advertised_broker): (Vec<_>, Vec<_>) =
            advertised.into_iter().partition(is_controller);
        if s.explicit("advertised.listeners").is_none() {
            advertised_broker.clone_from(&broker);
        }
        // A controller listener that is not advertised is found where it listens.
        for listener in &controller {
            if advertised_controller.iter().all(|other| other.name != listener.name) {
                advertised_controller.push(listener.clone());
            }
        }
        let inter_broker_name = inter_broker_name(s, roles, &protocols, &advertised_broker)?;
        Ok(Self {
            broker,
            controller,
            advertised_broker,
            advertised_controller,
            inter_broker_name,
            controller_names,
        })
    }
}

/// `listener.security.protocol.map`. While nobody set it, the controller's listeners are plaintext too.
fn protocols(
    s: &Settings,
    controller_names: &[String],
) -> Result<BTreeMap<String, SecurityProtocol>, ConfigError> {
    let mut protocols =
        listener::parse_protocol_map(&s.string("listener.security.protocol.map").unwrap_or_default())?;
    if s.explicit("listener.security.protocol.map").is_none() {
        for name in controller_names {
            protocols.entry(name.clone()).or_insert(SecurityProtocol::Plaintext);
        }
    }
    Ok(protocols)
}

fn check_ports(entries: &[String], listeners: &[Listener]) -> Result<(), ConfigError> {
    for (at, listener) in listeners.iter().enumerate() {
        let port = listener.address.port;
        let earlier = listeners.iter().take(at).filter(|other| other.address.port == port);
        // One port may serve an IPv4 and an IPv6 address of the machine, or two of its addresses.
        let clashes = earlier.clone().any(|other| {
            other.address.host == listener.address.host
                || other.address.host.is_empty()
                || listener.address.host.is_empty()
        });
        if port != 0 && clashes {
            let whole = entries.join(",");
            let allowed = format!("Each listener must have a different port, listeners: {whole}");
            return Err(ConfigError::not_allowed("listeners", whole, allowed));
        }
    }
    Ok(())
}

/// TLS and SASL are not served yet, and a listener must never be less safe than its settings say.
fn check_supported(entries: &[String], listener: &Listener) -> Result<(), ConfigError> {
    if listener.security_protocol == SecurityProtocol::Plaintext {
        return Ok(());
    }
    let allowed = format!(
        "listener {} uses {}, and this version serves PLAINTEXT listeners only",
        listener.name, listener.security_protocol
    );
    Err(ConfigError::not_allowed("listeners", entries.join(","), allowed))
}

fn check_roles(all: &[Listener], controller_names: &[String], roles: Roles) -> Result<(), ConfigError> {
    let is_controller = |listener: &Listener| controller_names.contains(&listener.name);
    let refuse = |reason: &str| Err(ConfigError::Conflict(reason.to_owned()));
    if roles.controller {
        if !controller_names.iter().all(|name| all.iter().any(|listener| listener.name == *name)) {
            return refuse(
                "controller.listener.names must only contain values appearing in the 'listeners' configuration when \
                 running the KRaft controller role",
            );
        }
        if !roles.broker && !all.iter().all(is_controller) {
            return refuse(
                "The listeners config must only contain KRaft controller listeners from controller.listener.names \
                 when process.roles=controller",
            );
        }
    } else if all.iter().any(is_controller) {
        return refuse(
            "controller.listener.names must not contain a value appearing in the 'listeners' configuration when \
             running KRaft with just the broker role",
        );
    }
    if roles.broker && all.iter().all(is_controller) {
        return refuse(
            "There must be at least one broker advertised listener. Perhaps all listeners appear in \
             controller.listener.names?",
        );
    }
    Ok(())
}

fn check_advertised(
    entries: &[String],
    advertised: &[Listener],
    listeners: &[Listener],
) -> Result<(), ConfigError> {
    let whole = entries.join(",");
    if advertised.iter().any(|listener| listener.address.host == "0.0.0.0") {
        let allowed = "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.";
        return Err(ConfigError::not_allowed("advertised.listeners", whole, allowed));
    }
    let names = |listeners: &[Listener]| {
        listeners.iter().map(|listener| listener.name.clone()).collect::<Vec<_>>().join(",")
    };
    let known = |listener: &Listener| listeners.iter().any(|other| other.name == listener.name);
    if !advertised.iter().all(known) {
        let allowed = format!(
            "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found \
             {}. The valid options based on the current configuration are {}",
            names(advertised),
            names(listeners)
        );
        return Err(ConfigError::not_allowed("advertised.listeners", whole, allowed));
    }
    Ok(())
}

fn inter_broker_name(
    s: &Settings,
    roles: Roles,
    protocols: &BTreeMap<String, SecurityProtocol>,
    advertised: &[Listener],
) -> Result<String, ConfigError> {
    let given = s.string("inter.broker.listener.name").map(|name| name.to_ascii_uppercase());
    if given.is_some() && s.explicit("security.inter.broker.protocol").is_some() {
        return Err(ConfigError::Conflict(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
                .to_owned(),
        ));
    }
    let by_protocol = s.string("security.inter.broker.protocol").unwrap_or_default();
    let setting =
        if given.is_some() { "inter.broker.listener.name" } else { "security.inter.broker.protocol" };
    let name = given.unwrap_or(by_protocol);
    if !roles.broker || advertised.iter().any(|listener| listener.name == name) {
        return Ok(name);
    }
    if !protocols.contains_key(&name) {
        let allowed = "listener.security.protocol.map has no such listener";
        return Err(ConfigError::not_allowed(setting, name, allowed));
    }
    let names: Vec<_> = advertised.iter().map(|listener| listener.name.as_str()).collect();
    let allowed = format!(
        "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based \
         on currently configured listeners are {}",
        names.join(",")
    );
    Err(ConfigError::not_allowed(setting, name, allowed))
}
