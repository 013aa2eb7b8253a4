//! What a transaction shard is asked, and what it answers.

use std::sync::Arc;

use callboard_protocol::{ByteString, ErrorCode};

use super::state::{Decision, State, TopicPartition, Transaction};
use crate::runtime::Producer;

/// Asks for a producer to write under a transactional id (InitProducerId).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitProducer {
    /// Under which id.
    pub transactional_id: ByteString,
    /// How long its transactions may take.
    pub timeout_ms: i32,
    /// The producer that it was so far, if it only wants another epoch (KIP-360).
    pub present: Option<Producer>,
}

/// Adds partitions to a transaction (AddPartitionsToTxn, AddOffsetsToTxn, or a Produce that implies it).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddPartitions {
    /// Whose transaction.
    pub transactional_id: ByteString,
    /// Who asks.
    pub producer: Producer,
    /// Which partitions.
    pub partitions: Vec<TopicPartition>,
    /// The version of the protocol that the client goes by (transaction.version).
    pub client_version: i16,
    /// How long to wait for the end of the transaction before, in milliseconds.
    pub patience_ms: i64,
}

/// Asks whether partitions are in a transaction (AddPartitionsToTxn with VerifyOnly).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    /// Whose transaction.
    pub transactional_id: ByteString,
    /// Who asks.
    pub producer: Producer,
    /// Which partitions.
    pub partitions: Vec<TopicPartition>,
}

/// Ends a transaction (EndTxn).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Whose.
    pub transactional_id: ByteString,
    /// Who asks.
    pub producer: Producer,
    /// How.
    pub decision: Decision,
    /// The version of the protocol that the client goes by (transaction.version); from 2 on the epoch is raised.
    pub client_version: i16,
}

/// Asks for the ids of this shard (ListTransactions).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    /// Only those in one of these states, by exact name; in any if empty.
    pub states: Vec<ByteString>,
    /// Only those of one of these producers; of any if empty.
    pub producer_ids: Vec<i64>,
    /// Only those that have been open for longer, in milliseconds; no matter how long if negative.
    pub open_longer_than_ms: i64,
}

/// One id of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The id.
    pub transactional_id: ByteString,
    /// Its producer's id.
    pub producer_id: i64,
    /// Where it stands.
    pub state: State,
}

/// Any request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// See [`InitProducer`].
    Init(InitProducer),
    /// See [`AddPartitions`].
    Add(AddPartitions),
    /// See [`Verify`].
    Verify(Verify),
    /// See [`End`].
    End(End),
    /// Asks for one id (DescribeTransactions).
    Describe(ByteString),
    /// See [`List`].
    List(List),
}

/// Any answer. Errors are those of Kafka's newest versions; older ones know some by other names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The producer: the answer to [`Request::Init`] and [`Request::End`].
    Producer(Result<Producer, ErrorCode>),
    /// All partitions are in: the answer to [`Request::Add`].
    Added(Result<(), ErrorCode>),
    /// For each partition whether it is in: the answer to [`Request::Verify`].
    Verified(Result<Vec<bool>, ErrorCode>),
    /// What there is: the answer to [`Request::Describe`].
    Described(Option<Arc<Transaction>>),
    /// The answer to [`Request::List`].
    Listed(Vec<Listed>),
}
