//! What compaction knows of transactions while it goes through the log: aborted records go at once, markers once
//! nothing of their transaction is left.

use std::collections::{BTreeMap, BTreeSet};

use callboard_protocol::records::BatchHeader;
use callboard_protocol::records::control::EndTransactionMarker;

use crate::index::AbortedTxn;

/// The transactions around the place in the log that compaction has reached.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// Aborted ones that begin further on: by first offset and producer.
    coming: BTreeMap<(i64, i64), AbortedTxn>,
    /// Aborted ones that have begun, by producer, and whether a batch of theirs was seen.
    aborted: BTreeMap<i64, (AbortedTxn, bool)>,
    /// Producers of which a batch that is not aborted was seen since their last marker.
    committed: BTreeSet<i64>,
    /// Aborted ones whose markers stay: for the new segment's transaction index.
    pub(crate) kept: Vec<AbortedTxn>,
}

impl Transactions {
    /// Tells it of aborted transactions in the part of the log that comes next.
    pub(crate) fn expect(&mut self, aborted: impl IntoIterator<Item = AbortedTxn>) {
        self.coming.extend(aborted.into_iter().map(|txn| ((txn.first_offset, txn.producer_id), txn)));
    }

    fn advance(&mut self, offset: i64) {
        while let Some(first) = self.coming.first_entry().filter(|first| first.key().0 <= offset) {
            let txn = first.remove();
            self.aborted.entry(txn.producer_id).or_insert((txn, false));
        }
    }

    /// Sees a batch of data; says whether it was aborted.
    pub(crate) fn data(&mut self, header: &BatchHeader) -> bool {
        self.advance(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        if let Some((_, seen)) = self.aborted.get_mut(&header.producer_id) {
            *seen = true;
            return true;
        }
        self.committed.insert(header.producer_id);
        false
    }

    /// Sees a control batch; says whether nothing of what it ends is left. `marker` is `None` for an empty batch.
    pub(crate) fn control(&mut self, header: &BatchHeader, marker: Option<EndTransactionMarker>) -> bool {
        self.advance(header.last_offset());
        match marker {
            Some(EndTransactionMarker { committed: true, .. }) => !self.committed.remove(&header.producer_id),
            Some(EndTransactionMarker { committed: false, .. }) => {
                match self.aborted.remove(&header.producer_id) {
                    Some((txn, true)) => {
                        self.kept.push(txn);
                        false
                    }
                    _ => true,
                }
            }
            // What an empty control batch said was removed in an earlier round, when it could be.
            None => header.record_count == 0,
        }
    }
}
