//! What replicas say to each other, without the wire's envelope.

use bytes::Bytes;

use crate::{ReplicaKey, SnapshotId};

/// A request to a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A candidate asks for a vote, or asks whether it would get one.
    Vote(Vote),
    /// A leader announces its epoch.
    BeginQuorumEpoch(BeginQuorumEpoch),
    /// A leader resigns.
    EndQuorumEpoch(EndQuorumEpoch),
    /// A follower or observer asks for records.
    Fetch(Fetch),
}

/// `Vote`, for the one partition there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// The candidate's epoch; for a pre-vote its epoch before the election.
    pub epoch: i32,
    /// Who asks.
    pub candidate: ReplicaKey,
    /// Who is asked, as the candidate knows it.
    pub voter: ReplicaKey,
    /// Epoch of the candidate's last record.
    pub last_epoch: i32,
    /// End of the candidate's log.
    pub last_end_offset: i64,
    /// Asks only whether the vote would be given.
    pub pre_vote: bool,
}

/// `BeginQuorumEpoch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeginQuorumEpoch {
    /// The leader's epoch.
    pub epoch: i32,
    /// The leader.
    pub leader_id: i32,
}

/// `EndQuorumEpoch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndQuorumEpoch {
    /// The epoch that ends.
    pub epoch: i32,
    /// The leader that resigns.
    pub leader_id: i32,
    /// Voters, the one with the longest log first.
    pub preferred_successors: Vec<i32>,
}

/// `Fetch` of the quorum's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Who asks.
    pub replica: ReplicaKey,
    /// The epoch the asker is in.
    pub epoch: i32,
    /// End of the asker's log, all of it durable.
    pub fetch_offset: i64,
    /// Epoch of the asker's last record.
    pub last_fetched_epoch: i32,
    /// Ties the answer to the question; a late answer must not be taken for a new one.
    pub fetch_id: u64,
}

/// What every answer tells of the answerer's epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeaderHint {
    /// The answerer's epoch.
    pub epoch: i32,
    /// The leader of that epoch, if it knows one.
    pub leader_id: Option<i32>,
}

/// Why a request was refused. Each is a Kafka error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuorumError {
    /// FENCED_LEADER_EPOCH: the asker's epoch is over.
    FencedLeaderEpoch,
    /// UNKNOWN_LEADER_EPOCH: the asker's epoch is not known here yet.
    UnknownLeaderEpoch,
    /// NOT_LEADER_OR_FOLLOWER: ask the leader.
    NotLeader,
    /// INCONSISTENT_VOTER_SET: the asker and this replica don't agree who votes.
    InconsistentVoterSet,
    /// INVALID_VOTER_KEY: the request names another directory than this replica's.
    InvalidVoterKey,
    /// INVALID_REQUEST: the request contradicts what is known of its epoch.
    InvalidRequest,
}

/// An answer. `R` is what stands for records: a range of the log to read when sent
/// ([`LogRange`]), bytes when received ([`Fetched`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response<R> {
    /// To [`Request::Vote`].
    Vote(VoteResponse),
    /// To [`Request::BeginQuorumEpoch`].
    BeginQuorumEpoch(LeaderHint, Option<QuorumError>),
    /// To [`Request::EndQuorumEpoch`].
    EndQuorumEpoch(LeaderHint, Option<QuorumError>),
    /// To [`Request::Fetch`].
    Fetch(FetchResponse<R>),
}

/// The answer to [`Vote`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoteResponse {
    /// The answerer's epoch and leader.
    pub hint: LeaderHint,
    /// Whether the vote is, or would be, given.
    pub granted: bool,
    /// Whether this answers a pre-vote.
    pub pre_vote: bool,
    /// Why it was refused outright.
    pub error: Option<QuorumError>,
}

/// The answer to [`Fetch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResponse<R> {
    /// The answerer's epoch and leader.
    pub hint: LeaderHint,
    /// The request's `fetch_id`.
    pub fetch_id: u64,
    /// The leader's high watermark; -1 if it doesn't know one yet.
    pub high_watermark: i64,
    /// What the asker gets.
    pub outcome: FetchOutcome<R>,
}

/// What a fetch gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchOutcome<R> {
    /// Records from the fetch offset on, perhaps none.
    Records(R),
    /// The asker's log is not a prefix of the leader's: the newest epoch at or before the asker's
    /// that the leader has, and where it ends.
    Diverging(SnapshotId),
    /// The records asked for are only in this snapshot.
    Snapshot(SnapshotId),
    /// Refused.
    Error(QuorumError),
}

/// A range of the log for the caller to read and send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogRange {
    /// First offset.
    pub from_offset: i64,
    /// First offset past the range.
    pub to_offset: i64,
}

/// Records received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fetched {
    /// The batches in `bytes`, in order.
    pub batches: Vec<BatchInfo>,
    /// The batches themselves, as the leader stores them.
    pub bytes: Bytes,
}

/// One batch's place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchInfo {
    /// First offset.
    pub base_offset: i64,
    /// First offset past the batch.
    pub next_offset: i64,
    /// The epoch it was written in.
    pub epoch: i32,
}
