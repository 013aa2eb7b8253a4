//! One record, and reading a batch's records lazily.

use bytes::Bytes;

use super::codec::{DEFAULT_DECOMPRESSED_LIMIT_BYTES, decompress};
use super::varint::{SliceSource, Source};
use super::{BatchHeader, RecordBatch, RecordError, TimestampType};

/// A header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordHeader {
    /// The name; UTF-8 by convention.
    pub key: Bytes,
    /// The value.
    pub value: Option<Bytes>,
}

/// One record. Its parts are slices of the batch, or of what the batch decompressed to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Offset in the partition.
    pub offset: i64,
    /// Milliseconds since 1970, or -1.
    pub timestamp: i64,
    /// The key.
    pub key: Option<Bytes>,
    /// The value; none is a tombstone.
    pub value: Option<Bytes>,
    /// The headers, in order; names may repeat.
    pub headers: Vec<RecordHeader>,
}

impl RecordBatch {
    /// The records, in order. Compressed ones are decompressed first, to at most
    /// [`DEFAULT_DECOMPRESSED_LIMIT_BYTES`].
    ///
    /// # Errors
    /// The codec is unknown, or decompression fails. A bad record is an error of the iterator.
    pub fn records(&self) -> Result<RecordIter, RecordError> {
        self.records_within(DEFAULT_DECOMPRESSED_LIMIT_BYTES)
    }

    /// As [`Self::records`], with a limit of the caller's on the decompressed size, in bytes.
    ///
    /// # Errors
    /// As [`Self::records`].
    pub fn records_within(&self, limit_bytes: usize) -> Result<RecordIter, RecordError> {
        let body = decompress(self.header.compression()?, &self.payload(), limit_bytes)?;
        Ok(RecordIter { header: self.header, body, at: 0, left: self.header.record_count.max(0) })
    }
}

/// See [`RecordBatch::records`]. Ends after an error.
#[derive(Debug, Clone)]
pub struct RecordIter {
    header: BatchHeader,
    body: Bytes,
    at: usize,
    left: i32,
}

impl Iterator for RecordIter {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let record = self.read();
        if record.is_err() {
            self.left = 0;
        }
        Some(record)
    }
}

impl RecordIter {
    fn read(&mut self) -> Result<Record, RecordError> {
        let mut prefix = SliceSource::new(self.body.get(self.at..).unwrap_or_default());
        let size = usize::try_from(prefix.varint()?).map_err(|_| RecordError::Malformed("negative size"))?;
        let start = self.at + prefix.taken() as usize;
        let available = self.body.len() - start;
        if size > available {
            return Err(RecordError::Truncated { needed: size, available });
        }
        let bytes = self.body.slice(start..start + size);
        self.at = start + size;
        let mut reader = SliceSource::new(&bytes);
        let _attributes = reader.byte()?;
        let timestamp_delta = reader.varlong()?;
        let offset_delta = reader.varint()?;
        let timestamp = match self.header.timestamp_type() {
            TimestampType::CreateTime => self.header.base_timestamp.wrapping_add(timestamp_delta),
            TimestampType::LogAppendTime => self.header.max_timestamp,
        };
        let key = field(&bytes, &mut reader)?;
        let value = field(&bytes, &mut reader)?;
        let headers = headers(&bytes, &mut reader)?;
        if !reader.is_at_end()? {
            return Err(RecordError::Malformed("bytes left after the headers"));
        }
        let offset = self.header.base_offset.wrapping_add(i64::from(offset_delta));
        Ok(Record { offset, timestamp, key, value, headers })
    }
}

fn headers(bytes: &Bytes, reader: &mut SliceSource<'_>) -> Result<Vec<RecordHeader>, RecordError> {
    let count =
        usize::try_from(reader.varint()?).map_err(|_| RecordError::Malformed("negative header count"))?;
    // A header takes two bytes at least; a larger count can't be true.
    if count > bytes.len() / 2 {
        return Err(RecordError::Malformed("more headers than bytes"));
    }
    let mut headers = Vec::with_capacity(count);
    for _ in 0..count {
        let key = field(bytes, reader)?.ok_or(RecordError::Malformed("a header without a name"))?;
        headers.push(RecordHeader { key, value: field(bytes, reader)? });
    }
    Ok(headers)
}

/// A length and as many bytes; a negative length is none.
fn field(bytes: &Bytes, reader: &mut SliceSource<'_>) -> Result<Option<Bytes>, RecordError> {
    let Ok(size) = usize::try_from(reader.varint()?) else { return Ok(None) };
    let start = reader.taken() as usize;
    reader.skip(size)?;
    Ok(Some(bytes.slice(start..start + size)))
}
