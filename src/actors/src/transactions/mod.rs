//! The transaction coordinator of this broker: one shard for each partition of `__transaction_state` that it leads.
//!
//! The shards are carried by [`crate::coordinator`]. What they want of others is done here: producer ids come from
//! [`ProducerIds`], and markers are written by `markers`.

mod markers;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use callboard_coordinator::runtime::Producer;
use callboard_coordinator::transaction::{
    AddPartitions, Done, Effect, End, InitProducer, List, Listed, Reply, Request, Transaction,
    TransactionShard, Verify,
};
use callboard_coordinator::{Settings as CoordinatorSettings, TransactionSettings};
use callboard_metadata::config::Settings;
use callboard_protocol::records::Compression;
use callboard_protocol::{ByteString, ErrorCode};

use self::markers::Writer;
use crate::control::applied::BrokerMetadata;
use crate::coordinator::{CoordinatorSetup, Coordinators, Performer};
use crate::groups::Groups;
use crate::producer_ids::{NextProducerId, ProducerIds};
use crate::replicas::Replicas;
use crate::supervision::{ActorRef, SupervisorRef};

pub use self::markers::{MarkerToWrite, write_here};

/// The topic of transactional ids.
pub const TOPIC: &str = "__transaction_state";

/// What the coordinator works with.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The partitions of this broker.
    pub replicas: Replicas,
    /// The cluster's metadata.
    pub metadata: BrokerMetadata,
    /// The group coordinator: offsets take part in transactions.
    pub groups: Groups,
    /// Ids for producers.
    pub producer_ids: ActorRef<ProducerIds>,
    /// `node.id`.
    pub node_id: i32,
    /// The epoch of this broker's registration; -1 before the first.
    pub broker_epoch: Arc<AtomicI64>,
}

/// The way to the transaction coordinator.
#[derive(Debug, Clone)]
pub struct Transactions {
    shards: Coordinators<TransactionShard>,
}

impl Transactions {
    /// Starts it below `parent`.
    pub fn start(parent: &SupervisorRef, around: Surroundings) -> Self {
        let setup = CoordinatorSetup {
            name: "transactions",
            topic: TOPIC,
            node_id: around.node_id,
            compression: Compression::None,
            settings: read_settings,
        };
        let (replicas, metadata) = (around.replicas.clone(), around.metadata.clone());
        let performer = performer(around);
        Self { shards: Coordinators::start(parent, &replicas, &metadata, setup, Some(performer)) }
    }

    /// The partition of the topic that an id belongs to; `None` before the topic is there.
    pub fn partition_of(&self, transactional_id: &str) -> Option<i32> {
        self.shards.partition_of(transactional_id)
    }

    /// Gives an id a producer.
    ///
    /// # Errors
    /// As [`Coordinators::ask`], and those of the id itself.
    pub async fn init(&self, request: InitProducer) -> Result<Producer, ErrorCode> {
        let id = request.transactional_id.clone();
        match self.shards.ask(&id, Request::Init(request)).await? {
            Reply::Producer(answer) => answer,
            _ => Err(ErrorCode::UnknownServerError),
        }
    }

    /// Ends a transaction.
    ///
    /// # Errors
    /// As [`Coordinators::ask`], and those of the transaction itself.
    pub async fn end(&self, request: End) -> Result<Producer, ErrorCode> {
        let id = request.transactional_id.clone();
        match self.shards.ask(&id, Request::End(request)).await? {
            Reply::Producer(answer) => answer,
            _ => Err(ErrorCode::UnknownServerError),
        }
    }

    /// Adds partitions to a transaction.
    ///
    /// # Errors
    /// As [`Coordinators::ask`], and those of the transaction itself.
    pub async fn add(&self, request: AddPartitions) -> Result<(), ErrorCode> {
        let id = request.transactional_id.clone();
        match self.shards.ask(&id, Request::Add(request)).await? {
            Reply::Added(answer) => answer,
            _ => Err(ErrorCode::UnknownServerError),
        }
    }

    /// Whether each partition is in a transaction.
    ///
    /// # Errors
    /// As [`Coordinators::ask`], and those of the transaction itself.
    pub async fn verify(&self, request: Verify) -> Result<Vec<bool>, ErrorCode> {
        let id = request.transactional_id.clone();
        match self.shards.ask(&id, Request::Verify(request)).await? {
            Reply::Verified(answer) => answer,
            _ => Err(ErrorCode::UnknownServerError),
        }
    }

    /// What is known of an id.
    ///
    /// # Errors
    /// As [`Coordinators::ask`].
    pub async fn describe(&self, id: &ByteString) -> Result<Option<Arc<Transaction>>, ErrorCode> {
        match self.shards.ask(id, Request::Describe(id.clone())).await? {
            Reply::Described(found) => Ok(found),
            _ => Err(ErrorCode::UnknownServerError),
        }
    }

    /// The ids of all shards that this broker leads.
    ///
    /// # Errors
    /// COORDINATOR_LOAD_IN_PROGRESS while one of them loads.
    pub async fn list(&self, request: &List) -> Result<Vec<Listed>, ErrorCode> {
        let mut ids = Vec::new();
        for partition in self.shards.led_partitions() {
            match self.shards.ask_partition(partition, Request::List(request.clone())).await {
                Ok(Reply::Listed(listed)) => ids.extend(listed),
                // Its ids are another broker's to tell.
                Ok(_) | Err(ErrorCode::NotCoordinator) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ids)
    }
}

/// Has others do what a shard wants.
fn performer(around: Surroundings) -> Performer<TransactionShard> {
    let ids = around.producer_ids.clone();
    let writer = Arc::new(Writer::new(around));
    Arc::new(move |effect, coordinator_epoch| match effect {
        Effect::NextProducerId(ticket) => {
            let asking = ids.ask(NextProducerId);
            Box::pin(async move {
                let id = asking.await.unwrap_or(Err(ErrorCode::CoordinatorLoadInProgress));
                Done::ProducerId(ticket, id)
            })
        }
        Effect::WriteMarkers(markers) => {
            let writer = Arc::clone(&writer);
            Box::pin(async move {
                writer.write_all(&markers, coordinator_epoch).await;
                Done::Marked(markers)
            })
        }
    })
}

/// What the coordinator goes by.
fn read_settings(settings: &Settings) -> CoordinatorSettings {
    let int = |name: &str| settings.value(name).and_then(|value| value.as_i64()).unwrap_or(0);
    let transactions = TransactionSettings {
        max_timeout_ms: i32::try_from(int("transaction.max.timeout.ms")).unwrap_or(i32::MAX),
        abort_check_interval_ms: int("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        expiration_ms: int("transactional.id.expiration.ms"),
        expiry_check_interval_ms: int("transaction.remove.expired.transaction.cleanup.interval.ms"),
    };
    CoordinatorSettings { transactions, ..CoordinatorSettings::default() }
}
