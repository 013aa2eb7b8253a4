//! All producers of a log, and its transactions.

use std::collections::BTreeMap;

use super::entry::ProducerEntry;
use super::stage::Staged;

/// A transaction whose marker was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletedTxn {
    pub(crate) producer_id: i64,
    pub(crate) first_offset: i64,
    /// Offset of the marker.
    pub(crate) last_offset: i64,
    pub(crate) aborted: bool,
}

/// The producers by id, and the transactions that hold back the last stable offset.
#[derive(Debug, Default)]
pub(crate) struct ProducerState {
    entries: BTreeMap<i64, ProducerEntry>,
    /// First offset of each open transaction, and its producer.
    open: BTreeMap<i64, i64>,
    /// Ended transactions whose markers are not replicated yet: first offset, and the marker's.
    unreplicated: BTreeMap<i64, i64>,
}

impl ProducerState {
    pub(crate) fn from_entries(entries: impl IntoIterator<Item = ProducerEntry>) -> ProducerState {
        let mut state = ProducerState::default();
        for entry in entries {
            if let Some(first_offset) = entry.txn_first_offset {
                state.open.insert(first_offset, entry.producer_id);
            }
            state.entries.insert(entry.producer_id, entry);
        }
        state
    }

    pub(crate) fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.entries.get(&producer_id)
    }

    pub(crate) fn entries(&self) -> impl ExactSizeIterator<Item = &ProducerEntry> {
        self.entries.values()
    }

    /// Takes over what was staged, for each transaction that ended calls `ended` with the last stable offset after
    /// it, in order.
    pub(crate) fn commit<E>(
        &mut self,
        staged: &mut Staged,
        mut ended: impl FnMut(&CompletedTxn, i64) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in staged.entries.drain(..) {
            self.entries.insert(entry.producer_id, entry);
        }
        self.open.extend(staged.started.drain(..));
        for txn in staged.completed.drain(..) {
            self.open.remove(&txn.first_offset);
            let stable = self.open.keys().next().copied().filter(|first| *first <= txn.last_offset);
            ended(&txn, stable.unwrap_or(txn.last_offset + 1))?;
            self.unreplicated.insert(txn.first_offset, txn.last_offset);
        }
        Ok(())
    }

    /// First offset of the earliest transaction that is open, or whose end is not replicated yet.
    pub(crate) fn first_unstable_offset(&self) -> Option<i64> {
        let open = self.open.keys().next();
        let unreplicated = self.unreplicated.keys().next();
        open.into_iter().chain(unreplicated).min().copied()
    }

    /// Forgets ended transactions whose markers are replicated.
    pub(crate) fn advance_high_watermark(&mut self, high_watermark: i64) {
        if !self.unreplicated.is_empty() {
            self.unreplicated.retain(|_, marker| *marker >= high_watermark);
        }
    }

    /// Forgets producers that have been silent for `expiration_ms`, except those with an open transaction.
    pub(crate) fn expire(&mut self, now_ms: i64, expiration_ms: i64) -> usize {
        let before = self.entries.len();
        self.entries.retain(|_, entry| !is_expired(entry, now_ms, expiration_ms));
        before - self.entries.len()
    }
}

pub(crate) fn is_expired(entry: &ProducerEntry, now_ms: i64, expiration_ms: i64) -> bool {
    entry.txn_first_offset.is_none() && now_ms.saturating_sub(entry.last_timestamp_ms) >= expiration_ms
}
