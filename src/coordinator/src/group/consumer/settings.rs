//! The settings that consumer groups go by.

use callboard_protocol::ByteString;

use super::assignor::Assignor;
use crate::cluster::Cluster;

/// `group.consumer.migration.policy`: which way groups may change protocol while they have members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MigrationPolicy {
    /// Neither way.
    Disabled,
    /// From classic to consumer.
    Upgrade,
    /// From consumer to classic.
    Downgrade,
    /// Both ways.
    #[default]
    Bidirectional,
}

impl MigrationPolicy {
    /// The policy of a name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        let policies = [
            ("disabled", Self::Disabled),
            ("upgrade", Self::Upgrade),
            ("downgrade", Self::Downgrade),
            ("bidirectional", Self::Bidirectional),
        ];
        policies.into_iter().find(|(own, _)| name.eq_ignore_ascii_case(own)).map(|(_, policy)| policy)
    }

    /// Whether a classic group with members may become a consumer group.
    pub const fn allows_upgrade(self) -> bool {
        matches!(self, Self::Upgrade | Self::Bidirectional)
    }

    /// Whether a consumer group with only classic members left becomes a classic group.
    pub const fn allows_downgrade(self) -> bool {
        matches!(self, Self::Downgrade | Self::Bidirectional)
    }
}

/// A time that the broker has a setting for and a group may have one of its own, within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundedMs {
    /// The broker's.
    pub default_ms: i32,
    /// The least a group may set.
    pub min_ms: i32,
    /// The most a group may set.
    pub max_ms: i32,
}

impl BoundedMs {
    /// What holds for a group: its own setting, brought within the bounds, or the broker's.
    fn of(self, cluster: &dyn Cluster, group_id: &str, name: &str) -> i32 {
        let own =
            cluster.group_config(group_id, name).and_then(|value: ByteString| value.trim().parse().ok());
        own.map_or(self.default_ms, |own: i32| own.min(self.max_ms).max(self.min_ms))
    }
}

/// What consumer groups go by. The defaults are Kafka's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerSettings {
    /// `group.consumer.session.timeout.ms` and its bounds.
    pub session_timeout: BoundedMs,
    /// `group.consumer.heartbeat.interval.ms` and its bounds.
    pub heartbeat_interval: BoundedMs,
    /// `group.consumer.assignment.interval.ms` and its bounds: the least time between two assignments of a group.
    pub assignment_interval: BoundedMs,
    /// `group.consumer.max.size`: the most members a group may have.
    pub max_size: usize,
    /// `group.consumer.assignors`: the first one is the default.
    pub assignors: Vec<Assignor>,
    /// `group.consumer.migration.policy`.
    pub migration_policy: MigrationPolicy,
    /// `group.consumer.regex.refresh.interval.ms`: how long what a pattern stands for is good without news of topics.
    pub regex_refresh_interval_ms: i64,
}

impl Default for ConsumerSettings {
    fn default() -> Self {
        Self {
            session_timeout: BoundedMs { default_ms: 45_000, min_ms: 45_000, max_ms: 60_000 },
            heartbeat_interval: BoundedMs { default_ms: 5_000, min_ms: 5_000, max_ms: 15_000 },
            assignment_interval: BoundedMs { default_ms: 1_000, min_ms: 0, max_ms: 15_000 },
            max_size: i32::MAX as usize,
            assignors: vec![Assignor::Uniform, Assignor::Range],
            migration_policy: MigrationPolicy::default(),
            regex_refresh_interval_ms: 600_000,
        }
    }
}

impl ConsumerSettings {
    /// The session timeout of a group's members.
    pub fn session_timeout_ms(&self, cluster: &dyn Cluster, group_id: &str) -> i32 {
        self.session_timeout.of(cluster, group_id, "consumer.session.timeout.ms")
    }

    /// How often a group's members are to send a heartbeat.
    pub fn heartbeat_interval_ms(&self, cluster: &dyn Cluster, group_id: &str) -> i32 {
        self.heartbeat_interval.of(cluster, group_id, "consumer.heartbeat.interval.ms")
    }

    /// The least time between two assignments of a group.
    pub fn assignment_interval_ms(&self, cluster: &dyn Cluster, group_id: &str) -> i32 {
        self.assignment_interval.of(cluster, group_id, "consumer.assignment.interval.ms")
    }

    /// The assignor of a group: the one that most of its members ask for, or the default.
    pub(super) fn assignor_of(&self, group: &super::ConsumerGroup) -> Assignor {
        let asked = |assignor: &&Assignor| {
            let named = group.members().filter_map(|member| member.server_assignor.as_deref());
            named.filter(|name| *name == assignor.name()).count()
        };
        // The first of those that are asked for most; `max_by_key` would give the last.
        let most = self.assignors.iter().rev().max_by_key(asked);
        most.copied().unwrap_or(Assignor::Uniform)
    }
}
