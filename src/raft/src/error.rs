//! What can go wrong outside the machine's own rules.

use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum RaftError {
    /// The `quorum-state` file holds something other than Kafka's JSON of version 0 or 1.
    #[error("quorum-state is unreadable: {0}")]
    QuorumState(String),
    /// A set of voters names the same id twice.
    #[error("voter {0} is named twice")]
    DuplicateVoter(i32),
    /// A set of voters is empty.
    #[error("the set of voters is empty")]
    NoVoters,
    /// This replica is not the leader of the epoch the caller expects.
    #[error("not the leader of epoch {expected_epoch}; the epoch is {epoch}")]
    NotLeader {
        /// The epoch the caller believed it leads.
        expected_epoch: i32,
        /// The epoch now.
        epoch: i32,
    },
}
