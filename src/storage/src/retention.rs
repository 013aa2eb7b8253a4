//! Retention: which segments a log no longer needs, and taking them out.
//!
//! Segments go from the oldest on, and only where everything in them is below the high watermark, so that the log's
//! start never passes it. The segment that is written to goes too: an empty one takes its place.

use std::path::PathBuf;

use crate::config::LogConfig;
use crate::error::{IoContext, StorageError};
use crate::fs;
use crate::log::Log;
use crate::reader::LogReader;
use crate::segment::Segment;

/// How many of a log's oldest segments are to go, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Due {
    /// Wholly below the log's start (DeleteRecords).
    pub below_start: usize,
    /// Past `retention.bytes`.
    pub by_size: usize,
    /// Past `retention.ms`.
    pub by_time: usize,
    /// Base offset of a segment with a record from the future, which keeps it and all after it from going by time.
    pub future_segment: Option<i64>,
}

impl Due {
    /// All that are to go.
    pub fn segments(&self) -> usize {
        self.below_start + self.by_size + self.by_time
    }
}

/// What was taken out of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many segments, and why.
    pub due: Due,
    /// Their files, renamed to `.deleted`: for [`crate::delete_files`] after `file.delete.delay.ms`.
    pub files: Vec<PathBuf>,
}

/// What retention asks about a segment.
#[derive(Debug, Clone, Copy)]
struct Facts {
    base_offset: i64,
    /// The next segment's base offset; the log's end for the last one.
    end_offset: i64,
    size_bytes: u64,
    newest_ms: i64,
}

/// The decision. The order is Kafka's: what is below the start first, then by size, then by time.
fn decide(
    segments: &[Facts],
    config: &LogConfig,
    log_start_offset: i64,
    high_watermark: i64,
    now_ms: i64,
) -> Due {
    let removable = |(index, segment): &(usize, &Facts)| {
        let is_empty_last = index + 1 == segments.len() && segment.size_bytes == 0;
        segment.end_offset <= high_watermark && !is_empty_last
    };
    let mut rest = segments.iter().enumerate().take_while(removable).peekable();
    let mut due = Due::default();
    let is_last = |index: usize| index + 1 == segments.len();
    while rest.next_if(|(i, segment)| !is_last(*i) && segment.end_offset <= log_start_offset).is_some() {
        due.below_start += 1;
    }
    if !config.deletes {
        return due;
    }
    if let Some(limit) = config.retention_bytes {
        let size: u64 = segments.iter().skip(due.below_start).map(|segment| segment.size_bytes).sum();
        let mut excess = size.saturating_sub(limit);
        while let Some((_, segment)) =
            rest.next_if(|(_, segment)| size >= limit && segment.size_bytes <= excess)
        {
            excess -= segment.size_bytes;
            due.by_size += 1;
        }
    }
    if let Some(limit) = config.retention_ms {
        while rest.next_if(|(_, segment)| now_ms.saturating_sub(segment.newest_ms) > limit).is_some() {
            due.by_time += 1;
        }
        due.future_segment = rest.peek().filter(|(_, s)| s.newest_ms > now_ms).map(|(_, s)| s.base_offset);
    }
    due
}

