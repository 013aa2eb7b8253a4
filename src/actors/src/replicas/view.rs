//! What a partition publishes, to be read without a message.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use callboard_protocol::{ByteString, ErrorCode, Uuid};
use callboard_storage::LogReader;

use super::messages::Assignment;
use super::partition::{Opening, Partition};
use super::purgatory::Kind;
use super::settings::PartitionSettings;
use crate::supervision::ActorRef;

/// Which partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The topic's name.
    pub topic: ByteString,
    /// The partition's number.
    pub partition: i32,
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// What this broker is to a partition now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Its log is being opened, at start or after a crash.
    Opening,
    /// This broker leads it.
    Leader,
    /// Another broker leads it, or none.
    Follower,
    /// Its log directory has failed.
    Offline,
    /// It was deleted, or moved away.
    Gone,
}

/// A partition's offsets at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// The leader's epoch.
    pub leader_epoch: i32,
    /// The first offset there is.
    pub log_start: i64,
    /// All in-sync replicas have what is below.
    pub high_watermark: i64,
    /// No transaction is open below.
    pub last_stable: i64,
    /// The offset the next record will get.
    pub log_end: i64,
}

/// What a partition publishes. It outlives crashes of the partition's actor, which write to it anew.
#[derive(Debug)]
pub struct View {
    status: AtomicU8,
    leader_epoch: AtomicI32,
    high_watermark: AtomicI64,
    reader: ArcSwapOption<LogReader>,
}

impl View {
    pub(super) fn new() -> Self {
        Self {
            status: AtomicU8::new(Status::Opening as u8),
            leader_epoch: AtomicI32::new(-1),
            high_watermark: AtomicI64::new(0),
            reader: ArcSwapOption::empty(),
        }
    }

    /// What this broker is to the partition.
    pub fn status(&self) -> Status {
        match self.status.load(Ordering::SeqCst) {
            1 => Status::Leader,
            2 => Status::Follower,
            3 => Status::Offline,
            4 => Status::Gone,
            _ => Status::Opening,
        }
    }

    /// The leader's epoch; -1 before the first.
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch.load(Ordering::Acquire)
    }

    /// All in-sync replicas have what is below.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark.load(Ordering::SeqCst)
    }

    /// A handle to read the log with, unless it is not open.
    pub fn reader(&self) -> Option<Arc<LogReader>> {
        self.reader.load_full()
    }

    /// The reader, if this broker leads the partition and the client's idea of the leader's epoch is right.
    /// A `current_leader_epoch` of -1 is not compared.
    ///
    /// # Errors
    /// NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR, UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH or
    /// UNKNOWN_LEADER_EPOCH, as Kafka answers them.
    pub fn as_leader(&self, current_leader_epoch: i32) -> Result<Arc<LogReader>, ErrorCode> {
        let status = self.status();
        if status == Status::Offline {
            return Err(ErrorCode::KafkaStorageError);
        }
        if status == Status::Gone {
            return Err(ErrorCode::UnknownTopicOrPartition);
        }
        self.check_epoch(current_leader_epoch)?;
        match (status, self.reader()) {
            (Status::Leader, Some(reader)) => Ok(reader),
            _ => Err(ErrorCode::NotLeaderOrFollower),
        }
    }

    fn check_epoch(&self, current_leader_epoch: i32) -> Result<(), ErrorCode> {
        let known = self.leader_epoch();
        if current_leader_epoch == -1 || current_leader_epoch == known {
            Ok(())
        } else if current_leader_epoch < known {
            Err(ErrorCode::FencedLeaderEpoch)
        } else {
            Err(ErrorCode::UnknownLeaderEpoch)
        }
    }

    /// The offsets, for a leader; errors as [`as_leader`](Self::as_leader).
    ///
    /// # Errors
    /// As [`as_leader`](Self::as_leader).
    pub fn offsets(&self, current_leader_epoch: i32) -> Result<Offsets, ErrorCode> {
        let reader = self.as_leader(current_leader_epoch)?;
        Ok(self.offsets_of(&reader))
    }

    /// The offsets as one reader sees them.
    pub fn offsets_of(&self, reader: &LogReader) -> Offsets {
        // The log's end is read last, so that no offset here is past it.
        let high_watermark = self.high_watermark();
        Offsets {
            leader_epoch: self.leader_epoch(),
            log_start: reader.log_start_offset(),
            high_watermark,
            last_stable: reader.last_stable_offset(high_watermark),
            log_end: reader.log_end_offset(),
        }
    }

    pub(super) fn set_status(&self, status: Status) {
        self.status.store(status as u8, Ordering::SeqCst);
    }

    pub(super) fn set_leader_epoch(&self, epoch: i32) {
        self.leader_epoch.store(epoch, Ordering::Release);
    }

    pub(super) fn set_high_watermark(&self, offset: i64) {
        self.high_watermark.store(offset, Ordering::SeqCst);
    }

    pub(super) fn set_reader(&self, reader: Option<LogReader>) {
        self.reader.store(reader.map(Arc::new));
    }
}

