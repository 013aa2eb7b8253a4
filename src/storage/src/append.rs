//! Appending, as leader and as follower, and rolling.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use callboard_protocol::records::control::EndTransactionMarker;
use callboard_protocol::records::rebuild::Ready;
use callboard_protocol::records::{
    BatchHeader, HEADER_SIZE, RecordBatch, RecordError, TimestampType, batches, patch_header,
};

use crate::error::{AppendError, StorageError};
use crate::fs;
use crate::index::AbortedTxn;
use crate::log::Log;
use crate::producer::{self, Origin, Verdict};
use crate::scan::BatchInfo;
use crate::segment::{Cursor, Segment};

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub first_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The batch's time if the topic stamps batches or the batch is a repeated one, else -1: what Produce answers.
    pub log_append_time_ms: i64,
    /// Bytes written.
    pub size_bytes: u64,
    /// The batches were in the log already, at these offsets; nothing was written.
    pub duplicate: bool,
    /// A new segment was begun: a good time to flush the former one.
    pub rolled: bool,
}

/// Batches written with one system call.
const BATCHES_PER_WRITE: usize = 32;

impl Log {
    /// Appends validated batches at the log's end: gives them their offsets and the leader's epoch, and writes headers
    /// and records as they are, without copying the records. All or nothing.
    pub fn append_as_leader(
        &mut self,
        batches: &[Ready],
        leader_epoch: i32,
        origin: Origin,
        now_ms: i64,
    ) -> Result<Appended, AppendError> {
        self.check_usable()?;
        let first_offset = self.log_end_offset();
        self.staged.clear();
        let (mut next, mut size_bytes, mut max_timestamp, mut stamp) = (first_offset, 0u64, -1, -1);
        for Ready { header, payload } in batches {
            let marker = marker_of(header, payload)?;
            match self.staged.add(&self.producers, header, next, marker, origin)? {
                Verdict::Append => {}
                Verdict::Duplicate(known) => {
                    self.staged.clear();
                    return Ok(Appended {
                        first_offset: known.first_offset(),
                        last_offset: known.last_offset,
                        log_append_time_ms: known.timestamp_ms,
                        size_bytes: 0,
                        duplicate: true,
                        rolled: false,
                    });
                }
            }
            next += i64::from(header.last_offset_delta) + 1;
            size_bytes += (HEADER_SIZE + payload.len()) as u64;
            max_timestamp = header.max_timestamp.max(max_timestamp);
            stamp = header.max_timestamp;
        }
        let segment_bytes = self.config.segment_bytes;
        if size_bytes > segment_bytes {
            return Err(AppendError::TooLarge { size_bytes, segment_bytes });
        }
        let rolled = self.roll_if_needed(size_bytes, max_timestamp, next - 1, now_ms)?;
        let segment = self.active()?;
        let position = segment.size_bytes();
        self.note_epoch(leader_epoch, first_offset)?;
        if let Err(error) = write_batches(&segment, position, batches, first_offset, leader_epoch) {
            return Err(self.undo_write(&segment, position, error).into());
        }
        let (mut offset, mut at) = (first_offset, position);
        for Ready { header, .. } in batches {
            let header = BatchHeader { base_offset: offset, ..*header };
            self.note_batch(&segment, &BatchInfo::of(&header, at))?;
            (offset, at) = (header.next_offset(), at + header.size_bytes() as u64);
        }
        self.publish(&segment, position + size_bytes, next)?;
        let stamped = self.config.timestamp_type == TimestampType::LogAppendTime;
        Ok(Appended {
            first_offset,
            last_offset: next - 1,
            log_append_time_ms: if stamped { stamp } else { -1 },
            size_bytes,
            duplicate: false,
            rolled,
        })
    }

