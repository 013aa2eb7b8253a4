//! AlterConfigs: replaces all configs of a resource by those given.

use callboard_protocol::messages::alter_configs_request::AlterConfigsResource;
use callboard_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use callboard_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::{Controller, Outcome, Refusal};
use crate::record::VersionedRecord;

impl Controller {
    /// Replaces configs; each resource gets its own error. The request has passed
    /// [`check_alter_configs`](super::check_alter_configs).
    pub fn alter_configs(&self, request: &AlterConfigsRequest) -> Outcome<AlterConfigsResponse> {
        let (mut records, mut responses) = (Vec::new(), Vec::new());
        for resource in &request.resources {
            let refusal = match self.replace_configs(resource) {
                Ok(more) => {
                    records.extend(more);
                    Refusal::bare(ErrorCode::None)
                }
                Err(refusal) => refusal,
            };
            responses.push(response(resource, refusal));
        }
        if request.validate_only {
            records.clear();
        }
        Outcome::atomic(records, AlterConfigsResponse { responses, ..Default::default() })
    }

    fn replace_configs(&self, asked: &AlterConfigsResource) -> Result<Vec<VersionedRecord>, Refusal> {
        let resource = self.check_resource(asked.resource_type, &asked.resource_name)?;
        let mut changes: Vec<(ByteString, Option<ByteString>)> =
            asked.configs.iter().map(|config| (config.name.clone(), config.value.clone())).collect();
        let before = self.image().configs.of(&resource);
        for name in before.keys() {
            if !asked.configs.iter().any(|config| config.name == *name) {
                changes.push((name.clone(), None));
            }
        }
        self.config_records(&resource, &changes)
    }
}

pub(super) fn response(resource: &AlterConfigsResource, refusal: Refusal) -> AlterConfigsResourceResponse {
    AlterConfigsResourceResponse {
        error_code: refusal.code as i16,
        error_message: refusal.message,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        ..Default::default()
    }
}
