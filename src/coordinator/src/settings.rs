//! The broker's settings that coordinators go by.

pub use crate::group::consumer::ConsumerSettings;

/// All of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Those of classic groups.
    pub classic: ClassicSettings,
    /// Those of consumer groups.
    pub consumer: ConsumerSettings,
    /// Those of committed offsets.
    pub offsets: OffsetSettings,
    /// Those of transactions.
    pub transactions: TransactionSettings,
}

/// What classic groups go by. The defaults are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassicSettings {
    /// `group.initial.rebalance.delay.ms`: how long an empty group waits for more members.
    pub initial_rebalance_delay_ms: i64,
    /// `group.min.session.timeout.ms`.
    pub min_session_timeout_ms: i32,
    /// `group.max.session.timeout.ms`.
    pub max_session_timeout_ms: i32,
    /// `group.max.size`: the most members a group may have.
    pub max_size: usize,
}

impl Default for ClassicSettings {
    fn default() -> Self {
        Self {
            initial_rebalance_delay_ms: 3_000,
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            max_size: i32::MAX as usize,
        }
    }
}

/// What committed offsets go by. The defaults are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetSettings {
    /// `offset.metadata.max.bytes`: the longest text a commit may carry, in bytes.
    pub max_metadata_bytes: usize,
    /// `offsets.retention.minutes`, in milliseconds.
    pub retention_ms: i64,
    /// `offsets.retention.check.interval.ms`.
    pub retention_check_interval_ms: i64,
}

impl Default for OffsetSettings {
    fn default() -> Self {
        Self {
            max_metadata_bytes: 4_096,
            retention_ms: 7 * 24 * 60 * 60 * 1_000,
            retention_check_interval_ms: 600_000,
        }
    }
}

/// What transactions go by. The defaults are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionSettings {
    /// `transaction.max.timeout.ms`: the longest timeout a producer may ask for.
    pub max_timeout_ms: i32,
    /// `transaction.abort.timed.out.transaction.cleanup.interval.ms`: overdue transactions are looked for at most so
    /// often.
    pub abort_check_interval_ms: i64,
    /// `transactional.id.expiration.ms`: an id that was not used for so long goes away.
    pub expiration_ms: i64,
    /// `transaction.remove.expired.transaction.cleanup.interval.ms`: how often unused ids are looked for.
    pub expiry_check_interval_ms: i64,
}

impl Default for TransactionSettings {
    fn default() -> Self {
        Self {
            max_timeout_ms: 900_000,
            abort_check_interval_ms: 10_000,
            expiration_ms: 7 * 24 * 60 * 60 * 1_000,
            expiry_check_interval_ms: 60 * 60 * 1_000,
        }
    }
}
