//! Listeners, voters and the addresses in settings.

use std::collections::BTreeMap;
use std::fmt;

use super::error::ConfigError;

/// What a listener speaks beneath the Kafka protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecurityProtocol {
    /// Neither encryption nor authentication.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL without TLS.
    SaslPlaintext,
    /// SASL over TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// The protocol of that name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.to_ascii_uppercase().as_str() {
            "PLAINTEXT" => Self::Plaintext,
            "SSL" => Self::Ssl,
            "SASL_PLAINTEXT" => Self::SaslPlaintext,
            "SASL_SSL" => Self::SaslSsl,
            _ => return None,
        })
    }

    /// The number that stands for it in a broker's registration.
    pub fn wire_code(self) -> i16 {
        match self {
            Self::Plaintext => 0,
            Self::Ssl => 1,
            Self::SaslPlaintext => 2,
            Self::SaslSsl => 3,
        }
    }
}

impl fmt::Display for SecurityProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        })
    }
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// A name or an address; IPv6 without brackets; empty for all addresses of the machine.
    pub host: String,
    /// The port; 0 lets the system choose one.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// One entry of `listeners` or `advertised.listeners`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// Its name, in upper case.
    pub name: String,
    /// Where it is.
    pub address: HostPort,
    /// What it speaks.
    pub security_protocol: SecurityProtocol,
}

/// One entry of `controller.quorum.voters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    /// The controller's node id.
    pub node_id: i32,
    /// Its controller listener.
    pub address: HostPort,
}

/// Reads `host:port`, with an IPv6 host in brackets; the host may not be empty.
pub fn parse_host_port(text: &str) -> Option<HostPort> {
    parse_address(text).filter(|address| !address.host.is_empty())
}

fn parse_address(text: &str) -> Option<HostPort> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("]:")?,
        None => text.rsplit_once(':')?,
    };
    let plain = host.chars().all(|c| c.is_ascii_alphanumeric() || "._-:%".contains(c));
    let port = port.parse::<u16>().ok()?;
    plain.then(|| HostPort { host: host.to_owned(), port })
}

/// Reads `id@host:port`.
pub(crate) fn parse_voter(text: &str) -> Option<Voter> {
    let (id, address) = text.split_once('@')?;
    let node_id = id.trim().parse::<i32>().ok().filter(|id| *id >= 0)?;
    Some(Voter { node_id, address: parse_host_port(address.trim())? })
}

/// Reads `listener.security.protocol.map`.
pub(crate) fn parse_protocol_map(text: &str) -> Result<BTreeMap<String, SecurityProtocol>, ConfigError> {
    const NAME: &str = "listener.security.protocol.map";
    let mut map = BTreeMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let pair = entry.rsplit_once(':').and_then(|(listener, protocol)| {
            Some((listener.trim().to_ascii_uppercase(), SecurityProtocol::from_name(protocol.trim())?))
        });
        let allowed =
            "each entry is LISTENER:PROTOCOL, with a protocol of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL";
        let (listener, protocol) = pair.ok_or_else(|| ConfigError::not_allowed(NAME, text, allowed))?;
        map.insert(listener, protocol);
    }
    Ok(map)
}

/// Reads `listeners` or `advertised.listeners`: entries `NAME://host:port`, each name once.
pub(crate) fn parse_listeners(
    setting: &str,
    entries: &[String],
    protocols: &BTreeMap<String, SecurityProtocol>,
) -> Result<Vec<Listener>, ConfigError> {
    let whole = entries.join(",");
    let mut listeners: Vec<Listener> = Vec::new();
    for entry in entries {
        let parsed = entry.split_once("://").and_then(|(name, address)| {
            Some((name.trim().to_ascii_uppercase(), parse_address(address.trim())?))
        });
        let Some((name, address)) = parsed else {
            let allowed =
                format!("Unable to parse {entry} to a broker endpoint: each entry is NAME://HOST:PORT");
            return Err(ConfigError::not_allowed(setting, whole, allowed));
        };
        let Some(&security_protocol) = protocols.get(&name) else {
            let known: Vec<_> = protocols.keys().map(String::as_str).collect();
            let allowed = format!(
                "No security protocol defined for listener {name}: listener.security.protocol.map has {}",
                known.join(", ")
            );
            return Err(ConfigError::not_allowed(setting, whole, allowed));
        };
        if listeners.iter().any(|other| other.name == name) {
            return Err(ConfigError::not_allowed(
                setting,
                whole,
                format!("Each listener must have a different name, listeners: {}", entries.join(",")),
            ));
        }
        listeners.push(Listener { name, address, security_protocol });
    }
    Ok(listeners)
}
