//! Writing batches.

use bytes::{BufMut, Bytes, BytesMut};

use super::codec::{CompressionLevels, compress};
use super::varint::{put_varint, put_varlong, varlong_size};
use super::{
    BatchHeader, Compression, HEADER_SIZE, LOG_OVERHEAD, Record, RecordError, RecordHeader, TimestampType,
};

/// Builds one batch of format version 2. Records are laid out as they come and compressed at the end.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    header: BatchHeader,
    compression: Compression,
    levels: CompressionLevels,
    log_append_time_ms: Option<i64>,
    base_timestamp_ms: Option<i64>,
    body: BytesMut,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new(0)
    }
}

impl BatchBuilder {
    /// An empty batch whose first record has `base_offset` (0 in a produce request).
    pub fn new(base_offset: i64) -> Self {
        let header = BatchHeader {
            base_offset,
            batch_length: 0,
            partition_leader_epoch: -1,
            magic: 2,
            crc: 0,
            attributes: 0,
            last_offset_delta: -1,
            base_timestamp: -1,
            max_timestamp: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 0,
        };
        Self {
            header,
            compression: Compression::None,
            levels: CompressionLevels::default(),
            log_append_time_ms: None,
            base_timestamp_ms: None,
            body: BytesMut::new(),
        }
    }

    /// Compresses the records.
    pub fn compression(mut self, codec: Compression, levels: CompressionLevels) -> Self {
        (self.compression, self.levels) = (codec, levels);
        self
    }

    /// Names the idempotent producer and the sequence number of the first record.
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    /// Sets the leader's epoch; -1 from a producer.
    pub fn partition_leader_epoch(mut self, epoch: i32) -> Self {
        self.header.partition_leader_epoch = epoch;
        self
    }

    /// Makes the batch part of a transaction.
    pub fn transactional(mut self, on: bool) -> Self {
        self.header.set_transactional(on);
        self
    }

    /// Makes the batch one of control records.
    pub fn control(mut self, on: bool) -> Self {
        self.header.set_control(on);
        self
    }

    /// Stamps the batch with the time of its append, in milliseconds.
    pub fn log_append_time(mut self, now_ms: i64) -> Self {
        self.log_append_time_ms = Some(now_ms);
        self
    }

    /// Counts timestamps from this time instead of the first record's.
    pub(super) fn base_timestamp(mut self, ms: Option<i64>) -> Self {
        self.base_timestamp_ms = ms;
        self
    }

    /// Adds a record with the next offset. Headers are names and values.
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        let delta = self.header.last_offset_delta.wrapping_add(1);
        self.put(delta, timestamp, key, value, headers.len(), headers.iter().copied());
    }

    /// Adds a record that has its offset already, at or above the batch's base offset.
    ///
    /// # Errors
    /// The offset does not fit in this batch, or is not above the last one.
    pub fn append_record(&mut self, record: &Record) -> Result<(), RecordError> {
        let delta = record
            .offset
            .checked_sub(self.header.base_offset)
            .and_then(|delta| i32::try_from(delta).ok())
            .filter(|delta| *delta > self.header.last_offset_delta)
            .ok_or(RecordError::Malformed("an offset outside of its batch"))?;
        let headers =
            record.headers.iter().map(|RecordHeader { key, value }| (key.as_ref(), value.as_deref()));
        self.put(
            delta,
            record.timestamp,
            record.key.as_deref(),
            record.value.as_deref(),
            record.headers.len(),
            headers,
        );
        Ok(())
    }

    fn put<'a>(
        &mut self,
        offset_delta: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        header_count: usize,
        headers: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + Clone,
    ) {
        if self.header.record_count == 0 {
            self.header.base_timestamp = self.base_timestamp_ms.unwrap_or(timestamp);
            self.header.max_timestamp = timestamp;
        }
        self.header.max_timestamp = self.header.max_timestamp.max(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(self.header.base_timestamp);
        let size = 1
            + varlong_size(timestamp_delta)
            + varlong_size(i64::from(offset_delta))
            + field_size(key)
            + field_size(value)
            + varlong_size(header_count as i64)
            + headers.clone().map(|(name, value)| field_size(Some(name)) + field_size(value)).sum::<usize>();
        let out = &mut self.body;
        out.reserve(size + 5);
        put_varlong(out, size as i64);
        out.put_u8(0);
        put_varlong(out, timestamp_delta);
        put_varint(out, offset_delta);
        put_field(out, key);
        put_field(out, value);
        put_varlong(out, header_count as i64);
        for (name, value) in headers {
            put_field(out, Some(name));
            put_field(out, value);
        }
        self.header.last_offset_delta = offset_delta;
        self.header.record_count += 1;
    }

    /// Number of records so far.
    pub fn len(&self) -> usize {
        usize::try_from(self.header.record_count).unwrap_or(0)
    }

    /// Whether there is no record yet.
    pub fn is_empty(&self) -> bool {
        self.header.record_count == 0
    }

    /// Size of the batch so far in bytes, without compression.
    pub fn size_bytes(&self) -> usize {
        HEADER_SIZE + self.body.len()
    }

    /// The batch's bytes. An empty builder gives a batch of no records, which brokers refuse.
    ///
    /// # Errors
    /// Compression fails, or the batch is larger than a length can say.
    pub fn build(self) -> Result<Bytes, RecordError> {
        let Self { mut header, compression, levels, log_append_time_ms, body, .. } = self;
        if let Some(now_ms) = log_append_time_ms {
            header.set_timestamp_type(TimestampType::LogAppendTime);
            header.max_timestamp = now_ms;
        }
        header.set_compression(compression);
        let compressed;
        let payload = if compression == Compression::None {
            &body[..]
        } else {
            compressed = compress(compression, levels, &body)?;
            &compressed[..]
        };
        assemble(header, payload)
    }
}

/// A header with its length and checksum set, and the payload, as one batch.
pub(super) fn assemble(mut header: BatchHeader, payload: &[u8]) -> Result<Bytes, RecordError> {
    header.batch_length = batch_length(payload.len())?;
    header.seal(payload);
    let mut out = BytesMut::with_capacity(HEADER_SIZE + payload.len());
    out.put_slice(&header.to_bytes());
    out.put_slice(payload);
    Ok(out.freeze())
}

/// The length field of a batch whose records take `payload_size` bytes.
pub(super) fn batch_length(payload_size: usize) -> Result<i32, RecordError> {
    i32::try_from(HEADER_SIZE - LOG_OVERHEAD + payload_size)
        .map_err(|_| RecordError::TooLarge { limit_bytes: i32::MAX as usize })
}

fn field_size(field: Option<&[u8]>) -> usize {
    field.map_or(1, |bytes| varlong_size(bytes.len() as i64) + bytes.len())
}

fn put_field(out: &mut BytesMut, field: Option<&[u8]>) {
    match field {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varlong(out, bytes.len() as i64);
            out.put_slice(bytes);
        }
    }
}
