//! DescribeCluster.

use std::sync::Arc;

use callboard_metadata::image::{BrokerRegistration, ControllerRegistration, Endpoint, Image};
use callboard_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use callboard_protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::RequestContext;
use super::described::{self, CLUSTER_OPERATIONS, NO_OPERATIONS};
use crate::control::raft::DescribeQuorum;
use crate::net::ListenerKind;

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// From this version on a request says whether it wants brokers or controllers, and an answer may say that it got the
/// wrong one.
const FIRST_WITH_ENDPOINT_TYPE: i16 = 1;

/// The cluster's id, and the nodes of the asked kind on this listener: only a broker's listener knows brokers, only a
/// controller's controllers.
pub async fn handle(
    cx: &RequestContext,
    request: DescribeClusterRequest,
    version: i16,
) -> DescribeClusterResponse {
    let own_type = match cx.connection.listener.kind {
        ListenerKind::Broker => BROKERS,
        ListenerKind::Controller => CONTROLLERS,
    };
    if let Some((code, message)) = refusal(request.endpoint_type, own_type, version) {
        return DescribeClusterResponse {
            error_code: code as i16,
            error_message: Some(message.into()),
            ..Default::default()
        };
    }
    let metadata = cx.services.metadata.current();
    let listener = &cx.connection.listener.name;
    let (controller_id, brokers) = match cx.connection.listener.kind {
        ListenerKind::Broker => {
            let brokers = brokers(&metadata.image, listener, request.include_fenced_brokers);
            (described::controller_id(&metadata.image), brokers)
        }
        ListenerKind::Controller => (active_controller(cx).await, controllers(&metadata.image, listener)),
    };
    DescribeClusterResponse {
        endpoint_type: own_type,
        cluster_id: ByteString::from(cx.services.cluster_id.as_str()),
        controller_id,
        brokers,
        cluster_authorized_operations: match request.include_cluster_authorized_operations {
            true => CLUSTER_OPERATIONS,
            false => NO_OPERATIONS,
        },
        ..Default::default()
    }
}

fn refusal(asked: i8, own: i8, version: i16) -> Option<(ErrorCode, String)> {
    let name = |endpoint_type| if endpoint_type == BROKERS { "BROKER" } else { "CONTROLLER" };
    match asked {
        asked if asked == own => None,
        BROKERS | CONTROLLERS => {
            let code = match version {
                ..FIRST_WITH_ENDPOINT_TYPE => ErrorCode::InvalidRequest,
                _ => ErrorCode::MismatchedEndpointType,
            };
            let (own, asked) = (name(own), name(asked));
            let message = format!(
                "The request was sent to an endpoint of type {own}, but we wanted an endpoint of type {asked}"
            );
            Some((code, message))
        }
        other => Some((ErrorCode::UnsupportedEndpointType, format!("Unsupported endpoint type {other}"))),
    }
}

fn brokers(image: &Image, listener: &str, with_fenced: bool) -> Vec<DescribeClusterBroker> {
    let describe = |(broker, endpoint): (&BrokerRegistration, &Endpoint)| DescribeClusterBroker {
        broker_id: broker.id,
        host: endpoint.host.clone(),
        port: i32::from(endpoint.port),
        rack: broker.rack.clone(),
        is_fenced: with_fenced && broker.fenced,
        ..Default::default()
    };
    described::brokers(image, listener, with_fenced).map(describe).collect()
}

fn controllers(image: &Image, listener: &str) -> Vec<DescribeClusterBroker> {
    let controllers = image.cluster.controllers.values();
    let describe = |controller: &Arc<ControllerRegistration>| {
        let endpoint = controller.endpoints.iter().find(|endpoint| endpoint.name == listener)?;
        Some(DescribeClusterBroker {
            broker_id: controller.id,
            host: endpoint.host.clone(),
            port: i32::from(endpoint.port),
            ..Default::default()
        })
    };
    controllers.filter_map(describe).collect()
}

/// The leader of the quorum as this node knows it, or -1.
async fn active_controller(cx: &RequestContext) -> i32 {
    let info = cx.services.raft.actor().ask(DescribeQuorum).await.ok().flatten();
    info.and_then(|info| info.status.leader.leader_id).unwrap_or(-1)
}
