//! A node: its tree of actors, and what it offers the handlers of requests.
//!
//! [`Node::start`] builds the tree in the order in which its parts need each other: log directories locked and
//! checked, ports bound, then the quorum's log, the controller, the metadata loader, the replicas, the metadata as
//! carried out here, the lifecycle, and last the listeners, once the broker has been let in. It stops in the reverse
//! order.

mod chaos;
mod directories;
mod listeners;
mod registration;
mod services;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use callboard_metadata::VersionedRecord;
use callboard_metadata::bootstrap;
use callboard_metadata::config::{BrokerConfig, Value};
use callboard_metadata::controller::ControllerSettings;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::AllocateProducerIdsRequest;
use tokio::sync::watch;

pub use directories::DirectoryError;
pub use services::{Features, Services};

use self::directories::Directories;
use self::listeners::Ports;
use crate::api::FetchSessions;
use crate::control::applied::BrokerMetadata;
use crate::control::controller::{ControllerOptions, QuorumController};
use crate::control::lifecycle::{BrokerLifecycle, LifecycleOptions};
use crate::control::loader::{Loader, SnapshotPolicy};
use crate::control::raft::{Raft, RaftOptions};
use crate::groups::Groups;
use crate::net::ListenError;
use crate::producer_ids::{FetchBlock, ProducerIds};
use crate::replicas::{CleanerOptions, Replicas, ReplicasSetup, Upkeep};
use crate::supervision::{
    ActorRef, Exit, Random, Shards, Spec, Strategy, SupervisorRef, Tree, Watchdog, WatchdogOptions,
};
use crate::transactions::{self, Transactions};

/// How long a controlled shutdown may take before the node stops without it.
const CONTROLLED_SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);
/// How long the actors may take to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// The version in which producer ids are asked for.
const ALLOCATE_PRODUCER_IDS_VERSION: i16 = 0;

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A log directory is not fit for it.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A port cannot be had.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The roles are not served yet.
    #[error("process.roles must be broker,controller: a node with one of the roles is not supported yet")]
    Roles,
    /// A listener's protocol is not served yet.
    #[error("listener {name}: security protocol {protocol} is not supported yet, only PLAINTEXT is")]
    Protocol {
        /// The listener.
        name: String,
        /// Its protocol.
        protocol: String,
    },
    /// A thread cannot be made.
    #[error("cannot start threads: {0}")]
    Threads(#[from] std::io::Error),
    /// The node ended before it was ready.
    #[error("the node stopped before it was ready: {0}")]
    Ended(Exit),
}

/// A running node.
pub struct Node {
    tree: Tree,
    services: Arc<Services>,
    lifecycle: BrokerLifecycle,
    acceptors: SupervisorRef,
    ports: Vec<(String, std::net::SocketAddr)>,
    ready: watch::Receiver<bool>,
    _watchdog: Option<Watchdog>,
    _directories: Directories,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node").field("node_id", &self.services.node_id).finish_non_exhaustive()
    }
}

