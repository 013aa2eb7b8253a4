//! Control records: markers that end transactions, and those of KRaft's log.

use bytes::{Buf, BufMut, Bytes};

use super::{BatchBuilder, Record, RecordError};
use crate::messages::{
    KRaftVersionRecord, LeaderChangeMessage, Message, SnapshotFooterRecord, SnapshotHeaderRecord,
    VotersRecord,
};
use crate::wire::EncodeError;

/// What a control record says; its key is a version and this number, both 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlType {
    /// A transaction was aborted.
    Abort,
    /// A transaction was committed.
    Commit,
    /// A leader's first record in its epoch.
    LeaderChange,
    /// The first record of a snapshot.
    SnapshotHeader,
    /// The last record of a snapshot.
    SnapshotFooter,
    /// The version of the quorum's own protocol.
    KRaftVersion,
    /// The voters of the quorum.
    KRaftVoters,
}

const TYPES: [ControlType; 7] = [
    ControlType::Abort,
    ControlType::Commit,
    ControlType::LeaderChange,
    ControlType::SnapshotHeader,
    ControlType::SnapshotFooter,
    ControlType::KRaftVersion,
    ControlType::KRaftVoters,
];

impl ControlType {
    /// The number in the record's key.
    pub fn id(self) -> i16 {
        self as i16
    }

    /// The type that a control record's key names; `None` for one that is not known, to be skipped.
    ///
    /// # Errors
    /// The key is shorter than four bytes.
    pub fn from_key(mut key: &[u8]) -> Result<Option<Self>, RecordError> {
        if key.len() < 4 {
            return Err(RecordError::Truncated { needed: 4, available: key.len() });
        }
        let _version = key.get_i16();
        Ok(usize::try_from(key.get_i16()).ok().and_then(|id| TYPES.get(id).copied()))
    }

    /// The key of a record of this type, version 0.
    pub fn key(self) -> [u8; 4] {
        let [high, low] = self.id().to_be_bytes();
        [0, 0, high, low]
    }
}

/// The end of one producer's transaction in one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndTransactionMarker {
    /// Whether it was committed; aborted otherwise.
    pub committed: bool,
    /// Epoch of the coordinator that decided.
    pub coordinator_epoch: i32,
}

impl EndTransactionMarker {
    /// Reads a marker; `None` if the record is another control record.
    ///
    /// # Errors
    /// The key or value is too short.
    pub fn read(record: &Record) -> Result<Option<Self>, RecordError> {
        let committed = match ControlType::from_key(record.key.as_deref().unwrap_or_default())? {
            Some(ControlType::Commit) => true,
            Some(ControlType::Abort) => false,
            _ => return Ok(None),
        };
        let mut value = record.value.as_deref().unwrap_or_default();
        if value.len() < 6 {
            return Err(RecordError::Truncated { needed: 6, available: value.len() });
        }
        let _version = value.get_i16();
        Ok(Some(Self { committed, coordinator_epoch: value.get_i32() }))
    }

    /// The batch that writes this marker for a producer, at `base_offset`, stamped `now_ms`.
    ///
    /// # Errors
    /// None in practice: the batch is small and uncompressed.
    pub fn batch(
        &self,
        base_offset: i64,
        leader_epoch: i32,
        producer_id: i64,
        producer_epoch: i16,
        now_ms: i64,
    ) -> Result<Bytes, RecordError> {
        let kind = if self.committed { ControlType::Commit } else { ControlType::Abort };
        let mut value = [0; 6];
        (&mut value[2..]).put_i32(self.coordinator_epoch);
        let mut builder = BatchBuilder::new(base_offset)
            .partition_leader_epoch(leader_epoch)
            .producer(producer_id, producer_epoch, -1)
            .transactional(true)
            .control(true);
        builder.append(now_ms, Some(&kind.key()), Some(&value), &[]);
        builder.build()
    }
}

