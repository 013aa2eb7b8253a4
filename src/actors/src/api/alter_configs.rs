//! AlterConfigs: what this broker checks itself, then the controller. IncrementalAlterConfigs goes the same way.

use callboard_metadata::controller::{Alteration, check_alteration};
use callboard_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};

use super::{RequestContext, controlled};
use crate::control::controller::ControllerRequest;

/// Replaces configs; each resource gets its own error.
pub async fn handle(cx: &RequestContext, request: AlterConfigsRequest, version: i16) -> AlterConfigsResponse {
    alter(cx, &request, version).await
}

/// Has configs changed; answers stand in the order of the request.
pub(super) async fn alter<Q>(cx: &RequestContext, request: &Q, version: i16) -> Q::Response
where
    Q: Alteration + ControllerRequest,
{
    let checked = check_alteration(request, cx.services.node_id);
    let Some(passed) = checked.passed() else { return checked.answered(Q::respond(Vec::new())) };
    match controlled::decide_untimed(cx, passed.clone(), version).await {
        Ok(decided) => checked.answered(decided),
        Err(code) => checked.refused(code),
    }
}