impl Node {
    /// Starts a node on threads of its own, one for each core. Call it inside [`crate::supervision::run`].
    ///
    /// # Errors
    /// Why it does not start.
    pub async fn start(config: BrokerConfig) -> Result<Self, StartError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shards = Shards::start(cores)?;
        let seed = entropy();
        Self::start_on(config, shards, seed).await
    }

    /// Starts a node on given shards; `seed` drives all that is random in it.
    ///
    /// # Errors
    /// Why it does not start.
    pub async fn start_on(config: BrokerConfig, shards: Shards, seed: u64) -> Result<Self, StartError> {
        if !(config.roles.broker && config.roles.controller) {
            return Err(StartError::Roles);
        }
        let mut random = Random::new(seed);
        let directories = Directories::open(&config, &mut random)?;
        let ports = Ports::bind(&config)?;
        let tree = Tree::new("node", Strategy::OneForOne, &shards, random.next_u64());
        let watchdog = if shards.is_local() {
            None
        } else {
            Some(Watchdog::start(&tree, WatchdogOptions::default(), |_| {})?)
        };
        let config = Arc::new(config);
        let root = tree.root();
        let (controller, loader) = start_quorum(root, &config, &directories, &ports, &mut random);
        let broker_epoch = Arc::new(AtomicI64::new(-1));
        let replicas = start_replicas(root, &shards, &config, &directories, &broker_epoch);
        let settings = config.settings.clone();
        let metadata = BrokerMetadata::spawn(root, &loader.loader, &replicas, config.node_id, settings);
        let groups = Groups::start(root, &replicas, &metadata, config.node_id, &config.settings);
        let producer_ids = start_producer_ids(root, &config, &controller, Arc::clone(&broker_epoch));
        let around = transactions::Surroundings {
            replicas: replicas.clone(),
            metadata: metadata.clone(),
            groups: groups.clone(),
            producer_ids: producer_ids.clone(),
            node_id: config.node_id,
            broker_epoch: Arc::clone(&broker_epoch),
        };
        let transactions = Transactions::start(root, around);
        let options = LifecycleOptions {
            registration: registration::of_broker(&config, &directories, &ports, &mut random),
            heartbeat_interval: Duration::from_millis(config.broker_heartbeat_interval_ms),
            broker_epoch,
        };
        let lifecycle = BrokerLifecycle::spawn(root, &controller, &metadata, options);
        let slots = usize::try_from(config.max_incremental_fetch_session_cache_slots).unwrap_or(usize::MAX);
        let services = Arc::new(Services {
            cluster_id: directories.cluster_id.clone(),
            node_id: config.node_id,
            clock: *shards.clock(),
            producer_ids,
            fetch_sessions: FetchSessions::new(slots, Random::new(random.next_u64())),
            shards,
            metadata,
            raft: loader.raft,
            controller,
            replicas,
            groups,
            transactions,
            config,
        });
        chaos::start(&tree, &services.config);
        let acceptors = root.supervisor(crate::supervision::SupervisorSpec::new("listeners"));
        let bound = ports.addresses();
        let ready = listeners::serve_when_let_in(&acceptors, ports, &services, &lifecycle);
        Ok(Self {
            tree,
            services,
            lifecycle,
            acceptors,
            ports: bound,
            ready,
            _watchdog: watchdog,
            _directories: directories,
        })
    }

    /// Waits until the node serves clients.
    ///
    /// # Errors
    /// The node ended instead.
    pub async fn ready(&self) -> Result<(), StartError> {
        let mut ready = self.ready.clone();
        tokio::select! {
            served = ready.wait_for(|ready| *ready) => match served {
                Ok(_) => Ok(()),
                Err(_) => Err(StartError::Ended(self.tree.ended().await)),
            },
            exit = self.tree.ended() => Err(StartError::Ended(exit)),
        }
    }

    /// Waits until the node ends by itself, and says why.
    pub async fn stopped(&self) -> Exit {
        self.tree.ended().await
    }

    /// Stops the node in order: leaderships given up, connections closed, logs closed and marked as such.
    pub async fn shutdown(&self) -> Exit {
        let given_up = tokio::time::timeout(CONTROLLED_SHUTDOWN_LIMIT, self.lifecycle.begin_shutdown());
        if !matches!(given_up.await, Ok(Ok(()))) {
            tracing::warn!("leaderships were not given up in time; stopping without that");
        }
        self.acceptors.stop().await;
        let exit = self.tree.shutdown(STOP_LIMIT).await;
        self.services.shards.stop();
        exit
    }

    /// Each listener's name and the address it is bound to.
    pub fn listeners(&self) -> &[(String, std::net::SocketAddr)] {
        &self.ports
    }

    /// The node's actors.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// What the node offers its handlers.
    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }
}

/// The quorum's log and its loader.
struct Log {
    raft: Raft,
    loader: Loader,
}

fn start_quorum(
    root: &SupervisorRef,
    config: &BrokerConfig,
    directories: &Directories,
    ports: &Ports,
    random: &mut Random,
) -> (QuorumController, Log) {
    let options = RaftOptions::new(config, config.node_id, directories.metadata_directory_id);
    let static_quorum = !options.static_voters.is_empty();
    let raft = Raft::spawn(root, options);
    let options = ControllerOptions {
        settings: ControllerSettings {
            node_id: config.node_id,
            cluster_id: directories.cluster_id.as_str().into(),
            static_settings: config.settings.clone(),
        },
        registration: registration::of_controller(config, ports, random),
        kraft_version: i16::from(!static_quorum),
        default_bootstrap: default_bootstrap(),
    };
    let controller = QuorumController::spawn(root, &raft, options);
    let policy = SnapshotPolicy {
        max_record_bytes: config.metadata_log.max_record_bytes_between_snapshots,
        max_interval_ms: config.metadata_log.max_snapshot_interval_ms,
    };
    let loader = Loader::spawn(root, raft.clone(), policy);
    (controller, Log { raft, loader })
}

