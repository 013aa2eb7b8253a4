//! The broker's rules for the records of one partition in a produce request, as Kafka 4.4 has them.
//!
//! [`first_is_transactional`] finds what refuses a request as a whole, [`single_batch`] what a partition is refused for before
//! its log is looked at, and [`validate`] what the log refuses. Most of the last kind is answered with a log start offset.

use bytes::Bytes;

pub use super::refusal::{RecordFault, Refusal, RefusedRecord};
use super::walk::{Glimpse, walk};
use super::{
    BatchHeader, Compression, DEFAULT_DECOMPRESSED_LIMIT_BYTES, HEADER_SIZE, LOG_OVERHEAD, RecordBatch,
    RecordError, TimestampType, peek_magic,
};

/// A length below the smallest of any format can't be walked over.
const SMALLEST_LENGTH: i32 = 14;
/// Where the length is in a batch of any format.
const LENGTH_POSITION: usize = 8;
/// Bytes needed to see a batch's length and format.
const PREFIX_SIZE: usize = 17;
/// The first Produce version that may carry zstd.
const FIRST_VERSION_OF_ZSTD: i16 = 7;

/// What a topic's configuration asks of a produced batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// `max.message.bytes`: the largest batch, header included.
    pub max_message_bytes: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how old a record may be.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far ahead of now a record may be.
    pub timestamp_after_max_ms: i64,
    /// Whether the topic is compacted, so that each record needs a key.
    pub keys_required: bool,
    /// `compression.type`; `None` for `producer`: as it came.
    pub compression: Option<Compression>,
    /// The most that a compressed batch may grow to. Ours: Kafka has no such limit.
    pub max_decompressed_bytes: usize,
}

impl Default for Rules {
    /// Kafka's defaults for a topic.
    fn default() -> Self {
        Self {
            max_message_bytes: 1_048_588,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            keys_required: false,
            compression: None,
            max_decompressed_bytes: DEFAULT_DECOMPRESSED_LIMIT_BYTES,
        }
    }
}

/// Whether the first batch of a partition's records is part of a transaction. Kafka looks at it before all else, and
/// at no other.
///
/// # Errors
/// [`RecordError::BatchLength`] or [`RecordError::UnsupportedMagic`]: Kafka then refuses the whole request, with
/// CORRUPT_MESSAGE.
pub fn first_is_transactional(records: &[u8]) -> Result<bool, RecordError> {
    let Some(size) = whole_batch(records)? else { return Ok(false) };
    let header = BatchHeader::parse(records.get(..size).unwrap_or_default());
    Ok(header.is_ok_and(|header| header.is_transactional()))
}

/// Takes the one batch that a produce request of `version` has for a partition. Bytes after it that are
/// no whole batch are dropped, as Kafka does.
///
/// # Errors
/// No batch or several, an old format, a codec newer than the version.
pub fn single_batch(records: &Bytes, version: i16) -> Result<RecordBatch, Refusal> {
    let size = whole_batch(records).map_err(Refusal::Unwalkable)?.ok_or(Refusal::NotOneBatch)?;
    if peek_magic(records) != Some(2) {
        return Err(Refusal::NotOneBatch);
    }
    let header = BatchHeader::parse(records.get(..size).unwrap_or_default()).map_err(Refusal::Corrupt);
    if version < FIRST_VERSION_OF_ZSTD
        && let Ok(header) = &header
    {
        match header.compression() {
            Ok(Compression::Zstd) => return Err(Refusal::CodecTooNew),
            Err(_) => return Err(Refusal::CodecUnknown),
            Ok(_) => {}
        }
    }
    if whole_batch(records.get(size..).unwrap_or_default()).map_err(Refusal::Unwalkable)?.is_some() {
        return Err(Refusal::NotOneBatch);
    }
    Ok(RecordBatch { header: header?, bytes: records.slice(..size) })
}

/// Size of the batch of any format at the start of `bytes`, if it is whole.
fn whole_batch(bytes: &[u8]) -> Result<Option<usize>, RecordError> {
    let Some(length) = bytes.get(LENGTH_POSITION..).and_then(|length| length.first_chunk::<4>()) else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*length);
    if length < SMALLEST_LENGTH {
        return Err(RecordError::BatchLength(length));
    }
    if bytes.len() < PREFIX_SIZE {
        return Ok(None);
    }
    if let Some(magic) = peek_magic(bytes).filter(|magic| !(0..=2).contains(magic)) {
        return Err(RecordError::UnsupportedMagic(magic));
    }
    let size = usize::try_from(length).unwrap_or(0) + LOG_OVERHEAD;
    Ok((size <= bytes.len()).then_some(size))
}

/// What the topic needs done to a good batch before it is appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needs {
    /// Nothing: it is appended as it came, with its offset and leader epoch patched in.
    Nothing,
    /// The header's timestamp fields change, and so the checksum.
    Restamp,
    /// The records are written anew: another codec, or offsets within that don't count up by one.
    Rebuild,
}

