//! The controller: every decision about the cluster's metadata.
//!
//! A request gives records and a reply. The caller replays the records at once, appends them to the metadata log and
//! sends the reply when the log's high watermark has passed them. If the append fails, it goes back to a clone of the
//! controller taken before: cloning is cheap, since all state is in persistent maps.

mod allocate_producer_ids;
mod alter_configs;
mod alter_partition_reassignments;
mod alteration;
mod config_change;
mod config_checks;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod elect_leaders;
mod heartbeat;
mod incremental_alter_configs;
mod leadership;
mod list_partition_reassignments;
mod partition_change;
mod placement;
mod register_broker;
mod register_controller;
mod unregister_broker;
mod update_features;

use std::sync::Arc;

use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::{ByteString, ErrorCode, Uuid};
use imbl::OrdMap;

pub use alteration::{Alteration, Answer, Asked, Change};
pub use config_checks::{Checked, check_alteration};

use crate::config;
use crate::error::ReplayError;
use crate::features::ELIGIBLE_LEADER_REPLICAS_VERSION;
use crate::image::{ConfigResource, Image, TransactionalImage};
use crate::record::VersionedRecord;

/// How many partitions one request may create, so that its records fit one batch.
const MAX_PARTITIONS_PER_REQUEST: usize = 10_000;

/// What a decision needs from outside.
pub struct Context<'a> {
    /// The time in milliseconds since 1970.
    pub now_ms: i64,
    /// The offset the next record gets. It's the epoch of a broker registered now.
    pub next_offset: i64,
    /// A source of random numbers, for ids and for where placement starts.
    pub random: &'a mut dyn FnMut() -> u64,
}

impl Context<'_> {
    /// A random id as Kafka makes them: version 4, and never starting with `-`, which tools would take for an option.
    pub fn random_id(&mut self) -> Uuid {
        loop {
            let mut bytes = [0; 16];
            let (high, low) = bytes.split_at_mut(8);
            high.copy_from_slice(&(self.random)().to_be_bytes());
            low.copy_from_slice(&(self.random)().to_be_bytes());
            bytes[6] = (bytes[6] & 0x0f) | 0x40;
            bytes[8] = (bytes[8] & 0x3f) | 0x80;
            // The first six bits are the first character; 62 is `-`.
            if bytes[0] >> 2 != 62 {
                return Uuid::from_bytes(bytes);
            }
        }
    }
}

/// A decision: what to write, and what to answer once it is committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome<R> {
    /// The records, in order. When there are none, the reply may go at once.
    pub records: Vec<VersionedRecord>,
    /// The answer.
    pub reply: R,
    /// Whether the records must become visible together: one batch, or a transaction around them.
    pub atomic: bool,
}

impl<R> Outcome<R> {
    fn reply(reply: R) -> Self {
        Self { records: Vec::new(), reply, atomic: false }
    }

    fn atomic(records: Vec<VersionedRecord>, reply: R) -> Self {
        Self { records, reply, atomic: true }
    }
}

/// An error for one part of a request: its code, and the text Kafka gives with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) message: Option<ByteString>,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, message: impl Into<ByteString>) -> Self {
        Self { code, message: Some(message.into()) }
    }

    pub(crate) fn bare(code: ErrorCode) -> Self {
        Self { code, message: None }
    }
}

/// What a controller knows of itself.
#[derive(Debug, Clone)]
pub struct ControllerSettings {
    /// `node.id`.
    pub node_id: i32,
    /// The cluster's id.
    pub cluster_id: ByteString,
    /// The settings of the node's file.
    pub static_settings: config::Settings,
}

impl ControllerSettings {
    fn int(&self, name: &str) -> i64 {
        self.static_settings.value(name).and_then(|value| value.as_i64()).unwrap_or(0)
    }
}

/// What the controller knows of a broker beyond its registration. It is not in the log: a new controller learns it
/// from the next heartbeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BrokerLiveness {
    /// When the broker was last heard of.
    last_contact_ms: i64,
    /// How far it has read the metadata log.
    metadata_offset: i64,
    /// The offset that all others must have read before it may stop; -1 when it doesn't want to.
    shutdown_offset: i64,
}

