//! The settings a node runs with, typed and checked against each other.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::error::ConfigError;
use super::listener::{self, HostPort, Listener, Voter};
use super::node_listeners::NodeListeners;
use super::settings::{Remarks, Settings};
use super::topic::Durability;

/// `process.roles`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    /// Serves clients.
    pub broker: bool,
    /// May lead the cluster.
    pub controller: bool,
}

/// The settings a node runs with. Every field has the name of its setting.
#[derive(Debug, Clone, PartialEq)]
pub struct BrokerConfig {
    /// All settings, with those that have no field here.
    pub settings: Settings,
    /// `process.roles`.
    pub roles: Roles,
    /// `node.id`.
    pub node_id: i32,
    /// `broker.rack`.
    pub rack: Option<String>,
    /// Those of `listeners` that serve clients and brokers.
    pub listeners: Vec<Listener>,
    /// Those of `listeners` that serve the quorum.
    pub controller_listeners: Vec<Listener>,
    /// Where clients find the broker: `advertised.listeners`, or else the listeners. An empty host stands for the
    /// machine's own name.
    pub advertised_listeners: Vec<Listener>,
    /// Where controllers find this controller, likewise.
    pub advertised_controller_listeners: Vec<Listener>,
    /// `inter.broker.listener.name`, or the listener whose protocol is `security.inter.broker.protocol`.
    pub inter_broker_listener_name: String,
    /// `controller.listener.names`, in upper case.
    pub controller_listener_names: Vec<String>,
    /// `controller.quorum.bootstrap.servers`.
    pub controller_quorum_bootstrap_servers: Vec<HostPort>,
    /// `controller.quorum.voters`: set for a quorum that does not change.
    pub controller_quorum_voters: Vec<Voter>,
    /// `log.dirs`, or else `log.dir`.
    pub log_dirs: Vec<PathBuf>,
    /// `metadata.log.dir`, or else the first of `log.dirs`.
    pub metadata_log_dir: PathBuf,
    /// `socket.request.max.bytes`: the largest request.
    pub socket_request_max_bytes: u32,
    /// `socket.listen.backlog.size`.
    pub socket_listen_backlog_size: u32,
    /// `socket.receive.buffer.bytes`; `None` is the system's.
    pub socket_receive_buffer_bytes: Option<u32>,
    /// `socket.send.buffer.bytes`; `None` is the system's.
    pub socket_send_buffer_bytes: Option<u32>,
    /// `connections.max.idle.ms`; `None` is without limit.
    pub connections_max_idle_ms: Option<u64>,
    /// `max.connections`.
    pub max_connections: u32,
    /// `max.connections.per.ip`.
    pub max_connections_per_ip: u32,
    /// `max.connections.per.ip.overrides`: a host or an address, and its limit.
    pub max_connections_per_ip_overrides: BTreeMap<String, u32>,
    /// `queued.max.requests`.
    pub queued_max_requests: u32,
    /// `queued.max.request.bytes`; `None` is without limit.
    pub queued_max_request_bytes: Option<u64>,
    /// `max.request.partition.size.limit`.
    pub max_request_partition_size_limit: u32,
    /// `fetch.max.bytes`.
    pub fetch_max_bytes: u32,
    /// `max.incremental.fetch.session.cache.slots`.
    pub max_incremental_fetch_session_cache_slots: u32,
    /// `num.partitions`.
    pub num_partitions: u32,
    /// `default.replication.factor`.
    pub default_replication_factor: i16,
    /// `auto.create.topics.enable`.
    pub auto_create_topics_enable: bool,
    /// `delete.topic.enable`.
    pub delete_topic_enable: bool,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: u64,
    /// `broker.heartbeat.interval.ms`.
    pub broker_heartbeat_interval_ms: u64,
    /// `broker.session.timeout.ms`.
    pub broker_session_timeout_ms: u64,
    /// `replica.lag.time.max.ms`.
    pub replica_lag_time_max_ms: u64,
    /// `request.timeout.ms`.
    pub request_timeout_ms: u64,
    /// Timings of the quorum.
    pub quorum: QuorumConfig,
    /// `metadata.*`: the metadata log.
    pub metadata_log: MetadataLogConfig,
    /// `callboard.durability` of topics that do not set it.
    pub durability: Durability,
}

