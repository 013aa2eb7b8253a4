//! Consumer groups, classic and new, and streams groups.

use callboard_protocol::messages::describe_groups_response::DescribedGroup;
use callboard_protocol::messages::find_coordinator_response::Coordinator;
use callboard_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponseTopic,
};
use callboard_protocol::messages::{
    DescribeGroupsRequest, DescribeGroupsResponse, FindCoordinatorRequest, FindCoordinatorResponse,
    OffsetFetchRequest, OffsetFetchResponse,
};

use super::super::RequestContext;
use super::{CODE, message, refuse_at_top, refuse_each, refuse_partitions};

/// From this version on several keys are asked for at once.
const FIRST_BATCHED_FIND: i16 = 4;
/// From this version on the answer has an error at its top.
const FIRST_FETCH_WITH_ERROR: i16 = 2;
/// From this version on each group's error has a message.
const FIRST_DESCRIBE_WITH_MESSAGE: i16 = 6;
/// From this version on several groups are asked for at once.
const FIRST_BATCHED_FETCH: i16 = 8;

/// No coordinator of any kind yet.
pub async fn find_coordinator(
    _: &RequestContext,
    request: FindCoordinatorRequest,
    version: i16,
) -> FindCoordinatorResponse {
    if version < FIRST_BATCHED_FIND {
        return FindCoordinatorResponse {
            node_id: -1,
            port: -1,
            error_code: CODE,
            error_message: message(),
            ..Default::default()
        };
    }
    let refuse = |key| Coordinator {
        key,
        node_id: -1,
        port: -1,
        error_code: CODE,
        error_message: message(),
        ..Default::default()
    };
    let coordinators = request.coordinator_keys.into_iter().map(refuse).collect();
    FindCoordinatorResponse { coordinators, ..Default::default() }
}

/// No group can be described yet. The request's groups are refused one by one.
pub async fn describe_groups(
    _: &RequestContext,
    request: DescribeGroupsRequest,
    version: i16,
) -> DescribeGroupsResponse {
    let refuse = |group_id| DescribedGroup {
        group_id,
        error_code: CODE,
        error_message: if version >= FIRST_DESCRIBE_WITH_MESSAGE { message() } else { None },
        ..Default::default()
    };
    DescribeGroupsResponse { groups: request.groups.into_iter().map(refuse).collect(), ..Default::default() }
}

/// No group has offsets yet.
pub async fn offset_fetch(
    _: &RequestContext,
    request: OffsetFetchRequest,
    version: i16,
) -> OffsetFetchResponse {
    if version >= FIRST_BATCHED_FETCH {
        let refuse = |group_id| OffsetFetchResponseGroup { group_id, error_code: CODE, ..Default::default() };
        let groups = request.groups.into_iter().map(|group| refuse(group.group_id));
        return OffsetFetchResponse { groups: groups.collect(), ..Default::default() };
    }
    if version >= FIRST_FETCH_WITH_ERROR {
        return OffsetFetchResponse { error_code: CODE, ..Default::default() };
    }
    let partition = |index: &i32| OffsetFetchResponsePartition {
        partition_index: *index,
        committed_offset: -1,
        error_code: CODE,
        ..Default::default()
    };
    let topics = request.topics.unwrap_or_default().into_iter().map(|topic| OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic.partition_indexes.iter().map(partition).collect(),
        ..Default::default()
    });
    OffsetFetchResponse { topics: topics.collect(), ..Default::default() }
}

refuse_at_top! {
    join_group JoinGroupRequest JoinGroupResponse;
    heartbeat HeartbeatRequest HeartbeatResponse;
    leave_group LeaveGroupRequest LeaveGroupResponse;
    sync_group SyncGroupRequest SyncGroupResponse;
    list_groups ListGroupsRequest ListGroupsResponse;
    offset_delete OffsetDeleteRequest OffsetDeleteResponse;
    consumer_group_heartbeat ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse error_message;
    streams_group_heartbeat StreamsGroupHeartbeatRequest StreamsGroupHeartbeatResponse error_message;
    streams_group_topology_description_update StreamsGroupTopologyDescriptionUpdateRequest StreamsGroupTopologyDescriptionUpdateResponse error_message;
}

refuse_each! {
    delete_groups DeleteGroupsRequest.groups_names => DeleteGroupsResponse.results: delete_groups_response::DeletableGroupResult.group_id error_message;
    consumer_group_describe ConsumerGroupDescribeRequest.group_ids => ConsumerGroupDescribeResponse.groups: consumer_group_describe_response::DescribedGroup.group_id error_message;
    streams_group_describe StreamsGroupDescribeRequest.group_ids => StreamsGroupDescribeResponse.groups: streams_group_describe_response::DescribedGroup.group_id error_message;
}

refuse_partitions! {
    offset_commit OffsetCommitRequest.topics => OffsetCommitResponse.topics: offset_commit_response::{OffsetCommitResponseTopic, OffsetCommitResponsePartition}
        [name => name, topic_id => topic_id] |p| p.partition_index => partition_index;
}
