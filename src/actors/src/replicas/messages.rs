//! What the broker's data path says to its actors: message types, answers and refusals.
//!
//! Reads need no message: see [`View`](super::View) and [`PartitionHandle`](super::PartitionHandle).

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use callboard_protocol::ErrorCode;
use callboard_storage::{CleanedSegment, LastOfProducer, Origin};

use super::settings::PartitionSettings;
use crate::supervision::Message;

/// Appends one produced batch. Answered once it is in the log; an acks=all producer then waits for
/// `required_high_watermark` (see [`Purgatories::wait`](super::Purgatories::wait)), which with one
/// replica has passed already.
#[derive(Debug)]
pub struct Append {
    /// The partition's records as the request had them: a slice of the frame.
    pub records: Bytes,
    /// The request's version, which decides what codecs it may carry.
    pub version: i16,
    /// Whether all in-sync replicas must have it (acks=all): then `min.insync.replicas` counts.
    pub all_replicas: bool,
    /// Who writes: a client, or a coordinator of this broker.
    pub origin: Origin,
    /// What is known of the transaction that it belongs to, if it does.
    pub membership: Membership,
}

/// What is known of the transaction of a client's batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It is in one if the partition has one open, and refused otherwise; batches in no transaction are free of that.
    AsOpen,
    /// The coordinator has said that the partition takes part, after the partition gave this number (see
    /// [`MayWrite`]).
    Verified(u64),
    /// Nobody wants it verified (`transaction.partition.verification.enable`).
    Unchecked,
}

/// Asks whether a producer's transaction is open in this partition. If it is not, the coordinator must say that the
/// partition takes part: the number goes with the batch then, and is good until a marker is written (KIP-890).
#[derive(Debug, Clone, Copy)]
pub struct MayWrite {
    /// Who wants to write.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
}

impl Message for MayWrite {
    type Reply = Result<Option<u64>, ErrorCode>;
    const NAME: &'static str = "MayWrite";
}

/// Ends a producer's transaction in this partition. Answered once the marker is in the log.
#[derive(Debug, Clone, Copy)]
pub struct WriteMarker {
    /// Whose transaction.
    pub producer_id: i64,
    /// The epoch of the marker.
    pub producer_epoch: i16,
    /// Whether it is committed.
    pub committed: bool,
    /// The coordinator's epoch: the leader epoch of its partition.
    pub coordinator_epoch: i32,
    /// The version of the protocol that the client goes by: from 2 on the marker's epoch is above that of the records.
    pub transaction_version: i8,
}

impl Message for WriteMarker {
    type Reply = Result<Marked, ErrorCode>;
    const NAME: &'static str = "WriteMarker";
}

/// A marker is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// The leader epoch it was written in.
    pub leader_epoch: i32,
    /// All replicas have it once the high watermark is here.
    pub required_high_watermark: i64,
}

/// Where an appended batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of its first record.
    pub base_offset: i64,
    /// The broker's timestamp if the topic stamps records (or the batch is a repeated one), else -1.
    pub log_append_time_ms: i64,
    /// The first offset of the log.
    pub log_start_offset: i64,
    /// The leader epoch it was written in.
    pub leader_epoch: i32,
    /// All replicas have it once the high watermark is here.
    pub required_high_watermark: i64,
}

/// Why a batch was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendRefusal {
    /// What the client is told.
    pub error: ErrorCode,
    /// The first offset of the log where Kafka names it, else -1.
    pub log_start_offset: i64,
    /// The records at fault by their place in the batch, when it is some of them, and what is wrong with each.
    pub records: Vec<(i32, String)>,
    /// The text that goes with the error, where Kafka sends one.
    pub message: Option<String>,
}

impl AppendRefusal {
    /// A refusal that is an error code and nothing more.
    pub const fn of(error: ErrorCode) -> Self {
        Self { error, log_start_offset: -1, records: Vec::new(), message: None }
    }
}

impl Message for Append {
    type Reply = Result<Appended, AppendRefusal>;
    const NAME: &'static str = "Append";
    fn size_bytes(&self) -> usize {
        self.records.len()
    }
}

/// Removes all records before an offset; -1 is the high watermark. Answers the new low watermark of this
/// replica.
#[derive(Debug, Clone, Copy)]
pub struct DeleteRecords {
    /// The first offset to keep.
    pub before_offset: i64,
}

impl Message for DeleteRecords {
    type Reply = Result<i64, ErrorCode>;
    const NAME: &'static str = "DeleteRecords";
}

/// Takes out the segments that the topic's settings no longer keep (see
/// [`LogReader::retention_due`](callboard_storage::LogReader::retention_due)). Answers how many.
#[derive(Debug, Clone, Copy)]
pub struct RemoveDueSegments;

impl Message for RemoveDueSegments {
    type Reply = usize;
    const NAME: &'static str = "RemoveDueSegments";
}

/// Forgets the producers that have been silent for `producer.id.expiration.ms`. Answers how many.
#[derive(Debug, Clone, Copy)]
pub struct ExpireProducers;

impl Message for ExpireProducers {
    type Reply = usize;
    const NAME: &'static str = "ExpireProducers";
}

