//! SyncGroup. Answered when the leader has sent the assignment.

use callboard_coordinator::group::classic::sync_refusal;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::{SyncGroupRequest, SyncGroupResponse};

use super::{RequestContext, grouped};

/// From this version on a member must name the protocol.
const FIRST_WITH_PROTOCOL: i16 = 5;

/// Asks the group's coordinator.
pub async fn handle(cx: &RequestContext, request: SyncGroupRequest, version: i16) -> SyncGroupResponse {
    if version >= FIRST_WITH_PROTOCOL && (request.protocol_type.is_none() || request.protocol_name.is_none())
    {
        return sync_refusal(ErrorCode::InconsistentGroupProtocol);
    }
    let group_id = request.group_id.clone();
    grouped::ask(cx, &group_id, request).await.unwrap_or_else(sync_refusal)
}
