//! Reading a log from any thread, without its owner.

use std::fs::File;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use bytes::Bytes;

use crate::epoch_cache::EpochCache;
use crate::error::{IoContext, ReadError, StorageError};
use crate::fs::{self, Dir};
use crate::index::AbortedTxn;
use crate::segment::Segment;

/// What the owner of a log publishes to its readers.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) dir: Dir,
    /// By base offset, never empty; the last is written to.
    pub(crate) segments: ArcSwap<Vec<Arc<Segment>>>,
    pub(crate) log_start_offset: AtomicI64,
    /// Published after the size of the segment that holds the offset before it.
    pub(crate) log_end_offset: AtomicI64,
    /// `i64::MAX` if no transaction is open.
    pub(crate) first_unstable_offset: AtomicI64,
    pub(crate) epochs: RwLock<EpochCache>,
}

/// A part of a segment's file: whole batches, but for the last one, which may be cut by the limit of the read.
#[derive(Debug, Clone)]
pub struct Region {
    /// The segment's file. It can be read for as long as this is held, even once deleted.
    pub file: Arc<File>,
    /// Where the region begins in the file.
    pub position: u64,
    /// Its size; 0 if there is nothing to read yet.
    pub size_bytes: u32,
    /// Base offset of its first batch, which may be below the offset asked for.
    pub first_offset: i64,
    /// Base offset of the segment.
    pub segment_base_offset: i64,
}

impl Region {
    /// Reads the region into memory; fewer bytes if the file was truncated meanwhile.
    pub fn to_bytes(&self) -> std::io::Result<Bytes> {
        let mut buffer = vec![0; self.size_bytes as usize];
        let filled = fs::read_at_most(&self.file, &mut buffer, self.position)?;
        buffer.truncate(filled);
        Ok(buffer.into())
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.size_bytes == 0
    }
}

/// A handle to read a log with. Cheap to clone; usable from any thread.
#[derive(Debug, Clone)]
pub struct LogReader {
    pub(crate) shared: Arc<Shared>,
}

impl LogReader {
    /// The first offset there is.
    pub fn log_start_offset(&self) -> i64 {
        self.shared.log_start_offset.load(Ordering::Acquire)
    }

    /// The offset the next record will get.
    pub fn log_end_offset(&self) -> i64 {
        self.shared.log_end_offset.load(Ordering::Acquire)
    }

    /// First offset of the earliest transaction that is open or whose end is not replicated.
    pub fn first_unstable_offset(&self) -> Option<i64> {
        let offset = self.shared.first_unstable_offset.load(Ordering::Acquire);
        (offset != i64::MAX).then(|| offset.max(self.log_start_offset()))
    }

    /// Up to where read-committed readers may read.
    pub fn last_stable_offset(&self, high_watermark: i64) -> i64 {
        self.first_unstable_offset().map_or(high_watermark, |first| first.min(high_watermark))
    }

