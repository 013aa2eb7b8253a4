//! Share groups and the state behind them.

use super::{refuse_at_top, refuse_each, refuse_partitions};
use callboard_protocol::messages::describe_share_group_offsets_response::DescribeShareGroupOffsetsResponseGroup;
use callboard_protocol::messages::{DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse};

use super::super::RequestContext;
use super::{CODE, message};

/// No share group has offsets yet.
pub async fn describe_share_group_offsets(
    _: &RequestContext,
    request: DescribeShareGroupOffsetsRequest,
    _: i16,
) -> DescribeShareGroupOffsetsResponse {
    let groups = request.groups.into_iter().map(|group| DescribeShareGroupOffsetsResponseGroup {
        group_id: group.group_id,
        error_code: CODE,
        error_message: message(),
        ..Default::default()
    });
    DescribeShareGroupOffsetsResponse { groups: groups.collect(), ..Default::default() }
}

refuse_at_top! {
    share_group_heartbeat ShareGroupHeartbeatRequest ShareGroupHeartbeatResponse error_message;
    share_fetch ShareFetchRequest ShareFetchResponse error_message;
    share_acknowledge ShareAcknowledgeRequest ShareAcknowledgeResponse error_message;
    alter_share_group_offsets AlterShareGroupOffsetsRequest AlterShareGroupOffsetsResponse error_message;
    delete_share_group_offsets DeleteShareGroupOffsetsRequest DeleteShareGroupOffsetsResponse error_message;
}

refuse_each! {
    share_group_describe ShareGroupDescribeRequest.group_ids => ShareGroupDescribeResponse.groups: share_group_describe_response::DescribedGroup.group_id error_message;
}

refuse_partitions! {
    initialize_share_group_state InitializeShareGroupStateRequest.topics => InitializeShareGroupStateResponse.results: initialize_share_group_state_response::{InitializeStateResult, PartitionResult}
        [topic_id => topic_id] |p| p.partition => partition error_message;
    read_share_group_state ReadShareGroupStateRequest.topics => ReadShareGroupStateResponse.results: read_share_group_state_response::{ReadStateResult, PartitionResult}
        [topic_id => topic_id] |p| p.partition => partition error_message;
    write_share_group_state WriteShareGroupStateRequest.topics => WriteShareGroupStateResponse.results: write_share_group_state_response::{WriteStateResult, PartitionResult}
        [topic_id => topic_id] |p| p.partition => partition error_message;
    delete_share_group_state DeleteShareGroupStateRequest.topics => DeleteShareGroupStateResponse.results: delete_share_group_state_response::{DeleteStateResult, PartitionResult}
        [topic_id => topic_id] |p| p.partition => partition error_message;
    read_share_group_state_summary ReadShareGroupStateSummaryRequest.topics => ReadShareGroupStateSummaryResponse.results: read_share_group_state_summary_response::{ReadStateSummaryResult, PartitionResult}
        [topic_id => topic_id] |p| p.partition => partition error_message;
}
