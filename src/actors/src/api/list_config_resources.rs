//! ListConfigResources: what has or can have configs. Version 0 is ListClientMetricsResources.

use std::collections::BTreeSet;

use callboard_metadata::image::{Image, ResourceType};
use callboard_protocol::messages::list_config_resources_response::ConfigResource;
use callboard_protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::RequestContext;

/// Every type, in the order answered.
const ALL: [ResourceType; 5] = [
    ResourceType::ClientMetrics,
    ResourceType::BrokerLogger,
    ResourceType::Broker,
    ResourceType::Topic,
    ResourceType::Group,
];

/// Lists the resources of the types asked for; of all types if none is named.
pub async fn handle(
    cx: &RequestContext,
    request: ListConfigResourcesRequest,
    version: i16,
) -> ListConfigResourcesResponse {
    let wanted: Option<BTreeSet<ResourceType>> = match version {
        0 => Some(BTreeSet::from([ResourceType::ClientMetrics])),
        _ => request.resource_types.iter().map(|kind| ResourceType::from_value(*kind)).collect(),
    };
    let Some(wanted) = wanted else {
        let error_code = ErrorCode::UnsupportedVersion as i16;
        return ListConfigResourcesResponse { error_code, ..Default::default() };
    };
    let metadata = cx.services.metadata.current();
    let kinds = ALL.into_iter().filter(|kind| wanted.is_empty() || wanted.contains(kind));
    let config_resources = kinds
        .flat_map(|kind| {
            names(&metadata.image, kind).into_iter().map(move |resource_name| ConfigResource {
                resource_name,
                resource_type: kind.value(),
                ..Default::default()
            })
        })
        .collect();
    ListConfigResourcesResponse { config_resources, ..Default::default() }
}

fn names(image: &Image, kind: ResourceType) -> Vec<ByteString> {
    match kind {
        ResourceType::Topic => image.topics.iter_by_name().map(|topic| topic.name.clone()).collect(),
        ResourceType::Broker | ResourceType::BrokerLogger => {
            image.cluster.brokers.keys().map(|id| id.to_string().into()).collect()
        }
        ResourceType::ClientMetrics | ResourceType::Group => {
            let own = image.configs.iter().filter(|(resource, _)| resource.kind == kind);
            own.map(|(resource, _)| resource.name.clone()).collect()
        }
    }
}
