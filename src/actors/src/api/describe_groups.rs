//! DescribeGroups: classic groups.

use callboard_coordinator::group::DescribeGroup;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::describe_groups_response::DescribedGroup;
use callboard_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse};

use super::described::GROUP_OPERATIONS;
use super::{RequestContext, grouped};

/// Asks each group's coordinator.
pub async fn handle(cx: &RequestContext, request: DescribeGroupsRequest, _: i16) -> DescribeGroupsResponse {
    let mut groups = Vec::with_capacity(request.groups.len());
    for group_id in request.groups {
        let answer = grouped::ask(cx, &group_id, DescribeGroup { group_id: group_id.clone() }).await;
        let mut described = answer.unwrap_or_else(|error| DescribedGroup {
            group_id,
            error_code: error as i16,
            ..Default::default()
        });
        if request.include_authorized_operations && described.error_code == ErrorCode::None as i16 {
            described.authorized_operations = GROUP_OPERATIONS;
        }
        groups.push(described);
    }
    DescribeGroupsResponse { groups, ..Default::default() }
}
