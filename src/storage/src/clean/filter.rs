//! What stays of one batch.

use std::collections::BTreeMap;

use bytes::Bytes;
use callboard_protocol::records::control::EndTransactionMarker;
use callboard_protocol::records::{BatchHeader, Record, RecordBatch, RecordError, emptied, retain};

use super::map::OffsetMap;
use super::transactions::Transactions;
use crate::append::read_marker;

/// The last of a producer in the log: compaction must not lose its sequence or epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastOfProducer {
    /// Offset of its last record of data, unless a new epoch has begun since.
    pub last_data_offset: Option<i64>,
    /// Its epoch.
    pub epoch: i16,
}

/// The rules of one round.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) map: &'a OffsetMap,
    pub(crate) producers: &'a BTreeMap<i64, LastOfProducer>,
    pub(crate) now_ms: i64,
    pub(crate) delete_retention_ms: i64,
    /// The end of what this round compacts: the batch that ends there stays, if only to keep the offset.
    pub(crate) end_offset: i64,
}

/// What becomes of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It stays as it is.
    Stays,
    /// These bytes take its place.
    Becomes(Bytes),
    Goes,
}

/// What becomes of a batch, and how many of its records stay.
pub(crate) fn sift(
    batch: &RecordBatch,
    transactions: &mut Transactions,
    rules: &Rules<'_>,
) -> Result<(Fate, u64), RecordError> {
    let header = &batch.header;
    let (nothing_left, records_go) = if header.is_control() {
        let nothing_left = transactions.control(header, read_marker(batch)?);
        // Markers wait as long as tombstones do, from when the last of their records went.
        let waited = header.delete_horizon_ms().is_some_and(|horizon| horizon <= rules.now_ms);
        (nothing_left, nothing_left && waited)
    } else {
        let aborted = transactions.data(header);
        (aborted, aborted)
    };
    let must_leave_a_header = (header.has_producer_id() && is_last_of_producer(header, rules))
        || header.next_offset() == rules.end_offset;
    if records_go && !must_leave_a_header {
        return Ok((Fate::Goes, 0));
    }
    let mut kept: Vec<Record> = Vec::new();
    let (mut all, mut tombstones) = (true, false);
    if !records_go {
        for record in batch.records()? {
            let record = record?;
            if header.is_control() || stays(header, &record, rules) {
                tombstones |= record.value.is_none();
                kept.push(record);
            } else {
                all = false;
            }
        }
    }
    if kept.is_empty() {
        let fate = match must_leave_a_header {
            true if header.record_count == 0 => Fate::Stays,
            true => Fate::Becomes(emptied(header)?),
            false => Fate::Goes,
        };
        return Ok((fate, 0));
    }
    let count = kept.len() as u64;
    let starts_waiting =
        (tombstones || (header.is_control() && nothing_left)) && !header.has_delete_horizon();
    if all && !starts_waiting {
        return Ok((Fate::Stays, count));
    }
    let horizon = if starts_waiting {
        Some(rules.now_ms.saturating_add(rules.delete_retention_ms))
    } else {
        header.delete_horizon_ms()
    };
    Ok((Fate::Becomes(retain(header, &kept, horizon)?), count))
}

fn is_last_of_producer(header: &BatchHeader, rules: &Rules<'_>) -> bool {
    rules.producers.get(&header.producer_id).is_some_and(|last| match last.last_data_offset {
        Some(offset) => header.last_offset() == offset,
        None => header.is_control() && header.producer_epoch == last.epoch,
    })
}

/// Whether a record of data stays: past what the map knows, or the last of its key and no tombstone whose time is up.
fn stays(header: &BatchHeader, record: &Record, rules: &Rules<'_>) -> bool {
    if record.offset > rules.map.latest_offset() {
        return true;
    }
    let Some(key) = &record.key else { return false };
    let is_last = rules.map.get(key).is_none_or(|last| record.offset >= last);
    let may_stay =
        record.value.is_some() || header.delete_horizon_ms().is_none_or(|horizon| rules.now_ms < horizon);
    is_last && may_stay
}

/// The marker in a control batch, for the walk that fills the map.
pub(crate) fn marker(batch: &RecordBatch) -> Result<Option<EndTransactionMarker>, RecordError> {
    read_marker(batch)
}