/// One of the control records of KRaft's log and snapshots.
#[derive(Debug, Clone, PartialEq)]
pub enum KRaftRecord {
    /// A leader's first record in its epoch.
    LeaderChange(LeaderChangeMessage),
    /// The first record of a snapshot.
    SnapshotHeader(SnapshotHeaderRecord),
    /// The last record of a snapshot.
    SnapshotFooter(SnapshotFooterRecord),
    /// The version of the quorum's own protocol.
    KRaftVersion(KRaftVersionRecord),
    /// The voters of the quorum.
    KRaftVoters(VotersRecord),
}

impl KRaftRecord {
    /// The record's type.
    pub fn control_type(&self) -> ControlType {
        match self {
            Self::LeaderChange(_) => ControlType::LeaderChange,
            Self::SnapshotHeader(_) => ControlType::SnapshotHeader,
            Self::SnapshotFooter(_) => ControlType::SnapshotFooter,
            Self::KRaftVersion(_) => ControlType::KRaftVersion,
            Self::KRaftVoters(_) => ControlType::KRaftVoters,
        }
    }

    /// Reads a control record; `None` if it is of another type.
    ///
    /// # Errors
    /// The key is too short, or the value is not what the key says.
    pub fn read(record: &Record) -> Result<Option<Self>, RecordError> {
        let value = record.value.clone().unwrap_or_default();
        Ok(Some(match ControlType::from_key(record.key.as_deref().unwrap_or_default())? {
            Some(ControlType::LeaderChange) => Self::LeaderChange(payload(&value)?),
            Some(ControlType::SnapshotHeader) => Self::SnapshotHeader(payload(&value)?),
            Some(ControlType::SnapshotFooter) => Self::SnapshotFooter(payload(&value)?),
            Some(ControlType::KRaftVersion) => Self::KRaftVersion(payload(&value)?),
            Some(ControlType::KRaftVoters) => Self::KRaftVoters(payload(&value)?),
            Some(ControlType::Abort | ControlType::Commit) | None => return Ok(None),
        }))
    }

    /// The record's value, in the version that the record itself names.
    ///
    /// # Errors
    /// The version does not exist, or lacks a field that is set.
    pub fn value(&self) -> Result<Bytes, EncodeError> {
        match self {
            Self::LeaderChange(message) => message.to_bytes(message.version),
            Self::SnapshotHeader(message) => message.to_bytes(message.version),
            Self::SnapshotFooter(message) => message.to_bytes(message.version),
            Self::KRaftVersion(message) => message.to_bytes(message.version),
            Self::KRaftVoters(message) => message.to_bytes(message.version),
        }
    }

    /// Adds the record to a batch of control records.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub fn append_to(&self, batch: &mut BatchBuilder, now_ms: i64) -> Result<(), EncodeError> {
        batch.append(now_ms, Some(&self.control_type().key()), Some(&self.value()?), &[]);
        Ok(())
    }
}

/// A payload: its first field is the version it is written in.
fn payload<M: Message>(value: &Bytes) -> Result<M, RecordError> {
    let version = value.first_chunk::<2>().map(|version| i16::from_be_bytes(*version)).unwrap_or(0);
    M::from_bytes(value, version).map_err(|_| RecordError::Malformed("a control record's value"))
}

/// A batch of one of KRaft's control records, its payload encoded already (LeaderChangeMessage,
/// SnapshotHeaderRecord, SnapshotFooterRecord, KRaftVersionRecord, VotersRecord).
///
/// # Errors
/// The payload is larger than a batch may be.
pub fn kraft_batch(
    kind: ControlType,
    payload: &[u8],
    base_offset: i64,
    leader_epoch: i32,
    now_ms: i64,
) -> Result<Bytes, RecordError> {
    let mut builder = BatchBuilder::new(base_offset).partition_leader_epoch(leader_epoch).control(true);
    builder.append(now_ms, Some(&kind.key()), Some(payload), &[]);
    builder.build()
}
