//! The 61 bytes before the records of a batch (format version 2).

use bytes::{Buf, BufMut};

use super::{Compression, RecordError};

/// Size of the header of a batch of format version 2, in bytes.
pub const HEADER_SIZE: usize = 61;
/// Bytes before the part that a batch's length counts: base offset and the length itself.
pub const LOG_OVERHEAD: usize = 12;
/// Where the format version (magic) stands in every format.
pub const MAGIC_POSITION: usize = 16;
/// Where the checksum stands; it covers all bytes from [`CRC_START`] on.
pub const CRC_POSITION: usize = 17;
/// The first byte that the checksum covers.
pub const CRC_START: usize = 21;

const CODEC_MASK: i16 = 0x07;
const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;

/// Who set the timestamps of a batch's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum TimestampType {
    /// The producer, record by record.
    #[default]
    CreateTime,
    /// The broker, one time for the whole batch: the header's maximum timestamp.
    LogAppendTime,
}

/// The header of a batch of format version 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record (of the first there was, if the log was compacted).
    pub base_offset: i64,
    /// Size of the batch without its first [`LOG_OVERHEAD`] bytes.
    pub batch_length: i32,
    /// Leader epoch in which the batch was appended; -1 from a producer.
    pub partition_leader_epoch: i32,
    /// Format version; always 2 here.
    pub magic: i8,
    /// CRC-32C of the bytes from the attributes on.
    pub crc: u32,
    /// Codec, timestamp type and flags; see the methods.
    pub attributes: i16,
    /// Offset of the last record less the base offset.
    pub last_offset_delta: i32,
    /// Timestamp that the records' deltas add to (or the delete horizon), in milliseconds.
    pub base_timestamp: i64,
    /// Largest timestamp of the records, in milliseconds; the append time if the broker stamps.
    pub max_timestamp: i64,
    /// Id of the idempotent producer, or -1.
    pub producer_id: i64,
    /// Epoch of the idempotent producer, or -1.
    pub producer_epoch: i16,
    /// Sequence number of the first record, or -1.
    pub base_sequence: i32,
    /// Number of records in the batch, as the header says.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`, which need not hold the rest of the batch.
    ///
    /// # Errors
    /// Fewer than 61 bytes, another format version than 2, or a length below a bare header's.
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        let Some(mut at) = bytes.first_chunk::<HEADER_SIZE>().map(|header| &header[..]) else {
            return Err(match peek_magic(bytes) {
                Some(magic) if magic != 2 => RecordError::UnsupportedMagic(magic),
                _ => RecordError::Truncated { needed: HEADER_SIZE, available: bytes.len() },
            });
        };
        let header = Self {
            base_offset: at.get_i64(),
            batch_length: at.get_i32(),
            partition_leader_epoch: at.get_i32(),
            magic: at.get_i8(),
            crc: at.get_u32(),
            attributes: at.get_i16(),
            last_offset_delta: at.get_i32(),
            base_timestamp: at.get_i64(),
            max_timestamp: at.get_i64(),
            producer_id: at.get_i64(),
            producer_epoch: at.get_i16(),
            base_sequence: at.get_i32(),
            record_count: at.get_i32(),
        };
        if header.magic != 2 {
            return Err(RecordError::UnsupportedMagic(header.magic));
        }
        if usize::try_from(header.batch_length).map_or(true, |length| length < HEADER_SIZE - LOG_OVERHEAD) {
            return Err(RecordError::BatchLength(header.batch_length));
        }
        Ok(header)
    }

    /// The header as bytes, the checksum as it stands in `crc`.
    pub fn to_bytes(&self) -> [u8; HEADER_SIZE] {
        let mut out = [0; HEADER_SIZE];
        let mut at = &mut out[..];
        at.put_i64(self.base_offset);
        at.put_i32(self.batch_length);
        at.put_i32(self.partition_leader_epoch);
        at.put_i8(self.magic);
        at.put_u32(self.crc);
        at.put_i16(self.attributes);
        at.put_i32(self.last_offset_delta);
        at.put_i64(self.base_timestamp);
        at.put_i64(self.max_timestamp);
        at.put_i64(self.producer_id);
        at.put_i16(self.producer_epoch);
        at.put_i32(self.base_sequence);
        at.put_i32(self.record_count);
        out
    }

    /// Size of the whole batch in bytes: header and records.
    pub fn size_bytes(&self) -> usize {
        usize::try_from(self.batch_length).unwrap_or(0) + LOG_OVERHEAD
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// Offset after the last record.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// Sequence number of the last record, or -1 without a sequence. Sequences wrap from the
    /// largest i32 to 0.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 { -1 } else { add_sequence(self.base_sequence, self.last_offset_delta) }
    }

    /// Whether an idempotent producer wrote the batch.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > -1
    }

    /// The codec of the records.
    ///
    /// # Errors
    /// A codec number that Kafka does not know.
    pub fn compression(&self) -> Result<Compression, RecordError> {
        Compression::from_id((self.attributes & CODEC_MASK) as u8)
    }

    /// Who set the timestamps.
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether the batch holds control records (markers), which consumers don't see.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// Whether the base timestamp is the time from which tombstones may be removed.
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & DELETE_HORIZON != 0
    }

    /// The time from which the batch's tombstones may be removed, in milliseconds, if set.
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.has_delete_horizon().then_some(self.base_timestamp)
    }

    /// Sets the codec in the attributes.
    pub fn set_compression(&mut self, codec: Compression) {
        self.attributes = (self.attributes & !CODEC_MASK) | i16::from(codec.id());
    }

    /// Sets the timestamp type in the attributes.
    pub fn set_timestamp_type(&mut self, kind: TimestampType) {
        self.set_flag(LOG_APPEND_TIME, kind == TimestampType::LogAppendTime);
    }

    /// Marks the batch as part of a transaction, or not.
    pub fn set_transactional(&mut self, on: bool) {
        self.set_flag(TRANSACTIONAL, on);
    }

    /// Marks the batch as one of control records, or not.
    pub fn set_control(&mut self, on: bool) {
        self.set_flag(CONTROL, on);
    }

    /// Says whether the base timestamp is a delete horizon.
    pub fn set_delete_horizon(&mut self, on: bool) {
        self.set_flag(DELETE_HORIZON, on);
    }

    fn set_flag(&mut self, flag: i16, on: bool) {
        self.attributes = if on { self.attributes | flag } else { self.attributes & !flag };
    }

    /// Checks the checksum over `batch`: the whole batch, header included. Bytes after it are ignored.
    ///
    /// # Errors
    /// The batch is not whole, or its bytes don't give the header's checksum.
    pub fn verify_crc(&self, batch: &[u8]) -> Result<(), RecordError> {
        let size = self.size_bytes();
        let Some(covered) = batch.get(CRC_START..size) else {
            return Err(RecordError::Truncated { needed: size, available: batch.len() });
        };
        let computed = crc32c::crc32c(covered);
        if computed == self.crc { Ok(()) } else { Err(RecordError::Checksum { stored: self.crc, computed }) }
    }

    /// Computes the checksum of this header followed by `records`, and sets it.
    pub fn seal(&mut self, records: &[u8]) {
        let bytes = self.to_bytes();
        self.crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[CRC_START..]), records);
    }
}

/// The format version of what starts at `bytes`, in any format; `None` if it is not there yet.
pub fn peek_magic(bytes: &[u8]) -> Option<i8> {
    bytes.get(MAGIC_POSITION).map(|magic| *magic as i8)
}

/// Rewrites what an append sets: the base offset and the leader's epoch. The checksum covers neither.
pub fn patch_header(header: &mut [u8; HEADER_SIZE], base_offset: i64, partition_leader_epoch: i32) {
    header[..8].copy_from_slice(&base_offset.to_be_bytes());
    header[12..16].copy_from_slice(&partition_leader_epoch.to_be_bytes());
}

/// A sequence number some records later; wraps from the largest i32 to 0.
pub fn add_sequence(sequence: i32, by: i32) -> i32 {
    let sum = i64::from(sequence) + i64::from(by);
    (sum & i64::from(i32::MAX)) as i32
}
