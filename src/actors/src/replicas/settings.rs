//! A topic's settings in the forms that its partitions use.

use callboard_metadata::config::{
    CompressionType, Durability, TimestampType as ConfiguredTimestamps, TopicConfig,
};
use callboard_protocol::records::validate::Rules;
use callboard_protocol::records::{Compression, CompressionLevels, TimestampType};
use callboard_storage::LogConfig;

/// What of a topic's settings its partitions follow.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionSettings {
    /// The log's.
    pub log: LogConfig,
    /// What a produced batch is held against.
    pub rules: Rules,
    /// `compression.*.level`.
    pub levels: CompressionLevels,
    /// `min.insync.replicas`.
    pub min_insync_replicas: usize,
    /// `flush.messages`: after so many records the log is flushed; `i64::MAX` leaves it to the system.
    pub flush_messages: i64,
    /// `flush.ms`: after so long it is flushed; `i64::MAX` leaves it to the system.
    pub flush_ms: i64,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: u64,
    /// `callboard.durability` is `fsync`: records count once they are on the device.
    pub synced: bool,
    /// Whether `cleanup.policy` has `delete`: only then may records be deleted on request.
    pub deletable: bool,
}

impl PartitionSettings {
    /// From a topic's effective settings and the node's `producer.id.expiration.ms`.
    pub fn new(topic: &TopicConfig, producer_id_expiration_ms: i64) -> Self {
        let size = |bytes: i32| u64::try_from(bytes).unwrap_or(0);
        let length = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
        let timestamp_type = match topic.message_timestamp_type {
            ConfiguredTimestamps::CreateTime => TimestampType::CreateTime,
            ConfiguredTimestamps::LogAppendTime => TimestampType::LogAppendTime,
        };
        Self {
            log: LogConfig {
                segment_bytes: size(topic.segment_bytes),
                segment_ms: topic.segment_ms,
                segment_jitter_ms: topic.segment_jitter_ms,
                segment_index_bytes: size(topic.segment_index_bytes),
                index_interval_bytes: size(topic.index_interval_bytes),
                timestamp_type,
                deletes: topic.cleanup_policy.delete,
                retention_ms: Some(topic.retention_ms).filter(|ms| *ms >= 0),
                retention_bytes: u64::try_from(topic.retention_bytes).ok(),
                compacts: topic.cleanup_policy.compact,
                min_cleanable_dirty_ratio: topic.min_cleanable_dirty_ratio,
                min_compaction_lag_ms: topic.min_compaction_lag_ms,
                max_compaction_lag_ms: topic.max_compaction_lag_ms,
                delete_retention_ms: topic.delete_retention_ms,
                producer_id_expiration_ms,
            },
            rules: Rules {
                max_message_bytes: length(topic.max_message_bytes),
                timestamp_type,
                timestamp_before_max_ms: topic.message_timestamp_before_max_ms,
                timestamp_after_max_ms: topic.message_timestamp_after_max_ms,
                keys_required: topic.cleanup_policy.compact,
                compression: codec(topic.compression_type),
                max_decompressed_bytes: decompressed_limit(topic),
            },
            levels: CompressionLevels {
                gzip: topic.compression_gzip_level,
                lz4: topic.compression_lz4_level,
                zstd: topic.compression_zstd_level,
            },
            min_insync_replicas: length(topic.min_insync_replicas),
            flush_messages: topic.flush_messages,
            flush_ms: topic.flush_ms,
            file_delete_delay_ms: u64::try_from(topic.file_delete_delay_ms).unwrap_or(0),
            synced: topic.durability == Durability::Fsync,
            deletable: topic.cleanup_policy.delete,
        }
    }
}

fn codec(setting: CompressionType) -> Option<Compression> {
    match setting {
        CompressionType::Producer => None,
        CompressionType::Uncompressed => Some(Compression::None),
        CompressionType::Gzip => Some(Compression::Gzip),
        CompressionType::Snappy => Some(Compression::Snappy),
        CompressionType::Lz4 => Some(Compression::Lz4),
        CompressionType::Zstd => Some(Compression::Zstd),
    }
}

fn decompressed_limit(topic: &TopicConfig) -> usize {
    let default = Rules::default().max_decompressed_bytes;
    usize::try_from(topic.max_decompressed_message_bytes).unwrap_or(default).min(default)
}
