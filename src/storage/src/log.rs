//! A partition's log, as its one owner sees it.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use crate::config::LogConfig;
use crate::epoch_cache::EpochCache;
use crate::error::StorageError;
use crate::fs::{self, Durability};
use crate::producer::{self, ProducerEntry, ProducerState, Staged};
use crate::reader::{LogReader, Shared};
use crate::segment::{Cursor, Segment};

/// A partition's log. One owner appends and truncates; [`LogReader`]s read from any thread.
#[derive(Debug)]
pub struct Log {
    pub(crate) shared: Arc<Shared>,
    pub(crate) config: LogConfig,
    pub(crate) cursor: Cursor,
    pub(crate) producers: ProducerState,
    /// Reused by each append.
    pub(crate) staged: Staged,
    /// What the epoch cache says last, without its lock; -1 if empty.
    pub(crate) latest_epoch: i32,
    pub(crate) recovery_point: i64,
    /// Set once a write failed and could not be undone.
    pub(crate) failed: bool,
}

impl Log {
    /// A handle to read with.
    pub fn reader(&self) -> LogReader {
        LogReader { shared: Arc::clone(&self.shared) }
    }

    /// The log's settings.
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// Changes the log's settings. Those of indexes act from the next segment on.
    pub fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    /// The path of the log's directory.
    pub fn dir(&self) -> std::path::PathBuf {
        self.shared.dir.path()
    }

    /// The first offset there is.
    pub fn log_start_offset(&self) -> i64 {
        self.shared.log_start_offset.load(Ordering::Relaxed)
    }

    /// The offset the next record will get.
    pub fn log_end_offset(&self) -> i64 {
        self.shared.log_end_offset.load(Ordering::Relaxed)
    }

    /// The offset up to which the log is on the device, for the recovery-point checkpoint.
    pub fn recovery_point(&self) -> i64 {
        self.recovery_point
    }

    /// The newest leader epoch.
    pub fn latest_epoch(&self) -> Option<i32> {
        Some(self.latest_epoch).filter(|epoch| *epoch >= 0)
    }

    pub(crate) fn active(&self) -> Result<Arc<Segment>, StorageError> {
        let segments = self.shared.segments.load();
        segments.last().cloned().ok_or_else(|| StorageError::corrupt(&self.dir(), "no segments"))
    }

    /// Whether a write failed half-way and could not be undone: nothing can be appended any more.
    pub fn is_failed(&self) -> bool {
        self.failed
    }

    pub(crate) fn check_usable(&self) -> Result<(), StorageError> {
        if self.failed { Err(StorageError::Failed { path: self.dir() }) } else { Ok(()) }
    }

    /// Notes that a leader epoch begins at the log's end: what a new leader does first.
    pub fn begin_epoch(&mut self, epoch: i32) -> Result<(), StorageError> {
        self.note_epoch(epoch, self.log_end_offset())
    }

    pub(crate) fn note_epoch(&mut self, epoch: i32, start_offset: i64) -> Result<(), StorageError> {
        if epoch == self.latest_epoch || epoch < 0 {
            return Ok(());
        }
        self.change_epochs(|epochs| epochs.assign(epoch, start_offset))
    }

    /// Changes the epoch cache and its file. The file is not waited for: after a crash it is mended from the batches,
    /// which name their epochs.
    pub(crate) fn change_epochs(
        &mut self,
        change: impl FnOnce(&mut EpochCache) -> bool,
    ) -> Result<(), StorageError> {
        let mut epochs = self.shared.epochs.write().unwrap_or_else(PoisonError::into_inner);
        let before = epochs.clone();
        if change(&mut epochs) {
            if let Err(error) = epochs.write(&self.shared.dir.path(), Durability::Cached) {
                *epochs = before;
                return Err(error);
            }
            self.latest_epoch = epochs.latest_epoch().unwrap_or(-1);
        }
        Ok(())
    }

    /// Tells the log that all below is replicated. Transactions that ended below no longer hold back the last stable
    /// offset.
    pub fn advance_high_watermark(&mut self, high_watermark: i64) {
        self.producers.advance_high_watermark(high_watermark);
        self.publish_first_unstable();
    }

    pub(crate) fn publish_first_unstable(&self) {
        let offset = self.producers.first_unstable_offset().unwrap_or(i64::MAX);
        self.shared.first_unstable_offset.store(offset, Ordering::Release);
    }

    /// The producers that the log knows, by id.
    pub fn producers(&self) -> impl ExactSizeIterator<Item = &ProducerEntry> {
        self.producers.entries()
    }

    /// What the log knows of one producer.
    pub fn producer(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.producers.get(producer_id)
    }

    /// Forgets producers silent for longer than `producer.id.expiration.ms`; says how many.
    pub fn expire_producers(&mut self, now_ms: i64) -> usize {
        self.producers.expire(now_ms, self.config.producer_id_expiration_ms)
    }

    /// Raises the log's first offset (DeleteRecords, a leader's own start). Segments wholly below it can go then.
    /// An offset at or below the current one changes nothing; one above the log's end is cut to it.
    pub fn set_log_start_offset(&mut self, offset: i64) -> Result<bool, StorageError> {
        let offset = offset.min(self.log_end_offset());
        if offset <= self.log_start_offset() {
            return Ok(false);
        }
        self.shared.log_start_offset.store(offset, Ordering::Release);
        self.change_epochs(|epochs| epochs.truncate_start(offset))?;
        Ok(true)
    }

    /// Takes the segments wholly below the log's start out of it and renames their files to `.deleted`. The paths are
    /// for [`crate::delete_files`] once no reader can be amid them.
    pub fn remove_segments_below_start(&mut self) -> Result<Vec<std::path::PathBuf>, StorageError> {
        let start = self.log_start_offset();
        let segments = self.shared.segments.load_full();
        let gone = segments
            .windows(2)
            .take_while(|w| w.last().is_some_and(|next| next.base_offset <= start))
            .count();
        if gone == 0 {
            return Ok(Vec::new());
        }
        let kept = segments.iter().skip(gone).cloned().collect();
        self.shared.segments.store(Arc::new(kept));
        let mut paths = Vec::new();
        for segment in segments.iter().take(gone) {
            paths.extend(segment.mark_deleted(true)?);
        }
        Ok(paths)
    }

    /// Closes the log in order: indexes cut to size, everything on the device, producers' snapshot at the end. The
    /// directory's clean-shutdown marker may be written once all its logs are closed.
    pub fn close(mut self) -> Result<(), StorageError> {
        self.check_usable()?;
        let active = self.active()?;
        active.seal()?;
        self.flush()?;
        active.sync(true)?;
        let end = self.log_end_offset();
        // As Kafka: a log that was never written to has no snapshot.
        if end > self.log_start_offset() || self.producers.entries().len() > 0 {
            producer::write_snapshot(&self.dir(), end, &self.producers)?;
        }
        fs::sync_dir(&self.dir())
    }

    /// Renames the log's directory, first of the two steps of its deletion. Reads and appends go on working.
    pub fn rename_dir(&mut self, to: &Path) -> Result<(), StorageError> {
        self.shared.dir.rename(to)?;
        match to.parent() {
            Some(parent) => fs::sync_dir(parent),
            None => Ok(()),
        }
    }
}
