//! AlterConfigs: what this broker checks itself, then the controller.

use callboard_metadata::controller::check_alter_configs;
use callboard_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use callboard_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};

use super::{RequestContext, controlled};

/// Replaces configs; each resource gets its own error.
pub async fn handle(cx: &RequestContext, request: AlterConfigsRequest, version: i16) -> AlterConfigsResponse {
    let (passed, mut answers) = check_alter_configs(&request, cx.services.node_id);
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
    AlterConfigsResponse { responses: answers, ..Default::default() }
}
