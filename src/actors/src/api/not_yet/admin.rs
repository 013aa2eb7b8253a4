//! Administration that waits for the cluster, quotas, SCRAM or telemetry.

use std::collections::BTreeMap;

use callboard_protocol::messages::alter_client_quotas_response::{EntityData, EntryData};
use callboard_protocol::messages::alter_replica_log_dirs_response::{
    AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
};
use callboard_protocol::messages::alter_user_scram_credentials_response::AlterUserScramCredentialsResult;
use callboard_protocol::messages::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse, AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse,
};

use super::super::RequestContext;
use super::{CODE, message, refuse_at_top};

refuse_at_top! {
    describe_client_quotas DescribeClientQuotasRequest DescribeClientQuotasResponse error_message;
    describe_user_scram_credentials DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse error_message;
    unregister_controller UnregisterControllerRequest UnregisterControllerResponse error_message;
    add_raft_voter AddRaftVoterRequest AddRaftVoterResponse error_message;
    remove_raft_voter RemoveRaftVoterRequest RemoveRaftVoterResponse error_message;
    get_telemetry_subscriptions GetTelemetrySubscriptionsRequest GetTelemetrySubscriptionsResponse;
    push_telemetry PushTelemetryRequest PushTelemetryResponse;
}

/// Replicas stay in the directory they are in.
pub async fn alter_replica_log_dirs(
    _: &RequestContext,
    request: AlterReplicaLogDirsRequest,
    _: i16,
) -> AlterReplicaLogDirsResponse {
    let mut topics: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for topic in request.dirs.into_iter().flat_map(|dir| dir.topics) {
        let refuse = |partition_index| AlterReplicaLogDirPartitionResult {
            partition_index,
            error_code: CODE,
            ..Default::default()
        };
        topics.entry(topic.name).or_default().extend(topic.partitions.into_iter().map(refuse));
    }
    let results = topics.into_iter().map(|(topic_name, partitions)| AlterReplicaLogDirTopicResult {
        topic_name,
        partitions,
        ..Default::default()
    });
    AlterReplicaLogDirsResponse { results: results.collect(), ..Default::default() }
}

/// No quotas yet.
pub async fn alter_client_quotas(
    _: &RequestContext,
    request: AlterClientQuotasRequest,
    _: i16,
) -> AlterClientQuotasResponse {
    let entries = request.entries.into_iter().map(|entry| EntryData {
        error_code: CODE,
        error_message: message(),
        entity: entry
            .entity
            .into_iter()
            .map(|entity| EntityData {
                entity_type: entity.entity_type,
                entity_name: entity.entity_name,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    });
    AlterClientQuotasResponse { entries: entries.collect(), ..Default::default() }
}

/// No SCRAM credentials yet.
pub async fn alter_user_scram_credentials(
    _: &RequestContext,
    request: AlterUserScramCredentialsRequest,
    _: i16,
) -> AlterUserScramCredentialsResponse {
    let deleted = request.deletions.into_iter().map(|deletion| deletion.name);
    let changed = request.upsertions.into_iter().map(|upsertion| upsertion.name);
    let refuse = |user| AlterUserScramCredentialsResult {
        user,
        error_code: CODE,
        error_message: message(),
        ..Default::default()
    };
    AlterUserScramCredentialsResponse {
        results: deleted.chain(changed).map(refuse).collect(),
        ..Default::default()
    }
}
