//! What can go wrong in this crate.

use callboard_protocol::wire::DecodeError;
use thiserror::Error;

/// Why a stored record can't be taken into memory.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReplayError {
    /// The record's bytes are not what its type says.
    #[error("a record can't be read: {0}")]
    Malformed(#[from] DecodeError),
    /// A key came with the value of another type.
    #[error("a record has a key of type {key} and a value of type {value}")]
    Mismatch {
        /// The key's type.
        key: i16,
        /// The value's type.
        value: i16,
    },
    /// A record is of a type that has no place here.
    #[error("a record of type {key}, which has no place here")]
    Unexpected {
        /// The key's type.
        key: i16,
    },
    /// A record speaks of a group that is of another kind.
    #[error("a {record} record for group {group}, which is of another kind")]
    OtherKind {
        /// The group.
        group: String,
        /// The record's name.
        record: &'static str,
    },
    /// A transaction is in a state that has no meaning.
    #[error("a transaction is in state {code}, which has no meaning")]
    UnknownTransactionState {
        /// Its number.
        code: i8,
    },
}