/// Whether one shard's purgatory of one kind waits for this partition.
#[derive(Debug, Default)]
pub(super) struct Interest {
    /// Only the purgatory writes it.
    pub wanted: AtomicBool,
    /// A change was told and not yet looked at: so at most one is outstanding.
    pub told: AtomicBool,
}

/// What the controller wants of the partition: the manager writes it, the partition reads it whenever it is
/// built or told of a change.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Orders {
    pub assignment: Assignment,
    pub settings: Arc<PartitionSettings>,
}

/// What all who deal with one partition share. It outlives the partition's crashes.
#[derive(Debug)]
pub struct Shared {
    /// Which partition.
    pub id: PartitionId,
    /// What it publishes.
    pub view: View,
    /// A number of its own within this node's life.
    pub serial: u64,
    /// Its log directory's place in `log.dirs`.
    pub directory: usize,
    /// The offset up to which its log is known to be on the device.
    pub(super) durable_offset: AtomicI64,
    /// Set once the log was closed in order.
    pub(super) closed: AtomicBool,
    pub(super) orders: Mutex<Orders>,
    interests: Vec<Interest>,
    shards: usize,
    pub(super) opened: AtomicUsize,
    pub(super) opening: Opening,
}

impl Shared {
    pub(super) fn new(id: PartitionId, serial: u64, directory: usize, orders: Orders, shards: usize) -> Self {
        let interests = (0..shards * Kind::COUNT).map(|_| Interest::default()).collect();
        Self {
            id,
            view: View::new(),
            serial,
            directory,
            durable_offset: AtomicI64::new(0),
            closed: AtomicBool::new(false),
            orders: Mutex::new(orders),
            interests,
            shards,
            opened: AtomicUsize::new(0),
            opening: Opening::default(),
        }
    }

    pub(super) fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn interest(&self, kind: Kind, shard: usize) -> Option<&Interest> {
        self.interests.get(kind as usize * self.shards + shard)
    }
}

/// One partition of this broker: what it publishes, and its actor.
#[derive(Debug, Clone)]
pub struct PartitionHandle {
    shared: Arc<Shared>,
    actor: ActorRef<Partition>,
}

impl PartitionHandle {
    pub(super) const fn new(shared: Arc<Shared>, actor: ActorRef<Partition>) -> Self {
        Self { shared, actor }
    }

    /// Which partition.
    pub fn id(&self) -> &PartitionId {
        &self.shared.id
    }

    /// What it publishes.
    pub fn view(&self) -> &View {
        &self.shared.view
    }

    /// Its actor.
    pub const fn actor(&self) -> &ActorRef<Partition> {
        &self.actor
    }

    /// What all share of it.
    pub const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The largest batch it takes, in bytes.
    pub fn max_batch_bytes(&self) -> usize {
        self.shared.orders().settings.rules.max_message_bytes
    }

    /// What the controller has decided for it, as far as this broker knows.
    pub fn assignment(&self) -> Assignment {
        self.shared.orders().assignment.clone()
    }
}
