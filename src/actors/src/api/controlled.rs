//! What handlers share that have the controller decide: waiting for the decision, within the request's time, and for
//! this broker to have carried it out.

use std::time::Duration;

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::Request;

use super::RequestContext;
use crate::control::controller::ControllerRequest;

/// Has the controller decide a request, and waits until handlers here see the outcome and led partitions serve.
///
/// # Errors
/// NOT_CONTROLLER where there is none or it changed; REQUEST_TIMED_OUT when `timeout_ms` is over, or is not positive to
/// begin with: then nothing is asked.
pub(super) async fn decide<Q: ControllerRequest>(
    cx: &RequestContext,
    request: Q,
    version: i16,
    timeout_ms: i32,
) -> Result<Q::Response, ErrorCode> {
    let Some(timeout_ms) = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0) else {
        return Err(ErrorCode::RequestTimedOut);
    };
    cx.leave_queue();
    let deciding = decide_untimed(cx, request, version);
    match tokio::time::timeout(Duration::from_millis(timeout_ms), deciding).await {
        Ok(decided) => decided,
        Err(_) => Err(ErrorCode::RequestTimedOut),
    }
}

/// The same for requests that bring no timeout.
pub(super) async fn decide_untimed<Q: ControllerRequest>(
    cx: &RequestContext,
    request: Q,
    version: i16,
) -> Result<<Q as Request>::Response, ErrorCode> {
    let decided = cx.services.controller.decide(request, version).await?;
    cx.services.metadata.reached(decided.last_offset).await;
    Ok(decided.response)
}