    /// Size of all segments, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.shared.segments.load().iter().map(|segment| segment.size_bytes()).sum()
    }

    /// Base offsets and sizes in bytes of all segments.
    pub fn segments(&self) -> Vec<(i64, u64)> {
        self.shared.segments.load().iter().map(|s| (s.base_offset, s.size_bytes())).collect()
    }

    /// The leader epoch that an offset was written in.
    pub fn epoch_of(&self, offset: i64) -> Option<i32> {
        self.shared.epochs.read().unwrap_or_else(PoisonError::into_inner).epoch_of(offset)
    }

    /// The newest leader epoch of the log.
    pub fn latest_epoch(&self) -> Option<i32> {
        self.shared.epochs.read().unwrap_or_else(PoisonError::into_inner).latest_epoch()
    }

    /// The largest leader epoch at or below this one, and the offset where it ends (OffsetForLeaderEpoch); `None` if
    /// the epoch is unknown here.
    pub fn epoch_end_offset(&self, epoch: i32) -> Option<(i32, i64)> {
        let log_end_offset = self.log_end_offset();
        self.shared.epochs.read().unwrap_or_else(PoisonError::into_inner).end_offset(epoch, log_end_offset)
    }

    /// Finds what a fetch from `offset` gets: at most `max_bytes` of batches below `limit_offset` (a high watermark,
    /// last stable or log end offset), within one segment. With `min_one_batch` the first batch comes whole whatever
    /// its size; without, a first batch that does not fit gives an empty region.
    ///
    /// # Errors
    /// [`ReadError::OffsetOutOfRange`] below the log's start or above its end.
    pub fn read(
        &self,
        offset: i64,
        max_bytes: u32,
        limit_offset: i64,
        min_one_batch: bool,
    ) -> Result<Region, ReadError> {
        let segments = self.shared.segments.load();
        let mut index = segments.partition_point(|segment| segment.base_offset <= offset).saturating_sub(1);
        // Sizes are read before the end offset: all they cover is then below that offset.
        let mut size = segments.get(index).map_or(0, |segment| segment.size_bytes());
        let (log_start_offset, log_end_offset) = (self.log_start_offset(), self.log_end_offset());
        if offset < log_start_offset || offset > log_end_offset {
            return Err(ReadError::OffsetOutOfRange { offset, log_start_offset, log_end_offset });
        }
        let everything = limit_offset >= log_end_offset;
        while let Some(segment) = segments.get(index) {
            let next_base = segments.get(index + 1).map(|next| next.base_offset);
            if offset == log_end_offset || offset >= limit_offset || segment.base_offset >= limit_offset {
                return Ok(region(segment, size, 0, offset));
            }
            if let Some(first) = segment.place(offset, size)? {
                let whole = everything || next_base.is_some_and(|base| limit_offset >= base);
                let end = if whole {
                    size
                } else {
                    segment.place(limit_offset, size)?.map_or(size, |batch| batch.position.into())
                };
                let (position, first_size) = (u64::from(first.position), u64::from(first.size_bytes));
                let available = end.saturating_sub(position);
                let wanted = if min_one_batch { first_size.max(max_bytes.into()) } else { max_bytes.into() };
                let fits = first_size <= wanted.min(available);
                let length = if fits { wanted.min(available) } else { 0 };
                return Ok(region(segment, position, length, first.base_offset));
            }
            if next_base.is_none() {
                return Ok(region(segment, size, 0, offset));
            }
            // Compaction may have left nothing from here to the segment's end. A later segment's size may be newer
            // than the end offset above; then only what is below that offset is given.
            index += 1;
            size = segments.get(index).map_or(0, |segment| segment.size_bytes());
            if self.log_end_offset() != log_end_offset {
                return self.read(offset, max_bytes, limit_offset, min_one_batch);
            }
        }
        Err(ReadError::OffsetOutOfRange { offset, log_start_offset, log_end_offset })
    }

    /// The aborted transactions that a read-committed reader of `from..until` must skip.
    pub fn aborted_transactions(&self, from: i64, until: i64) -> Result<Vec<AbortedTxn>, StorageError> {
        let segments = self.shared.segments.load();
        let first = segments.partition_point(|segment| segment.base_offset <= from).saturating_sub(1);
        let mut found = Vec::new();
        for segment in segments.iter().skip(first) {
            if segment.txns.collect(from, until, &mut found)? {
                break;
            }
        }
        Ok(found)
    }

    /// Waits until files made, renamed and removed in the log's directory are so on the device.
    pub fn sync_dir(&self) -> Result<(), StorageError> {
        fs::sync_dir(&self.dir())
    }

    /// The path of the log's directory as it is now.
    pub fn dir(&self) -> std::path::PathBuf {
        self.shared.dir.path()
    }

    /// Reads all of a region that `read` has given.
    pub fn load(&self, region: &Region) -> Result<Bytes, StorageError> {
        region.to_bytes().at("read", &self.dir())
    }
}

fn region(segment: &Segment, position: u64, size_bytes: u64, first_offset: i64) -> Region {
    Region {
        file: Arc::clone(&segment.file),
        position,
        size_bytes: u32::try_from(size_bytes).unwrap_or(u32::MAX),
        first_offset,
        segment_base_offset: segment.base_offset,
    }
}
