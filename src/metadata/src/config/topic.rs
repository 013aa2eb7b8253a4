//! The effective settings of one topic.

use super::definition;
use super::error::ConfigError;
use super::settings::Settings;
use super::value::Value;

/// What happens to old records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Delete old segments by time and size.
    pub delete: bool,
    /// Keep the last record of each key.
    pub compact: bool,
}

/// `compression.type`: what batches are stored with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressionType {
    /// As the producer sent them.
    Producer,
    /// None.
    Uncompressed,
    /// gzip.
    Gzip,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// `message.timestamp.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's.
    CreateTime,
    /// When the broker appended the record.
    LogAppendTime,
}

/// `callboard.durability`: when an append counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Once it is in the page cache, as in Kafka.
    PageCache,
    /// Once it is on the device.
    Fsync,
}

impl Durability {
    pub(crate) fn from_text(text: Option<&str>) -> Self {
        if text == Some("fsync") { Self::Fsync } else { Self::PageCache }
    }
}

/// The effective settings of one topic: its own values over the broker's. A limit of `i64::MAX`, or -1 where Kafka
/// says so, means without limit.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicConfig {
    /// `cleanup.policy`.
    pub cleanup_policy: CleanupPolicy,
    /// `compression.type`.
    pub compression_type: CompressionType,
    /// `compression.gzip.level`; -1 is the library's default.
    pub compression_gzip_level: i32,
    /// `compression.lz4.level`.
    pub compression_lz4_level: i32,
    /// `compression.zstd.level`.
    pub compression_zstd_level: i32,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// `file.delete.delay.ms`.
    pub file_delete_delay_ms: i64,
    /// `flush.messages`.
    pub flush_messages: i64,
    /// `flush.ms`.
    pub flush_ms: i64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: i32,
    /// `local.retention.bytes`; -2 is `retention.bytes`.
    pub local_retention_bytes: i64,
    /// `local.retention.ms`; -2 is `retention.ms`.
    pub local_retention_ms: i64,
    /// `max.compaction.lag.ms`.
    pub max_compaction_lag_ms: i64,
    /// `max.decompressed.message.bytes`.
    pub max_decompressed_message_bytes: i32,
    /// `max.message.bytes`: the largest batch.
    pub max_message_bytes: i32,
    /// `message.timestamp.after.max.ms`.
    pub message_timestamp_after_max_ms: i64,
    /// `message.timestamp.before.max.ms`.
    pub message_timestamp_before_max_ms: i64,
    /// `message.timestamp.type`.
    pub message_timestamp_type: TimestampType,
    /// `min.cleanable.dirty.ratio`.
    pub min_cleanable_dirty_ratio: f64,
    /// `min.compaction.lag.ms`.
    pub min_compaction_lag_ms: i64,
    /// `min.insync.replicas`.
    pub min_insync_replicas: i32,
    /// `preallocate`.
    pub preallocate: bool,
    /// `remote.storage.enable`.
    pub remote_storage_enable: bool,
    /// `retention.bytes`; -1 is without limit.
    pub retention_bytes: i64,
    /// `retention.ms`; -1 is without limit.
    pub retention_ms: i64,
    /// `segment.bytes`, or `internal.segment.bytes` where a test sets it.
    pub segment_bytes: i32,
    /// `segment.index.bytes`.
    pub segment_index_bytes: i32,
    /// `segment.jitter.ms`.
    pub segment_jitter_ms: i64,
    /// `segment.ms`.
    pub segment_ms: i64,
    /// `unclean.leader.election.enable`.
    pub unclean_leader_election_enable: bool,
    /// `leader.replication.throttled.replicas`.
    pub leader_replication_throttled_replicas: Vec<String>,
    /// `follower.replication.throttled.replicas`.
    pub follower_replication_throttled_replicas: Vec<String>,
    /// `callboard.durability`.
    pub durability: Durability,
}

/// Looks values up in a topic's overrides, then in the broker's settings, then in the defaults.
struct Lookup<'a> {
    broker: &'a Settings,
    overrides: std::collections::BTreeMap<&'a str, &'a str>,
}

impl Lookup<'_> {
    fn value(&self, name: &str) -> Option<Value> {
        let definition = definition::topic().get(name)?;
        if let Some(value) = self.overrides.get(name).and_then(|text| definition.parse(text).ok()) {
            return Some(value);
        }
        match definition.broker_synonym {
            Some("log.retention.ms") => {
                let ms = self.broker.alternative_ms("log.retention.ms");
                Some(Value::Long(if ms < 0 { -1 } else { ms }))
            }
            Some(ms @ ("log.roll.ms" | "log.roll.jitter.ms" | "log.flush.interval.ms")) => {
                Some(Value::Long(self.broker.alternative_ms(ms)))
            }
            Some(synonym) => self.broker.value(synonym),
            None => definition.default_value(),
        }
    }

    fn i64(&self, name: &str) -> i64 {
        self.value(name).as_ref().and_then(Value::as_i64).unwrap_or_default()
    }

    fn i32(&self, name: &str) -> i32 {
        i32::try_from(self.i64(name)).unwrap_or(i32::MAX)
    }

    fn bool(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Boolean(true)))
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::List(list)) => list,
            _ => Vec::new(),
        }
    }
}

