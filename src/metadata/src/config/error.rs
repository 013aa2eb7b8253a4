//! What can be wrong with a setting or its value. Texts are those a Kafka user knows.

use super::definition::ConfigType;

/// Why a setting, a value or a set of values is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The value does not read as a number of the setting's type.
    #[error("Invalid value {value} for configuration {name}: Not a number of type {kind}")]
    NotANumber {
        /// The setting.
        name: String,
        /// The value as given.
        value: String,
        /// The type the setting has.
        kind: ConfigType,
    },
    /// The value reads well but is outside what is allowed.
    #[error("Invalid value {value} for configuration {name}: {allowed}")]
    NotAllowed {
        /// The setting.
        name: String,
        /// The value as given.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// A list holds an empty entry.
    #[error("Configuration '{name}' values must not be empty.")]
    EmptyEntry {
        /// The setting.
        name: String,
    },
    /// A list that must hold something is empty.
    #[error("Configuration '{name}' must not be empty. Valid values include: {allowed}")]
    EmptyList {
        /// The setting.
        name: String,
        /// What it may hold.
        allowed: String,
    },
    /// An entry of `controller.quorum.voters` is not `{id}@{host}:{port}`.
    #[error(
        "Invalid configuration value for {name}. Each entry should be in the form `{{id}}@{{host}}:{{port}}`."
    )]
    Voter {
        /// The setting.
        name: String,
    },
    /// An entry of a `host:port` list has no host.
    #[error(
        "Failed to parse host name from {entry} for the configuration {name}. \
         Each entry should be in the form \"{{host}}:{{port}}\""
    )]
    HostPort {
        /// The setting.
        name: String,
        /// The entry.
        entry: String,
    },
    /// A setting that must be given is not.
    #[error("Missing required configuration \"{name}\" which has no default value.")]
    Missing {
        /// The setting.
        name: String,
    },
    /// No such setting of a topic or a group.
    #[error("Unknown {table} config name: {name}")]
    Unknown {
        /// `topic` or `group`.
        table: &'static str,
        /// The name given.
        name: String,
    },
    /// No such setting of a client metrics subscription.
    #[error("Unknown client metrics configuration: {name}")]
    UnknownClientMetrics {
        /// The name given.
        name: String,
    },
    /// A setting under `callboard.` that does not exist.
    #[error("Unknown configuration {name}: settings that start with callboard. are {known}")]
    UnknownOwn {
        /// The name given.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// The interval of a client metrics subscription is out of range.
    #[error("Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)")]
    ClientMetricsInterval {
        /// The value given.
        value: i64,
    },
    /// A pattern of a client metrics subscription names no client property, or does not read.
    #[error("Illegal client matching pattern: {pattern}")]
    ClientMetricsPattern {
        /// The entry of `match`.
        pattern: String,
    },
    /// Values that are allowed one by one but not together.
    #[error("{0}")]
    Conflict(String),
    /// Broker settings that cannot change while the broker runs.
    #[error("Cannot update these configs dynamically: [{}]", .names.join(", "))]
    ReadOnly {
        /// The settings.
        names: Vec<String>,
    },
    /// Broker settings that need a broker id.
    #[error(
        "Cannot update these configs at default cluster level, broker id must be specified: [{}]",
        .names.join(", ")
    )]
    PerBrokerOnly {
        /// The settings.
        names: Vec<String>,
    },
    /// Security settings that need the name of a listener.
    #[error(
        "These security configs can be dynamically updated only per-listener using the listener prefix: [{}]",
        .names.join(", ")
    )]
    PerListenerOnly {
        /// The settings.
        names: Vec<String>,
    },
}

impl ConfigError {
    /// Whether a client gets INVALID_REQUEST for it; it gets INVALID_CONFIG for the others. A change of a broker's
    /// settings always gets INVALID_REQUEST.
    pub fn is_invalid_request(&self) -> bool {
        matches!(
            self,
            Self::ReadOnly { .. }
                | Self::PerBrokerOnly { .. }
                | Self::PerListenerOnly { .. }
                | Self::UnknownClientMetrics { .. }
                | Self::ClientMetricsInterval { .. }
        )
    }

    pub(crate) fn not_allowed(name: &str, value: impl ToString, allowed: impl ToString) -> Self {
        Self::NotAllowed { name: name.to_owned(), value: value.to_string(), allowed: allowed.to_string() }
    }
}