    /// Appends batches as a leader gave them, offsets and epochs included, from the log's end on. A batch cut at the
    /// end of `records` is left out. Returns what was appended before an error, if any, by the log's end offset.
    pub fn append_as_follower(&mut self, records: Bytes, now_ms: i64) -> Result<Appended, AppendError> {
        self.check_usable()?;
        let first_offset = self.log_end_offset();
        let (mut size_bytes, mut rolled) = (0, false);
        for batch in batches(records) {
            let batch = match batch {
                Ok(batch) => batch,
                // A fetch may end within a batch.
                Err(RecordError::Truncated { .. }) => break,
                Err(error) => return Err(AppendError::InvalidBatch { reason: error.to_string() }),
            };
            rolled |= self.append_replica(&batch, now_ms)?;
            size_bytes += batch.bytes.len() as u64;
        }
        let last_offset = self.log_end_offset() - 1;
        Ok(Appended {
            first_offset,
            last_offset,
            log_append_time_ms: -1,
            size_bytes,
            duplicate: false,
            rolled,
        })
    }

    fn append_replica(&mut self, batch: &RecordBatch, now_ms: i64) -> Result<bool, AppendError> {
        let header = &batch.header;
        batch.verify_crc().map_err(|error| AppendError::InvalidBatch { reason: error.to_string() })?;
        let expected = self.log_end_offset();
        // Compacted logs have gaps, so a replica may jump ahead, never back.
        if header.base_offset < expected || header.last_offset_delta < 0 {
            return Err(AppendError::UnexpectedOffset { offset: header.base_offset, expected });
        }
        let marker = marker_of(header, &batch.payload())?;
        self.staged.clear();
        self.staged.add(&self.producers, header, header.base_offset, marker, Origin::Replication)?;
        let size_bytes = batch.bytes.len() as u64;
        let rolled = self.roll_if_needed(size_bytes, header.max_timestamp, header.last_offset(), now_ms)?;
        let segment = self.active()?;
        let position = segment.size_bytes();
        self.note_epoch(header.partition_leader_epoch, header.base_offset)?;
        if let Err(error) = fs::write_all_vectored(&segment.file, &mut [IoSlice::new(&batch.bytes)], position)
        {
            return Err(self.undo_write(&segment, position, error).into());
        }
        self.note_batch(&segment, &BatchInfo::of(header, position))?;
        self.publish(&segment, position + size_bytes, header.next_offset())?;
        Ok(rolled)
    }

    /// Indexes a batch that was written.
    fn note_batch(&mut self, segment: &Segment, batch: &BatchInfo) -> Result<(), StorageError> {
        if batch.position == 0 {
            self.cursor.rolling_timestamp_ms = Some(batch.max_timestamp_ms);
        }
        let max = segment.note(batch);
        segment.index_batch(&mut self.cursor, batch, max, self.config.index_interval_bytes)
    }

    /// Makes an append visible: producers first, then bytes, then the end offset.
    fn publish(
        &mut self,
        segment: &Segment,
        size_bytes: u64,
        log_end_offset: i64,
    ) -> Result<(), StorageError> {
        if !self.staged.is_empty() {
            let committed = self.producers.commit(&mut self.staged, |txn, last_stable_offset| {
                if !txn.aborted {
                    return Ok(());
                }
                segment.txns.append(AbortedTxn {
                    producer_id: txn.producer_id,
                    first_offset: txn.first_offset,
                    last_offset: txn.last_offset,
                    last_stable_offset,
                })
            });
            // Half of it is taken over by then: only opening the log again sets that right.
            self.failed |= committed.is_err();
            committed?;
            self.publish_first_unstable();
        }
        segment.publish_size(size_bytes);
        self.shared.log_end_offset.store(log_end_offset, Ordering::Release);
        Ok(())
    }

    /// Cuts off what a failed write left, so that no part of it is ever taken for a batch.
    fn undo_write(&mut self, segment: &Segment, position: u64, error: std::io::Error) -> StorageError {
        if segment.file.set_len(position).is_err() {
            self.failed = true;
        }
        StorageError::Io { action: "write", path: segment.path(), source: error }
    }

