//! The control plane of a node on one simulated thread, over real files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use callboard_actors::control::applied::BrokerMetadata;
use callboard_actors::control::controller::{
    ControllerOptions, ControllerRequest, Decided, QuorumController,
};
use callboard_actors::control::lifecycle::{BrokerLifecycle, LifecycleOptions};
use callboard_actors::control::loader::{Loader, SnapshotPolicy};
use callboard_actors::control::raft::{Raft, RaftOptions};
use callboard_actors::replicas::{CleanerOptions, LogDirectory, Replicas, ReplicasSetup, Status, Upkeep};
use callboard_actors::supervision::{Clock, Exit, Shards, Strategy, Tree, faults};
use callboard_metadata::config::{MetadataLogConfig, QuorumConfig, Settings};
use callboard_metadata::controller::ControllerSettings;
use callboard_metadata::{bootstrap, features};
use callboard_protocol::messages::create_topics_request::CreatableTopic;
use callboard_protocol::messages::{
    BrokerRegistrationRequest, ControllerRegistrationRequest, CreateTopicsRequest,
    broker_registration_request,
};
use callboard_protocol::{ErrorCode, Uuid};
use callboard_raft::{Endpoint, ReplicaKey, Voter};

pub const CLUSTER: &str = "W16FM93SQ4Oz9hbnJvaSGA";
const DIRECTORY: Uuid = Uuid::from_u128(0xd1);

pub struct Node {
    pub tree: Tree,
    pub controller: QuorumController,
    pub metadata: BrokerMetadata,
    pub lifecycle: BrokerLifecycle,
    pub replicas: Replicas,
    pub broker_epoch: Arc<AtomicI64>,
}

impl Node {
    /// A node whose broker stopped at `previous_epoch`, or was killed (-1).
    pub fn start(dir: &Path, run: u128, previous_epoch: i64) -> Self {
        let shards = Shards::local(Clock::simulated(1_000_000));
        let tree = Tree::new("node", Strategy::OneForOne, &shards, 42);
        let (settings, _) = Settings::from_properties([("node.id".to_owned(), "1".to_owned())]).unwrap();
        let raft = Raft::spawn(tree.root(), raft_options(dir));
        let policy = SnapshotPolicy { max_record_bytes: 1 << 30, max_interval_ms: None };
        let loader = Loader::spawn(tree.root(), raft.clone(), policy);
        let options = ControllerOptions {
            settings: ControllerSettings {
                node_id: 1,
                cluster_id: CLUSTER.into(),
                static_settings: settings.clone(),
            },
            registration: ControllerRegistrationRequest {
                controller_id: 1,
                incarnation_id: Uuid::from_u128(1_000 + run),
                ..Default::default()
            },
            kraft_version: 0,
            default_bootstrap: bootstrap::format_records(&bootstrap::default_features(), []),
        };
        let controller = QuorumController::spawn(tree.root(), &raft, options);
        let broker_epoch = Arc::new(AtomicI64::new(-1));
        let setup = ReplicasSetup {
            node_id: 1,
            directories: Arc::new(vec![LogDirectory::new(PathBuf::from(dir), DIRECTORY)]),
            checkpoint_interval: Duration::from_secs(60),
            high_watermark_interval: Duration::from_secs(5),
            upkeep: Upkeep {
                initial_delay: Duration::from_secs(30),
                retention_interval: Duration::from_secs(300),
                producer_expiration_interval: Duration::from_secs(600),
                disk_reserve_bytes: 0,
            },
            cleaners: CleanerOptions {
                enabled: true,
                threads: 1,
                backoff: Duration::from_secs(15),
                dedupe_buffer_bytes: 1 << 20,
                load_factor: 0.9,
                max_bytes_per_second: f64::MAX,
            },
            broker_epoch: Arc::clone(&broker_epoch),
        };
        let replicas = Replicas::start(tree.root(), &shards, setup);
        let metadata = BrokerMetadata::spawn(tree.root(), &loader, &replicas, 1, settings);
        let options = LifecycleOptions {
            registration: registration(run, previous_epoch),
            heartbeat_interval: Duration::from_secs(2),
            broker_epoch: Arc::clone(&broker_epoch),
        };
        let lifecycle = BrokerLifecycle::spawn(tree.root(), &controller, &metadata, options);
        Self { tree, controller, metadata, lifecycle, replicas, broker_epoch }
    }