/// The controller's state and decisions.
#[derive(Debug, Clone)]
pub struct Controller {
    settings: Arc<ControllerSettings>,
    image: TransactionalImage,
    liveness: OrdMap<i32, BrokerLiveness>,
}

impl Controller {
    /// A controller over an image, with all registered brokers given a full session from now on.
    pub fn new(settings: ControllerSettings, image: Image, now_ms: i64) -> Self {
        let mut controller = Self {
            settings: Arc::new(settings),
            image: TransactionalImage::new(image),
            liveness: OrdMap::new(),
        };
        controller.start_sessions(now_ms);
        controller
    }

    /// The image with everything replayed, committed or not.
    pub fn image(&self) -> &Image {
        self.image.latest()
    }

    /// Whether a metadata transaction is open: a controller that failed amid one leaves it so.
    pub fn in_transaction(&self) -> bool {
        self.image.in_transaction()
    }

    /// Applies a record: of an own decision, or read from the log.
    pub fn replay(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        self.image.apply(record)?;
        if let MetadataRecord::UnregisterBrokerRecord(r) = record {
            self.liveness.remove(&r.broker_id);
        }
        Ok(())
    }

    /// Gives every registered broker a full session from now on: a new active controller has heard from none.
    pub fn start_sessions(&mut self, now_ms: i64) {
        let ids: Vec<i32> = self.image().cluster.brokers.keys().copied().collect();
        for id in ids {
            self.touch(id, now_ms, None);
        }
    }

    /// Goes back to how `earlier`, a clone of this controller, knew the cluster. What was heard from brokers since
    /// then stays: it's true whatever became of the log.
    pub fn roll_back_to(&mut self, earlier: Controller) {
        self.image = earlier.image;
    }

    /// The dynamic settings of a broker over this node's static ones, as topics and the controller see them.
    fn effective_settings(&self, broker_id: i32) -> config::Settings {
        let configs = &self.image().configs;
        let cluster = configs.of(&ConfigResource::all_brokers());
        let broker = configs.of(&ConfigResource::broker(broker_id));
        self.settings.static_settings.with_dynamic(pairs(&cluster), pairs(&broker))
    }

    fn elr_enabled(&self) -> bool {
        self.image().features.level(ELIGIBLE_LEADER_REPLICAS_VERSION) > 0
    }

    fn touch(&mut self, broker_id: i32, now_ms: i64, metadata_offset: Option<i64>) {
        let entry = self.liveness.entry(broker_id).or_insert(BrokerLiveness {
            last_contact_ms: now_ms,
            metadata_offset: -1,
            shutdown_offset: -1,
        });
        entry.last_contact_ms = now_ms;
        if let Some(offset) = metadata_offset {
            entry.metadata_offset = offset;
        }
    }

    /// Whether a broker was heard of within `broker.session.timeout.ms`.
    fn has_session(&self, broker_id: i32, now_ms: i64) -> bool {
        self.liveness.get(&broker_id).is_some_and(|broker| {
            now_ms.saturating_sub(broker.last_contact_ms) <= self.settings.int("broker.session.timeout.ms")
        })
    }

    /// Checks that a request comes from a broker's current registration.
    fn check_epoch(&self, broker_id: i32, epoch: i64) -> Result<(), ErrorCode> {
        match self.image().cluster.broker(broker_id) {
            None => Err(ErrorCode::BrokerIdNotRegistered),
            Some(broker) if broker.epoch != epoch => Err(ErrorCode::StaleBrokerEpoch),
            Some(_) => Ok(()),
        }
    }
}

/// The pairs of a resource's values, as the config module takes them.
pub(crate) fn pairs(values: &crate::image::ConfigValues) -> impl Iterator<Item = (&str, &str)> {
    values.iter().map(|(name, value)| (&**name, &**value))
}
