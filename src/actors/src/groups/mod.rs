//! The group coordinator of this broker: one shard for each partition of `__consumer_offsets` that it leads.

mod consumer_settings;

use callboard_coordinator::group::{Caller, EndTransaction, GroupRequest, GroupShard, ListGroups};
use callboard_coordinator::{ClassicSettings, OffsetSettings, Settings as CoordinatorSettings};
use callboard_metadata::config::Settings;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::list_groups_response::ListedGroup;
use callboard_protocol::records::Compression;

use crate::control::applied::BrokerMetadata;
use crate::coordinator::{CoordinatorSetup, Coordinators};
use crate::replicas::Replicas;
use crate::supervision::SupervisorRef;

/// The topic of groups and committed offsets.
pub const TOPIC: &str = "__consumer_offsets";

const MINUTE_MS: i64 = 60 * 1_000;

/// The way to the group coordinator.
#[derive(Debug, Clone)]
pub struct Groups {
    shards: Coordinators<GroupShard>,
}

impl Groups {
    /// Starts it below `parent`.
    pub fn start(
        parent: &SupervisorRef,
        replicas: &Replicas,
        metadata: &BrokerMetadata,
        node_id: i32,
        settings: &Settings,
    ) -> Self {
        let codec = int(settings, "offsets.topic.compression.codec");
        let setup = CoordinatorSetup {
            name: "groups",
            topic: TOPIC,
            node_id,
            compression: u8::try_from(codec)
                .ok()
                .and_then(|id| Compression::from_id(id).ok())
                .unwrap_or(Compression::None),
            settings: read_settings,
        };
        Self { shards: Coordinators::start(parent, replicas, metadata, setup, None) }
    }

    /// The partition of the topic that a group belongs to; `None` before the topic is there.
    pub fn partition_of(&self, group_id: &str) -> Option<i32> {
        self.shards.partition_of(group_id)
    }

    /// Asks the shard of a group.
    ///
    /// # Errors
    /// NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, or what else the request can't be
    /// handled for.
    pub async fn ask<Q: GroupRequest>(
        &self,
        group_id: &str,
        caller: Caller,
        request: Q,
    ) -> Result<Q::Response, ErrorCode> {
        let reply = self.shards.ask(group_id, (caller, request.into_request())).await?;
        Q::response(reply).ok_or(ErrorCode::UnknownServerError)
    }

    /// Tells the shard of a partition that a marker is in its log.
    ///
    /// # Errors
    /// NOT_COORDINATOR if this broker does not lead it: the next leader reads the marker itself. Any other: it is to be
    /// told again.
    pub async fn transaction_ended(&self, partition: i32, ended: EndTransaction) -> Result<(), ErrorCode> {
        let asked = (Caller::default(), ended.into_request());
        self.shards.ask_partition(partition, asked).await.map(drop)
    }

    /// The groups of all shards that this broker leads.
    ///
    /// # Errors
    /// COORDINATOR_LOAD_IN_PROGRESS while one of them loads.
    pub async fn list(&self, caller: &Caller, request: &ListGroups) -> Result<Vec<ListedGroup>, ErrorCode> {
        let mut groups = Vec::new();
        for partition in self.shards.led_partitions() {
            let asked = (caller.clone(), request.clone().into_request());
            match self.shards.ask_partition(partition, asked).await {
                Ok(reply) => groups.extend(ListGroups::response(reply).unwrap_or_default()),
                // Its groups are another broker's to tell.
                Err(ErrorCode::NotCoordinator) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(groups)
    }
}

fn int(settings: &Settings, name: &str) -> i64 {
    settings.value(name).and_then(|value| value.as_i64()).unwrap_or(0)
}

/// What group coordinators go by.
fn read_settings(settings: &Settings) -> CoordinatorSettings {
    let int = |name| int(settings, name);
    let small = |name| i32::try_from(int(name)).unwrap_or(i32::MAX);
    CoordinatorSettings {
        classic: ClassicSettings {
            initial_rebalance_delay_ms: int("group.initial.rebalance.delay.ms"),
            min_session_timeout_ms: small("group.min.session.timeout.ms"),
            max_session_timeout_ms: small("group.max.session.timeout.ms"),
            max_size: usize::try_from(int("group.max.size")).unwrap_or(usize::MAX),
        },
        offsets: OffsetSettings {
            max_metadata_bytes: usize::try_from(int("offset.metadata.max.bytes")).unwrap_or(0),
            retention_ms: int("offsets.retention.minutes").saturating_mul(MINUTE_MS),
            retention_check_interval_ms: int("offsets.retention.check.interval.ms"),
        },
        consumer: consumer_settings::read(settings),
        // A group's shard knows no others.
        ..CoordinatorSettings::default()
    }
}
