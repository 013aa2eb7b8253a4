//! What can go wrong with the metadata log.

use callboard_protocol::records::RecordError;
use callboard_protocol::wire::EncodeError;
use callboard_raft::RaftError;
use callboard_storage::{AppendError, ReadError, StorageError};

use crate::supervision::{Exit, Failure};

/// The metadata log can't be read, written or trusted.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file that is not a segment of the log.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The log's files.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// An append that should have been possible.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A read that should have been possible.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A batch can't be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A record can't be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The election's file or the voters.
    #[error(transparent)]
    Raft(#[from] RaftError),
    /// What is stored makes no sense.
    #[error("{0}")]
    Damaged(String),
    /// The directory was formatted for a quorum this node can't serve.
    #[error("{0}")]
    Refused(String),
}

impl LogError {
    /// What it means for the actor: without its metadata log a node can't go on, and opening it again would fail the
    /// same way.
    pub fn failure(&self) -> Failure {
        let exit = match self {
            Self::Refused(_) => Exit::Refused,
            _ => Exit::MetadataFailed,
        };
        Failure::escalate(format!("metadata log: {self}")).with_exit(exit)
    }
}
