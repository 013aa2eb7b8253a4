//! Cutting a log's end off: what a follower does that went astray.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::config::OpenOptions;
use crate::error::{IoContext, StorageError};
use crate::fs;
use crate::log::Log;
use crate::recovery::{self, Recovery};
use crate::segment::{Cursor, IndexCounts, Segment};

impl Log {
    /// Removes all records from `offset` on; a batch that holds the offset goes as a whole, and the log then ends
    /// where it began. Says whether anything changed. An offset before the log's first segment empties the log, which goes on from that offset.
    pub fn truncate_to(&mut self, offset: i64, now_ms: i64) -> Result<bool, StorageError> {
        self.check_usable()?;
        if offset >= self.log_end_offset() {
            return Ok(false);
        }
        let segments = self.shared.segments.load_full();
        let Some(index) = segments.partition_point(|segment| segment.base_offset <= offset).checked_sub(1)
        else {
            self.restart_at(offset, now_ms)?;
            return Ok(true);
        };
        let holder =
            segments.get(index).map_or(Ok(None), |segment| segment.locate(offset, segment.size_bytes()))?;
        let offset = holder.map_or(offset, |batch| batch.base_offset.min(offset));
        // Readers must not go past the new end while the files shrink.
        self.shared.log_end_offset.store(offset, Ordering::Release);
        let mut kept: Vec<Arc<Segment>> = segments.iter().take(index).cloned().collect();
        if let Some(segment) = segments.get(index) {
            kept.push(Arc::new(self.cut_segment(segment, offset)?));
        }
        self.shared.segments.store(Arc::new(kept));
        for segment in segments.iter().skip(index + 1) {
            segment.remove()?;
        }
        self.recovery_point = self.recovery_point.min(offset);
        self.after_cut(offset, now_ms)?;
        Ok(true)
    }

    /// The segment without what comes from `offset` on, open to be written.
    fn cut_segment(&self, segment: &Segment, offset: i64) -> Result<Segment, StorageError> {
        let size = segment.size_bytes();
        let position = segment.locate(offset, size)?.map_or(size, |batch| batch.position);
        let counts = IndexCounts {
            offsets: segment.offsets.count_before(u32::try_from(position).unwrap_or(u32::MAX))?,
            times: segment.times.count_before_offset(offset)?,
        };
        segment.txns.truncate(offset)?;
        let file = Arc::clone(&segment.file);
        let cut =
            Segment::writable(&self.shared.dir, segment.base_offset, file, position, counts, &self.config)?;
        cut.file.set_len(position).at("truncate", &cut.path())?;
        cut.load_max_timestamp()?;
        Ok(cut)
    }

    /// Removes all records; the log goes on from `offset`.
    pub fn restart_at(&mut self, offset: i64, now_ms: i64) -> Result<(), StorageError> {
        self.check_usable()?;
        let segments = self.shared.segments.load_full();
        self.shared.log_start_offset.store(offset, Ordering::Release);
        self.shared.log_end_offset.store(offset, Ordering::Release);
        for segment in segments.iter() {
            segment.remove()?;
        }
        let fresh = Segment::create(&self.shared.dir, offset, &self.config)?;
        self.shared.segments.store(Arc::new(vec![Arc::new(fresh)]));
        self.recovery_point = offset;
        recovery::remove_snapshots_above(&self.dir(), -1)?;
        self.change_epochs(|epochs| std::mem::take(epochs) != *epochs)?;
        self.after_cut(offset, now_ms)
    }

    /// Brings what is derived from the batches in line with a new end.
    fn after_cut(&mut self, offset: i64, now_ms: i64) -> Result<(), StorageError> {
        let active = self.active()?;
        self.cursor = Cursor::new(now_ms);
        self.cursor.rolling_timestamp_ms = active.first_batch()?.map(|batch| batch.max_timestamp_ms);
        recovery::remove_snapshots_above(&self.dir(), offset)?;
        let options = OpenOptions { config: self.config.clone(), now_ms, ..OpenOptions::default() };
        let mut recovery = Recovery::new(&self.shared.dir, &options);
        recovery.load_producers(&self.shared.segments.load(), offset)?;
        self.producers = std::mem::take(&mut recovery.producers);
        self.publish_first_unstable();
        self.change_epochs(|epochs| epochs.truncate_end(offset))?;
        fs::sync_dir(&self.dir())
    }
}
