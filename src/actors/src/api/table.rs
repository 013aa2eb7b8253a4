//! The table: which API is served on which listener, and by what.

use callboard_protocol::ApiKey;
use callboard_protocol::messages as m;
use callboard_protocol::messages::Message;
use callboard_protocol::wire::Reader;

use super::{
    Answer, Begin, add_offsets_to_txn, add_partitions_to_txn, alter_configs, api_versions,
    consumer_group_describe, consumer_group_heartbeat, create_partitions, create_topics, decode,
    delete_groups, delete_records, delete_topics, describe_cluster, describe_configs, describe_groups,
    describe_log_dirs, describe_producers, describe_quorum, describe_topic_partitions, describe_transactions,
    disabled, elect_leaders, end_txn, fetch, find_coordinator, finish, heartbeat, incremental_alter_configs,
    init_producer_id, join_group, leave_group, list_config_resources, list_groups, list_offsets,
    list_transactions, metadata, not_yet, offset_commit, offset_delete, offset_fetch,
    offset_for_leader_epoch, partition_reassignments, produce, sync_group, txn_offset_commit,
    unregister_broker, update_features, write_txn_markers,
};
use crate::net::{ListenerKind, Reply};

/// How far an API is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// As Kafka serves it.
    Served,
    /// Not built yet: answered with an error in every version, so that nobody waits for an answer.
    Refused,
}

/// One API in the table.
#[derive(Debug)]
pub struct Entry {
    /// Which API.
    pub key: ApiKey,
    /// How far it is served.
    pub service: Service,
    min_version: i16,
    max_version: i16,
    listeners: &'static [ListenerKind],
    pub(super) begin: Begin,
}

impl Entry {
    /// Whether requests of this version are served.
    pub fn serves(&self, version: i16) -> bool {
        (self.min_version..=self.max_version).contains(&version)
    }

    /// The lowest and the highest version that ApiVersions names, if it names the API.
    ///
    /// Produce is advertised from version 0 though 0 to 2 are not served: old
    /// librdkafka takes a broker without them for one that cannot compress.
    /// The telemetry APIs are answered but not advertised while nothing takes
    /// metrics from clients, so that clients do not gather any.
    pub fn advertised(&self) -> Option<(i16, i16)> {
        match self.key {
            ApiKey::Produce => Some((0, self.max_version)),
            ApiKey::GetTelemetrySubscriptions | ApiKey::PushTelemetry => None,
            _ => Some((self.min_version, self.max_version)),
        }
    }
}

/// All APIs of one kind of listener, by key.
pub fn table(kind: ListenerKind) -> impl Iterator<Item = &'static Entry> {
    ENTRIES.iter().filter(move |entry| entry.listeners.contains(&kind))
}

/// The entry of an API, if it is served on this kind of listener.
pub fn entry(key: ApiKey, kind: ListenerKind) -> Option<&'static Entry> {
    let at = ENTRIES.binary_search_by_key(&(key as i16), |entry| entry.key as i16).ok()?;
    ENTRIES.get(at).filter(|entry| entry.listeners.contains(&kind))
}

const BROKER: &[ListenerKind] = &[ListenerKind::Broker];
const BOTH: &[ListenerKind] = &[ListenerKind::Broker, ListenerKind::Controller];

/// One line an API: key, listeners, how far, handler, request, the highest version if the schema goes beyond it, and
/// `in frame` where the handler takes the frame too, because what it forwards was left there.
macro_rules! entries {
    ($($key:ident $listeners:ident $service:ident $handler:path, $request:ident $(up to $max:literal)?
        $(in $frame:ident)?;)*) => {
        static ENTRIES: &[Entry] = &[$(Entry {
            key: ApiKey::$key,
            service: Service::$service,
            min_version: m::$request::MIN_VERSION,
            max_version: entries!(@max $request $($max)?),
            listeners: $listeners,
            begin: |context, body| Box::pin(async move {
                let request: m::$request = match decode(entries!(@reader body $($frame)?), context.version) {
                    Ok(request) => request,
                    Err(close) => return close,
                };
                let answer = entries!(@answer $handler, context, request, body $($frame)?);
                let reply: Reply = finish::<m::$request>(&context, Answer::from(answer));
                reply
            }),
        }),*];
    };
    (@max $request:ident) => { m::$request::MAX_VERSION };
    (@max $request:ident $max:literal) => { $max };
    (@reader $body:ident) => { Reader::new(&$body) };
    (@reader $body:ident $frame:ident) => { Reader::in_place(&$body) };
    (@answer $handler:path, $context:ident, $request:ident, $body:ident) => {{
        drop($body);
        $handler(&$context, $request, $context.version).await
    }};
    (@answer $handler:path, $context:ident, $request:ident, $body:ident $frame:ident) => {
        $handler(&$context, $request, $body, $context.version).await
    };
}

