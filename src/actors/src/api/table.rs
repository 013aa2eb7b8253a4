//! The table: which API is served on which listener, and by what.

use callboard_protocol::ApiKey;
use callboard_protocol::messages as m;
use callboard_protocol::messages::Message;

use super::{Answer, Begin, api_versions, decode, disabled, finish, not_yet};
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

/// One line an API: key, listeners, how far, handler, request, and the highest version if the schema goes beyond it.
macro_rules! entries {
    ($($key:ident $listeners:ident $service:ident $handler:path, $request:ident $(up to $max:literal)?;)*) => {
        static ENTRIES: &[Entry] = &[$(Entry {
            key: ApiKey::$key,
            service: Service::$service,
            min_version: m::$request::MIN_VERSION,
            max_version: entries!(@max $request $($max)?),
            listeners: $listeners,
            begin: |context, body| Box::pin(async move {
                let request: m::$request = match decode(&body, context.version) {
                    Ok(request) => request,
                    Err(close) => return close,
                };
                drop(body);
                let answer = $handler(&context, request, context.version).await;
                let reply: Reply = finish::<m::$request>(&context, Answer::from(answer));
                reply
            }),
        }),*];
    };
    (@max $request:ident) => { m::$request::MAX_VERSION };
    (@max $request:ident $max:literal) => { $max };
}

entries! {
    OffsetCommit BROKER Refused not_yet::offset_commit, OffsetCommitRequest;
    OffsetFetch BROKER Refused not_yet::offset_fetch, OffsetFetchRequest;
    FindCoordinator BROKER Refused not_yet::find_coordinator, FindCoordinatorRequest;
    JoinGroup BROKER Refused not_yet::join_group, JoinGroupRequest;
    Heartbeat BROKER Refused not_yet::heartbeat, HeartbeatRequest;
    LeaveGroup BROKER Refused not_yet::leave_group, LeaveGroupRequest;
    SyncGroup BROKER Refused not_yet::sync_group, SyncGroupRequest;
    DescribeGroups BROKER Refused not_yet::describe_groups, DescribeGroupsRequest;
    ListGroups BROKER Refused not_yet::list_groups, ListGroupsRequest;
    SaslHandshake BOTH Served disabled::sasl_handshake, SaslHandshakeRequest;
    ApiVersions BOTH Served api_versions::handle, ApiVersionsRequest;
    AddPartitionsToTxn BROKER Refused not_yet::add_partitions_to_txn, AddPartitionsToTxnRequest;
    AddOffsetsToTxn BROKER Refused not_yet::add_offsets_to_txn, AddOffsetsToTxnRequest;
    EndTxn BROKER Refused not_yet::end_txn, EndTxnRequest;
    WriteTxnMarkers BROKER Refused not_yet::write_txn_markers, WriteTxnMarkersRequest;
    TxnOffsetCommit BROKER Refused not_yet::txn_offset_commit, TxnOffsetCommitRequest;
    DescribeAcls BOTH Served disabled::describe_acls, DescribeAclsRequest;
    CreateAcls BOTH Served disabled::create_acls, CreateAclsRequest;
    DeleteAcls BOTH Served disabled::delete_acls, DeleteAclsRequest;
    AlterReplicaLogDirs BROKER Refused not_yet::alter_replica_log_dirs, AlterReplicaLogDirsRequest;
    SaslAuthenticate BOTH Served disabled::sasl_authenticate, SaslAuthenticateRequest;
    CreateDelegationToken BOTH Served disabled::create_delegation_token, CreateDelegationTokenRequest;
    RenewDelegationToken BOTH Served disabled::renew_delegation_token, RenewDelegationTokenRequest;
    ExpireDelegationToken BOTH Served disabled::expire_delegation_token, ExpireDelegationTokenRequest;
    DescribeDelegationToken BOTH Served disabled::describe_delegation_token, DescribeDelegationTokenRequest;
    DeleteGroups BROKER Refused not_yet::delete_groups, DeleteGroupsRequest;
    ElectLeaders BOTH Refused not_yet::elect_leaders, ElectLeadersRequest;
    AlterPartitionReassignments BOTH Refused not_yet::alter_partition_reassignments, AlterPartitionReassignmentsRequest;
    ListPartitionReassignments BOTH Refused not_yet::list_partition_reassignments, ListPartitionReassignmentsRequest;
    OffsetDelete BROKER Refused not_yet::offset_delete, OffsetDeleteRequest;
    DescribeClientQuotas BROKER Refused not_yet::describe_client_quotas, DescribeClientQuotasRequest;
    AlterClientQuotas BOTH Refused not_yet::alter_client_quotas, AlterClientQuotasRequest;
    DescribeUserScramCredentials BOTH Refused not_yet::describe_user_scram_credentials, DescribeUserScramCredentialsRequest;
    AlterUserScramCredentials BOTH Refused not_yet::alter_user_scram_credentials, AlterUserScramCredentialsRequest;
    UnregisterBroker BOTH Refused not_yet::unregister_broker, UnregisterBrokerRequest;
    DescribeTransactions BROKER Refused not_yet::describe_transactions, DescribeTransactionsRequest;
    ListTransactions BROKER Refused not_yet::list_transactions, ListTransactionsRequest;
    ConsumerGroupHeartbeat BROKER Refused not_yet::consumer_group_heartbeat, ConsumerGroupHeartbeatRequest;
    ConsumerGroupDescribe BROKER Refused not_yet::consumer_group_describe, ConsumerGroupDescribeRequest;
    GetTelemetrySubscriptions BROKER Refused not_yet::get_telemetry_subscriptions, GetTelemetrySubscriptionsRequest;
    PushTelemetry BROKER Refused not_yet::push_telemetry, PushTelemetryRequest;
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
