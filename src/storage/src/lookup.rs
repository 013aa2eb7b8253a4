//! Lookups by timestamp (ListOffsets).

use callboard_protocol::records::legacy::any_batches;
use callboard_protocol::records::{RecordError, TimestampType};

use crate::error::StorageError;
use crate::reader::LogReader;
use crate::scan::{BatchInfo, FULL_CHUNK, LOOKUP_CHUNK, Scanner};
use crate::segment::{Segment, scan_failure};

/// A record found by its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampOffset {
    /// The record's timestamp, in milliseconds.
    pub timestamp_ms: i64,
    /// Its offset.
    pub offset: i64,
    /// The leader epoch of its batch, if known.
    pub leader_epoch: Option<i32>,
}

impl LogReader {
    /// The first record at or after the log's start with a timestamp at or after this one. It reads and may decompress
    /// batches: call it where that may take its time.
    pub fn offset_for_timestamp(&self, timestamp_ms: i64) -> Result<Option<TimestampOffset>, StorageError> {
        let start = self.log_start_offset();
        for segment in self.shared.segments.load().iter() {
            if segment.max_timestamp().timestamp_ms < timestamp_ms {
                continue;
            }
            if let Some(found) = first_at_or_after(segment, timestamp_ms, start)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The first record with the largest timestamp of the log.
    pub fn max_timestamp(&self) -> Result<Option<TimestampOffset>, StorageError> {
        let segments = self.shared.segments.load();
        // Of equal segments the first one holds the first record.
        let newest = segments.iter().rev().max_by_key(|segment| segment.max_timestamp().timestamp_ms);
        let Some(segment) = newest else { return Ok(None) };
        let max = segment.max_timestamp();
        if max.timestamp_ms < 0 {
            return Ok(None);
        }
        let size = segment.size_bytes();
        let Some(batch) = segment.locate(max.offset, size)? else { return Ok(None) };
        record_in(segment, &batch, size, |timestamp, _| timestamp >= batch.max_timestamp_ms)
    }
}

fn first_at_or_after(
    segment: &Segment,
    timestamp_ms: i64,
    start: i64,
) -> Result<Option<TimestampOffset>, StorageError> {
    let size = segment.size_bytes();
    let from =
        segment.times.floor(timestamp_ms)?.map_or(segment.base_offset, |entry| entry.offset).max(start);
    let Some(first) = segment.locate(from, size)? else { return Ok(None) };
    let mut scanner = Scanner::new(&segment.file, first.position, size, LOOKUP_CHUNK);
    while let Some(batch) = scanner.next().map_err(|error| scan_failure(&segment.path(), error))? {
        if batch.max_timestamp_ms < timestamp_ms {
            continue;
        }
        let wanted = |timestamp, offset| timestamp >= timestamp_ms && offset >= start;
        if let Some(found) = record_in(segment, &batch, size, wanted)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The first record of a batch that `wanted(timestamp, offset)` picks.
fn record_in(
    segment: &Segment,
    batch: &BatchInfo,
    size: u64,
    wanted: impl Fn(i64, i64) -> bool,
) -> Result<Option<TimestampOffset>, StorageError> {
    let leader_epoch = batch.header.map(|header| header.partition_leader_epoch).filter(|epoch| *epoch >= 0);
    let found = |timestamp_ms, offset| TimestampOffset { timestamp_ms, offset, leader_epoch };
    // All records of a stamped batch have its time: no need to read them.
    let stamped = batch.header.is_some_and(|header| header.timestamp_type() == TimestampType::LogAppendTime);
    if stamped && wanted(batch.max_timestamp_ms, batch.base_offset) {
        return Ok(Some(found(batch.max_timestamp_ms, batch.base_offset)));
    }
    let chunk = usize::try_from(batch.size_bytes).unwrap_or(FULL_CHUNK).min(FULL_CHUNK);
    let mut scanner = Scanner::new(&segment.file, batch.position, size, chunk);
    let bytes = scanner.batch(batch).map_err(|error| scan_failure(&segment.path(), error))?;
    let corrupt = |error: RecordError| {
        StorageError::corrupt(&segment.path(), format!("batch at byte {}: {error}", batch.position))
    };
    for batch in any_batches(bytes) {
        for record in batch.and_then(|batch| batch.records()).map_err(corrupt)? {
            let record = record.map_err(corrupt)?;
            if wanted(record.timestamp, record.offset) {
                return Ok(Some(found(record.timestamp, record.offset)));
            }
        }
    }
    Ok(None)
}
