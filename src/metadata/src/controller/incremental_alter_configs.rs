//! IncrementalAlterConfigs: changes single configs of a resource.

use callboard_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use callboard_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use callboard_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::{Controller, Outcome, Refusal};
use crate::config::{self, ConfigType, Definitions};
use crate::image::{ConfigResource, ResourceType};
use crate::record::VersionedRecord;

/// What is done to one config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Set,
    Delete,
    Append,
    Subtract,
}

impl Operation {
    pub(super) fn from_value(value: i8) -> Option<Self> {
        match value {
            0 => Some(Self::Set),
            1 => Some(Self::Delete),
            2 => Some(Self::Append),
            3 => Some(Self::Subtract),
            _ => None,
        }
    }
}

impl Controller {
    /// Changes configs; each resource gets its own error. The request has passed
    /// [`check_incremental_alter_configs`](super::check_incremental_alter_configs).
    pub fn incremental_alter_configs(
        &self,
        request: &IncrementalAlterConfigsRequest,
    ) -> Outcome<IncrementalAlterConfigsResponse> {
        let (mut records, mut responses) = (Vec::new(), Vec::new());
        for resource in &request.resources {
            let refusal = match self.change_configs(resource) {
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
        Outcome::atomic(records, IncrementalAlterConfigsResponse { responses, ..Default::default() })
    }

    fn change_configs(&self, asked: &AlterConfigsResource) -> Result<Vec<VersionedRecord>, Refusal> {
        let resource = self.check_resource(asked.resource_type, &asked.resource_name)?;
        let mut changes = Vec::with_capacity(asked.configs.len());
        for config in &asked.configs {
            changes.push((config.name.clone(), self.new_value(&resource, config)?));
        }
        self.config_records(&resource, &changes)
    }

    fn new_value(
        &self,
        resource: &ConfigResource,
        config: &AlterableConfig,
    ) -> Result<Option<ByteString>, Refusal> {
        let Some(operation) = Operation::from_value(config.config_operation) else {
            return Err(Refusal::bare(ErrorCode::UnknownServerError));
        };
        let verb = match operation {
            Operation::Set => return Ok(config.value.clone()),
            Operation::Delete => return Ok(None),
            Operation::Append => "APPEND",
            Operation::Subtract => "SUBTRACT",
        };
        let definition = definitions(resource.kind).and_then(|table| table.get(&config.name));
        let Some(definition) = definition.filter(|definition| definition.kind == ConfigType::List) else {
            let message = format!("Can't {verb} to key {} because its type is not LIST.", config.name);
            return Err(Refusal::new(ErrorCode::InvalidConfig, message));
        };
        let current = self.image().configs.value(resource, &config.name).map(|value| value.to_string());
        // Where nothing is set, the list starts from the setting's own default, not from the broker's.
        let current =
            current.or_else(|| definition.default_value().map(|value| value.to_string())).unwrap_or_default();
        let mut items: Vec<&str> = split(&current).collect();
        for item in split(config.value.as_deref().unwrap_or_default()) {
            match operation {
                Operation::Append if !items.contains(&item) => items.push(item),
                Operation::Subtract => items.retain(|kept| *kept != item),
                _ => {}
            }
        }
        Ok(Some(items.join(",").into()))
    }
}

fn definitions(kind: ResourceType) -> Option<&'static Definitions> {
    match kind {
        ResourceType::Topic => Some(config::topic_definitions()),
        ResourceType::Broker => Some(config::broker_definitions()),
        ResourceType::Group => Some(config::group_definitions()),
        ResourceType::ClientMetrics => Some(config::client_metrics_definitions()),
        ResourceType::BrokerLogger => None,
    }
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
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
