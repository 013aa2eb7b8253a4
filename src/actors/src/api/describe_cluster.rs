//! DescribeCluster.

use callboard_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use callboard_protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::RequestContext;
use super::described::{self, CLUSTER_OPERATIONS, NO_OPERATIONS};

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// The cluster's id, its brokers on this listener, and one that forwards to the controller.
pub async fn handle(cx: &RequestContext, request: DescribeClusterRequest, _: i16) -> DescribeClusterResponse {
    let refuse = |code: ErrorCode, message: String| DescribeClusterResponse {
        error_code: code as i16,
        error_message: Some(message.into()),
        ..Default::default()
    };
    match request.endpoint_type {
        BROKERS => {}
        CONTROLLERS => {
            let message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type \
                           CONTROLLER";
            return refuse(ErrorCode::MismatchedEndpointType, message.to_owned());
        }
        other => {
            let message = format!("Unsupported endpoint type {other}");
            return refuse(ErrorCode::UnsupportedEndpointType, message);
        }
    }
    let metadata = cx.services.metadata.current();
    let listener = &cx.connection.listener.name;
    let brokers = described::brokers(&metadata.image, listener, request.include_fenced_brokers)
        .map(|(broker, endpoint)| DescribeClusterBroker {
            broker_id: broker.id,
            host: endpoint.host.clone(),
            port: i32::from(endpoint.port),
            rack: broker.rack.clone(),
            is_fenced: request.include_fenced_brokers && broker.fenced,
            ..Default::default()
        })
        .collect();
    DescribeClusterResponse {
        cluster_id: ByteString::from(cx.services.cluster_id.as_str()),
        controller_id: described::controller_id(&metadata.image),
        brokers,
        cluster_authorized_operations: match request.include_cluster_authorized_operations {
            true => CLUSTER_OPERATIONS,
            false => NO_OPERATIONS,
        },
        ..Default::default()
    }
}