entries! {
    Produce BROKER Served produce::handle, ProduceRequest in frame;
    Fetch BROKER Served fetch::handle, FetchRequest;
    ListOffsets BROKER Served list_offsets::handle, ListOffsetsRequest;
    Metadata BROKER Served metadata::handle, MetadataRequest;
    OffsetCommit BROKER Served offset_commit::handle, OffsetCommitRequest;
    OffsetFetch BROKER Served offset_fetch::handle, OffsetFetchRequest;
    FindCoordinator BROKER Served find_coordinator::handle, FindCoordinatorRequest;
    JoinGroup BROKER Served join_group::handle, JoinGroupRequest;
    Heartbeat BROKER Served heartbeat::handle, HeartbeatRequest;
    LeaveGroup BROKER Served leave_group::handle, LeaveGroupRequest;
    SyncGroup BROKER Served sync_group::handle, SyncGroupRequest;
    DescribeGroups BROKER Served describe_groups::handle, DescribeGroupsRequest;
    ListGroups BROKER Served list_groups::handle, ListGroupsRequest;
    SaslHandshake BOTH Served disabled::sasl_handshake, SaslHandshakeRequest;
    ApiVersions BOTH Served api_versions::handle, ApiVersionsRequest;
    CreateTopics BOTH Served create_topics::handle, CreateTopicsRequest;
    DeleteTopics BOTH Served delete_topics::handle, DeleteTopicsRequest;
    DeleteRecords BROKER Served delete_records::handle, DeleteRecordsRequest;
    InitProducerId BROKER Served init_producer_id::handle, InitProducerIdRequest up to 5;
    OffsetForLeaderEpoch BROKER Served offset_for_leader_epoch::handle, OffsetForLeaderEpochRequest;
    AddPartitionsToTxn BROKER Served add_partitions_to_txn::handle, AddPartitionsToTxnRequest;
    AddOffsetsToTxn BROKER Served add_offsets_to_txn::handle, AddOffsetsToTxnRequest;
    EndTxn BROKER Served end_txn::handle, EndTxnRequest;
    WriteTxnMarkers BROKER Served write_txn_markers::handle, WriteTxnMarkersRequest;
    TxnOffsetCommit BROKER Served txn_offset_commit::handle, TxnOffsetCommitRequest;
    DescribeAcls BOTH Served disabled::describe_acls, DescribeAclsRequest;
    CreateAcls BOTH Served disabled::create_acls, CreateAclsRequest;
    DeleteAcls BOTH Served disabled::delete_acls, DeleteAclsRequest;
    DescribeConfigs BOTH Served describe_configs::handle, DescribeConfigsRequest;
    AlterConfigs BOTH Served alter_configs::handle, AlterConfigsRequest;
    AlterReplicaLogDirs BROKER Refused not_yet::alter_replica_log_dirs, AlterReplicaLogDirsRequest;
    DescribeLogDirs BROKER Served describe_log_dirs::handle, DescribeLogDirsRequest;
    SaslAuthenticate BOTH Served disabled::sasl_authenticate, SaslAuthenticateRequest;
    CreatePartitions BOTH Served create_partitions::handle, CreatePartitionsRequest;
    CreateDelegationToken BOTH Served disabled::create_delegation_token, CreateDelegationTokenRequest;
    RenewDelegationToken BOTH Served disabled::renew_delegation_token, RenewDelegationTokenRequest;
    ExpireDelegationToken BOTH Served disabled::expire_delegation_token, ExpireDelegationTokenRequest;
    DescribeDelegationToken BOTH Served disabled::describe_delegation_token, DescribeDelegationTokenRequest;
    DeleteGroups BROKER Served delete_groups::handle, DeleteGroupsRequest;
    ElectLeaders BOTH Served elect_leaders::handle, ElectLeadersRequest;
    IncrementalAlterConfigs BOTH Served incremental_alter_configs::handle, IncrementalAlterConfigsRequest;
    AlterPartitionReassignments BOTH Served partition_reassignments::alter, AlterPartitionReassignmentsRequest;
    ListPartitionReassignments BOTH Served partition_reassignments::list, ListPartitionReassignmentsRequest;
    OffsetDelete BROKER Served offset_delete::handle, OffsetDeleteRequest;
    DescribeClientQuotas BROKER Refused not_yet::describe_client_quotas, DescribeClientQuotasRequest;
    AlterClientQuotas BOTH Refused not_yet::alter_client_quotas, AlterClientQuotasRequest;
    DescribeUserScramCredentials BOTH Refused not_yet::describe_user_scram_credentials, DescribeUserScramCredentialsRequest;
    AlterUserScramCredentials BOTH Refused not_yet::alter_user_scram_credentials, AlterUserScramCredentialsRequest;
    DescribeQuorum BOTH Served describe_quorum::handle, DescribeQuorumRequest;
    UpdateFeatures BOTH Served update_features::handle, UpdateFeaturesRequest;
    DescribeCluster BOTH Served describe_cluster::handle, DescribeClusterRequest;
    DescribeProducers BROKER Served describe_producers::handle, DescribeProducersRequest;
    UnregisterBroker BOTH Served unregister_broker::handle, UnregisterBrokerRequest;
    DescribeTransactions BROKER Served describe_transactions::handle, DescribeTransactionsRequest;
    ListTransactions BROKER Served list_transactions::handle, ListTransactionsRequest;
    ConsumerGroupHeartbeat BROKER Served consumer_group_heartbeat::handle, ConsumerGroupHeartbeatRequest;
    ConsumerGroupDescribe BROKER Served consumer_group_describe::handle, ConsumerGroupDescribeRequest;
    GetTelemetrySubscriptions BROKER Refused not_yet::get_telemetry_subscriptions, GetTelemetrySubscriptionsRequest;
    PushTelemetry BROKER Refused not_yet::push_telemetry, PushTelemetryRequest;
    ListConfigResources BROKER Served list_config_resources::handle, ListConfigResourcesRequest;
    DescribeTopicPartitions BROKER Served describe_topic_partitions::handle, DescribeTopicPartitionsRequest;
    ShareGroupHeartbeat BROKER Refused not_yet::share_group_heartbeat, ShareGroupHeartbeatRequest;
    ShareGroupDescribe BROKER Refused not_yet::share_group_describe, ShareGroupDescribeRequest;
    ShareFetch BROKER Refused not_yet::share_fetch, ShareFetchRequest;
    ShareAcknowledge BROKER Refused not_yet::share_acknowledge, ShareAcknowledgeRequest;
    AddRaftVoter BOTH Refused not_yet::add_raft_voter, AddRaftVoterRequest;
    RemoveRaftVoter BOTH Refused not_yet::remove_raft_voter, RemoveRaftVoterRequest;
    InitializeShareGroupState BROKER Refused not_yet::initialize_share_group_state, InitializeShareGroupStateRequest;
    ReadShareGroupState BROKER Refused not_yet::read_share_group_state, ReadShareGroupStateRequest;
    WriteShareGroupState BROKER Refused not_yet::write_share_group_state, WriteShareGroupStateRequest;
    DeleteShareGroupState BROKER Refused not_yet::delete_share_group_state, DeleteShareGroupStateRequest;
    ReadShareGroupStateSummary BROKER Refused not_yet::read_share_group_state_summary, ReadShareGroupStateSummaryRequest;
    StreamsGroupHeartbeat BROKER Refused not_yet::streams_group_heartbeat, StreamsGroupHeartbeatRequest;
    StreamsGroupDescribe BROKER Refused not_yet::streams_group_describe, StreamsGroupDescribeRequest;
    DescribeShareGroupOffsets BROKER Refused not_yet::describe_share_group_offsets, DescribeShareGroupOffsetsRequest;
    AlterShareGroupOffsets BROKER Refused not_yet::alter_share_group_offsets, AlterShareGroupOffsetsRequest;
    DeleteShareGroupOffsets BROKER Refused not_yet::delete_share_group_offsets, DeleteShareGroupOffsetsRequest;
    StreamsGroupTopologyDescriptionUpdate BROKER Refused not_yet::streams_group_topology_description_update, StreamsGroupTopologyDescriptionUpdateRequest;
    UnregisterController BOTH Refused not_yet::unregister_controller, UnregisterControllerRequest;
}

