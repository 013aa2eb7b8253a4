//! OffsetDelete, and what deleted topics leave behind.

use callboard_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use callboard_protocol::messages::{OffsetCommitKey, OffsetDeleteRequest, OffsetDeleteResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::store::PartitionOfGroup;
use crate::group::classic::State;
use crate::group::{Group, GroupOutcome, GroupRecord, GroupShard, Reply};
use crate::runtime::Ticket;

/// Deletes what a group has committed for some partitions. The topics are known to exist: the caller has looked.
pub(crate) fn delete(shard: &mut GroupShard, ticket: Ticket, request: OffsetDeleteRequest) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    let response = match subscribed(shard, &request.group_id) {
        Err(error) => OffsetDeleteResponse { error_code: error as i16, ..Default::default() },
        Ok(subscribed) => {
            let mut topics = Vec::with_capacity(request.topics.len());
            for topic in &request.topics {
                let error = match subscribed.contains(&topic.name) {
                    true => ErrorCode::GroupSubscribedToTopic,
                    false => ErrorCode::None,
                };
                let indexes = topic.partitions.iter().map(|partition| partition.partition_index);
                if error == ErrorCode::None {
                    for partition in indexes.clone() {
                        forget(shard, &mut outcome, &request.group_id, &topic.name, partition);
                    }
                }
                let partitions = indexes.map(|partition_index| OffsetDeleteResponsePartition {
                    partition_index,
                    error_code: error as i16,
                });
                topics.push(OffsetDeleteResponseTopic {
                    name: topic.name.clone(),
                    partitions: partitions.collect(),
                });
            }
            OffsetDeleteResponse { topics, ..Default::default() }
        }
    };
    outcome.replies.push((ticket, Reply::OffsetDelete(response)));
    outcome
}

/// The topics that the group still reads. Of members that are no consumers nobody knows: then nothing can be deleted.
fn subscribed(
    shard: &GroupShard,
    group_id: &str,
) -> Result<std::collections::BTreeSet<ByteString>, ErrorCode> {
    match shard.groups.get(group_id) {
        None => Err(ErrorCode::GroupIdNotFound),
        Some(Group::Consumer(group)) => Ok(group.subscribed_topics()),
        Some(Group::Classic(group)) if group.state() == State::Empty => Ok(Default::default()),
        Some(Group::Classic(group)) if !group.is_of_consumers() => Err(ErrorCode::NonEmptyGroup),
        Some(Group::Classic(group)) => Ok(group.subscribed_topics().unwrap_or_default()),
    }
}

fn forget(
    shard: &mut GroupShard,
    outcome: &mut GroupOutcome,
    group_id: &ByteString,
    topic: &ByteString,
    partition: i32,
) {
    let of = PartitionOfGroup { group_id: group_id.clone(), topic: topic.clone(), partition };
    if shard.offsets.get(group_id, topic, partition).is_some() || shard.offsets.is_pending(&of) {
        shard.write(outcome, GroupRecord::tombstone(OffsetCommitKey::from(of)));
    }
}

/// Deletes what groups have committed for topics that are no more.
pub(crate) fn topics_deleted(shard: &mut GroupShard, deleted: &[ByteString]) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    for topic in deleted {
        for group_id in shard.offsets.groups_with(topic) {
            let partitions: Vec<i32> = shard
                .offsets
                .of_group(&group_id)
                .and_then(|topics| topics.get(topic))
                .map(|partitions| partitions.keys().copied().collect())
                .unwrap_or_default();
            for partition in partitions {
                forget(shard, &mut outcome, &group_id, topic, partition);
            }
        }
    }
    outcome
}
