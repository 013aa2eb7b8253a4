//! Heartbeat.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::{RequestContext, grouped};

/// Asks the group's coordinator.
pub async fn handle(cx: &RequestContext, request: HeartbeatRequest, _: i16) -> HeartbeatResponse {
    let group_id = request.group_id.clone();
    match grouped::ask(cx, &group_id, request).await {
        Ok(response) => response,
        // The member goes on as it is: it learns more from its next request.
        Err(ErrorCode::CoordinatorLoadInProgress) => HeartbeatResponse::default(),
        Err(error) => HeartbeatResponse { error_code: error as i16, ..Default::default() },
    }
}
