//! What carries a coordinator's machines: one actor for each partition of its topic that this broker leads.
//!
//! [`Coordinators`] starts a manager, which follows the metadata, and gives handlers the way to a shard. A shard
//! (`shard::Shard`) loads its partition's log, answers, appends, and unloads, with the leadership of the partition.
//! Nothing here knows groups: any [`Coordinator`] can be carried.

mod cluster;
mod loading;
mod manager;
mod shard;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use callboard_coordinator::Settings as CoordinatorSettings;
use callboard_coordinator::runtime::{Coordinator, Machine};
use callboard_metadata::config::Settings;
use callboard_protocol::records::{Compression, CompressionLevels};
use callboard_protocol::{ByteString, ErrorCode};
use tokio::time::Instant;

use crate::control::applied::BrokerMetadata;
use crate::replicas::{PartitionId, Replicas};
use crate::supervision::{ActorRef, AskError, Spec, SupervisorRef, SupervisorSpec};

use self::manager::Manager;
use self::shard::{Request, Shard};

/// How one kind of coordinator is carried.
#[derive(Clone)]
pub struct CoordinatorSetup {
    /// Its supervisor's name in the tree.
    pub name: &'static str,
    /// The topic whose partitions are its shards.
    pub topic: &'static str,
    /// `node.id`.
    pub node_id: i32,
    /// How its batches are compressed.
    pub compression: Compression,
    /// What of the broker's settings its machines go by.
    pub settings: fn(&Settings) -> CoordinatorSettings,
}

impl fmt::Debug for CoordinatorSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoordinatorSetup").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a shard is ordered to lead.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Led {
    id: PartitionId,
    leader_epoch: i32,
}

/// The orders of one shard: the manager writes them, the shard reads them whenever it is built or told.
#[derive(Debug, Default)]
struct Orders(Mutex<Option<Led>>);

impl Orders {
    fn get(&self) -> Option<Led> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether they are other orders than before.
    fn set(&self, led: Option<Led>) -> bool {
        let mut present = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *present != led;
        *present = led;
        changed
    }
}

struct Held<M: Coordinator> {
    orders: Arc<Orders>,
    actor: ActorRef<Shard<M>>,
}

impl<M: Coordinator> Clone for Held<M> {
    fn clone(&self) -> Self {
        Self { orders: Arc::clone(&self.orders), actor: self.actor.clone() }
    }
}

/// Has others do the work of an effect, for a shard that leads in this leader epoch.
pub type Performer<M> = Arc<
    dyn Fn(<M as Machine>::Effect, i32) -> Pin<Box<dyn Future<Output = <M as Coordinator>::Done>>>
        + Send
        + Sync,
>;

/// What the manager and the shards share. It outlives their crashes.
struct Core<M: Coordinator> {
    setup: CoordinatorSetup,
    /// Who does the work of effects; without, the machine itself in the blocking pool.
    performer: Option<Performer<M>>,
    levels: CompressionLevels,
    replicas: Replicas,
    metadata: BrokerMetadata,
    /// Where the shards' monotonic clock begins.
    origin: Instant,
    /// By partition; a shard stays once it was made, and waits for orders.
    shards: ArcSwap<BTreeMap<i32, Held<M>>>,
    supervisor: OnceLock<SupervisorRef>,
    /// Tells one loading from the next, over all shards.
    next_load: AtomicU64,
}

/// The running coordinators of one kind.
pub struct Coordinators<M: Coordinator> {
    core: Arc<Core<M>>,
}

impl<M: Coordinator> Clone for Coordinators<M> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core) }
    }
}

impl<M: Coordinator> fmt::Debug for Coordinators<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinators").field("name", &self.core.setup.name).finish_non_exhaustive()
    }
}

