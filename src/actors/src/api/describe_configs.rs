//! DescribeConfigs: values, where they come from, and what else would give them.

use callboard_metadata::config::{
    self, Definition, Entry, broker_definitions, client_metrics_definitions, group_definitions,
    topic_definitions,
};
use callboard_metadata::image::{ConfigResource, ConfigValues, ResourceType};
use callboard_metadata::topic_name;
use callboard_protocol::messages::describe_configs_request::DescribeConfigsResource;
use callboard_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use callboard_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::RequestContext;
use crate::control::applied::AppliedMetadata;

/// What Kafka says with INVALID_REQUEST for a type it doesn't know.
const UNKNOWN_TYPE: &str = "This most likely occurs because of a request being malformed by the client library or the \
     message was sent to an incompatible broker. See the broker logs for more details.";

type Refused = (ErrorCode, String);

/// Describes each resource, or says why not.
pub async fn handle(cx: &RequestContext, request: DescribeConfigsRequest, _: i16) -> DescribeConfigsResponse {
    let metadata = cx.services.metadata.current();
    let mut results = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let described = describe(cx.services.node_id, &metadata, resource);
        let (code, message, entries) = match described {
            Ok(entries) => (ErrorCode::None, String::new(), entries),
            Err((code, message)) => (code, message, Vec::new()),
        };
        let wanted = |entry: &Entry| match &resource.configuration_keys {
            Some(keys) if !keys.is_empty() => keys.iter().any(|key| *key == entry.name),
            _ => true,
        };
        let configs = entries
            .into_iter()
            .filter(wanted)
            .map(|entry| config(entry, resource.resource_type, &request))
            .collect();
        results.push(DescribeConfigsResult {
            error_code: code as i16,
            error_message: Some(message.into()),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs,
            ..Default::default()
        });
    }
    DescribeConfigsResponse { results, ..Default::default() }
}

fn describe(
    node_id: i32,
    metadata: &AppliedMetadata,
    asked: &DescribeConfigsResource,
) -> Result<Vec<Entry>, Refused> {
    let refuse = |message: String| Err((ErrorCode::InvalidRequest, message));
    let name = &asked.resource_name;
    let Some(kind) = ResourceType::from_value(asked.resource_type) else {
        return refuse(UNKNOWN_TYPE.to_owned());
    };
    let own = metadata.image.configs.of(&ConfigResource { kind, name: name.clone() });
    match kind {
        ResourceType::Topic => {
            topic_name::validate(name).map_err(|why| (ErrorCode::InvalidTopicException, why))?;
            if metadata.image.topics.id(name).is_none() {
                return Err((ErrorCode::UnknownTopicOrPartition, String::new()));
            }
            Ok(config::describe_topic(&metadata.settings, pairs(&own)))
        }
        ResourceType::Broker if name.is_empty() => Ok(config::describe_cluster_default(&metadata.settings)),
        ResourceType::Broker => match name.parse::<i32>() {
            Ok(id) if id == node_id => Ok(config::describe_broker(&metadata.settings)),
            Ok(id) => {
                refuse(format!("Unexpected broker id, expected {node_id} or empty string, but received {id}"))
            }
            Err(_) => refuse(format!("Broker id must be an integer, but it is: {name}")),
        },
        ResourceType::BrokerLogger if name.is_empty() => refuse("Broker id must not be empty".to_owned()),
        ResourceType::BrokerLogger => match name.parse::<i32>() {
            // Log levels are set by the environment of the process; there is none to show.
            Ok(id) if id == node_id => Ok(Vec::new()),
            Ok(id) => refuse(format!("Unexpected broker id, expected {node_id} but received {id}")),
            Err(_) => refuse(format!("Broker id must be an integer, but it is: {name}")),
        },
        ResourceType::ClientMetrics if name.is_empty() => {
            refuse("Client metrics subscription name must not be empty".to_owned())
        }
        ResourceType::ClientMetrics => Ok(config::describe_client_metrics(pairs(&own))),
        ResourceType::Group if name.is_empty() => refuse("Group name must not be empty".to_owned()),
        ResourceType::Group => Ok(config::describe_group(&metadata.settings, pairs(&own))),
    }
}

fn pairs(values: &ConfigValues) -> impl Iterator<Item = (&str, &str)> {
    values.iter().map(|(name, value)| (&**name, &**value))
}

fn config(
    entry: Entry,
    resource_type: i8,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let synonyms = if request.include_synonyms { entry.synonyms } else { Vec::new() };
    let documentation = request
        .include_documentation
        .then(|| documentation(resource_type, &entry.name))
        .map(ByteString::from);
    DescribeConfigsResourceResult {
        name: entry.name.into(),
        value: entry.value.map(ByteString::from),
        read_only: entry.read_only,
        config_source: entry.source.wire_code(),
        is_sensitive: entry.sensitive,
        synonyms: synonyms
            .into_iter()
            .map(|synonym| DescribeConfigsSynonym {
                name: synonym.name.into(),
                value: synonym.value.map(ByteString::from),
                source: synonym.source.wire_code(),
                ..Default::default()
            })
            .collect(),
        config_type: entry.kind.map_or(0, |kind| kind.wire_code()),
        documentation,
        ..Default::default()
    }
}

/// What is known of a setting: its type, default, importance and where else its value may come from.
fn documentation(resource_type: i8, name: &str) -> String {
    let table = match ResourceType::from_value(resource_type) {
        Some(ResourceType::Topic) => topic_definitions(),
        Some(ResourceType::Group) => group_definitions(),
        Some(ResourceType::ClientMetrics) => client_metrics_definitions(),
        Some(ResourceType::Broker | ResourceType::BrokerLogger) | None => broker_definitions(),
    };
    let Some(definition) = table.get(name) else { return String::new() };
    sentence(definition)
}

fn sentence(definition: &Definition) -> String {
    let kind = format!("{:?}", definition.kind).to_lowercase();
    let importance = format!("{:?}", definition.importance).to_lowercase();
    let mut out = format!("Type {kind}, of {importance} importance.");
    match definition.default_value().map(|value| value.to_string()) {
        Some(value) if !value.is_empty() => out.push_str(&format!(" The default is {value}.")),
        _ => out.push_str(" There is no default."),
    }
    if let Some(synonym) = definition.broker_synonym {
        out.push_str(&format!(" Where it is not set, the broker's {synonym} counts."));
    }
    out
}