/// `controller.quorum.*`: timings of the quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumConfig {
    /// `controller.quorum.election.timeout.ms`.
    pub election_timeout_ms: u64,
    /// `controller.quorum.election.backoff.max.ms`.
    pub election_backoff_max_ms: u64,
    /// `controller.quorum.fetch.timeout.ms`.
    pub fetch_timeout_ms: u64,
    /// `controller.quorum.request.timeout.ms`.
    pub request_timeout_ms: u64,
    /// `controller.quorum.retry.backoff.ms`.
    pub retry_backoff_ms: u64,
    /// `controller.quorum.append.linger.ms`.
    pub append_linger_ms: u64,
}

/// `metadata.log.*` and `metadata.max.*`: the metadata log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataLogConfig {
    /// `metadata.log.segment.bytes`, or `internal.metadata.log.segment.bytes` where a test sets it.
    pub segment_bytes: u32,
    /// `metadata.log.segment.ms`.
    pub segment_ms: u64,
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub max_record_bytes_between_snapshots: u64,
    /// `metadata.log.max.snapshot.interval.ms`; `None` never makes one for its age.
    pub max_snapshot_interval_ms: Option<u64>,
    /// `metadata.max.idle.interval.ms`: how often an idle leader writes a no-op record; `None` never.
    pub max_idle_interval_ms: Option<u64>,
    /// `metadata.max.retention.bytes`; `None` is without limit.
    pub max_retention_bytes: Option<u64>,
    /// `metadata.max.retention.ms`; `None` is without limit.
    pub max_retention_ms: Option<u64>,
}

impl BrokerConfig {
    /// Reads and checks the settings of a node.
    ///
    /// # Errors
    /// [`ConfigError`]: a value that is not allowed, a required setting that is missing, or settings that do not
    /// go together.
    pub fn from_properties(
        properties: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Self, Remarks), ConfigError> {
        let (settings, remarks) = Settings::from_properties(properties)?;
        Ok((Self::from_settings(settings)?, remarks))
    }