/// What a walk over a good batch found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validated {
    /// The header as it came.
    pub header: BatchHeader,
    /// Number of records.
    pub record_count: i32,
    /// The largest timestamp: the records', or now if the broker stamps.
    pub max_timestamp: i64,
    /// Offset of the first record that has it, from the batch's base offset.
    pub max_timestamp_offset_delta: i32,
    /// Now, if the broker stamps; -1 otherwise. Produce answers with it.
    pub log_append_time_ms: i64,
    /// The codec to store.
    pub compression: Compression,
    /// What is to be done.
    pub needs: Needs,
    /// Whether the offsets within count up by one from 0.
    pub(super) offsets_count_up: bool,
}

/// Holds a batch against the rules: one checksum, one walk over the records, no allocation unless it is
/// refused. `now_ms` is milliseconds since 1970.
///
/// # Errors
/// The first rule that the batch breaks, in Kafka's order; records that break a rule of their own together.
pub fn validate(batch: &RecordBatch, rules: &Rules, now_ms: i64) -> Result<Validated, Refusal> {
    let header = &batch.header;
    check_batch(batch, rules)?;
    let source = header.compression().map_err(Refusal::Unreadable)?;
    let mut check = RecordCheck::new(header, rules, now_ms);
    let payload = batch.bytes.get(HEADER_SIZE..).unwrap_or_default();
    walk(header, payload, rules.max_decompressed_bytes, |record| check.see(record))
        .map_err(Refusal::Unreadable)?;
    if !check.refused.is_empty() {
        return Err(Refusal::Records(check.refused));
    }
    let stamped = rules.timestamp_type == TimestampType::LogAppendTime;
    let (max_timestamp, max_timestamp_offset_delta) =
        if stamped { (now_ms, 0) } else { (check.max_timestamp, check.max_timestamp_offset_delta) };
    let compression = rules.compression.unwrap_or(source);
    let needs = if compression != source || (source != Compression::None && !check.offsets_count_up) {
        Needs::Rebuild
    } else if header.timestamp_type() != rules.timestamp_type || header.max_timestamp != max_timestamp {
        Needs::Restamp
    } else {
        Needs::Nothing
    };
    Ok(Validated {
        header: *header,
        record_count: header.record_count,
        max_timestamp,
        max_timestamp_offset_delta,
        log_append_time_ms: if stamped { now_ms } else { -1 },
        compression,
        needs,
        offsets_count_up: check.offsets_count_up,
    })
}

/// The rules that need no look at the records.
fn check_batch(batch: &RecordBatch, rules: &Rules) -> Result<(), Refusal> {
    let header = &batch.header;
    if header.base_offset != 0 {
        return Err(Refusal::BaseOffset(header.base_offset));
    }
    let size_bytes = header.size_bytes();
    if size_bytes > rules.max_message_bytes {
        return Err(Refusal::TooLarge { size_bytes, limit_bytes: rules.max_message_bytes });
    }
    batch.verify_crc().map_err(Refusal::Corrupt)?;
    let (last_offset_delta, record_count) = (header.last_offset_delta, header.record_count);
    if record_count <= 0 || i64::from(last_offset_delta) + 1 != i64::from(record_count) {
        return Err(Refusal::Count { last_offset_delta, record_count });
    }
    if header.is_control() {
        return Err(Refusal::Control);
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        return Err(Refusal::Sequence(header.base_sequence));
    }
    Ok(())
}

/// What is gathered over the records.
struct RecordCheck {
    earliest: i64,
    latest: i64,
    check_time: bool,
    claims_append_time: bool,
    keys_required: bool,
    offsets_count_up: bool,
    max_timestamp: i64,
    max_timestamp_offset_delta: i32,
    refused: Vec<RefusedRecord>,
}

impl RecordCheck {
    fn new(header: &BatchHeader, rules: &Rules, now_ms: i64) -> Self {
        let topic_stamps = rules.timestamp_type == TimestampType::LogAppendTime;
        Self {
            earliest: now_ms.saturating_sub(rules.timestamp_before_max_ms),
            latest: now_ms.saturating_add(rules.timestamp_after_max_ms),
            check_time: !topic_stamps,
            claims_append_time: topic_stamps && header.timestamp_type() == TimestampType::LogAppendTime,
            keys_required: rules.keys_required,
            offsets_count_up: true,
            max_timestamp: -1,
            max_timestamp_offset_delta: 0,
            refused: Vec::new(),
        }
    }

    #[inline]
    fn see(&mut self, record: Glimpse) {
        let Glimpse { index, timestamp, offset_delta, has_key } = record;
        self.offsets_count_up &= offset_delta == index;
        if timestamp > self.max_timestamp {
            self.max_timestamp = timestamp;
            self.max_timestamp_offset_delta = offset_delta;
        }
        if self.keys_required && !has_key {
            self.refuse(index, RecordFault::NoKey);
        } else if self.check_time && timestamp != -1 && !(self.earliest..=self.latest).contains(&timestamp) {
            let (earliest, latest) = (self.earliest, self.latest);
            self.refuse(index, RecordFault::Timestamp { timestamp, earliest, latest });
        } else if self.claims_append_time {
            self.refuse(index, RecordFault::TimestampType);
        }
    }

    #[cold]
    fn refuse(&mut self, index: i32, fault: RecordFault) {
        self.refused.push(RefusedRecord { index, fault });
    }
}