impl TopicConfig {
    /// The effective settings of a topic with these values of its own, on a broker with these settings. A value that
    /// is not allowed counts as absent: the controller has refused it before it was stored.
    pub fn effective<'a>(
        broker: &'a Settings,
        overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let get = Lookup { broker, overrides: overrides.into_iter().collect() };
        let policies = get.list("cleanup.policy");
        let has = |policy: &str| policies.iter().any(|p| p == policy);
        let segment_bytes = match get.value("internal.segment.bytes") {
            Some(Value::Int(bytes)) => bytes,
            _ => get.i32("segment.bytes"),
        };
        Self {
            cleanup_policy: CleanupPolicy { delete: has("delete"), compact: has("compact") },
            compression_type: compression_type(get.text("compression.type").as_deref()),
            compression_gzip_level: get.i32("compression.gzip.level"),
            compression_lz4_level: get.i32("compression.lz4.level"),
            compression_zstd_level: get.i32("compression.zstd.level"),
            delete_retention_ms: get.i64("delete.retention.ms"),
            file_delete_delay_ms: get.i64("file.delete.delay.ms"),
            flush_messages: get.i64("flush.messages"),
            flush_ms: get.i64("flush.ms"),
            index_interval_bytes: get.i32("index.interval.bytes"),
            local_retention_bytes: get.i64("local.retention.bytes"),
            local_retention_ms: get.i64("local.retention.ms"),
            max_compaction_lag_ms: get.i64("max.compaction.lag.ms"),
            max_decompressed_message_bytes: get.i32("max.decompressed.message.bytes"),
            max_message_bytes: get.i32("max.message.bytes"),
            message_timestamp_after_max_ms: get.i64("message.timestamp.after.max.ms"),
            message_timestamp_before_max_ms: get.i64("message.timestamp.before.max.ms"),
            message_timestamp_type: match get.text("message.timestamp.type").as_deref() {
                Some("LogAppendTime") => TimestampType::LogAppendTime,
                _ => TimestampType::CreateTime,
            },
            min_cleanable_dirty_ratio: match get.value("min.cleanable.dirty.ratio") {
                Some(Value::Double(ratio)) => ratio,
                _ => 0.5,
            },
            min_compaction_lag_ms: get.i64("min.compaction.lag.ms"),
            min_insync_replicas: get.i32("min.insync.replicas"),
            preallocate: get.bool("preallocate"),
            remote_storage_enable: get.bool("remote.storage.enable"),
            retention_bytes: get.i64("retention.bytes"),
            retention_ms: get.i64("retention.ms"),
            segment_bytes,
            segment_index_bytes: get.i32("segment.index.bytes"),
            segment_jitter_ms: get.i64("segment.jitter.ms"),
            segment_ms: get.i64("segment.ms"),
            unclean_leader_election_enable: get.bool("unclean.leader.election.enable"),
            leader_replication_throttled_replicas: get.list("leader.replication.throttled.replicas"),
            follower_replication_throttled_replicas: get.list("follower.replication.throttled.replicas"),
            durability: Durability::from_text(get.text("callboard.durability").as_deref()),
        }
    }
}

fn compression_type(text: Option<&str>) -> CompressionType {
    match text {
        Some("uncompressed") => CompressionType::Uncompressed,
        Some("gzip") => CompressionType::Gzip,
        Some("snappy") => CompressionType::Snappy,
        Some("lz4") => CompressionType::Lz4,
        Some("zstd") => CompressionType::Zstd,
        _ => CompressionType::Producer,
    }
}

/// Checks all values of a topic, as they would be after a change: each one, and together with the broker's.
///
/// # Errors
/// [`ConfigError`] with the text Kafka gives (error code INVALID_CONFIG).
pub fn validate_topic<'a>(
    broker: &'a Settings,
    values: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), ConfigError> {
    let values: Vec<_> = values.into_iter().collect();
    for (name, _) in &values {
        definition::topic().require(name)?;
    }
    for (name, text) in &values {
        definition::topic().require(name)?.parse(text)?;
    }
    let effective = TopicConfig::effective(broker, values);
    let (min, max) = (effective.min_compaction_lag_ms, effective.max_compaction_lag_ms);
    if min > max {
        return Err(ConfigError::Conflict(format!(
            "conflict topic config setting min.compaction.lag.ms ({min}) > max.compaction.lag.ms ({max})"
        )));
    }
    if effective.remote_storage_enable && !broker.bool("remote.log.storage.system.enable") {
        return Err(ConfigError::Conflict(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log \
             storage."
                .to_owned(),
        ));
    }
    Ok(())
}