    /// Begins a new segment if the active one has no room for an append, by Kafka's conditions.
    fn roll_if_needed(
        &mut self,
        size_bytes: u64,
        max_timestamp_ms: i64,
        last_offset: i64,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let segment = self.active()?;
        let used = segment.size_bytes();
        let config = &self.config;
        let is_full = used > config.segment_bytes.saturating_sub(size_bytes);
        let age_ms = match self.cursor.rolling_timestamp_ms.filter(|first| *first >= 0) {
            Some(first) => max_timestamp_ms.saturating_sub(first),
            None => now_ms.saturating_sub(self.cursor.created_ms),
        };
        let segment_ms = config.max_segment_ms();
        let jitter_ms = jitter(config.segment_jitter_ms.min(segment_ms), &segment);
        let is_old = age_ms > segment_ms.saturating_sub(jitter_ms);
        let out_of_reach = last_offset - segment.base_offset > i64::from(i32::MAX);
        let roll = used > 0 && (is_full || is_old || segment.offsets.is_full() || segment.times.is_full());
        if roll || out_of_reach {
            self.roll(now_ms)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Begins a new segment at the log's end. Nothing happens if the active one is empty and begins there.
    pub fn roll(&mut self, now_ms: i64) -> Result<(), StorageError> {
        let active = self.active()?;
        let base_offset = self.log_end_offset();
        if active.base_offset == base_offset {
            return Ok(());
        }
        // What a full disk refuses comes first: the segment before can still be written to then.
        active.index_newest()?;
        producer::write_snapshot(&self.dir(), base_offset, &self.producers)?;
        let segment = Arc::new(Segment::create(&self.shared.dir, base_offset, &self.config)?);
        if let Err(error) = active.trim() {
            // Its indexes may be cut already: nothing must be added to them.
            self.failed = true;
            return Err(error);
        }
        let mut segments = self.shared.segments.load_full().to_vec();
        segments.push(segment);
        self.shared.segments.store(Arc::new(segments));
        self.cursor = Cursor::new(now_ms);
        Ok(())
    }
}

/// Less of `segment.ms`, spread evenly over logs and segments.
fn jitter(jitter_ms: i64, segment: &Segment) -> i64 {
    if jitter_ms <= 0 {
        return 0;
    }
    let seed = crc32c::crc32c(segment.path().as_os_str().as_encoded_bytes());
    i64::from(seed) % jitter_ms
}

/// The transaction marker in a control batch.
fn marker_of(header: &BatchHeader, payload: &Bytes) -> Result<Option<EndTransactionMarker>, AppendError> {
    if !header.is_control() || !header.has_producer_id() {
        return Ok(None);
    }
    let invalid = |error: RecordError| AppendError::InvalidBatch { reason: error.to_string() };
    // Markers are few and small, so putting the batch together again costs nothing that matters.
    let whole = Ready { header: *header, payload: payload.clone() }.to_bytes().map_err(invalid)?;
    read_marker(&RecordBatch::parse(whole).map_err(invalid)?).map_err(invalid)
}

pub(crate) fn read_marker(batch: &RecordBatch) -> Result<Option<EndTransactionMarker>, RecordError> {
    match batch.records()?.next() {
        Some(record) => EndTransactionMarker::read(&record?),
        None => Ok(None),
    }
}

fn write_batches(
    segment: &Segment,
    mut position: u64,
    batches: &[Ready],
    mut next_offset: i64,
    leader_epoch: i32,
) -> std::io::Result<()> {
    for chunk in batches.chunks(BATCHES_PER_WRITE) {
        let mut headers = [[0; HEADER_SIZE]; BATCHES_PER_WRITE];
        let mut size = 0;
        for (bytes, Ready { header, payload }) in headers.iter_mut().zip(chunk) {
            *bytes = header.to_bytes();
            patch_header(bytes, next_offset, leader_epoch);
            next_offset += i64::from(header.last_offset_delta) + 1;
            size += (HEADER_SIZE + payload.len()) as u64;
        }
        let mut slices = [IoSlice::new(&[]); 2 * BATCHES_PER_WRITE];
        for ((pair, bytes), Ready { payload, .. }) in slices.chunks_exact_mut(2).zip(&headers).zip(chunk) {
            pair.copy_from_slice(&[IoSlice::new(bytes), IoSlice::new(payload)]);
        }
        let used = slices.get_mut(..2 * chunk.len()).unwrap_or_default();
        fs::write_all_vectored(&segment.file, used, position)?;
        position += size;
    }
    Ok(())
}
