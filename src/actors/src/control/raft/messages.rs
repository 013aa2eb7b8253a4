//! What the raft actor is asked, and what it tells its subscribers.

use std::sync::Arc;

use callboard_metadata::VersionedRecord;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_raft::{QuorumStatus, SnapshotId, VoterSet};

use crate::supervision::{Message, Recipient};

/// Append records to the log as one batch. Answered once they are written, before they are committed.
#[derive(Debug)]
pub struct Append {
    /// The records, in order; at least one.
    pub records: Vec<VersionedRecord>,
    /// The epoch the caller believes this node leads.
    pub expected_epoch: i32,
    /// The offset the caller expects the first record to get, if that matters to it.
    pub expected_offset: Option<i64>,
}

/// Where records were appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppendedRange {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
}

/// Why nothing was appended. The caller goes back to where it was before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendFailed {
    /// This node doesn't lead the epoch.
    #[error("not the leader of epoch {expected_epoch}")]
    NotLeader {
        /// The epoch the caller named.
        expected_epoch: i32,
    },
    /// The log's end is not where the caller expects it.
    #[error("expected the log to end at {expected_offset}, it ends at {end_offset}")]
    UnexpectedOffset {
        /// What the caller expected.
        expected_offset: i64,
        /// Where the log ends.
        end_offset: i64,
    },
    /// The records don't fit one batch.
    #[error("{size_bytes} bytes of records don't fit a batch of {}", super::MAX_BATCH_BYTES)]
    TooLarge {
        /// Size of the records.
        size_bytes: usize,
    },
    /// The records can't be encoded, or there are none.
    #[error("{0}")]
    Invalid(String),
}

impl Message for Append {
    type Reply = Result<AppendedRange, AppendFailed>;
    const NAME: &'static str = "Append";
}

/// Follow the log. News come one at a time: the next is sent when the former was answered.
///
/// A subscription outlives crashes of the raft actor. A subscriber that crashed subscribes again, which replaces its
/// former subscription. After a crash batches may come twice: skip those before the offset already reached.
#[derive(Debug)]
pub struct Subscribe {
    /// The subscriber; one subscription a name.
    pub name: &'static str,
    /// Where news go.
    pub to: Recipient<LogNews>,
    /// First offset wanted; 0 for everything, which may come as a snapshot.
    pub from_offset: i64,
}

impl Message for Subscribe {
    type Reply = ();
    const NAME: &'static str = "Subscribe";
}

/// News of the log. Only committed records are told of.
#[derive(Debug, Clone)]
pub enum LogNews {
    /// Forget everything: this is the state at the snapshot's end.
    Snapshot(Arc<Snapshot>),
    /// Committed batches, in order.
    Batches(Vec<Arc<CommittedBatch>>),
    /// The epoch or its leader changed. That this node leads is told once
    /// all of its log is committed and was told.
    Leadership(Leadership),
}

impl Message for LogNews {
    type Reply = ();
    const NAME: &'static str = "LogNews";
    // One at a time is outstanding for each subscriber.
    fn is_control(&self) -> bool {
        true
    }
}

/// Who leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leadership {
    /// The epoch.
    pub epoch: i32,
    /// Its leader, once known.
    pub leader_id: Option<i32>,
    /// If this node leads: the end of its log, where the controller's records of this epoch begin.
    pub end_offset: Option<i64>,
}

/// A snapshot's records.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// What it contains.
    pub id: SnapshotId,
    /// When its last record was appended, in milliseconds since 1970.
    pub last_contained_log_timestamp_ms: i64,
    /// The records.
    pub records: Vec<VersionedRecord>,
}

/// A committed batch.
#[derive(Debug, Clone, PartialEq)]
pub struct CommittedBatch {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The epoch it was written in.
    pub epoch: i32,
    /// When it was appended, in milliseconds since 1970.
    pub append_time_ms: i64,
    /// Its size on disk.
    pub size_bytes: usize,
    /// The records, one an offset; none if it is a batch of control records.
    pub records: Vec<MetadataRecord>,
}

/// Write a snapshot. Answered when it is durable, or not needed.
#[derive(Debug)]
pub struct WriteSnapshot {
    /// What it contains; committed.
    pub snapshot: Snapshot,
}

impl Message for WriteSnapshot {
    type Reply = Result<(), String>;
    const NAME: &'static str = "WriteSnapshot";
}

/// Describe the quorum.
#[derive(Debug)]
pub struct DescribeQuorum;

/// The quorum as this node sees it.
#[derive(Debug, Clone)]
pub struct QuorumInfo {
    /// Offsets and, in milliseconds since 1970, times of its replicas.
    pub status: QuorumStatus,
    /// The voters and their endpoints.
    pub voters: VoterSet,
}

impl Message for DescribeQuorum {
    /// `None` while the log is being opened.
    type Reply = Option<QuorumInfo>;
    const NAME: &'static str = "DescribeQuorum";
}

/// Read the records the node was formatted with, for the first controller of a new cluster.
#[derive(Debug)]
pub struct ReadBootstrap;

impl Message for ReadBootstrap {
    type Reply = Result<Vec<VersionedRecord>, String>;
    const NAME: &'static str = "ReadBootstrap";
}

/// Give up leadership: the controller failed, or the node stops.
#[derive(Debug)]
pub struct Resign;

impl Message for Resign {
    type Reply = ();
    const NAME: &'static str = "Resign";
    fn is_control(&self) -> bool {
        true
    }
}
