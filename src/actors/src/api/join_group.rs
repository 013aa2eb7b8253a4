//! JoinGroup. Answered when all members have joined.

use callboard_coordinator::group::classic::join_refusal;
use callboard_protocol::ByteString;
use callboard_protocol::messages::{JoinGroupRequest, JoinGroupResponse};

use super::{RequestContext, grouped};

/// From this version on a missing protocol name is null.
const FIRST_WITH_NULL_PROTOCOL: i16 = 7;

/// Asks the group's coordinator.
pub async fn handle(cx: &RequestContext, mut request: JoinGroupRequest, version: i16) -> JoinGroupResponse {
    if version == 0 {
        request.rebalance_timeout_ms = request.session_timeout_ms;
    }
    let (group_id, member_id) = (request.group_id.clone(), request.member_id.clone());
    let answer = grouped::ask(cx, &group_id, request).await;
    let mut response = answer.unwrap_or_else(|error| join_refusal(error, member_id));
    if version < FIRST_WITH_NULL_PROTOCOL {
        response.protocol_name.get_or_insert_with(ByteString::new);
    }
    response
}
