//! UnregisterBroker.

use callboard_protocol::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

use super::{RequestContext, controlled};

/// Has the controller forget a broker.
pub async fn handle(
    cx: &RequestContext,
    request: UnregisterBrokerRequest,
    version: i16,
) -> UnregisterBrokerResponse {
    match controlled::decide_untimed(cx, request, version).await {
        Ok(response) => response,
        Err(code) => {
            UnregisterBrokerResponse { error_code: code as i16, error_message: None, ..Default::default() }
        }
    }
}
