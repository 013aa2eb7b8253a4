//! Groups of the streams protocol.

use super::{refuse_at_top, refuse_each};

refuse_at_top! {
    streams_group_heartbeat StreamsGroupHeartbeatRequest StreamsGroupHeartbeatResponse error_message;
    streams_group_topology_description_update StreamsGroupTopologyDescriptionUpdateRequest StreamsGroupTopologyDescriptionUpdateResponse error_message;
}

refuse_each! {
    streams_group_describe StreamsGroupDescribeRequest.group_ids => StreamsGroupDescribeResponse.groups: streams_group_describe_response::DescribedGroup.group_id error_message;
}
