//! IncrementalAlterConfigs: what this broker checks itself, then the controller.

use callboard_metadata::controller::check_incremental_alter_configs;
use callboard_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use callboard_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use super::{RequestContext, controlled};

/// Changes configs; each resource gets its own error.
pub async fn handle(
    cx: &RequestContext,
    request: IncrementalAlterConfigsRequest,
    version: i16,
) -> IncrementalAlterConfigsResponse {
    let (passed, mut answers) = check_incremental_alter_configs(&request, cx.services.node_id);
    if !passed.resources.is_empty() {
        let asked = passed.resources.clone();
        match controlled::decide_untimed(cx, passed, version).await {
            Ok(response) => answers.extend(response.responses),
            Err(code) => {
                answers.extend(asked.into_iter().map(|resource| AlterConfigsResourceResponse {
                    error_code: code as i16,
                    error_message: None,
                    resource_type: resource.resource_type,
                    resource_name: resource.resource_name,
                    ..Default::default()
                }));
            }
        }
    }
    // Answers stand in the order of the request.
    let place = |answer: &AlterConfigsResourceResponse| {
        request.resources.iter().position(|resource| {
            resource.resource_type == answer.resource_type && resource.resource_name == answer.resource_name
        })
    };
    answers.sort_by_key(place);
    IncrementalAlterConfigsResponse { responses: answers, ..Default::default() }
}
