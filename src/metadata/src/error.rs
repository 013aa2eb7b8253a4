//! What can go wrong in this crate.

use callboard_protocol::Uuid;

/// A record that does not fit the image it is applied to.
///
/// A committed record that can't be replayed means a damaged log or a defect: who replays must stop, since the
/// same record would fail again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The record names a topic id that the image lacks.
    #[error("{record} names topic id {topic_id}, which does not exist")]
    UnknownTopicId {
        /// The record's type.
        record: &'static str,
        /// The id it names.
        topic_id: Uuid,
    },
    /// The record names a topic that the image lacks.
    #[error("{record} names topic {name:?}, which does not exist")]
    UnknownTopicName {
        /// The record's type.
        record: &'static str,
        /// The name it gives.
        name: String,
    },
    /// The record changes a partition that the image lacks.
    #[error("{record} names partition {partition} of topic id {topic_id}, which does not exist")]
    UnknownPartition {
        /// The record's type.
        record: &'static str,
        /// The topic.
        topic_id: Uuid,
        /// The partition's number.
        partition: i32,
    },
    /// The record names a broker that is not registered.
    #[error("{record} names broker {broker_id}, which is not registered")]
    UnknownBroker {
        /// The record's type.
        record: &'static str,
        /// The broker's id.
        broker_id: i32,
    },
    /// The record names a broker at another epoch than its registration's.
    #[error("{record} names broker {broker_id} at epoch {given}, but it is registered at epoch {current}")]
    BrokerEpochMismatch {
        /// The record's type.
        record: &'static str,
        /// The broker's id.
        broker_id: i32,
        /// The epoch in the record.
        given: i64,
        /// The epoch of the registration.
        current: i64,
    },
    /// The record names a controller that is not registered.
    #[error("UnregisterControllerRecord names controller {controller_id}, which is not registered")]
    UnknownController {
        /// The controller's id.
        controller_id: i32,
    },
    /// A field holds a value that is not known.
    #[error("{record} has {value} in {field}")]
    BadValue {
        /// The record's type.
        record: &'static str,
        /// The field.
        field: &'static str,
        /// What it holds.
        value: i64,
    },
    /// The record belongs to another log, not to `__cluster_metadata`.
    #[error("{record} does not belong to the metadata log")]
    ForeignRecord {
        /// The record's type.
        record: &'static str,
    },
    /// Transaction markers out of order.
    #[error("{record} comes {state}")]
    BadTransaction {
        /// The record's type.
        record: &'static str,
        /// Where it comes.
        state: &'static str,
    },
}
