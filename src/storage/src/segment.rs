//! One segment: a file of batches and its indexes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::LogConfig;
use crate::error::{IoContext, StorageError};
use crate::fs::{self, Dir};
use crate::index::{OffsetIndex, TimeEntry, TimeIndex, TxnIndex};
use crate::names;
use crate::scan::{BatchInfo, LOOKUP_CHUNK, ScanError, Scanner};

/// A segment as readers see it. Its one writer publishes `size_bytes` after the bytes and index entries.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) base_offset: i64,
    pub(crate) dir: Dir,
    pub(crate) file: Arc<File>,
    size_bytes: AtomicU64,
    pub(crate) offsets: OffsetIndex,
    pub(crate) times: TimeIndex,
    pub(crate) txns: TxnIndex,
    tail: Mutex<Tail>,
    /// Set before its files go: a flush that runs meanwhile has nothing to sync of it.
    removed: AtomicBool,
}

/// Batches whose places are remembered, so that a consumer at the log's end costs no look into the index or file.
const RECENT: usize = 8;

/// What the writer notes at each batch.
#[derive(Debug)]
struct Tail {
    max_timestamp: TimeEntry,
    recent: [Placed; RECENT],
    next: u8,
}

/// A batch and its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) position: u32,
    pub(crate) size_bytes: u32,
}

impl Tail {
    fn new(base_offset: i64) -> Mutex<Tail> {
        let none = Placed { base_offset: 0, last_offset: -1, position: 0, size_bytes: 0 };
        let max_timestamp = TimeEntry { timestamp_ms: -1, offset: base_offset };
        Mutex::new(Tail { max_timestamp, recent: [none; RECENT], next: 0 })
    }
}

/// What the writer of a segment remembers between appends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor {
    /// Bytes written since the last index entry.
    pub(crate) bytes_since_index: u64,
    /// Timestamp that the segment's age is counted from: its first append's.
    pub(crate) rolling_timestamp_ms: Option<i64>,
    /// When the segment was made or opened.
    pub(crate) created_ms: i64,
}

impl Cursor {
    pub(crate) fn new(created_ms: i64) -> Cursor {
        Cursor { bytes_since_index: 0, rolling_timestamp_ms: None, created_ms }
    }
}

/// How many entries of each index hold, when a segment is opened to be written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IndexCounts {
    pub(crate) offsets: usize,
    pub(crate) times: usize,
}

impl Segment {
    /// Makes a new segment, over whatever was there.
    pub(crate) fn create(dir: &Dir, base_offset: i64, config: &LogConfig) -> Result<Segment, StorageError> {
        for ending in [names::OFFSET_INDEX, names::TIME_INDEX, names::TXN_INDEX] {
            fs::remove_if_exists(&dir.join(&names::segment_file(base_offset, ending)))?;
        }
        let path = dir.join(&names::segment_file(base_offset, names::LOG));
        let file = fs::open_or_create(&path)?;
        file.set_len(0).at("truncate", &path)?;
        Segment::writable(dir, base_offset, Arc::new(file), 0, IndexCounts::default(), config)
    }

    /// A segment to append to.
    pub(crate) fn writable(
        dir: &Dir,
        base_offset: i64,
        file: Arc<File>,
        size_bytes: u64,
        counts: IndexCounts,
        config: &LogConfig,
    ) -> Result<Segment, StorageError> {
        let room = config.segment_index_bytes;
        Ok(Segment {
            base_offset,
            dir: dir.clone(),
            file,
            size_bytes: size_bytes.into(),
            offsets: OffsetIndex::writable(dir, base_offset, counts.offsets, room)?,
            times: TimeIndex::writable(dir, base_offset, counts.times, room)?,
            txns: if size_bytes == 0 {
                TxnIndex::empty(dir, base_offset)
            } else {
                TxnIndex::new(dir, base_offset)
            },
            tail: Tail::new(base_offset),
            removed: AtomicBool::new(false),
        })
    }

