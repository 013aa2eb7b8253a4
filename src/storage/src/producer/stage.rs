//! Checking batches against the producers' state, without changing it before they are written.

use callboard_protocol::records::control::EndTransactionMarker;
use callboard_protocol::records::{BatchHeader, add_sequence};

use super::entry::{ProducerBatch, ProducerEntry};
use super::state::{CompletedTxn, ProducerState};
use crate::error::AppendError;

/// Where a leader's batches come from; it decides what is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A producer: sequences and epochs are checked.
    Client,
    /// A coordinator's own records and transaction markers: epochs are checked.
    Coordinator,
    /// The leader of a replicated log has checked them.
    Replication,
}

/// What to do with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Append,
    /// It was appended before, as this batch.
    Duplicate(ProducerBatch),
}

/// The changes that some batches make once they are written.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    pub(super) entries: Vec<ProducerEntry>,
    pub(super) started: Vec<(i64, i64)>,
    pub(super) completed: Vec<CompletedTxn>,
}

impl Staged {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.started.clear();
        self.completed.clear();
    }

    /// Checks a batch that will get `base_offset`, and notes what it changes.
    pub(crate) fn add(
        &mut self,
        state: &ProducerState,
        header: &BatchHeader,
        base_offset: i64,
        marker: Option<EndTransactionMarker>,
        origin: Origin,
    ) -> Result<Verdict, AppendError> {
        if !header.has_producer_id() {
            return Ok(Verdict::Append);
        }
        let id = header.producer_id;
        let index = match self.entries.iter().position(|entry| entry.producer_id == id) {
            Some(index) => index,
            None => {
                self.entries.push(state.get(id).cloned().unwrap_or_else(|| ProducerEntry::new(id)));
                self.entries.len() - 1
            }
        };
        let Some(entry) = self.entries.get_mut(index) else { return Ok(Verdict::Append) };
        if origin != Origin::Replication {
            check_epoch(entry, header)?;
        }
        let last_offset = base_offset + i64::from(header.last_offset_delta);
        if header.is_control() {
            let Some(marker) = marker else { return Ok(Verdict::Append) };
            self.completed.extend(end_transaction(entry, header, marker, last_offset, origin)?);
            return Ok(Verdict::Append);
        }
        if origin == Origin::Client {
            if let Some(batch) = entry.duplicate_of(header) {
                return Ok(Verdict::Duplicate(*batch));
            }
            check_sequence(entry, header)?;
        }
        self.started.extend(add_batch(entry, header, base_offset, origin)?);
        Ok(Verdict::Append)
    }
}

fn check_epoch(entry: &ProducerEntry, header: &BatchHeader) -> Result<(), AppendError> {
    if header.producer_epoch < entry.epoch {
        return Err(AppendError::InvalidProducerEpoch {
            producer_id: entry.producer_id,
            epoch: header.producer_epoch,
            current_epoch: entry.epoch,
        });
    }
    Ok(())
}

fn check_sequence(entry: &ProducerEntry, header: &BatchHeader) -> Result<(), AppendError> {
    let in_order = if entry.epoch < 0 {
        // A producer that is not known, or no longer, may begin anywhere.
        true
    } else if header.producer_epoch != entry.epoch || entry.batches().is_empty() {
        header.base_sequence == 0
    } else {
        header.base_sequence == add_sequence(entry.last_sequence(), 1)
    };
    if in_order {
        return Ok(());
    }
    Err(AppendError::OutOfOrderSequence {
        producer_id: entry.producer_id,
        epoch: header.producer_epoch,
        sequence: header.base_sequence,
        last_sequence: entry.last_sequence(),
        current_epoch: entry.epoch,
    })
}

/// Gives the first offset and the producer of a transaction that begins with this batch.
fn add_batch(
    entry: &mut ProducerEntry,
    header: &BatchHeader,
    base_offset: i64,
    origin: Origin,
) -> Result<Option<(i64, i64)>, AppendError> {
    let outside = entry.txn_first_offset.is_some() && !header.is_transactional();
    if outside && origin != Origin::Replication {
        return Err(AppendError::InvalidTxnState { producer_id: entry.producer_id });
    }
    entry.set_epoch(header.producer_epoch);
    entry.push(ProducerBatch {
        last_sequence: add_sequence(header.base_sequence, header.last_offset_delta),
        last_offset: base_offset + i64::from(header.last_offset_delta),
        offset_delta: header.last_offset_delta,
        timestamp_ms: header.max_timestamp,
    });
    entry.last_timestamp_ms = header.max_timestamp;
    if header.is_transactional() && entry.txn_first_offset.is_none() {
        entry.txn_first_offset = Some(base_offset);
        return Ok(Some((base_offset, entry.producer_id)));
    }
    Ok(None)
}

fn end_transaction(
    entry: &mut ProducerEntry,
    header: &BatchHeader,
    marker: EndTransactionMarker,
    last_offset: i64,
    origin: Origin,
) -> Result<Option<CompletedTxn>, AppendError> {
    let epoch = marker.coordinator_epoch;
    if epoch < entry.coordinator_epoch && origin != Origin::Replication {
        let current_epoch = entry.coordinator_epoch;
        return Err(AppendError::TransactionCoordinatorFenced { epoch, current_epoch });
    }
    entry.set_epoch(header.producer_epoch);
    entry.coordinator_epoch = epoch;
    entry.last_timestamp_ms = header.max_timestamp;
    let producer_id = entry.producer_id;
    let aborted = !marker.committed;
    let first = entry.txn_first_offset.take();
    Ok(first.map(|first_offset| CompletedTxn { producer_id, first_offset, last_offset, aborted }))
}
