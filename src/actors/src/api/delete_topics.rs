//! DeleteTopics. Answered when the topics are gone here.

use callboard_protocol::messages::delete_topics_response::DeletableTopicResult;
use callboard_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse};
use callboard_protocol::{ByteString, Uuid};

use super::{RequestContext, controlled};

/// Has the controller delete the topics.
pub async fn handle(cx: &RequestContext, request: DeleteTopicsRequest, version: i16) -> DeleteTopicsResponse {
    let by_name = request.topic_names.iter().map(|name| (Some(name.clone()), Uuid::ZERO));
    let by_either = request.topics.iter().map(|topic| (topic.name.clone(), topic.topic_id));
    let asked: Vec<(Option<ByteString>, Uuid)> = by_name.chain(by_either).collect();
    let timeout_ms = request.timeout_ms;
    match controlled::decide(cx, request, version, timeout_ms).await {
        Ok(response) => response,
        Err(code) => {
            let failed = |(name, topic_id)| DeletableTopicResult {
                name,
                topic_id,
                error_code: code as i16,
                ..Default::default()
            };
            DeleteTopicsResponse { responses: asked.into_iter().map(failed).collect(), ..Default::default() }
        }
    }
}
