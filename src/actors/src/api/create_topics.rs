//! CreateTopics. Answered when the topics' partitions serve here.

use callboard_protocol::messages::create_topics_response::CreatableTopicResult;
use callboard_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::{RequestContext, controlled};

/// Has the controller create the topics.
pub async fn handle(cx: &RequestContext, request: CreateTopicsRequest, version: i16) -> CreateTopicsResponse {
    let names: Vec<ByteString> = request.topics.iter().map(|topic| topic.name.clone()).collect();
    let timeout_ms = request.timeout_ms;
    match controlled::decide(cx, request, version, timeout_ms).await {
        Ok(response) => response,
        Err(code) => CreateTopicsResponse {
            topics: names.into_iter().map(|name| failed(name, code)).collect(),
            ..Default::default()
        },
    }
}

fn failed(name: ByteString, code: ErrorCode) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code: code as i16,
        error_message: None,
        configs: Some(Vec::new()),
        ..Default::default()
    }
}