fn default_bootstrap() -> Vec<VersionedRecord> {
    bootstrap::format_records(&bootstrap::default_features(), [])
}

fn start_replicas(
    root: &SupervisorRef,
    shards: &Shards,
    config: &BrokerConfig,
    directories: &Directories,
    broker_epoch: &Arc<AtomicI64>,
) -> Replicas {
    let interval = |name: &str| {
        let ms = config.settings.value(name).and_then(|value| value.as_i64());
        // A timer of centuries would overflow the clock; fifty days are as good as never.
        let never = u64::from(u32::MAX);
        Duration::from_millis(ms.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(never).min(never))
    };
    let setup = ReplicasSetup {
        node_id: config.node_id,
        directories: Arc::clone(&directories.data),
        checkpoint_interval: interval("log.flush.offset.checkpoint.interval.ms"),
        high_watermark_interval: interval("replica.high.watermark.checkpoint.interval.ms"),
        upkeep: Upkeep {
            initial_delay: interval("log.initial.task.delay.ms"),
            retention_interval: interval("log.retention.check.interval.ms"),
            producer_expiration_interval: interval("producer.id.expiration.check.interval.ms"),
            disk_reserve_bytes: config
                .settings
                .value("callboard.disk.reserve.bytes")
                .and_then(|value| value.as_i64())
                .and_then(|bytes| u64::try_from(bytes).ok())
                .unwrap_or(0),
        },
        cleaners: cleaner_options(config),
        broker_epoch: Arc::clone(broker_epoch),
    };
    Replicas::start(root, shards, setup)
}

/// `log.cleaner.*`.
fn cleaner_options(config: &BrokerConfig) -> CleanerOptions {
    let number = |name: &str| config.settings.value(name).and_then(|value| value.as_i64()).unwrap_or(0);
    let decimal = |name: &str, default: f64| match config.settings.value(name) {
        Some(Value::Double(value)) => value,
        _ => default,
    };
    CleanerOptions {
        enabled: !matches!(config.settings.value("log.cleaner.enable"), Some(Value::Boolean(false))),
        threads: usize::try_from(number("log.cleaner.threads")).unwrap_or(0),
        backoff: Duration::from_millis(u64::try_from(number("log.cleaner.backoff.ms")).unwrap_or(0).max(1)),
        dedupe_buffer_bytes: u64::try_from(number("log.cleaner.dedupe.buffer.size")).unwrap_or(0),
        load_factor: decimal("log.cleaner.io.buffer.load.factor", 0.9),
        max_bytes_per_second: decimal("log.cleaner.io.max.bytes.per.second", f64::MAX),
    }
}

fn start_producer_ids(
    root: &SupervisorRef,
    config: &BrokerConfig,
    controller: &QuorumController,
    broker_epoch: Arc<AtomicI64>,
) -> ActorRef<ProducerIds> {
    let (controller, broker_id) = (controller.clone(), config.node_id);
    let fetch: FetchBlock = Arc::new(move || {
        let controller = controller.clone();
        let broker_epoch = broker_epoch.load(std::sync::atomic::Ordering::SeqCst);
        Box::pin(async move {
            let request = AllocateProducerIdsRequest { broker_id, broker_epoch, ..Default::default() };
            let response = controller.decide(request, ALLOCATE_PRODUCER_IDS_VERSION).await?.response;
            match ErrorCode::from(response.error_code) {
                ErrorCode::None => Ok(response.producer_id_start
                    ..response.producer_id_start + i64::from(response.producer_id_len)),
                error => Err(error),
            }
        })
    });
    root.spawn(Spec::new("producer-ids", move || ProducerIds::new(Arc::clone(&fetch))))
}

/// A number that nobody can guess well enough to matter: for session ids and jitter, not for secrets.
fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
