//! The broker's data path: partitions, the manager that starts them, and the purgatories where requests wait.
//!
//! A produce request sends one [`Append`](messages::Append) to each of its partitions. A fetch sends none: it
//! finds the partition in the [`Registry`], reads offsets and file regions through its [`View`], and waits in a
//! purgatory if there is too little.

mod changes;
mod directories;
mod logs;
mod manager;
pub mod messages;
mod partition;
mod purgatory;
mod registry;
mod settings;
mod view;
mod wheel;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use crate::supervision::{ActorRef, Shards, Spec, SupervisorRef, SupervisorSpec};

pub use changes::Viewpoint;
pub use directories::LogDirectory;
pub use logs::{Cleaner, CleanerOptions, Keeper, Upkeep};
pub use manager::{Manager, ReplicasSetup};
pub use partition::Partition;
pub use purgatory::{Goal, Isolation, Kind, Purgatories, Purgatory, Wait};
pub use registry::{Held, HeldTopic, Registry};
pub use settings::PartitionSettings;
pub use view::{Offsets, PartitionHandle, PartitionId, Shared, Status, View};

/// The running data path of a node.
#[derive(Debug, Clone)]
pub struct Replicas {
    /// Which partitions there are.
    pub registry: Arc<Registry>,
    /// Applies what the controller decides.
    pub manager: ActorRef<Manager>,
    /// Where requests wait.
    pub purgatories: Purgatories,
    /// The log directories.
    pub directories: Arc<Vec<LogDirectory>>,
}

impl Replicas {
    /// Reads the log directories and starts the actors below `parent`. No partition is there until the manager
    /// is told of them ([`messages::ApplyChanges`]). It blocks for as long as listing the directories takes.
    pub fn start(parent: &SupervisorRef, shards: &Shards, setup: ReplicasSetup) -> Self {
        let replicas = parent.supervisor(SupervisorSpec::new("replicas"));
        let inventory = directories::Inventory::read(&setup.directories);
        let registry = Arc::new(Registry::default());
        let directories = Arc::clone(&setup.directories);
        let requests = replicas.supervisor(SupervisorSpec::new("requests"));
        let purgatories = Purgatories::start(&requests, shards);
        let core = Arc::new(manager::Core {
            setup,
            registry: Arc::clone(&registry),
            purgatories: purgatories.clone(),
            partitions: OnceLock::new(),
            inventory,
            next_serial: AtomicU64::new(0),
            shards: shards.count(),
        });
        let for_factory = Arc::clone(&core);
        let manager = replicas.spawn(Spec::new("manager", move || Manager::new(Arc::clone(&for_factory))));
        // Started after the manager, the partitions stop before it: it writes the clean-shutdown markers once
        // all logs are closed.
        let partitions = replicas.supervisor(SupervisorSpec::new("partitions").stop_together());
        let _ = core.partitions.set(partitions);
        logs::start(&replicas, &core, &manager);
        Self { registry, manager, purgatories, directories }
    }
}