    /// Has a request decided, and waits until it is carried out here.
    pub async fn decide<Q: ControllerRequest>(&self, request: Q) -> Result<Decided<Q::Response>, ErrorCode> {
        let version = Q::MAX_VERSION;
        let decided = self.controller.decide(request, version).await?;
        assert!(self.metadata.reached(decided.last_offset).await);
        Ok(decided)
    }

    pub async fn create(&self, name: &str, partitions: i32) -> Result<Decided<i16>, ErrorCode> {
        let decided = self.decide(create_request(name, partitions)).await?;
        let code = decided.response.topics[0].error_code;
        Ok(Decided { response: code, last_offset: decided.last_offset })
    }

    pub fn serves(&self, topic: &str, partition: i32) -> bool {
        let handle = self.replicas.registry.partition_named(topic, partition);
        handle.is_some_and(|handle| handle.view().status() == Status::Leader)
    }

    pub fn topics(&self) -> Vec<String> {
        let metadata = self.metadata.current();
        metadata.image.topics.iter_by_name().map(|topic| topic.name.to_string()).collect()
    }

    pub fn crash(&self, path: &str) {
        assert!(faults::crash(&self.tree, path), "{path} is not there: {:#?}", self.tree.snapshot());
    }

    pub async fn stop(self) {
        assert_eq!(self.tree.shutdown(Duration::from_secs(30)).await, Exit::Clean);
    }
}

pub fn create_request(name: &str, num_partitions: i32) -> CreateTopicsRequest {
    let topic =
        CreatableTopic { name: name.into(), num_partitions, replication_factor: 1, ..Default::default() };
    CreateTopicsRequest { topics: vec![topic], ..Default::default() }
}

fn registration(run: u128, previous_broker_epoch: i64) -> BrokerRegistrationRequest {
    BrokerRegistrationRequest {
        broker_id: 1,
        cluster_id: CLUSTER.into(),
        incarnation_id: Uuid::from_u128(2_000 + run),
        listeners: vec![broker_registration_request::Listener {
            name: "PLAINTEXT".into(),
            host: "localhost".into(),
            port: 9092,
            ..Default::default()
        }],
        features: features::SUPPORTED
            .iter()
            .map(|(name, range)| broker_registration_request::Feature {
                name: (*name).into(),
                min_supported_version: range.min,
                max_supported_version: range.max,
                ..Default::default()
            })
            .collect(),
        log_dirs: vec![DIRECTORY],
        previous_broker_epoch,
        ..Default::default()
    }
}

fn raft_options(dir: &Path) -> RaftOptions {
    let voter = Voter {
        key: ReplicaKey::new(1, Uuid::ZERO),
        endpoints: vec![Endpoint { name: "CONTROLLER".into(), host: "localhost".into(), port: 9093 }],
        min_kraft_version: 0,
        max_kraft_version: 0,
    };
    RaftOptions {
        node_id: 1,
        directory_id: DIRECTORY,
        metadata_log_dir: dir.to_owned(),
        static_voters: vec![voter],
        quorum: QuorumConfig {
            election_timeout_ms: 1_000,
            election_backoff_max_ms: 1_000,
            fetch_timeout_ms: 2_000,
            request_timeout_ms: 2_000,
            retry_backoff_ms: 20,
            append_linger_ms: 25,
        },
        log: MetadataLogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 1 << 40,
            max_record_bytes_between_snapshots: 1 << 30,
            max_snapshot_interval_ms: None,
            max_idle_interval_ms: None,
            max_retention_bytes: None,
            max_retention_ms: None,
        },
    }
}

pub fn simulate<F: Future>(test: impl FnOnce(tempfile::TempDir) -> F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async { test(tempfile::tempdir().unwrap()).await })
}
