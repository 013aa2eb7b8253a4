//! Leader epochs and the offsets they began at: `leader-epoch-checkpoint`.

use std::path::Path;

use crate::checkpoint;
use crate::error::StorageError;
use crate::fs::Durability;

/// Stands for no epoch in requests. Others below 0 are epochs older than all, as in Kafka.
const NO_EPOCH: i32 = -1;

/// A leader epoch and the first offset written in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEntry {
    /// The leader epoch.
    pub epoch: i32,
    /// Its first offset.
    pub start_offset: i64,
}

/// The epochs of one log, both columns rising. Lookups follow KIP-101 and KIP-279.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpochCache {
    entries: Vec<EpochEntry>,
}

impl EpochCache {
    /// The file's name in a partition's directory.
    pub const FILE: &'static str = "leader-epoch-checkpoint";

    /// Reads the file in a partition's directory.
    pub fn read(dir: &Path) -> Result<EpochCache, StorageError> {
        let path = dir.join(Self::FILE);
        let entries = checkpoint::read_lines(&path, |line| {
            let (epoch, start_offset) = line.split_once(' ')?;
            Some(EpochEntry { epoch: epoch.parse().ok()?, start_offset: start_offset.parse().ok()? })
        })?;
        let rising = entries
            .windows(2)
            .all(|w| matches!(w, [a, b] if a.epoch < b.epoch && a.start_offset <= b.start_offset));
        if !rising {
            return Err(StorageError::corrupt(&path, "epochs out of order"));
        }
        Ok(EpochCache { entries })
    }

    /// Writes the file into a partition's directory.
    pub fn write(&self, dir: &Path, durability: Durability) -> Result<(), StorageError> {
        let lines = self.entries.iter().map(|entry| format!("{} {}", entry.epoch, entry.start_offset));
        checkpoint::write_lines(&dir.join(Self::FILE), lines, durability)
    }

    /// Notes that `epoch` begins at `start_offset`. Entries it contradicts go. Says whether anything changed.
    pub fn assign(&mut self, epoch: i32, start_offset: i64) -> bool {
        if epoch < 0 {
            return false;
        }
        if self.entries.last().is_some_and(|last| last.epoch == epoch && last.start_offset <= start_offset) {
            return false;
        }
        self.entries.retain(|entry| entry.epoch < epoch && entry.start_offset < start_offset);
        self.entries.push(EpochEntry { epoch, start_offset });
        true
    }

    /// The newest epoch.
    pub fn latest_epoch(&self) -> Option<i32> {
        self.entries.last().map(|entry| entry.epoch)
    }

    /// All epochs, oldest first.
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// The epoch that `offset` was written in.
    pub fn epoch_of(&self, offset: i64) -> Option<i32> {
        let after = self.entries.partition_point(|entry| entry.start_offset <= offset);
        self.entries.get(after.checked_sub(1)?).map(|entry| entry.epoch)
    }

    /// The largest epoch not above the one asked for, and the offset where it ends; `None` if the epoch is newer
    /// than any known or none is known.
    pub fn end_offset(&self, epoch: i32, log_end_offset: i64) -> Option<(i32, i64)> {
        if epoch == NO_EPOCH {
            return None;
        }
        let higher = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let floor = higher.checked_sub(1).and_then(|i| self.entries.get(i));
        match (floor, self.entries.get(higher)) {
            (Some(floor), Some(next)) => Some((floor.epoch, next.start_offset)),
            (Some(floor), None) if floor.epoch == epoch => Some((epoch, log_end_offset)),
            (None, Some(next)) => Some((epoch, next.start_offset)),
            (_, None) => None,
        }
    }

    /// Drops epochs that begin at or after a log's new end. Says whether anything changed.
    pub fn truncate_end(&mut self, end_offset: i64) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.start_offset < end_offset);
        self.entries.len() != before
    }

    /// Drops epochs that end at or before a log's new start; the one it falls into begins there now. Says whether
    /// anything changed.
    pub fn truncate_start(&mut self, start_offset: i64) -> bool {
        let covered = self.entries.partition_point(|entry| entry.start_offset <= start_offset);
        if covered > 1 {
            self.entries.drain(..covered - 1);
        }
        match self.entries.first_mut() {
            Some(first) if first.start_offset < start_offset => first.start_offset = start_offset,
            _ => return covered > 1,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: &[(i32, i64)]) -> EpochCache {
        EpochCache {
            entries: entries
                .iter()
                .map(|&(epoch, start_offset)| EpochEntry { epoch, start_offset })
                .collect(),
        }
    }

    #[test]
    fn assigns_and_forgets_what_is_contradicted() {
        let mut epochs = EpochCache::default();
        assert!(epochs.assign(0, 0) && !epochs.assign(0, 5) && epochs.assign(2, 10) && epochs.assign(3, 20));
        assert_eq!(epochs, cache(&[(0, 0), (2, 10), (3, 20)]));
        assert!(epochs.assign(4, 15), "an epoch from before the end takes its place");
        assert_eq!(epochs, cache(&[(0, 0), (2, 10), (4, 15)]));
        assert!(epochs.assign(5, 15), "nothing was written in epoch 4");
        assert_eq!(epochs, cache(&[(0, 0), (2, 10), (5, 15)]));
        assert!(!epochs.assign(-1, 30));
    }

    #[test]
    fn end_offsets() {
        let epochs = cache(&[(1, 0), (3, 10), (5, 20)]);
        let answers = [
            (0, Some((0, 0))),
            (1, Some((1, 10))),
            (2, Some((1, 10))),
            (4, Some((3, 20))),
            (5, Some((5, 33))),
        ];
        for (epoch, answer) in answers {
            assert_eq!(epochs.end_offset(epoch, 33), answer, "epoch {epoch}");
        }
        assert_eq!(epochs.end_offset(6, 33), None);
        assert_eq!(epochs.end_offset(-1, 33), None);
        assert_eq!(EpochCache::default().end_offset(0, 33), None);
        assert_eq!(
            (epochs.epoch_of(9), epochs.epoch_of(10), epochs.epoch_of(99)),
            (Some(1), Some(3), Some(5))
        );
    }

    #[test]
    fn truncates_at_both_ends() {
        let mut epochs = cache(&[(1, 0), (3, 10), (5, 20)]);
        assert!(epochs.truncate_start(12));
        assert_eq!(epochs, cache(&[(3, 12), (5, 20)]));
        assert!(!epochs.truncate_start(12));
        assert!(epochs.truncate_end(20));
        assert_eq!(epochs, cache(&[(3, 12)]));
        assert!(!epochs.truncate_end(13));
        assert!(epochs.truncate_end(12));
        assert_eq!(epochs, cache(&[]));
    }

    #[test]
    fn goes_round_in_kafkas_format() {
        let dir = tempfile::tempdir().unwrap();
        let epochs = cache(&[(0, 65), (2, 300)]);
        epochs.write(dir.path(), Durability::Cached).unwrap();
        assert_eq!(
            std::fs::read_to_string(dir.path().join(EpochCache::FILE)).unwrap(),
            "0\n2\n0 65\n2 300\n"
        );
        assert_eq!(EpochCache::read(dir.path()).unwrap(), epochs);
        std::fs::write(dir.path().join(EpochCache::FILE), "0\n2\n2 300\n0 65\n").unwrap();
        assert!(EpochCache::read(dir.path()).is_err());
    }
}
