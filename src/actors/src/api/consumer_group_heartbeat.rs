//! ConsumerGroupHeartbeat (KIP-848).

use callboard_coordinator::group::consumer::check_request;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};

use super::{RequestContext, consumer_protocol, grouped};

/// Asks the group's coordinator, once the request is right by itself.
pub async fn handle(
    cx: &RequestContext,
    request: ConsumerGroupHeartbeatRequest,
    version: i16,
) -> ConsumerGroupHeartbeatResponse {
    let refused = |error: ErrorCode, message: Option<String>| ConsumerGroupHeartbeatResponse {
        error_code: error as i16,
        error_message: message.map(Into::into),
        ..Default::default()
    };
    if !consumer_protocol::is_enabled(cx) {
        return refused(ErrorCode::UnsupportedVersion, None);
    }
    if let Err(refusal) = check_request(&request, version) {
        return refused(refusal.code(), Some(refusal.to_string()));
    }
    let group_id = request.group_id.clone();
    match grouped::ask(cx, &group_id, request).await {
        Ok(response) => response,
        Err(error) => refused(error, None),
    }
}