impl<M: Coordinator> Coordinators<M> {
    /// Starts the manager below `parent`; it starts a shard for each partition that this broker leads.
    pub fn start(
        parent: &SupervisorRef,
        replicas: &Replicas,
        metadata: &BrokerMetadata,
        setup: CoordinatorSetup,
        performer: Option<Performer<M>>,
    ) -> Self {
        let own = parent.supervisor(SupervisorSpec::new(setup.name));
        let core = Arc::new(Core {
            setup,
            performer,
            levels: CompressionLevels::default(),
            replicas: replicas.clone(),
            metadata: metadata.clone(),
            origin: Instant::now(),
            shards: ArcSwap::default(),
            supervisor: OnceLock::new(),
            next_load: AtomicU64::new(0),
        });
        let for_factory = Arc::clone(&core);
        own.spawn(Spec::new("manager", move || Manager::new(Arc::clone(&for_factory))));
        let shards = own.supervisor(SupervisorSpec::new("shards").stop_together());
        let _ = core.supervisor.set(shards);
        Self { core }
    }

    /// Which shard a key belongs to; `None` before the topic is there.
    pub fn partition_of(&self, key: &str) -> Option<i32> {
        let metadata = self.core.metadata.current();
        let count = metadata.image.topics.by_name(self.core.setup.topic)?.partitions.len();
        i32::try_from(count).ok().filter(|count| *count > 0).map(|count| partition_for(key, count))
    }

    /// Asks the shard of a key. Answered when what it was decided on is committed.
    ///
    /// # Errors
    /// NOT_COORDINATOR if this broker does not lead the shard; COORDINATOR_LOAD_IN_PROGRESS while it loads, and if it
    /// crashed over the request; what made the append fail.
    pub async fn ask(&self, key: &str, request: M::Request) -> Result<M::Reply, ErrorCode> {
        match self.partition_of(key) {
            Some(partition) => self.ask_partition(partition, request).await,
            None => Err(ErrorCode::NotCoordinator),
        }
    }

    /// Asks a shard by its number.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn ask_partition(&self, partition: i32, request: M::Request) -> Result<M::Reply, ErrorCode> {
        let held = self.core.shards.load().get(&partition).cloned();
        let Some(held) = held else { return Err(self.without_shard(partition)) };
        match held.actor.ask(Request::<M>(request)).await {
            Ok(answer) => answer,
            Err(AskError::Busy | AskError::Crashed) => Err(ErrorCode::CoordinatorLoadInProgress),
            Err(AskError::Stopped) => Err(ErrorCode::NotCoordinator),
        }
    }

    /// The shards that this broker leads now.
    pub fn led_partitions(&self) -> Vec<i32> {
        let shards = self.core.shards.load();
        shards.iter().filter(|(_, held)| held.orders.get().is_some()).map(|(number, _)| *number).collect()
    }

    /// The shard is not there: it is about to be, if this broker leads its partition.
    fn without_shard(&self, partition: i32) -> ErrorCode {
        let metadata = self.core.metadata.current();
        let leads = metadata
            .image
            .topics
            .partition(self.core.setup.topic, partition)
            .is_some_and(|registration| registration.leader == self.core.setup.node_id);
        if leads { ErrorCode::CoordinatorLoadInProgress } else { ErrorCode::NotCoordinator }
    }
}

/// Which of `count` partitions a key belongs to: by the hash that Java gives a string, as all brokers must agree.
pub fn partition_for(key: &str, count: i32) -> i32 {
    let hash =
        key.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    hash.checked_abs().unwrap_or(0) % count.max(1)
}

/// Names of topics that are gone.
type Deleted = Arc<Vec<ByteString>>;

#[cfg(test)]
mod tests {
    use super::partition_for;

    #[test]
    fn a_key_belongs_to_the_partition_that_kafka_gives_it() {
        // "foo".hashCode() is 101574, "my-group" is -2029577185, "Aa" and "BB" are the same.
        assert_eq!(partition_for("foo", 50), 101_574 % 50);
        assert_eq!(partition_for("Aa", 1_000_003), partition_for("BB", 1_000_003));
        assert_eq!(partition_for("", 50), 0);
        // Its hash is -2147483648, which has no positive counterpart.
        assert_eq!(partition_for("polygenelubricants", 50), 0);
        assert!(partition_for("grüße-\u{1f600}", 50) >= 0);
    }
}