#[cfg(test)]
mod tests {
    use callboard_protocol::api::APIS;

    use super::*;

    /// What Kafka serves brokers' clients and this table lacks, until all is built.
    fn missing() -> Vec<&'static str> {
        let on_broker = APIS.iter().filter(|api| api.on_broker && api.min_version <= api.max_version);
        on_broker
            .filter(|api| entry(api.key, ListenerKind::Broker).is_none())
            .map(|api| api.key.name())
            .collect()
    }

    #[test]
    fn a_broker_serves_what_kafka_serves() {
        assert_eq!(missing(), Vec::<&str>::new());
        for entry in table(ListenerKind::Broker) {
            let api = entry.key.info();
            assert!(api.on_broker, "{}", entry.key);
            let served = (entry.min_version, entry.max_version);
            assert_eq!(served, (api.min_version, api.max_version), "{}", entry.key);
        }
    }

    #[test]
    fn a_controller_serves_nothing_that_kafkas_does_not() {
        for entry in table(ListenerKind::Controller) {
            let api = entry.key.info();
            assert!(api.on_controller, "{}", entry.key);
            assert!(
                api.has_version(entry.min_version) && api.has_version(entry.max_version),
                "{}",
                entry.key
            );
        }
    }

    #[test]
    fn entries_are_found_by_key() {
        assert!(ENTRIES.is_sorted_by_key(|entry| entry.key as i16));
        assert_eq!(entry(ApiKey::Fetch, ListenerKind::Broker).map(|entry| entry.key), Some(ApiKey::Fetch));
        assert!(entry(ApiKey::Vote, ListenerKind::Broker).is_none());
    }

    #[test]
    fn old_produce_versions_and_telemetry_are_advertised_apart() {
        let advertised = |key| entry(key, ListenerKind::Broker).and_then(Entry::advertised);
        assert_eq!(advertised(ApiKey::Produce), Some((0, 13)));
        assert!(entry(ApiKey::Produce, ListenerKind::Broker).is_some_and(|produce| !produce.serves(2)));
        assert_eq!(advertised(ApiKey::GetTelemetrySubscriptions), None);
        let count = table(ListenerKind::Broker).filter_map(Entry::advertised).count();
        assert_eq!(count + missing().len(), 77);
    }
}
