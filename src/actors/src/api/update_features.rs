//! UpdateFeatures.

use callboard_protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};

use super::{RequestContext, controlled};

/// Has the controller change the levels.
pub async fn handle(
    cx: &RequestContext,
    request: UpdateFeaturesRequest,
    version: i16,
) -> UpdateFeaturesResponse {
    let timeout_ms = request.timeout_ms;
    match controlled::decide(cx, request, version, timeout_ms).await {
        Ok(response) => response,
        Err(code) => {
            UpdateFeaturesResponse { error_code: code as i16, error_message: None, ..Default::default() }
        }
    }
}
