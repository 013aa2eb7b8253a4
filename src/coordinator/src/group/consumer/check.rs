//! What a heartbeat must be like, whatever the group.

use callboard_protocol::messages::ConsumerGroupHeartbeatRequest;

use super::error::Refusal;
use super::member::{AWAY_EPOCH, JOINING_EPOCH};
use super::partitions::Partitions;
use super::settings::ConsumerSettings;

/// Checks a request by itself, at a version of it: this needs no coordinator.
///
/// # Errors
/// INVALID_REQUEST.
pub fn check_request(request: &ConsumerGroupHeartbeatRequest, version: i16) -> Result<(), Refusal> {
    let invalid = |text| Err(Refusal::InvalidRequest(text));
    // From version 1 the client makes its member id; before, the coordinator did if there was none.
    if version >= 1 && is_blank(&request.member_id) {
        return invalid("MemberId can't be empty.");
    }
    if is_blank(&request.group_id) {
        return invalid("GroupId can't be empty.");
    }
    if request.instance_id.as_deref().is_some_and(is_blank) {
        return invalid("InstanceId can't be empty.");
    }
    if request.rack_id.as_deref().is_some_and(is_blank) {
        return invalid("RackId can't be empty.");
    }
    match request.member_epoch {
        JOINING_EPOCH => check_join(request),
        AWAY_EPOCH if request.instance_id.is_none() => invalid("InstanceId can't be null."),
        epoch if epoch < AWAY_EPOCH => invalid("MemberEpoch is invalid."),
        _ => Ok(()),
    }
}

/// Whether there is the assignor that a member asks for.
///
/// # Errors
/// UNSUPPORTED_ASSIGNOR.
pub(super) fn check_assignor(
    request: &ConsumerGroupHeartbeatRequest,
    settings: &ConsumerSettings,
) -> Result<(), Refusal> {
    match &request.server_assignor {
        Some(assignor) if settings.assignors.iter().all(|own| own.name() != &**assignor) => {
            let supported: Vec<_> = settings.assignors.iter().map(|own| own.name()).collect();
            Err(Refusal::UnsupportedAssignor { assignor: assignor.clone(), supported: supported.join(", ") })
        }
        _ => Ok(()),
    }
}

fn check_join(request: &ConsumerGroupHeartbeatRequest) -> Result<(), Refusal> {
    let invalid = |text| Err(Refusal::InvalidRequest(text));
    if request.rebalance_timeout_ms == -1 {
        return invalid("RebalanceTimeoutMs must be provided in first request.");
    }
    if request.topic_partitions.as_ref().is_none_or(|owned| !owned.is_empty()) {
        return invalid("TopicPartitions must be empty when (re-)joining.");
    }
    // A pattern exists from version 1 on; before, it is never set.
    if request.subscribed_topic_names.is_none() && request.subscribed_topic_regex.is_none() {
        return invalid(
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        );
    }
    Ok(())
}

/// Whether the request says all that a member can say: then it is told its assignment in any case.
pub(super) fn is_full(request: &ConsumerGroupHeartbeatRequest) -> bool {
    request.member_epoch == JOINING_EPOCH
        || (request.rebalance_timeout_ms != -1
            && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some())
            && request.topic_partitions.is_some())
}

/// What the member says that it has.
pub(super) fn owned(request: &ConsumerGroupHeartbeatRequest) -> Option<Partitions> {
    let topics = request.topic_partitions.as_ref()?;
    Some(topics.iter().flat_map(|t| t.partitions.iter().map(|p| (t.topic_id, *p))).collect())
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
