//! ConsumerGroupDescribe (KIP-848).

use callboard_coordinator::group::DescribeConsumerGroup;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::consumer_group_describe_response::DescribedGroup;
use callboard_protocol::messages::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse};

use super::described::GROUP_OPERATIONS;
use super::{RequestContext, consumer_protocol, grouped};

/// Asks each group's coordinator.
pub async fn handle(
    cx: &RequestContext,
    request: ConsumerGroupDescribeRequest,
    _: i16,
) -> ConsumerGroupDescribeResponse {
    let is_enabled = consumer_protocol::is_enabled(cx);
    let mut groups = Vec::with_capacity(request.group_ids.len());
    for group_id in request.group_ids {
        let answer = if !is_enabled {
            Err(ErrorCode::UnsupportedVersion)
        } else if group_id.is_empty() {
            Err(ErrorCode::InvalidGroupId)
        } else {
            grouped::ask(cx, &group_id, DescribeConsumerGroup { group_id: group_id.clone() }).await
        };
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
    ConsumerGroupDescribeResponse { groups, ..Default::default() }
}
