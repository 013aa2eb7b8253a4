//! The records of `__consumer_offsets`.

use bytes::Bytes;
use callboard_protocol::messages::group_record::{GroupRecordKey, GroupRecordValue};
use callboard_protocol::wire::{DecodeError, EncodeError};

use crate::error::ReplayError;
use crate::runtime::EncodedRecord;

/// A key with its value, or with none: a tombstone.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupRecord {
    /// The key.
    pub key: GroupRecordKey,
    /// The value, and the version it is written in.
    pub value: Option<(GroupRecordValue, i16)>,
}

impl GroupRecord {
    /// A record with a value, written in a version.
    pub fn new(key: impl Into<GroupRecordKey>, value: impl Into<GroupRecordValue>, version: i16) -> Self {
        Self { key: key.into(), value: Some((value.into(), version)) }
    }

    /// A record that takes another away.
    pub fn tombstone(key: impl Into<GroupRecordKey>) -> Self {
        Self { key: key.into(), value: None }
    }

    /// Reads a record of the log.
    ///
    /// # Errors
    /// Its bytes are not what its type says, or the type is of a later Kafka.
    pub fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Self, DecodeError> {
        let key = GroupRecordKey::decode(key)?;
        let value = value.map(|value| GroupRecordValue::decode(key.api_key(), value)).transpose()?;
        Ok(Self { key, value })
    }

    /// The record as the log keeps it.
    ///
    /// # Errors
    /// A field is too long for its type.
    pub fn encode(&self) -> Result<EncodedRecord, EncodeError> {
        let value = self.value.as_ref().map(|(value, version)| value.encode(*version)).transpose()?;
        Ok(EncodedRecord { key: self.key.encode()?, value })
    }

    /// The error of a key with the value of another type.
    pub(crate) fn mismatch(&self) -> ReplayError {
        let value = self.value.as_ref().map_or(-1, |(value, _)| value.api_key());
        ReplayError::Mismatch { key: self.key.api_key(), value }
    }
}
