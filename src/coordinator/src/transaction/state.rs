//! One transactional id: its producer, and where its transaction stands.

use callboard_protocol::ByteString;
use imbl::OrdSet;

use crate::runtime::Producer;

/// Stands for no producer id.
pub const NO_PRODUCER_ID: i64 = -1;
/// Stands for no epoch.
pub const NO_EPOCH: i16 = -1;
/// The last epoch that a client is given. One more is left, to fence it with.
pub const LAST_CLIENT_EPOCH: i16 = i16::MAX - 1;
/// A transaction with this timeout is never aborted for its age.
pub const WITHOUT_TIMEOUT_MS: i32 = i32::MAX;

/// A partition by its topic's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopicPartition {
    /// The topic.
    pub topic: ByteString,
    /// The partition's number.
    pub partition: i32,
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Its records count.
    Commit,
    /// They don't.
    Abort,
}

impl Decision {
    /// Commit if true: as EndTxn and WriteTxnMarkers have it.
    pub const fn from_committed(committed: bool) -> Self {
        if committed { Self::Commit } else { Self::Abort }
    }

    /// Whether it is a commit.
    pub const fn is_commit(self) -> bool {
        matches!(self, Self::Commit)
    }
}

/// Where a transactional id stands. One that is gone (Kafka's `Dead`) has no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
pub enum State {
    /// It has a producer, which has done nothing yet.
    Empty = 0,
    /// Partitions take part.
    Ongoing = 1,
    /// To be committed: markers are on their way.
    PrepareCommit = 2,
    /// To be aborted: markers are on their way.
    PrepareAbort = 3,
    /// Committed, with all markers written.
    CompleteCommit = 4,
    /// Aborted, with all markers written.
    CompleteAbort = 5,
}

const STATES: [State; 6] = [
    State::Empty,
    State::Ongoing,
    State::PrepareCommit,
    State::PrepareAbort,
    State::CompleteCommit,
    State::CompleteAbort,
];

impl State {
    /// The number in a record (TransactionLogValue, `TransactionStatus`).
    pub const fn code(self) -> i8 {
        self as i8
    }

    /// The state with this number.
    pub fn from_code(code: i8) -> Option<Self> {
        STATES.into_iter().find(|state| state.code() == code)
    }

    /// The name that DescribeTransactions and ListTransactions use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }

    /// Whether a filter may name this state. Kafka knows two more, in which nothing is ever seen.
    pub fn is_name(name: &str) -> bool {
        STATES.into_iter().any(|state| state.name() == name) || matches!(name, "Dead" | "PrepareEpochFence")
    }

    /// What was decided, while markers are on their way.
    pub const fn prepared(self) -> Option<Decision> {
        match self {
            Self::PrepareCommit => Some(Decision::Commit),
            Self::PrepareAbort => Some(Decision::Abort),
            Self::Empty | Self::Ongoing | Self::CompleteCommit | Self::CompleteAbort => None,
        }
    }

    pub(super) const fn prepare(decision: Decision) -> Self {
        match decision {
            Decision::Commit => Self::PrepareCommit,
            Decision::Abort => Self::PrepareAbort,
        }
    }

    pub(super) const fn complete(decision: Decision) -> Self {
        match decision {
            Decision::Commit => Self::CompleteCommit,
            Decision::Abort => Self::CompleteAbort,
        }
    }
}

/// One transactional id. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// The producer that may write.
    pub producer: Producer,
    /// The producer id that the last transaction began with: another one than the present if its epochs were used up.
    pub previous_producer_id: i64,
    /// The producer id that follows once the markers are written, if the epochs are used up; else
    /// [`NO_PRODUCER_ID`].
    pub next_producer_id: i64,
    /// The epoch that the present one was made from on its holder's own word: who still has it may have missed an
    /// answer. [`NO_EPOCH`] if there is none. No record has it.
    pub last_epoch: i16,
    /// How long a transaction may take.
    pub timeout_ms: i32,
    /// Where it stands.
    pub state: State,
    /// The partitions that take part; while markers are on their way, those that still wait for theirs.
    pub partitions: OrdSet<TopicPartition>,
    /// When the transaction began, in milliseconds since 1970; -1 if none has.
    pub started_ms: i64,
    /// When anything last changed, in milliseconds since 1970.
    pub updated_ms: i64,
    /// The version of the protocol that the client goes by (transaction.version; from 2 on each end raises the epoch).
    pub client_version: i16,
    /// Number of the markers on their way: news of others is too late. No record has it.
    pub marking: u64,
}

/// What a producer's id and epoch make of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is the present one.
    Present,
    /// It was until the last bump, of whose answer it may not know.
    Former,
    /// It will be once the markers are written.
    Coming,
    /// Its id is right, its epoch is not.
    Fenced,
    /// Its id belongs to another.
    Unknown,
}

impl Transaction {
    /// A transactional id that has just got its producer.
    pub(super) fn new(producer_id: i64, timeout_ms: i32, now_ms: i64) -> Self {
        Self {
            producer: Producer { id: producer_id, epoch: 0 },
            previous_producer_id: producer_id,
            next_producer_id: NO_PRODUCER_ID,
            last_epoch: NO_EPOCH,
            timeout_ms,
            state: State::Empty,
            partitions: OrdSet::new(),
            started_ms: -1,
            updated_ms: now_ms,
            client_version: 0,
            marking: 0,
        }
    }

    /// Whether the epochs of its producer id are used up.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.producer.epoch >= LAST_CLIENT_EPOCH
    }

    /// When it is to be aborted, if it is open and goes by a timeout.
    pub fn deadline_ms(&self) -> Option<i64> {
        let counts = self.state == State::Ongoing && self.timeout_ms != WITHOUT_TIMEOUT_MS;
        counts.then(|| self.started_ms.saturating_add(i64::from(self.timeout_ms)))
    }

    /// The producer once the markers are written.
    pub(super) const fn coming(&self) -> Producer {
        match self.next_producer_id {
            NO_PRODUCER_ID => self.producer,
            id => Producer { id, epoch: 0 },
        }
    }

    /// What a producer is to this transaction.
    pub(super) fn claim(&self, producer: Producer) -> Claim {
        let is_coming = self.next_producer_id != NO_PRODUCER_ID && producer == self.coming();
        match (producer.id == self.producer.id, producer.epoch == self.producer.epoch) {
            (true, true) => Claim::Present,
            _ if is_coming => Claim::Coming,
            (true, false) if producer.epoch == self.last_epoch => Claim::Former,
            (true, false) => Claim::Fenced,
            (false, _) if self.was_replaced(producer) && self.last_epoch == producer.epoch => Claim::Former,
            (false, _) => Claim::Unknown,
        }
    }

    /// Whether EndTxn, which raises the epoch, may have been asked by this producer before (KIP-890): its epoch is one
    /// behind, or was the last of the id before.
    pub(super) fn may_have_ended(&self, producer: Producer) -> bool {
        let raised =
            producer.id == self.producer.id && producer.epoch.checked_add(1) == Some(self.producer.epoch);
        raised || self.was_replaced(producer)
    }

    /// Whether the producer's id was used up and gave way to the present one.
    fn was_replaced(&self, producer: Producer) -> bool {
        producer.id == self.previous_producer_id
            && producer.id != self.producer.id
            && producer.epoch == LAST_CLIENT_EPOCH
            && self.producer.epoch == 0
    }

    /// Raises the epoch by one; it stays at the highest.
    pub(super) fn raise_epoch(&mut self) {
        self.last_epoch = self.producer.epoch;
        self.producer.epoch = self.producer.epoch.saturating_add(1);
    }
}