/// Asks for the last of each producer, which compaction must not lose. `None` if the log is not open.
#[derive(Debug, Clone, Copy)]
pub struct LastOfProducers;

impl Message for LastOfProducers {
    type Reply = Option<BTreeMap<i64, LastOfProducer>>;
    const NAME: &'static str = "LastOfProducers";
}

/// Puts a compacted segment in the place of those it stands for.
#[derive(Debug)]
pub struct SwapIn {
    /// The segment.
    pub cleaned: CleanedSegment,
}

/// What became of a compacted segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swapped {
    /// It is in its place.
    Done,
    /// The log has changed meanwhile, or is not open: it was not put in.
    NotNow,
}

impl Message for SwapIn {
    type Reply = Swapped;
    const NAME: &'static str = "SwapIn";
}

/// Asks for the producers that the partition knows.
#[derive(Debug, Clone, Copy)]
pub struct DescribeProducers;

/// What a partition knows of one producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerInfo {
    /// Its id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i32,
    /// The sequence number of its last record; -1 if none is known.
    pub last_sequence: i32,
    /// When it wrote last, in milliseconds since 1970.
    pub last_timestamp_ms: i64,
    /// The epoch of the coordinator that wrote its last marker; -1 if none did.
    pub coordinator_epoch: i32,
    /// Where its open transaction begins; -1 without one.
    pub current_txn_start_offset: i64,
}

impl Message for DescribeProducers {
    type Reply = Result<Vec<ProducerInfo>, ErrorCode>;
    const NAME: &'static str = "DescribeProducers";
}

/// What the controller has decided for one partition, as far as this replica goes by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The leader's node id; -1 if there is none.
    pub leader: i32,
    /// Grows with each election.
    pub leader_epoch: i32,
    /// Grows with each change.
    pub partition_epoch: i32,
    /// The brokers that hold a copy.
    pub replicas: Vec<i32>,
    /// Those in sync.
    pub isr: Vec<i32>,
}

/// The partition's assignment or settings have changed: it reads them anew from what it shares with the
/// replicas manager.
#[derive(Debug, Clone, Copy)]
pub struct Reassigned;

impl Message for Reassigned {
    type Reply = ();
    const NAME: &'static str = "Reassigned";
    fn is_control(&self) -> bool {
        true
    }
}

/// Deletes the partition: its directory is renamed at once and removed after `file.delete.delay.ms`. The
/// actor stops.
#[derive(Debug, Clone, Copy)]
pub struct DeletePartition;

impl Message for DeletePartition {
    type Reply = Result<(), ErrorCode>;
    const NAME: &'static str = "DeletePartition";
    fn is_control(&self) -> bool {
        true
    }
}

/// The partition's log directory has failed: it goes offline without touching its files again.
#[derive(Debug, Clone, Copy)]
pub struct GoOffline;

impl Message for GoOffline {
    type Reply = ();
    const NAME: &'static str = "GoOffline";
    fn is_control(&self) -> bool {
        true
    }
}

/// Answered once the partition's log is open and follows its orders, or is known not to open.
#[derive(Debug, Clone, Copy)]
pub struct AwaitOpen;

impl Message for AwaitOpen {
    type Reply = ();
    const NAME: &'static str = "AwaitOpen";
}

/// One partition to be there, as the metadata says.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Which partition.
    pub id: super::PartitionId,
    /// What the controller decided.
    pub assignment: Assignment,
    /// The topic's settings.
    pub settings: Arc<PartitionSettings>,
    /// The log directory the controller names for this replica; zero if it names none.
    pub directory: callboard_protocol::Uuid,
}

/// Changes in what this broker holds. Answered when the registry shows them; a partition's log may still be
/// opening then, and answers NOT_LEADER_OR_FOLLOWER meanwhile.
#[derive(Debug, Default)]
pub struct ApplyChanges {
    /// Partitions to create, or whose assignment or settings changed.
    pub wanted: Vec<Wanted>,
    /// Topics that were deleted.
    pub unwanted_topics: Vec<callboard_protocol::Uuid>,
    /// Partitions that moved away.
    pub unwanted: Vec<(callboard_protocol::Uuid, i32)>,
    /// Whether `wanted` is all there is to be (the first image): what is on disk besides is a stray.
    pub complete: bool,
}

impl Message for ApplyChanges {
    type Reply = ();
    const NAME: &'static str = "ApplyChanges";
}

/// A partition has gone offline by itself: the manager looks whether its directory still answers.
#[derive(Debug, Clone, Copy)]
pub struct PartitionFailed {
    /// The directory's place in `log.dirs`.
    pub directory: usize,
}

impl Message for PartitionFailed {
    type Reply = ();
    const NAME: &'static str = "PartitionFailed";
    fn is_control(&self) -> bool {
        true
    }
}

/// A log directory has failed.
#[derive(Debug, Clone)]
pub struct DirectoryFailed {
    /// Its place in `log.dirs`.
    pub directory: usize,
    /// What happened.
    pub reason: String,
}

impl Message for DirectoryFailed {
    type Reply = ();
    const NAME: &'static str = "DirectoryFailed";
    fn is_control(&self) -> bool {
        true
    }
}
