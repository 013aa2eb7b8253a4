//! `.index`: sparse, from the last offset of some batches to where those batches start in the segment.

use super::map::EntryFile;
use crate::error::StorageError;
use crate::fs::Dir;
use crate::names;

/// The batch whose last offset is `offset` starts at `position`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    pub(crate) offset: i64,
    pub(crate) position: u32,
}

/// Entries of 8 bytes: offset relative to the segment's, position, both 32 bits big-endian.
#[derive(Debug)]
pub(crate) struct OffsetIndex {
    base_offset: i64,
    entries: EntryFile<2>,
}

impl OffsetIndex {
    pub(crate) const ENTRY_SIZE: u64 = 8;

    pub(crate) fn writable(
        dir: &Dir,
        base_offset: i64,
        count: usize,
        max_bytes: u64,
    ) -> Result<Self, StorageError> {
        let name = names::segment_file(base_offset, names::OFFSET_INDEX);
        Ok(Self { base_offset, entries: EntryFile::writable(dir, name, count, max_bytes)? })
    }

    pub(crate) fn read_only(dir: &Dir, base_offset: i64, size_bytes: u64) -> Self {
        let name = names::segment_file(base_offset, names::OFFSET_INDEX);
        Self { base_offset, entries: EntryFile::read_only(dir, name, size_bytes) }
    }

    fn entry(&self, [relative, position]: [u32; 2]) -> OffsetEntry {
        OffsetEntry { offset: self.base_offset + i64::from(relative), position }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.entries.capacity()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn get(&self, index: usize) -> Result<Option<OffsetEntry>, StorageError> {
        Ok(self.entries.get(index)?.map(|words| self.entry(words)))
    }

    pub(crate) fn last(&self) -> Result<Option<OffsetEntry>, StorageError> {
        self.len().checked_sub(1).map_or(Ok(None), |last| self.get(last))
    }

    /// Appends an entry; false if the index is full.
    pub(crate) fn push(&self, offset: i64, position: u32) -> Result<bool, StorageError> {
        match u32::try_from(offset - self.base_offset) {
            Ok(relative) if relative <= i32::MAX as u32 => self.entries.push([relative, position]),
            _ => Ok(false),
        }
    }

    /// The last entry at or before `offset`; reading the segment from there on finds the offset.
    pub(crate) fn floor(&self, offset: i64) -> Result<Option<OffsetEntry>, StorageError> {
        let above = self.entries.partition_point(|words| self.entry(words).offset <= offset)?;
        above.checked_sub(1).map_or(Ok(None), |i| self.get(i))
    }

    /// Number of entries whose batches start before `position`.
    pub(crate) fn count_before(&self, position: u32) -> Result<usize, StorageError> {
        self.entries.partition_point(|[_, at]| at < position)
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

    #[cfg(test)]
    fn path(&self) -> std::path::PathBuf {
        self.entries.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_in_kafkas_format() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::new(temp.path());
        let index = OffsetIndex::writable(&dir, 100, 0, 27).unwrap();
        assert_eq!(std::fs::metadata(index.path()).unwrap().len(), 24, "a multiple of the entry's size");
        assert!(index.push(105, 4000).unwrap() && index.push(300, 9000).unwrap() && !index.is_full());
        assert!(index.push(301, 9500).unwrap() && index.is_full() && !index.push(302, 9600).unwrap());
        let floor = |offset| index.floor(offset).unwrap().map(|e| (e.offset, e.position));
        assert_eq!((floor(104), floor(105), floor(299)), (None, Some((105, 4000)), Some((105, 4000))));
        assert_eq!((floor(300), floor(i64::MAX)), (Some((300, 9000)), Some((301, 9500))));
        assert_eq!(index.count_before(9000).unwrap(), 1);
        let bytes = std::fs::read(index.path()).unwrap();
        assert_eq!(bytes[..16], [0, 0, 0, 5, 0, 0, 0x0f, 0xa0, 0, 0, 0, 200, 0, 0, 0x23, 0x28]);
    }

    #[test]
    fn trimmed_and_opened_again() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::new(temp.path());
        let index = OffsetIndex::writable(&dir, 0, 0, 10 << 20).unwrap();
        assert!(index.push(7, 70).unwrap());
        index.trim().unwrap();
        assert_eq!(std::fs::metadata(index.path()).unwrap().len(), 8);
        assert_eq!(index.floor(9).unwrap().unwrap().position, 70, "the old mapping still reads");
        let read_only = OffsetIndex::read_only(&dir, 0, 8);
        assert_eq!(read_only.last().unwrap().unwrap(), OffsetEntry { offset: 7, position: 70 });
        let again = OffsetIndex::writable(&dir, 0, 1, 10 << 20).unwrap();
        assert!(again.push(9, 90).unwrap());
        assert_eq!((again.len(), again.last().unwrap().unwrap().offset), (2, 9));
        assert!(
            OffsetIndex::read_only(&dir, 5, 0).floor(9).unwrap().is_none(),
            "an empty file is not mapped"
        );
    }

    #[test]
    fn offsets_out_of_reach_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let index = OffsetIndex::writable(&Dir::new(temp.path()), 10, 0, 80).unwrap();
        assert!(!index.push(10 + (1 << 31), 1).unwrap() && !index.push(9, 1).unwrap());
        assert!(index.push(10 + i64::from(i32::MAX), 1).unwrap());
    }
}
