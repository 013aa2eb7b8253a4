//! What the machine knows of its log: where it starts, where epochs begin, where it ends.

use std::collections::BTreeMap;

/// The name of a snapshot: it holds everything before `end_offset`, the last of it of `epoch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SnapshotId {
    /// First offset the snapshot doesn't contain.
    pub end_offset: i64,
    /// Leader epoch of the last record it contains.
    pub epoch: i32,
}

/// The log's shape. Records themselves stay with the caller.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogView {
    /// The snapshot the log starts behind; the default if it starts at 0.
    start: SnapshotId,
    /// First offset of each epoch with records in the log.
    epochs: BTreeMap<i32, i64>,
    end_offset: i64,
    durable_end_offset: i64,
    generation: u64,
}

impl LogView {
    /// The view of a log as found on disk, all of which is durable.
    ///
    /// `epochs` are (epoch, first offset), as in `leader-epoch-checkpoint`; entries that end
    /// before the log's start are ignored.
    pub fn new(start: SnapshotId, epochs: impl IntoIterator<Item = (i32, i64)>, end_offset: i64) -> Self {
        let end_offset = end_offset.max(start.end_offset);
        let mut all: BTreeMap<i32, i64> =
            epochs.into_iter().filter(|&(_, offset)| offset < end_offset).collect();
        // Keep the epoch that straddles the start, drop those wholly before it.
        let straddling = all
            .iter()
            .filter(|&(_, &offset)| offset <= start.end_offset)
            .map(|(&epoch, _)| epoch)
            .next_back();
        if let Some(first) = straddling {
            all = all.split_off(&first);
        }
        Self { start, epochs: all, end_offset, durable_end_offset: end_offset, generation: 0 }
    }

    /// The snapshot the log starts behind.
    pub fn start(&self) -> SnapshotId {
        self.start
    }

    /// First offset in the log.
    pub fn start_offset(&self) -> i64 {
        self.start.end_offset
    }

    /// Offset the next record gets.
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Offset up to which the log survives a crash.
    pub fn durable_end_offset(&self) -> i64 {
        self.durable_end_offset
    }

    /// Counts truncations: a sync begun in an older generation says nothing about this log.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Epoch of the last record, or of the snapshot the log starts behind.
    pub fn last_epoch(&self) -> i32 {
        self.epochs.last_key_value().map_or(self.start.epoch, |(&epoch, _)| epoch)
    }

    /// The newest known epoch at or before `epoch`, and the offset it ends at.
    pub fn end_of_epoch(&self, epoch: i32) -> SnapshotId {
        let known = self.epochs.range(..=epoch).next_back();
        let next = self.epochs.range(epoch.saturating_add(1)..).next();
        match known {
            Some((&epoch, _)) => {
                SnapshotId { end_offset: next.map_or(self.end_offset, |(_, &offset)| offset), epoch }
            }
            None => self.start,
        }
    }

    /// Notes records of `epoch` from the end up to `end_offset`, not durable yet.
    pub(crate) fn append(&mut self, epoch: i32, end_offset: i64) {
        if end_offset > self.end_offset {
            self.epochs.entry(epoch).or_insert(self.end_offset);
            self.end_offset = end_offset;
        }
    }

    /// Notes that everything before `end_offset` is durable. False if it says nothing new.
    pub(crate) fn durable(&mut self, end_offset: i64, generation: u64) -> bool {
        let end_offset = end_offset.min(self.end_offset);
        if generation != self.generation || end_offset <= self.durable_end_offset {
            return false;
        }
        self.durable_end_offset = end_offset;
        true
    }

    /// Drops everything from `end_offset` on.
    pub(crate) fn truncate(&mut self, end_offset: i64) {
        let end_offset = end_offset.max(self.start.end_offset);
        self.epochs.retain(|_, offset| *offset < end_offset);
        self.end_offset = end_offset.min(self.end_offset);
        self.durable_end_offset = self.durable_end_offset.min(self.end_offset);
        self.generation += 1;
    }

    /// Moves the start forward behind a snapshot. The records before it are gone.
    pub(crate) fn start_at(&mut self, snapshot: SnapshotId) {
        if snapshot.end_offset > self.start.end_offset && snapshot.end_offset <= self.end_offset {
            let generation = self.generation;
            let durable = self.durable_end_offset;
            *self = Self::new(snapshot, self.epochs.clone(), self.end_offset);
            self.generation = generation;
            self.durable_end_offset = durable;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(end_offset: i64, epoch: i32) -> SnapshotId {
        SnapshotId { end_offset, epoch }
    }

    #[test]
    fn ends_of_epochs() {
        let log = LogView::new(SnapshotId::default(), [(1, 0), (3, 10)], 15);
        assert_eq!(log.end_of_epoch(0), id(0, 0));
        assert_eq!(log.end_of_epoch(1), id(10, 1));
        assert_eq!(log.end_of_epoch(2), id(10, 1));
        assert_eq!(log.end_of_epoch(3), id(15, 3));
        assert_eq!(log.end_of_epoch(9), id(15, 3));
        assert_eq!(log.last_epoch(), 3);
    }

    #[test]
    fn truncation_forgets_epochs_and_old_syncs() {
        let mut log = LogView::new(SnapshotId::default(), [(1, 0), (3, 10)], 15);
        let before = log.generation();
        log.truncate(10);
        assert_eq!((log.last_epoch(), log.end_offset()), (1, 10));
        log.append(4, 20);
        assert!(!log.durable(15, before));
        assert_eq!(log.durable_end_offset(), 10);
        assert!(log.durable(18, log.generation()));
        assert_eq!(log.durable_end_offset(), 18);
    }

    #[test]
    fn starts_behind_a_snapshot() {
        let mut log = LogView::new(SnapshotId::default(), [(1, 0), (3, 10)], 15);
        log.start_at(id(12, 3));
        assert_eq!(log.start_offset(), 12);
        assert_eq!(log.end_of_epoch(1), id(12, 3));
        assert_eq!(log.last_epoch(), 3);
        log.start_at(id(5, 1));
        assert_eq!(log.start_offset(), 12, "never backwards");
    }
}
