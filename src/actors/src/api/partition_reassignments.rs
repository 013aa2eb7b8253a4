//! AlterPartitionReassignments and ListPartitionReassignments.

use callboard_protocol::ByteString;
use callboard_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

use super::{RequestContext, controlled};

/// Has the controller move replicas.
pub async fn alter(
    cx: &RequestContext,
    request: AlterPartitionReassignmentsRequest,
    version: i16,
) -> AlterPartitionReassignmentsResponse {
    let (timeout_ms, none) = (request.timeout_ms, request.topics.is_empty());
    match controlled::decide(cx, request, version, timeout_ms).await {
        Ok(mut response) => {
            // As Kafka: an empty text instead of none when nothing was asked.
            response.error_message = none.then(ByteString::new);
            response
        }
        Err(code) => AlterPartitionReassignmentsResponse {
            error_code: code as i16,
            error_message: None,
            ..Default::default()
        },
    }
}

/// The replicas that are being moved.
pub async fn list(
    cx: &RequestContext,
    request: ListPartitionReassignmentsRequest,
    version: i16,
) -> ListPartitionReassignmentsResponse {
    let timeout_ms = request.timeout_ms;
    match controlled::decide(cx, request, version, timeout_ms).await {
        Ok(response) => response,
        Err(code) => ListPartitionReassignmentsResponse {
            error_code: code as i16,
            error_message: None,
            ..Default::default()
        },
    }
}
