//! LeaveGroup.

use callboard_protocol::messages::leave_group_request::MemberIdentity;
use callboard_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};

use super::{RequestContext, grouped};

/// From this version on several members may leave at once.
const FIRST_BATCHED: i16 = 3;

/// Asks the group's coordinator.
pub async fn handle(cx: &RequestContext, mut request: LeaveGroupRequest, version: i16) -> LeaveGroupResponse {
    if version < FIRST_BATCHED {
        let member_id = std::mem::take(&mut request.member_id);
        request.members = vec![MemberIdentity { member_id, ..Default::default() }];
    }
    let group_id = request.group_id.clone();
    let mut response = match grouped::ask(cx, &group_id, request).await {
        Ok(response) => response,
        Err(error) => LeaveGroupResponse { error_code: error as i16, ..Default::default() },
    };
    if version < FIRST_BATCHED
        && let Some(member) = response.members.pop()
    {
        response.error_code = member.error_code;
    }
    response
}
