//! Reading the message sets of old logs and clients: format versions (magic) 0 and 1.

use bytes::{Buf, Bytes};

use super::codec::{DEFAULT_DECOMPRESSED_LIMIT_BYTES, decompress_from};
use super::{
    Compression, LOG_OVERHEAD, Record, RecordBatch, RecordError, RecordIter, TimestampType, peek_magic,
};

/// Checksum, magic, attributes, and the lengths of key and value.
const SMALLEST_MESSAGE: usize = 14;

/// One message of an old format: a record, or several compressed into one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyBatch {
    /// Format version: 0 or 1.
    pub magic: i8,
    /// CRC-32 (not CRC-32C) of the message, as stored.
    pub crc: u32,
    /// Codec of the records within.
    pub compression: Compression,
    /// Who set the timestamps; format 0 has none.
    pub timestamp_type: Option<TimestampType>,
    /// The message's timestamp in milliseconds: of several records the largest. -1 in format 0.
    pub max_timestamp: i64,
    /// Size in bytes.
    pub size_bytes: usize,
    /// The records, at their offsets in the log.
    pub records: Vec<Record>,
}

/// A batch of any format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyBatch {
    /// Format version 2.
    Batch(RecordBatch),
    /// Format version 0 or 1.
    Legacy(LegacyBatch),
}

impl AnyBatch {
    /// The records, in order.
    ///
    /// # Errors
    /// As [`RecordBatch::records`].
    pub fn records(&self) -> Result<AnyRecords, RecordError> {
        Ok(match self {
            Self::Batch(batch) => AnyRecords::Batch(batch.records()?),
            Self::Legacy(batch) => AnyRecords::Legacy(batch.records.clone().into_iter()),
        })
    }
}

/// See [`AnyBatch::records`].
#[derive(Debug, Clone)]
pub enum AnyRecords {
    /// Of format version 2, read one by one.
    Batch(RecordIter),
    /// Of an old format, read already.
    Legacy(std::vec::IntoIter<Record>),
}

impl Iterator for AnyRecords {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Batch(records) => records.next(),
            Self::Legacy(records) => records.next().map(Ok),
        }
    }
}

/// The batches in `bytes`, of any format. Ends after an error.
pub fn any_batches(mut bytes: Bytes) -> impl Iterator<Item = Result<AnyBatch, RecordError>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let batch = match peek_magic(&bytes) {
            Some(0 | 1) => LegacyBatch::parse(&bytes).map(AnyBatch::Legacy),
            _ => RecordBatch::parse(bytes.clone()).map(AnyBatch::Batch),
        };
        match &batch {
            Ok(AnyBatch::Batch(batch)) => bytes.advance(batch.bytes.len()),
            Ok(AnyBatch::Legacy(batch)) => bytes.advance(batch.size_bytes),
            Err(_) => bytes.clear(),
        }
        Some(batch)
    })
}

impl LegacyBatch {
    /// Reads the message at the start of `bytes`, checks its checksum and decompresses what is within.
    ///
    /// # Errors
    /// It is not whole, not of an old format, or contradicts itself.
    pub fn parse(bytes: &Bytes) -> Result<Self, RecordError> {
        let outer = Message::parse(bytes)?;
        let compression = Compression::from_id(outer.attributes & 0x07)?;
        let timestamp_type = outer.timestamp.map(|_| match outer.attributes & 0x08 {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        });
        let max_timestamp = outer.timestamp.unwrap_or(-1);
        let (magic, crc, size_bytes) = (outer.magic, outer.crc, outer.size_bytes);
        let records = if compression == Compression::None {
            vec![outer.into_record()]
        } else {
            inner_records(&outer, compression, timestamp_type)?
        };
        Ok(Self { magic, crc, compression, timestamp_type, max_timestamp, size_bytes, records })
    }
}

/// The records of a compressed message. In format 1 their offsets count from the first one's, and the
/// outer offset is the last one's.
fn inner_records(
    outer: &Message,
    compression: Compression,
    timestamp_type: Option<TimestampType>,
) -> Result<Vec<Record>, RecordError> {
    let value = outer.value.as_ref().ok_or(RecordError::Malformed("a compressed message without a value"))?;
    let mut rest = decompress_from(compression, value, DEFAULT_DECOMPRESSED_LIMIT_BYTES, outer.magic == 0)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let inner = Message::parse(&rest)?;
        rest.advance(inner.size_bytes);
        if inner.attributes & 0x07 != 0 || inner.magic != outer.magic {
            return Err(RecordError::Malformed("a message within a message of another kind"));
        }
        let mut record = inner.into_record();
        if timestamp_type == Some(TimestampType::LogAppendTime) {
            record.timestamp = outer.timestamp.unwrap_or(-1);
        }
        records.push(record);
    }
    let last = records.last().ok_or(RecordError::Malformed("a compressed message of no records"))?.offset;
    if outer.magic == 1 {
        let first = outer.offset.wrapping_sub(last);
        records.iter_mut().for_each(|record| record.offset = record.offset.wrapping_add(first));
    }
    Ok(records)
}

/// One message as it stands.
struct Message {
    offset: i64,
    size_bytes: usize,
    crc: u32,
    magic: i8,
    attributes: u8,
    timestamp: Option<i64>,
    key: Option<Bytes>,
    value: Option<Bytes>,
}

impl Message {
    fn parse(bytes: &Bytes) -> Result<Self, RecordError> {
        let available = bytes.len();
        if available < LOG_OVERHEAD + SMALLEST_MESSAGE {
            return Err(RecordError::Truncated { needed: LOG_OVERHEAD + SMALLEST_MESSAGE, available });
        }
        let mut at = bytes.clone();
        let (offset, length) = (at.get_i64(), at.get_i32());
        let size = usize::try_from(length)
            .ok()
            .filter(|size| *size >= SMALLEST_MESSAGE)
            .ok_or(RecordError::BatchLength(length))?;
        if at.len() < size {
            return Err(RecordError::Truncated { needed: LOG_OVERHEAD + size, available });
        }
        at.truncate(size);
        let stored = at.get_u32();
        let mut crc = flate2::Crc::new();
        crc.update(&at);
        if crc.sum() != stored {
            return Err(RecordError::Checksum { stored, computed: crc.sum() });
        }
        let magic = at.get_i8();
        if !(0..=1).contains(&magic) {
            return Err(RecordError::UnsupportedMagic(magic));
        }
        let attributes = at.get_u8();
        let timestamp = match magic {
            0 => None,
            _ => Some(
                at.try_get_i64().map_err(|_| RecordError::Truncated { needed: 8, available: at.len() })?,
            ),
        };
        let (key, value) = (field(&mut at)?, field(&mut at)?);
        Ok(Self {
            offset,
            size_bytes: LOG_OVERHEAD + size,
            crc: stored,
            magic,
            attributes,
            timestamp,
            key,
            value,
        })
    }

    fn into_record(self) -> Record {
        Record {
            offset: self.offset,
            timestamp: self.timestamp.unwrap_or(-1),
            key: self.key,
            value: self.value,
            headers: Vec::new(),
        }
    }
}

/// A 32-bit length and as many bytes; a negative length is none.
fn field(at: &mut Bytes) -> Result<Option<Bytes>, RecordError> {
    let length = at.try_get_i32().map_err(|_| RecordError::Truncated { needed: 4, available: at.len() })?;
    let Ok(size) = usize::try_from(length) else { return Ok(None) };
    if size > at.len() {
        return Err(RecordError::Truncated { needed: size, available: at.len() });
    }
    Ok(Some(at.split_to(size)))
}