/// The newest record's time; a segment without timestamps counts as old as its file's last change.
pub(crate) fn newest_ms(segment: &Segment) -> Result<i64, StorageError> {
    let newest = segment.max_timestamp().timestamp_ms;
    if newest >= 0 {
        return Ok(newest);
    }
    let path = segment.path();
    let changed = segment.file.metadata().and_then(|metadata| metadata.modified()).at("stat", &path)?;
    let since_epoch = changed.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

impl LogReader {
    /// Which segments are to go by these settings. It changes nothing; [`Log::remove_due_segments`] does.
    pub fn retention_due(
        &self,
        config: &LogConfig,
        high_watermark: i64,
        now_ms: i64,
    ) -> Result<Due, StorageError> {
        let segments = self.shared.segments.load();
        let mut facts = Vec::with_capacity(segments.len());
        for (index, segment) in segments.iter().enumerate() {
            let next = segments.get(index + 1);
            facts.push(Facts {
                base_offset: segment.base_offset,
                end_offset: next.map_or_else(|| self.log_end_offset(), |next| next.base_offset),
                size_bytes: segment.size_bytes(),
                newest_ms: newest_ms(segment)?,
            });
        }
        Ok(decide(&facts, config, self.log_start_offset(), high_watermark, now_ms))
    }
}

impl Log {
    /// Takes out the segments that the log's settings no longer keep, and raises the log's start.
    pub fn remove_due_segments(&mut self, high_watermark: i64, now_ms: i64) -> Result<Removed, StorageError> {
        self.check_usable()?;
        let due = self.reader().retention_due(&self.config, high_watermark, now_ms)?;
        let count = due.segments();
        let segments = self.shared.segments.load_full();
        if count == 0 {
            return Ok(Removed { due, files: Vec::new() });
        }
        if count == segments.len() {
            self.roll(now_ms)?;
            // Were the old files gone and this one lost, the log would begin at 0 again.
            fs::sync_dir(&self.dir())?;
        }
        let first = self.shared.segments.load().get(count).map(|segment| segment.base_offset);
        // The start goes first: a reader must not find a later record in place of one that is gone.
        self.set_log_start_offset(first.unwrap_or_else(|| self.log_end_offset()))?;
        Ok(Removed { due, files: self.remove_segments_below_start()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(retention_ms: Option<i64>, retention_bytes: Option<u64>) -> LogConfig {
        LogConfig { retention_ms, retention_bytes, ..LogConfig::default() }
    }

    /// Segments of ten offsets, with these sizes and newest times.
    fn facts(segments: &[(u64, i64)]) -> Vec<Facts> {
        let of = |(index, (size_bytes, newest_ms)): (usize, &(u64, i64))| {
            let base_offset = 10 * index as i64;
            Facts {
                base_offset,
                end_offset: base_offset + 10,
                size_bytes: *size_bytes,
                newest_ms: *newest_ms,
            }
        };
        segments.iter().enumerate().map(of).collect()
    }

    fn counts(due: Due) -> (usize, usize, usize) {
        (due.below_start, due.by_size, due.by_time)
    }

    #[test]
    fn by_time_up_to_the_first_that_is_young() {
        let segments = facts(&[(5, 100), (5, 200), (5, 950), (5, 100)]);
        let due = |config: &LogConfig| counts(decide(&segments, config, 0, 40, 1_000));
        assert_eq!(due(&config(Some(799), None)), (0, 0, 2));
        assert_eq!(due(&config(Some(800), None)), (0, 0, 1), "exactly as old as allowed stays");
        assert_eq!(due(&config(Some(49), None)), (0, 0, 4), "the last one too");
        assert_eq!(due(&config(None, None)), (0, 0, 0));
        assert_eq!(due(&LogConfig { deletes: false, ..config(Some(0), Some(0)) }), (0, 0, 0));
    }

    #[test]
    fn by_size_while_the_rest_is_large_enough() {
        let segments = facts(&[(50, 0), (30, 0), (20, 0)]);
        let due = |limit| decide(&segments, &config(None, Some(limit)), 0, 30, 0).by_size;
        assert_eq!([due(101), due(100), due(51), due(50), due(20), due(1), due(0)], [0, 0, 0, 1, 2, 2, 3]);
    }

    #[test]
    fn nothing_goes_at_or_past_the_high_watermark() {
        let segments = facts(&[(5, 0), (5, 0), (5, 0)]);
        let due = |high_watermark| decide(&segments, &config(Some(0), None), 0, high_watermark, 9).by_time;
        assert_eq!([due(0), due(9), due(10), due(29), due(30)], [0, 0, 1, 2, 3]);
    }

    #[test]
    fn below_the_start_whatever_the_policy() {
        let segments = facts(&[(5, 0), (5, 0), (5, 0)]);
        let compacted = LogConfig { deletes: false, ..config(Some(0), None) };
        let due = |start| decide(&segments, &compacted, start, 30, 9).below_start;
        assert_eq!([due(0), due(9), due(10), due(20), due(30)], [0, 0, 1, 2, 2], "never the last one");
    }

    #[test]
    fn an_empty_last_segment_stays() {
        let mut segments = facts(&[(5, 0), (0, 0)]);
        if let Some(last) = segments.last_mut() {
            last.end_offset = last.base_offset;
        }
        assert_eq!(decide(&segments, &config(Some(0), Some(0)), 0, 10, 9).segments(), 1);
    }

    #[test]
    fn a_record_from_the_future_is_named_and_size_still_counts() {
        let segments = facts(&[(50, 5_000), (30, 10), (20, 10)]);
        let due = decide(&segments, &config(Some(100), None), 0, 30, 1_000);
        assert_eq!((counts(due), due.future_segment), ((0, 0, 0), Some(0)));
        let due = decide(&segments, &config(Some(100), Some(50)), 0, 30, 1_000);
        assert_eq!((counts(due), due.future_segment), ((0, 1, 2), None), "then the others go by time");
    }
}
