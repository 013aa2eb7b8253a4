//! UpdateFeatures.

use callboard_protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};

use super::{RequestContext, controlled};

/// Has the controller change the levels. The request's timeout is not looked at, as in Kafka.
pub async fn handle(
    cx: &RequestContext,
    request: UpdateFeaturesRequest,
    version: i16,
) -> UpdateFeaturesResponse {
    match controlled::decide_untimed(cx, request, version).await {
        Ok(response) => response,
        Err(code) => {
            UpdateFeaturesResponse { error_code: code as i16, error_message: None, ..Default::default() }
        }
    }
}
