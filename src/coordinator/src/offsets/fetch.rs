//! OffsetFetch.

use callboard_protocol::messages::offset_fetch_request::OffsetFetchRequestTopics;
use callboard_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::store::{Committed, PartitionOfGroup};
use crate::group::{FetchOffsets, Group, GroupShard};

/// What a group has committed: of the topics asked for by name, or all.
pub(crate) fn fetch(shard: &GroupShard, request: &FetchOffsets) -> OffsetFetchResponseGroup {
    let group_id = &request.group.group_id;
    let error = match shard.groups.get(group_id) {
        Some(Group::Consumer(group)) => {
            let member_id = request.group.member_id.clone().unwrap_or_default();
            match member_id.is_empty() && request.group.member_epoch < 0 {
                true => None,
                false => group.check_fetch(&member_id, request.group.member_epoch).err(),
            }
        }
        Some(Group::Classic(_)) | None => None,
    };
    if let Some(error) = error {
        return OffsetFetchResponseGroup {
            group_id: group_id.clone(),
            error_code: error as i16,
            ..Default::default()
        };
    }
    let topics = match &request.group.topics {
        Some(topics) => topics.iter().map(|topic| of_topic(shard, request, topic)).collect(),
        None => all(shard, request),
    };
    OffsetFetchResponseGroup { group_id: group_id.clone(), topics, ..Default::default() }
}

fn of_topic(
    shard: &GroupShard,
    request: &FetchOffsets,
    topic: &OffsetFetchRequestTopics,
) -> OffsetFetchResponseTopics {
    let group_id = &request.group.group_id;
    let partition = |index: &i32| {
        let committed = shard.offsets.get(group_id, &topic.name, *index);
        answer(*index, committed, is_unstable(shard, request, &topic.name, *index))
    };
    OffsetFetchResponseTopics {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partition_indexes.iter().map(partition).collect(),
        ..Default::default()
    }
}

fn all(shard: &GroupShard, request: &FetchOffsets) -> Vec<OffsetFetchResponseTopics> {
    let topics = shard.offsets.of_group(&request.group.group_id).into_iter().flatten();
    let topics = topics.map(|(name, partitions)| OffsetFetchResponseTopics {
        name: name.clone(),
        partitions: partitions
            .iter()
            .map(|(index, committed)| {
                answer(*index, Some(committed), is_unstable(shard, request, name, *index))
            })
            .collect(),
        ..Default::default()
    });
    topics.collect()
}

fn is_unstable(shard: &GroupShard, request: &FetchOffsets, topic: &ByteString, partition: i32) -> bool {
    request.require_stable
        && shard.offsets.is_pending(&PartitionOfGroup {
            group_id: request.group.group_id.clone(),
            topic: topic.clone(),
            partition,
        })
}

fn answer(
    partition_index: i32,
    committed: Option<&Committed>,
    unstable: bool,
) -> OffsetFetchResponsePartitions {
    let none = OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: -1,
        committed_leader_epoch: -1,
        metadata: Some(ByteString::new()),
        ..Default::default()
    };
    match committed {
        _ if unstable => {
            OffsetFetchResponsePartitions { error_code: ErrorCode::UnstableOffsetCommit as i16, ..none }
        }
        None => none,
        Some(committed) => OffsetFetchResponsePartitions {
            committed_offset: committed.offset,
            committed_leader_epoch: committed.leader_epoch,
            metadata: Some(committed.metadata.clone()),
            ..none
        },
    }
}
