//! A batch of one partition: gathering, then as it goes on the wire.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use callboard_protocol::records::{BatchBuilder, HEADER_SIZE, RecordBatch};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

use super::{ProducerOptions, Queued, RecordMetadata};
use crate::ClientError;

/// Whom to tell of a record.
struct Waiter {
    answer: oneshot::Sender<Result<RecordMetadata, ClientError>>,
    _permit: OwnedSemaphorePermit,
}

/// A batch that takes records.
pub(super) struct OpenBatch {
    builder: BatchBuilder,
    waiters: Vec<Waiter>,
    opened: Instant,
}

impl OpenBatch {
    pub(super) fn new(options: &ProducerOptions) -> Self {
        let builder = BatchBuilder::new(0).compression(options.compression, options.levels);
        Self { builder, waiters: Vec::new(), opened: Instant::now() }
    }

    pub(super) fn push(&mut self, queued: Queued) {
        let Queued { record, answer, permit } = queued;
        let headers: Vec<_> =
            record.headers.iter().map(|(name, value)| (name.as_bytes(), value.as_deref())).collect();
        let timestamp = record.timestamp_ms.unwrap_or_else(now_ms);
        self.builder.append(timestamp, record.key.as_deref(), record.value.as_deref(), &headers);
        self.waiters.push(Waiter { answer, _permit: permit });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    pub(super) fn is_full(&self, options: &ProducerOptions) -> bool {
        self.builder.size_bytes() >= options.batch_size_bytes
    }

    /// When the batch is sent though not full.
    pub(super) fn due(&self, options: &ProducerOptions) -> Instant {
        self.opened + options.linger
    }

    /// The batch as it will be sent. If it can't be built its records are told, and there is none.
    pub(super) fn seal(self, delivery_timeout: Duration) -> Option<SealedBatch> {
        let Self { builder, waiters, opened } = self;
        match builder.build().and_then(RecordBatch::parse) {
            Ok(batch) => {
                Some(SealedBatch { batch, waiters, sequence: None, expires: opened + delivery_timeout })
            }
            Err(error) => {
                tell(waiters, &Err(error.into()));
                None
            }
        }
    }
}

/// A batch that is sent until it is written or given up.
pub(super) struct SealedBatch {
    batch: RecordBatch,
    waiters: Vec<Waiter>,
    /// Producer id, epoch and sequence, once given.
    sequence: Option<(i64, i16, i32)>,
    expires: Instant,
}

impl SealedBatch {
    pub(super) fn record_count(&self) -> i32 {
        self.batch.header.record_count
    }

    pub(super) fn has_sequence(&self) -> bool {
        self.sequence.is_some()
    }

    pub(super) fn is_expired(&self) -> bool {
        Instant::now() >= self.expires
    }

    /// Names producer and sequence in the header. A batch keeps them for all its tries.
    pub(super) fn number(&mut self, producer_id: i64, epoch: i16, sequence: i32) {
        self.sequence = Some((producer_id, epoch, sequence));
        let header = &mut self.batch.header;
        header.producer_id = producer_id;
        header.producer_epoch = epoch;
        header.base_sequence = sequence;
        header.seal(self.batch.bytes.get(HEADER_SIZE..).unwrap_or_default());
        let head = header.to_bytes();
        let mut bytes = Vec::with_capacity(self.batch.bytes.len());
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(self.batch.bytes.get(HEADER_SIZE..).unwrap_or_default());
        self.batch.bytes = bytes.into();
    }

    /// Forgets producer and sequence: it will get new ones.
    pub(super) fn unnumber(&mut self) {
        self.sequence = None;
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.batch.bytes.clone()
    }

    /// Tells its records that they are written, the first at `base_offset`.
    pub(super) fn written(self, partition: i32, base_offset: i64, log_append_time_ms: i64) {
        for (index, waiter) in (0..).zip(self.waiters) {
            let offset = if base_offset < 0 { -1 } else { base_offset + index };
            let _ = waiter.answer.send(Ok(RecordMetadata { partition, offset, log_append_time_ms }));
        }
    }

    /// Tells its records that they are given up.
    pub(super) fn failed(self, error: &ClientError) {
        tell(self.waiters, &Err(error.clone()));
    }
}

fn tell(waiters: Vec<Waiter>, result: &Result<RecordMetadata, ClientError>) {
    for waiter in waiters {
        let _ = waiter.answer.send(result.clone());
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
