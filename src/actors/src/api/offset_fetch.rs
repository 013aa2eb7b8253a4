//! OffsetFetch, in the forms of all versions: one group or several, topics by name or by id.

use callboard_coordinator::group::FetchOffsets;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use callboard_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use callboard_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse};

use super::{RequestContext, grouped};

/// From this version on the answer has an error at its top.
const FIRST_WITH_ERROR: i16 = 2;
/// From this version on several groups are asked for at once.
const FIRST_BATCHED: i16 = 8;
/// From this version on topics go by id.
const FIRST_WITH_TOPIC_IDS: i16 = 10;

/// Asks each group's coordinator.
pub async fn handle(cx: &RequestContext, request: OffsetFetchRequest, version: i16) -> OffsetFetchResponse {
    let require_stable = request.require_stable;
    if version < FIRST_BATCHED {
        return one(cx, request, version).await;
    }
    let mut groups = Vec::with_capacity(request.groups.len());
    for group in request.groups {
        groups.push(match version >= FIRST_WITH_TOPIC_IDS {
            true => by_id(cx, group, require_stable).await,
            false => fetch(cx, group, require_stable).await,
        });
    }
    OffsetFetchResponse { groups, ..Default::default() }
}

/// The form for one group.
async fn one(cx: &RequestContext, request: OffsetFetchRequest, version: i16) -> OffsetFetchResponse {
    let topic = |topic: &OffsetFetchRequestTopic| OffsetFetchRequestTopics {
        name: topic.name.clone(),
        partition_indexes: topic.partition_indexes.clone(),
        ..Default::default()
    };
    let topics = request.topics.as_ref().map(|topics| topics.iter().map(topic).collect());
    let group = OffsetFetchRequestGroup {
        group_id: request.group_id,
        topics,
        member_epoch: -1,
        ..Default::default()
    };
    let fetched = fetch(cx, group, request.require_stable).await;
    if fetched.error_code != ErrorCode::None as i16 {
        if version >= FIRST_WITH_ERROR {
            return OffsetFetchResponse { error_code: fetched.error_code, ..Default::default() };
        }
        let refuse = |topic: OffsetFetchRequestTopic| refused(topic, fetched.error_code);
        let topics = request.topics.into_iter().flatten().map(refuse);
        return OffsetFetchResponse { topics: topics.collect(), ..Default::default() };
    }
    let partition = |partition: OffsetFetchResponsePartitions| OffsetFetchResponsePartition {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata,
        error_code: partition.error_code,
        ..Default::default()
    };
    let topics = fetched.topics.into_iter().map(|topic| OffsetFetchResponseTopic {
        name: topic.name,
        partitions: topic.partitions.into_iter().map(partition).collect(),
        ..Default::default()
    });
    OffsetFetchResponse { topics: topics.collect(), ..Default::default() }
}

/// The form of old versions, which have no other place for an error of the group.
fn refused(topic: OffsetFetchRequestTopic, error_code: i16) -> OffsetFetchResponseTopic {
    let partition = |index: &i32| OffsetFetchResponsePartition {
        partition_index: *index,
        committed_offset: -1,
        metadata: Some(Default::default()),
        error_code,
        ..Default::default()
    };
    OffsetFetchResponseTopic {
        partitions: topic.partition_indexes.iter().map(partition).collect(),
        name: topic.name,
        ..Default::default()
    }
}

async fn fetch(
    cx: &RequestContext,
    group: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let group_id = group.group_id.clone();
    match grouped::ask(cx, &group_id, FetchOffsets { group, require_stable }).await {
        Ok(fetched) => fetched,
        Err(error) => OffsetFetchResponseGroup { group_id, error_code: error as i16, ..Default::default() },
    }
}

/// Topics by id: the coordinator knows them by name.
async fn by_id(
    cx: &RequestContext,
    mut group: OffsetFetchRequestGroup,
    require_stable: bool,
) -> OffsetFetchResponseGroup {
    let metadata = cx.services.metadata();
    let mut unknown = Vec::new();
    if let Some(asked) = group.topics.take() {
        let mut known = Vec::with_capacity(asked.len());
        for mut topic in asked {
            match metadata.image.topics.name(topic.topic_id) {
                Some(name) => {
                    topic.name = name.clone();
                    known.push(topic);
                }
                None => unknown.push(unknown_topic(topic)),
            }
        }
        group.topics = Some(known);
    }
    let all = group.topics.is_none();
    let mut fetched = fetch(cx, group, require_stable).await;
    if all {
        for topic in &mut fetched.topics {
            topic.topic_id = metadata.image.topics.id(&topic.name).unwrap_or_default();
        }
        // What has no id can't be told.
        fetched.topics.retain(|topic| !topic.topic_id.is_zero());
    }
    if fetched.error_code == ErrorCode::None as i16 {
        fetched.topics.extend(unknown);
    }
    fetched
}

fn unknown_topic(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics {
    let partition = |index: &i32| OffsetFetchResponsePartitions {
        partition_index: *index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(Default::default()),
        error_code: ErrorCode::UnknownTopicId as i16,
        ..Default::default()
    };
    OffsetFetchResponseTopics {
        topic_id: topic.topic_id,
        partitions: topic.partition_indexes.iter().map(partition).collect(),
        ..Default::default()
    }
}
