//! What the raft actor is told when it starts.

use std::path::PathBuf;

use callboard_metadata::config::{BrokerConfig, MetadataLogConfig, QuorumConfig};
use callboard_protocol::Uuid;
use callboard_raft::{Config, Endpoint, ReplicaKey, Voter};

/// Longest a leader holds a fetch with nothing to return, as Kafka's.
const FETCH_MAX_WAIT_MS: i64 = 500;

/// The settings of the quorum's log.
#[derive(Debug, Clone)]
pub struct RaftOptions {
    /// `node.id`.
    pub node_id: i32,
    /// `directory.id` of the metadata log directory.
    pub directory_id: Uuid,
    /// The metadata log directory, which holds `__cluster_metadata-0`.
    pub metadata_log_dir: PathBuf,
    /// `controller.quorum.voters`; empty for a quorum whose voters are in the log.
    pub static_voters: Vec<Voter>,
    /// Timings.
    pub quorum: QuorumConfig,
    /// Segments, snapshots and retention.
    pub log: MetadataLogConfig,
}

impl RaftOptions {
    /// The options of a node by its settings, and its directory's id from `meta.properties`.
    pub fn new(config: &BrokerConfig, node_id: i32, directory_id: Uuid) -> Self {
        let listener = config.controller_listener_names.first().cloned().unwrap_or_default();
        let voter = |v: &callboard_metadata::config::Voter| Voter {
            key: ReplicaKey::new(v.node_id, Uuid::ZERO),
            endpoints: vec![Endpoint {
                name: listener.clone(),
                host: v.address.host.clone(),
                port: v.address.port,
            }],
            min_kraft_version: 0,
            max_kraft_version: 0,
        };
        Self {
            node_id,
            directory_id,
            metadata_log_dir: config.metadata_log_dir.clone(),
            static_voters: config.controller_quorum_voters.iter().map(voter).collect(),
            quorum: config.quorum.clone(),
            log: config.metadata_log.clone(),
        }
    }

    /// The machine's part of it.
    pub(super) fn machine_config(&self) -> Config {
        let ms = |value: u64| i64::try_from(value).unwrap_or(i64::MAX / 4);
        Config {
            local: ReplicaKey::new(self.node_id, self.directory_id),
            election_timeout_ms: ms(self.quorum.election_timeout_ms),
            fetch_timeout_ms: ms(self.quorum.fetch_timeout_ms),
            election_backoff_max_ms: ms(self.quorum.election_backoff_max_ms),
            request_timeout_ms: ms(self.quorum.request_timeout_ms),
            retry_backoff_ms: ms(self.quorum.retry_backoff_ms),
            fetch_max_wait_ms: FETCH_MAX_WAIT_MS,
        }
    }
}
