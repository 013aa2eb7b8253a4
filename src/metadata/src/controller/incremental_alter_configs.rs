//! IncrementalAlterConfigs: changes single configs of a resource.

use callboard_protocol::messages::{
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
    incremental_alter_configs_request as request, incremental_alter_configs_response as response,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::alteration::{Answer, Asked, Change, alteration};
use super::{Controller, Refusal};
use crate::config::{self, ConfigType, Definitions};
use crate::image::{ConfigResource, ResourceType};

/// The value of [`Operation::Set`] on the wire.
pub(super) const SET: i8 = 0;

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
            SET => Some(Self::Set),
            1 => Some(Self::Delete),
            2 => Some(Self::Append),
            3 => Some(Self::Subtract),
            _ => None,
        }
    }
}

alteration! {
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
    request::AlterConfigsResource, response::AlterConfigsResourceResponse,
    replaces: false, config: request::AlterableConfig, operation: |config| config.config_operation
}

impl Controller {
    /// What a config is after a change.
    pub(super) fn new_value(
        &self,
        resource: &ConfigResource,
        change: &Change,
    ) -> Result<Option<ByteString>, Refusal> {
        let Some(operation) = Operation::from_value(change.operation) else {
            return Err(Refusal::bare(ErrorCode::UnknownServerError));
        };
        let verb = match operation {
            Operation::Set => return Ok(change.value.clone()),
            Operation::Delete => return Ok(None),
            Operation::Append => "APPEND",
            Operation::Subtract => "SUBTRACT",
        };
        let definition = definitions(resource.kind).and_then(|table| table.get(&change.name));
        let Some(definition) = definition.filter(|definition| definition.kind == ConfigType::List) else {
            let name = &change.name;
            let message = match (resource.kind, definition) {
                (ResourceType::Broker, None) => format!("Unknown config name: {name}"),
                (ResourceType::Broker, Some(_)) => {
                    let verb = verb.to_ascii_lowercase();
                    format!("Config value {verb} is not allowed for config key: {name}")
                }
                _ => format!("Can't {verb} to key {name} because its type is not LIST."),
            };
            return Err(Refusal::new(ErrorCode::InvalidConfig, message));
        };
        let current = self.image().configs.value(resource, &change.name).map(|value| value.to_string());
        // Where nothing is set, the list starts from the setting's own default, not from the broker's.
        let current =
            current.or_else(|| definition.default_value().map(|value| value.to_string())).unwrap_or_default();
        let mut items: Vec<&str> = split(&current).collect();
        for item in split(change.value.as_deref().unwrap_or_default()) {
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
