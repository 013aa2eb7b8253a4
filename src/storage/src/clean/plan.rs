//! Which part of a log compaction may work on, and whether it is worth it.

use std::sync::Arc;

use crate::config::LogConfig;
use crate::error::StorageError;
use crate::reader::LogReader;
use crate::retention::newest_ms;
use crate::segment::Segment;

/// What there is to compact in a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cleanable {
    /// The first offset that was never compacted.
    pub first_dirty_offset: i64,
    /// Compaction stops here: the segment that is written to, what is not stable, or what is too young.
    pub first_uncleanable_offset: i64,
    /// Bytes compacted before.
    pub clean_bytes: u64,
    /// Bytes to be compacted.
    pub dirty_bytes: u64,
    /// Records have waited for longer than `max.compaction.lag.ms`.
    pub is_overdue: bool,
}

impl Cleanable {
    /// The part of the bytes that is not compacted: 0 to 1.
    pub fn dirty_ratio(&self) -> f64 {
        let total = self.clean_bytes + self.dirty_bytes;
        if total == 0 { 0.0 } else { self.dirty_bytes as f64 / total as f64 }
    }

    /// Whether it is time to compact.
    pub fn is_due(&self, config: &LogConfig) -> bool {
        (self.is_overdue && self.dirty_bytes > 0) || self.dirty_ratio() > config.min_cleanable_dirty_ratio
    }
}

impl LogReader {
    /// What there is to compact. `compacted_to` is the checkpoint; one outside the log counts for nothing. It may
    /// read the device.
    pub fn cleanable(
        &self,
        config: &LogConfig,
        compacted_to: Option<i64>,
        last_stable_offset: i64,
        now_ms: i64,
    ) -> Result<Cleanable, StorageError> {
        let (start, end) = (self.log_start_offset(), self.log_end_offset());
        let first_dirty_offset =
            compacted_to.filter(|offset| (start..=end).contains(offset)).unwrap_or(start);
        let segments = self.shared.segments.load();
        let closed = segments.split_last().map_or(&[][..], |(_, closed)| closed);
        let active_base = segments.last().map_or(end, |active| active.base_offset);
        let from = |offset| if offset >= active_base { &[][..] } else { from(closed, offset) };
        let dirty = from(first_dirty_offset);
        let mut limit = last_stable_offset.min(active_base);
        if config.min_compaction_lag_ms > 0 {
            let youngest = now_ms.saturating_sub(config.min_compaction_lag_ms);
            for segment in dirty {
                if newest_ms(segment)? > youngest {
                    limit = limit.min(segment.base_offset);
                    break;
                }
            }
        }
        let limit = limit.max(first_dirty_offset);
        let first_uncleanable_offset = from(limit).first().map_or(active_base, |s| s.base_offset);
        let size = |segments: &mut dyn Iterator<Item = &Arc<Segment>>| segments.map(|s| s.size_bytes()).sum();
        // Nothing, where the first dirty offset is amid the first segment that can't be cleaned.
        let until =
            if first_uncleanable_offset > first_dirty_offset { first_uncleanable_offset } else { i64::MIN };
        Ok(Cleanable {
            first_dirty_offset,
            first_uncleanable_offset,
            clean_bytes: size(&mut segments.iter().filter(|s| s.base_offset < first_dirty_offset)),
            dirty_bytes: size(&mut dirty.iter().filter(|s| s.base_offset < until)),
            is_overdue: is_overdue(dirty, config, now_ms)?,
        })
    }
}

/// The segment that holds an offset, and those after it.
fn from(segments: &[Arc<Segment>], offset: i64) -> &[Arc<Segment>] {
    let after = segments.partition_point(|segment| segment.base_offset <= offset);
    segments.get(after.saturating_sub(1)..).unwrap_or_default()
}

fn is_overdue(dirty: &[Arc<Segment>], config: &LogConfig, now_ms: i64) -> Result<bool, StorageError> {
    if config.max_compaction_lag_ms == i64::MAX {
        return Ok(false);
    }
    let oldest_allowed = now_ms.saturating_sub(config.max_compaction_lag_ms.max(0));
    for segment in dirty {
        let first_ms = segment.first_batch()?.map_or(-1, |batch| batch.max_timestamp_ms);
        if first_ms > 0 && first_ms < oldest_allowed {
            return Ok(true);
        }
    }
    Ok(false)
}
