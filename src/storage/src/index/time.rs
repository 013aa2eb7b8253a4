//! `.timeindex`: sparse, from the largest timestamp so far to the offset that has it.

use super::map::EntryFile;
use crate::error::StorageError;
use crate::fs::Dir;
use crate::names;

/// No record before the batch that ends at `offset` has a timestamp above `timestamp_ms`, which is in that batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    pub(crate) timestamp_ms: i64,
    pub(crate) offset: i64,
}

/// Entries of 12 bytes: timestamp, 64 bits, and offset relative to the segment's, 32 bits, big-endian.
#[derive(Debug)]
pub(crate) struct TimeIndex {
    base_offset: i64,
    entries: EntryFile<3>,
}

impl TimeIndex {
    pub(crate) const ENTRY_SIZE: u64 = 12;

    pub(crate) fn writable(
        dir: &Dir,
        base_offset: i64,
        count: usize,
        max_bytes: u64,
    ) -> Result<Self, StorageError> {
        let name = names::segment_file(base_offset, names::TIME_INDEX);
        Ok(Self { base_offset, entries: EntryFile::writable(dir, name, count, max_bytes)? })
    }

    pub(crate) fn read_only(dir: &Dir, base_offset: i64, size_bytes: u64) -> Self {
        let name = names::segment_file(base_offset, names::TIME_INDEX);
        Self { base_offset, entries: EntryFile::read_only(dir, name, size_bytes) }
    }

    fn entry(&self, [high, low, relative]: [u32; 3]) -> TimeEntry {
        let timestamp_ms = (i64::from(high) << 32) | i64::from(low);
        TimeEntry { timestamp_ms, offset: self.base_offset + i64::from(relative) }
    }

    /// The last slot is kept for the entry written when the segment is rolled.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() + 1 >= self.entries.capacity()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, index: usize) -> Result<Option<TimeEntry>, StorageError> {
        Ok(self.entries.get(index)?.map(|words| self.entry(words)))
    }

    pub(crate) fn last(&self) -> Result<Option<TimeEntry>, StorageError> {
        self.len().checked_sub(1).map_or(Ok(None), |last| self.get(last))
    }

    /// Appends the entry if its timestamp is above the last one's.
    pub(crate) fn push(&self, entry: TimeEntry) -> Result<(), StorageError> {
        let last = self.last()?.map_or((-1, self.base_offset), |last| (last.timestamp_ms, last.offset));
        let Ok(relative) = u32::try_from(entry.offset - self.base_offset) else { return Ok(()) };
        if entry.timestamp_ms > last.0 && entry.offset >= last.1 && relative <= i32::MAX as u32 {
            let timestamp = entry.timestamp_ms as u64;
            self.entries.push([(timestamp >> 32) as u32, timestamp as u32, relative])?;
        }
        Ok(())
    }

    /// The last entry whose timestamp is at or before this one.
    pub(crate) fn floor(&self, timestamp_ms: i64) -> Result<Option<TimeEntry>, StorageError> {
        let above = self.entries.partition_point(|words| self.entry(words).timestamp_ms <= timestamp_ms)?;
        above.checked_sub(1).map_or(Ok(None), |i| self.get(i))
    }

    /// Number of entries with offsets below this one.
    pub(crate) fn count_before_offset(&self, offset: i64) -> Result<usize, StorageError> {
        self.entries.partition_point(|words| self.entry(words).offset < offset)
    }

    /// Size of its entries in bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.entries.len() as u64 * Self::ENTRY_SIZE
    }

    pub(crate) fn pin(&self) -> Result<(), StorageError> {
        self.entries.pin()
    }

    pub(crate) fn trim(&self) -> Result<(), StorageError> {
        self.entries.trim()
    }

    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        self.entries.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_in_kafkas_format() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::new(temp.path());
        let index = TimeIndex::writable(&dir, 100, 0, 40).unwrap();
        let push = |timestamp_ms, offset| index.push(TimeEntry { timestamp_ms, offset }).unwrap();
        push(-1, 100);
        assert_eq!(index.len(), 0, "no timestamp, no entry");
        push(1_700_000_000_000, 105);
        push(1_700_000_000_000, 107);
        assert_eq!(index.len(), 1, "the same timestamp again adds nothing");
        assert!(!index.is_full());
        push(1_700_000_000_500, 120);
        assert!(index.is_full(), "one slot is kept");
        push(1_700_000_000_900, 130);
        let floor = |at| index.floor(at).unwrap().map(|e| e.offset);
        assert_eq!(
            (floor(0), floor(1_700_000_000_000), floor(1_700_000_000_700)),
            (None, Some(105), Some(120))
        );
        assert_eq!(floor(i64::MAX), Some(130));
        assert_eq!(index.count_before_offset(120).unwrap(), 1);
        index.trim().unwrap();
        let bytes = std::fs::read(temp.path().join("00000000000000000100.timeindex")).unwrap();
        assert_eq!(bytes.len(), 36);
        assert_eq!(bytes[..12], [0, 0, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0, 0, 0, 0, 5]);
        assert_eq!(TimeIndex::read_only(&dir, 100, 36).last().unwrap().unwrap().offset, 130);
    }
}
