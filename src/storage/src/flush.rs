//! Getting a log onto the device.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::StorageError;
use crate::fs;
use crate::log::Log;
use crate::segment::Segment;

/// What to sync, to be carried to a thread that may block.
#[derive(Debug)]
pub struct FlushHandle {
    segments: Vec<Arc<Segment>>,
    /// Set if files were made since the last flush.
    dir: Option<PathBuf>,
    up_to: i64,
}

impl FlushHandle {
    /// The offset up to which all is on the device once `run` has returned.
    pub fn up_to(&self) -> i64 {
        self.up_to
    }

    /// Waits until the device has all of it. Give [`FlushHandle::up_to`] to [`Log::mark_flushed`] afterwards.
    pub fn run(&self) -> Result<(), StorageError> {
        if let Some((active, closed)) = self.segments.split_last() {
            closed.iter().try_for_each(|segment| segment.sync(true))?;
            active.sync(false)?;
        }
        self.dir.as_deref().map_or(Ok(()), fs::sync_dir)
    }
}

impl Log {
    /// What to sync so that everything appended so far is durable; `None` if it is already.
    pub fn flush_handle(&self) -> Option<FlushHandle> {
        let up_to = self.log_end_offset();
        if up_to <= self.recovery_point {
            return None;
        }
        let segments = self.shared.segments.load();
        let first = segments.partition_point(|s| s.base_offset <= self.recovery_point).saturating_sub(1);
        let segments: Vec<_> = segments.iter().skip(first).cloned().collect();
        // A segment that begins at or after the recovery point may not be in the directory on the device yet.
        let is_new = segments.iter().any(|segment| segment.base_offset >= self.recovery_point);
        Some(FlushHandle { segments, dir: is_new.then(|| self.dir()), up_to })
    }

    /// Notes that a flush up to this offset is done. The log may have been truncated meanwhile.
    pub fn mark_flushed(&mut self, up_to: i64) {
        self.recovery_point = self.recovery_point.max(up_to.min(self.log_end_offset()));
    }

    /// Waits until everything appended is on the device.
    pub fn flush(&mut self) -> Result<(), StorageError> {
        if let Some(handle) = self.flush_handle() {
            handle.run()?;
            self.mark_flushed(handle.up_to());
        }
        Ok(())
    }
}