    /// The same from settings whose values are each allowed, as they are after a dynamic change.
    ///
    /// # Errors
    /// [`ConfigError`] when a required setting is missing, or settings do not go together.
    pub fn from_settings(settings: Settings) -> Result<Self, ConfigError> {
        for name in ["process.roles", "node.id", "controller.listener.names"] {
            if settings.text(name).is_none() {
                return Err(ConfigError::Missing { name: name.to_owned() });
            }
        }
        let s = &settings;
        let roles = s.list("process.roles");
        let roles = Roles {
            broker: roles.iter().any(|role| role == "broker"),
            controller: roles.iter().any(|role| role == "controller"),
        };
        let net = NodeListeners::from_settings(s, roles)?;
        let log_dirs = log_dirs(s);
        let metadata_log_dir = s
            .string("metadata.log.dir")
            .map(PathBuf::from)
            .or_else(|| log_dirs.first().cloned())
            .ok_or_else(|| ConfigError::Missing { name: "log.dirs".to_owned() })?;
        check_together(s, roles)?;
        Ok(Self {
            roles,
            node_id: s.i32("node.id"),
            rack: s.string("broker.rack"),
            listeners: net.broker,
            controller_listeners: net.controller,
            advertised_listeners: net.advertised_broker,
            advertised_controller_listeners: net.advertised_controller,
            inter_broker_listener_name: net.inter_broker_name,
            controller_listener_names: net.controller_names,
            controller_quorum_bootstrap_servers: s
                .list("controller.quorum.bootstrap.servers")
                .iter()
                .filter_map(|entry| listener::parse_host_port(entry))
                .collect(),
            controller_quorum_voters: voters(s),
            log_dirs,
            metadata_log_dir,
            socket_request_max_bytes: unsigned(s, "socket.request.max.bytes"),
            socket_listen_backlog_size: unsigned(s, "socket.listen.backlog.size"),
            socket_receive_buffer_bytes: u32::try_from(s.i64("socket.receive.buffer.bytes")).ok(),
            socket_send_buffer_bytes: u32::try_from(s.i64("socket.send.buffer.bytes")).ok(),
            connections_max_idle_ms: limit(s, "connections.max.idle.ms"),
            max_connections: unsigned(s, "max.connections"),
            max_connections_per_ip: unsigned(s, "max.connections.per.ip"),
            max_connections_per_ip_overrides: parse_ip_overrides(
                &s.string("max.connections.per.ip.overrides").unwrap_or_default(),
            )?,
            queued_max_requests: unsigned(s, "queued.max.requests"),
            queued_max_request_bytes: limit(s, "queued.max.request.bytes"),
            max_request_partition_size_limit: unsigned(s, "max.request.partition.size.limit"),
            fetch_max_bytes: unsigned(s, "fetch.max.bytes"),
            max_incremental_fetch_session_cache_slots: unsigned(
                s,
                "max.incremental.fetch.session.cache.slots",
            ),
            num_partitions: unsigned(s, "num.partitions"),
            default_replication_factor: i16::try_from(s.i64("default.replication.factor"))
                .unwrap_or(i16::MAX),
            auto_create_topics_enable: s.bool("auto.create.topics.enable"),
            delete_topic_enable: s.bool("delete.topic.enable"),
            producer_id_expiration_ms: duration(s, "producer.id.expiration.ms"),
            broker_heartbeat_interval_ms: duration(s, "broker.heartbeat.interval.ms"),
            broker_session_timeout_ms: duration(s, "broker.session.timeout.ms"),
            replica_lag_time_max_ms: duration(s, "replica.lag.time.max.ms"),
            request_timeout_ms: duration(s, "request.timeout.ms"),
            quorum: quorum(s),
            metadata_log: metadata_log(s),
            durability: Durability::from_text(s.string("callboard.durability").as_deref()),
            settings,
        })
    }
}

fn quorum(s: &Settings) -> QuorumConfig {
    QuorumConfig {
        election_timeout_ms: duration(s, "controller.quorum.election.timeout.ms"),
        election_backoff_max_ms: duration(s, "controller.quorum.election.backoff.max.ms"),
        fetch_timeout_ms: duration(s, "controller.quorum.fetch.timeout.ms"),
        request_timeout_ms: duration(s, "controller.quorum.request.timeout.ms"),
        retry_backoff_ms: duration(s, "controller.quorum.retry.backoff.ms"),
        append_linger_ms: duration(s, "controller.quorum.append.linger.ms"),
    }
}

fn metadata_log(s: &Settings) -> MetadataLogConfig {
    let segment_bytes = s.value("internal.metadata.log.segment.bytes").and_then(|v| v.as_i64());
    let positive = |name: &str| limit(s, name).filter(|value| *value > 0);
    MetadataLogConfig {
        segment_bytes: segment_bytes
            .and_then(|bytes| u32::try_from(bytes).ok())
            .unwrap_or_else(|| unsigned(s, "metadata.log.segment.bytes")),
        segment_ms: duration(s, "metadata.log.segment.ms"),
        max_record_bytes_between_snapshots: duration(s, "metadata.log.max.record.bytes.between.snapshots"),
        max_snapshot_interval_ms: positive("metadata.log.max.snapshot.interval.ms"),
        max_idle_interval_ms: positive("metadata.max.idle.interval.ms"),
        max_retention_bytes: limit(s, "metadata.max.retention.bytes"),
        max_retention_ms: limit(s, "metadata.max.retention.ms"),
    }
}

fn unsigned(s: &Settings, name: &str) -> u32 {
    u32::try_from(s.i64(name)).unwrap_or_default()
}

fn duration(s: &Settings, name: &str) -> u64 {
    u64::try_from(s.i64(name)).unwrap_or_default()
}

