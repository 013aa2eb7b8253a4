//! What a log's owner decides.

use callboard_protocol::records::TimestampType;

/// The settings of a topic that its logs follow, named as Kafka's.
#[derive(Debug, Clone, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is closed before it grows past this.
    pub segment_bytes: u64,
    /// `segment.ms`: a segment is closed when records come this much later than its first.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: up to this much less, so that logs do not roll all at once.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: room for each index of the segment written to.
    pub segment_index_bytes: u64,
    /// `index.interval.bytes`: bytes of records between two index entries.
    pub index_interval_bytes: u64,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `cleanup.policy` has `delete`: segments go by time and size.
    pub deletes: bool,
    /// `retention.ms`: a segment goes once its newest record is older; `None` is without limit.
    pub retention_ms: Option<i64>,
    /// `retention.bytes`: the oldest segments go while the rest is at least as large; `None` is without limit.
    pub retention_bytes: Option<u64>,
    /// `cleanup.policy` has `compact`: the last record of each key stays.
    pub compacts: bool,
    /// `min.cleanable.dirty.ratio`: a log is compacted once so much of it is not compacted yet.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`: records younger than this are not compacted.
    pub min_compaction_lag_ms: i64,
    /// `max.compaction.lag.ms`: with records older than this not compacted, a log is compacted whatever the ratio.
    pub max_compaction_lag_ms: i64,
    /// `delete.retention.ms`: how long a tombstone stays after its first compaction.
    pub delete_retention_ms: i64,
    /// `producer.id.expiration.ms`: producers silent for so long are forgotten.
    pub producer_id_expiration_ms: i64,
}

impl Default for LogConfig {
    /// Kafka's defaults.
    fn default() -> Self {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3600 * 1000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            timestamp_type: TimestampType::CreateTime,
            deletes: true,
            retention_ms: Some(7 * 24 * 3600 * 1000),
            retention_bytes: None,
            compacts: false,
            min_cleanable_dirty_ratio: 0.5,
            min_compaction_lag_ms: 0,
            max_compaction_lag_ms: i64::MAX,
            delete_retention_ms: 24 * 3600 * 1000,
            producer_id_expiration_ms: 24 * 3600 * 1000,
        }
    }
}

impl LogConfig {
    /// A segment is closed when records come this much later than its first: compaction never touches the segment
    /// that is written to.
    pub(crate) fn max_segment_ms(&self) -> i64 {
        if self.compacts { self.segment_ms.min(self.max_compaction_lag_ms.max(1)) } else { self.segment_ms }
    }
}

/// How to open a log.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The log's settings.
    pub config: LogConfig,
    /// The checkpointed offset up to which the log is known to be on the device; 0 if unknown.
    pub recovery_point: i64,
    /// The checkpointed first offset; 0 if unknown. A new log begins there.
    pub log_start_offset: i64,
    /// Whether the directory was closed in order: nothing is scanned then.
    pub clean_shutdown: bool,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// What opening a log had to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Segments whose batches were all looked at.
    pub scanned_segments: usize,
    /// Bytes cut off because they were torn or corrupt.
    pub truncated_bytes: u64,
    /// What was wrong with them.
    pub truncation_reason: Option<String>,
    /// Segments removed because they came after a cut.
    pub removed_segments: usize,
    /// Segments outside recovery whose indexes were missing or damaged, and built again.
    pub rebuilt_indexes: usize,
    /// Batches read to bring the producers' state up to date.
    pub replayed_batches: u64,
    /// Whether the leader epochs had to be read from the batches.
    pub rebuilt_epochs: bool,
}
