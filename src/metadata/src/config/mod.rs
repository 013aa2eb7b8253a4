//! Settings of brokers, topics, groups and client metrics subscriptions: Kafka's names, types, defaults and rules.
//!
//! The tables in `config/*.tsv` hold the facts; [`broker_definitions`] and its like read them once. [`Settings`] keeps a broker's
//! values in layers; [`BrokerConfig`] and [`TopicConfig`] are the typed values that code uses.

mod broker;
mod definition;
mod describe;
mod effect;
mod error;
mod listener;
mod node_listeners;
mod settings;
mod topic;
mod update;
mod validator;
mod value;

pub use broker::{BrokerConfig, MetadataLogConfig, QuorumConfig, Roles};
pub use definition::{
    ConfigType, DefaultValue, Definition, Definitions, Importance, UpdateMode, broker as broker_definitions,
    client_metrics as client_metrics_definitions, group as group_definitions, topic as topic_definitions,
};
pub use describe::{
    Entry, Source, Synonym, describe_broker, describe_client_metrics, describe_cluster_default,
    describe_group, describe_topic,
};
pub use error::ConfigError;
pub use listener::{HostPort, Listener, SecurityProtocol, Voter, parse_host_port};
pub use settings::{ENVIRONMENT_PREFIX, Layer, Remarks, Settings, from_environment};
pub use topic::{CleanupPolicy, CompressionType, Durability, TimestampType, TopicConfig, validate_topic};
pub use update::{Scope, validate_broker, validate_client_metrics, validate_group};
pub use validator::Validator;
pub use value::Value;