/// A limit that is off when negative.
fn limit(s: &Settings, name: &str) -> Option<u64> {
    u64::try_from(s.i64(name)).ok()
}

fn log_dirs(s: &Settings) -> Vec<PathBuf> {
    let dirs = s.list("log.dirs");
    let dirs = if dirs.is_empty() { s.list("log.dir") } else { dirs };
    dirs.into_iter().map(PathBuf::from).collect()
}

fn voters(s: &Settings) -> Vec<Voter> {
    s.list("controller.quorum.voters").iter().filter_map(|entry| listener::parse_voter(entry)).collect()
}

/// Reads `max.connections.per.ip.overrides`: `host:limit`, separated by commas.
pub(crate) fn parse_ip_overrides(text: &str) -> Result<BTreeMap<String, u32>, ConfigError> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let parse = |entry: &str| {
        let (host, limit) = entry.rsplit_once(':')?;
        Some((host.trim().to_owned(), limit.trim().parse::<u32>().ok()?))
    };
    let refused = || {
        let allowed = "each entry is HOST:LIMIT, with a limit of at least 0";
        ConfigError::not_allowed("max.connections.per.ip.overrides", text, allowed)
    };
    entries.map(|entry| parse(entry).ok_or_else(refused)).collect()
}

/// Checks of settings that must go together, apart from listeners.
fn check_together(s: &Settings, roles: Roles) -> Result<(), ConfigError> {
    let require = |holds: bool, reason: &str| {
        if holds { Ok(()) } else { Err(ConfigError::Conflict(reason.to_owned())) }
    };
    let retention = s.alternative_ms("log.retention.ms");
    require(retention != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")?;
    require(s.alternative_ms("log.roll.ms") >= 1, "log.roll.ms must be greater than or equal to 1")?;
    require(
        s.alternative_ms("log.roll.jitter.ms") >= 0,
        "log.roll.jitter.ms must be greater than or equal to 0",
    )?;
    require(
        s.i64("replica.fetch.wait.max.ms") <= s.i64("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket \
         timeouts",
    )?;
    require(
        s.i64("replica.fetch.wait.max.ms") <= s.i64("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent frequent \
         changes in ISR",
    )?;
    let queued = s.i64("queued.max.request.bytes");
    require(
        queued <= 0 || queued >= s.i64("socket.request.max.bytes"),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )?;
    let (min, max) = (s.i64("log.cleaner.min.compaction.lag.ms"), s.i64("log.cleaner.max.compaction.lag.ms"));
    require(
        min <= max,
        "log.cleaner.min.compaction.lag.ms must not be greater than log.cleaner.max.compaction.lag.ms",
    )?;
    let buffer_bytes = s.i64("log.cleaner.dedupe.buffer.size") / s.i64("log.cleaner.threads").max(1);
    require(
        buffer_bytes > 1024 * 1024,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )?;
    let voters = voters(s);
    require(
        !voters.is_empty() || !s.list("controller.quorum.bootstrap.servers").is_empty(),
        "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap \
         controllers or controller.quorum.voters must contain a parseable set of controllers.",
    )?;
    let node_id = s.i32("node.id");
    let is_voter = voters.iter().any(|voter| voter.node_id == node_id);
    let ids = voters.iter().map(|voter| voter.node_id.to_string()).collect::<Vec<_>>().join(",");
    if !roles.controller && is_voter {
        return Err(ConfigError::Conflict(format!(
            "If process.roles contains just the 'broker' role, the node id {node_id} must not be included in the set \
             of voters controller.quorum.voters={ids}"
        )));
    }
    if roles.controller && !voters.is_empty() && !is_voter {
        return Err(ConfigError::Conflict(format!(
            "If process.roles contains the 'controller' role, the node id {node_id} must be included in the set of \
             voters controller.quorum.voters={ids}"
        )));
    }
    let id = s.i32("broker.id");
    require(id < 0 || id == node_id, "You must set `node.id` to the same value as `broker.id`.")
}
