//! CreatePartitions. Answered when the new partitions serve here.

use callboard_protocol::ByteString;
use callboard_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use callboard_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};

use super::{RequestContext, controlled};

/// Has the controller add the partitions.
pub async fn handle(
    cx: &RequestContext,
    request: CreatePartitionsRequest,
    version: i16,
) -> CreatePartitionsResponse {
    let names: Vec<ByteString> = request.topics.iter().map(|topic| topic.name.clone()).collect();
    let timeout_ms = request.timeout_ms;
    match controlled::decide(cx, request, version, timeout_ms).await {
        Ok(response) => response,
        Err(code) => {
            let failed =
                |name| CreatePartitionsTopicResult { name, error_code: code as i16, ..Default::default() };
            CreatePartitionsResponse {
                results: names.into_iter().map(failed).collect(),
                ..Default::default()
            }
        }
    }
}
