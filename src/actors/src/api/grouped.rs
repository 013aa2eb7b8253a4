//! What handlers share that ask the group coordinator.

use callboard_coordinator::group::{Caller, GroupRequest};
use callboard_metadata::image::Image;
use callboard_protocol::{ApiKey, ByteString, ErrorCode, Uuid};

use super::RequestContext;

/// Who asks, as the coordinator notes it.
pub(super) fn caller(cx: &RequestContext) -> Caller {
    Caller {
        client_id: cx.client_id.clone().unwrap_or_default(),
        client_host: format!("/{}", cx.connection.peer.ip().to_canonical()).into(),
        version: cx.version,
    }
}

/// Asks the shard of a group. The request may wait there for other members, so it gives up its place in the queue.
///
/// # Errors
/// As [`Groups::ask`](crate::groups::Groups::ask).
pub(super) async fn ask<Q: GroupRequest>(
    cx: &RequestContext,
    group_id: &ByteString,
    request: Q,
) -> Result<Q::Response, ErrorCode> {
    cx.leave_queue();
    cx.services.groups.ask(group_id, caller(cx), request).await.map_err(|error| match error {
        // Only a commit has a code for what is too large to be written.
        ErrorCode::RecordListTooLarge if cx.api_key == ApiKey::OffsetCommit => {
            ErrorCode::InvalidCommitOffsetSize
        }
        ErrorCode::RecordListTooLarge => ErrorCode::UnknownServerError,
        other => other,
    })
}

/// The name of a topic that a request names by id, or by name where the version has no ids.
///
/// # Errors
/// UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION.
pub(super) fn topic_name(
    image: &Image,
    by_id: bool,
    id: Uuid,
    name: &ByteString,
) -> Result<ByteString, ErrorCode> {
    if by_id {
        return image.topics.name(id).cloned().ok_or(ErrorCode::UnknownTopicId);
    }
    match image.topics.id(name) {
        Some(_) => Ok(name.clone()),
        None => Err(ErrorCode::UnknownTopicOrPartition),
    }
}