    /// A segment that gets no more batches, with the index files of these sizes.
    pub(crate) fn read_only(
        dir: &Dir,
        base_offset: i64,
        file: Arc<File>,
        size_bytes: u64,
        index_bytes: u64,
        time_index_bytes: u64,
    ) -> Segment {
        Segment {
            base_offset,
            dir: dir.clone(),
            file,
            size_bytes: size_bytes.into(),
            offsets: OffsetIndex::read_only(dir, base_offset, index_bytes),
            times: TimeIndex::read_only(dir, base_offset, time_index_bytes),
            txns: TxnIndex::new(dir, base_offset),
            tail: Tail::new(base_offset),
            removed: AtomicBool::new(false),
        }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Acquire)
    }

    pub(crate) fn publish_size(&self, size_bytes: u64) {
        self.size_bytes.store(size_bytes, Ordering::Release);
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.dir.join(&names::segment_file(self.base_offset, names::LOG))
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The largest timestamp, and the last offset of the first batch that has it. -1 if there is none.
    pub(crate) fn max_timestamp(&self) -> TimeEntry {
        self.tail().max_timestamp
    }

    pub(crate) fn raise_max_timestamp(&self, entry: TimeEntry) {
        let mut tail = self.tail();
        if entry.timestamp_ms > tail.max_timestamp.timestamp_ms {
            tail.max_timestamp = entry;
        }
    }

    /// Notes a batch that was written; gives the largest timestamp.
    pub(crate) fn note(&self, batch: &BatchInfo) -> TimeEntry {
        let mut tail = self.tail();
        if batch.max_timestamp_ms > tail.max_timestamp.timestamp_ms {
            tail.max_timestamp =
                TimeEntry { timestamp_ms: batch.max_timestamp_ms, offset: batch.last_offset };
        }
        let (Ok(position), Ok(size_bytes)) = (batch.position.try_into(), batch.size_bytes.try_into()) else {
            return tail.max_timestamp;
        };
        let (base_offset, last_offset) = (batch.base_offset, batch.last_offset);
        let next = usize::from(tail.next);
        if let Some(slot) = tail.recent.get_mut(next) {
            *slot = Placed { base_offset, last_offset, position, size_bytes };
        }
        tail.next = ((next + 1) % RECENT) as u8;
        tail.max_timestamp
    }

    /// The place of the batch that holds `offset`, among the first `size` bytes.
    pub(crate) fn place(&self, offset: i64, size: u64) -> Result<Option<Placed>, StorageError> {
        let holds = |batch: &&Placed| {
            let end = u64::from(batch.position) + u64::from(batch.size_bytes);
            batch.base_offset <= offset && offset <= batch.last_offset && end <= size
        };
        if let Some(recent) = self.tail().recent.iter().find(holds) {
            return Ok(Some(*recent));
        }
        Ok(self.locate(offset, size)?.map(|batch| Placed {
            base_offset: batch.base_offset,
            last_offset: batch.last_offset,
            position: u32::try_from(batch.position).unwrap_or(u32::MAX),
            size_bytes: u32::try_from(batch.size_bytes).unwrap_or(u32::MAX),
        }))
    }

    /// Notes a batch in the indexes if it is time for an entry. `max` is the largest timestamp, this batch's included.
    pub(crate) fn index_batch(
        &self,
        cursor: &mut Cursor,
        batch: &BatchInfo,
        max: TimeEntry,
        interval_bytes: u64,
    ) -> Result<(), StorageError> {
        if cursor.bytes_since_index > interval_bytes {
            let position = u32::try_from(batch.position).unwrap_or(u32::MAX);
            // Without room on the disk the index gets no entry: it is there for speed only.
            unless_full(self.offsets.push(batch.last_offset, position).map(drop))?;
            if !self.times.is_full() {
                unless_full(self.times.push(max))?;
            }
            cursor.bytes_since_index = 0;
        }
        cursor.bytes_since_index += batch.size_bytes;
        Ok(())
    }

    /// Writes the last time entry and cuts the indexes to what they hold. No appends after this.
    pub(crate) fn seal(&self) -> Result<(), StorageError> {
        self.index_newest()?;
        self.trim()
    }

    /// Writes the last time entry.
    pub(crate) fn index_newest(&self) -> Result<(), StorageError> {
        self.times.push(self.max_timestamp())
    }

    /// Cuts the indexes to what they hold. No appends after this.
    pub(crate) fn trim(&self) -> Result<(), StorageError> {
        self.offsets.trim()?;
        self.times.trim()
    }

    /// The first batch whose last offset is at or after `offset`, among the first `size` bytes.
    pub(crate) fn locate(&self, offset: i64, size: u64) -> Result<Option<BatchInfo>, StorageError> {
        if let Some(entry) = self.offsets.floor(offset)?.filter(|entry| u64::from(entry.position) < size) {
            let mut scanner = Scanner::new(&self.file, entry.position.into(), size, LOOKUP_CHUNK);
            match scanner.next() {
                // An entry that points elsewhere than at its batch is not believed.
                Ok(Some(first))
                    if first.base_offset <= entry.offset && first.base_offset >= self.base_offset =>
                {
                    if first.last_offset >= offset {
                        return Ok(Some(first));
                    }
                    return self.first_from(scanner, offset);
                }
                Err(ScanError::Io(error)) => return Err(error).at("read", &self.path()),
                _ => {}
            }
        }
        self.first_from(Scanner::new(&self.file, 0, size, LOOKUP_CHUNK), offset)
    }

    fn first_from(&self, mut scanner: Scanner<'_>, offset: i64) -> Result<Option<BatchInfo>, StorageError> {
        loop {
            match scanner.next().map_err(|error| scan_failure(&self.path(), error))? {
                Some(batch) if batch.last_offset < offset => {}
                found => return Ok(found),
            }
        }
    }

    /// Finds the largest timestamp from the last time entry and the batches after it.
    pub(crate) fn load_max_timestamp(&self) -> Result<(), StorageError> {
        let last = self.times.last()?;
        if let Some(last) = last {
            self.raise_max_timestamp(last);
        }
        let size = self.size_bytes();
        let from = self.offsets.last()?.map_or(0, |entry| u64::from(entry.position)).min(size);
        let mut scanner = Scanner::new(&self.file, from, size, LOOKUP_CHUNK);
        while let Some(batch) = scanner.next().map_err(|error| scan_failure(&self.path(), error))? {
            self.raise_max_timestamp(TimeEntry {
                timestamp_ms: batch.max_timestamp_ms,
                offset: batch.last_offset,
            });
        }
        Ok(())
    }

    /// The first batch, if there is one.
    pub(crate) fn first_batch(&self) -> Result<Option<BatchInfo>, StorageError> {
        let mut scanner = Scanner::new(&self.file, 0, self.size_bytes(), LOOKUP_CHUNK);
        scanner.next().map_err(|error| scan_failure(&self.path(), error))
    }

    /// The offset after the last batch, found by walking from the batch at `from`.
    pub(crate) fn next_offset(&self, from: u64) -> Result<i64, StorageError> {
        let size = self.size_bytes();
        let mut next = self.base_offset;
        let mut scanner = Scanner::new(&self.file, from, size, LOOKUP_CHUNK);
        while let Some(batch) = scanner.next().map_err(|error| scan_failure(&self.path(), error))? {
            next = batch.last_offset + 1;
        }
        Ok(next)
    }

    /// Waits until the batches are on the device, and the indexes too if the segment is closed: those of the segment
    /// that is written to are built again after a crash.
    pub(crate) fn sync(&self, closed: bool) -> Result<(), StorageError> {
        match self.sync_files(closed) {
            Err(error) if error.is_not_found() && self.removed.load(Ordering::Acquire) => Ok(()),
            outcome => outcome,
        }
    }

    fn sync_files(&self, closed: bool) -> Result<(), StorageError> {
        self.file.sync_data().at("sync", &self.path())?;
        if closed {
            self.offsets.sync()?;
            self.times.sync()?;
            self.txns.sync()?;
        }
        Ok(())
    }

    /// Renames its files to `.deleted` and gives their new paths.
    pub(crate) fn mark_deleted(&self, with_snapshot: bool) -> Result<Vec<PathBuf>, StorageError> {
        self.removed.store(true, Ordering::Release);
        crate::files::mark_deleted(&self.dir, self.base_offset, with_snapshot)
    }

    /// Opens its indexes, so that they are read from these files even once others have their names.
    pub(crate) fn pin(&self) -> Result<(), StorageError> {
        self.offsets.pin()?;
        self.times.pin()?;
        self.txns.pin()
    }

    /// Removes its files at once.
    pub(crate) fn remove(&self) -> Result<(), StorageError> {
        self.removed.store(true, Ordering::Release);
        crate::files::remove_segment(&self.dir, self.base_offset)
    }
}

fn unless_full(outcome: Result<(), StorageError>) -> Result<(), StorageError> {
    outcome.or_else(|error| if error.is_full() { Ok(()) } else { Err(error) })
}

/// A batch that can not be read where one must be.
pub(crate) fn scan_failure(path: &Path, error: ScanError) -> StorageError {
    match error {
        ScanError::Io(source) => StorageError::Io { action: "read", path: path.to_owned(), source },
        ScanError::Invalid { position, reason } => {
            StorageError::corrupt(path, format!("at byte {position}: {reason}"))
        }
    }
}
