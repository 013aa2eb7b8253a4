//! OffsetCommit.

use callboard_protocol::messages::offset_commit_request::OffsetCommitRequestPartition;
use callboard_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use callboard_protocol::messages::{
    OffsetCommitKey, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitValue,
};
use callboard_protocol::{ErrorCode, Uuid};

use crate::cluster::{Circumstances, Cluster};
use crate::group::{Caller, Group, GroupOutcome, GroupRecord, GroupShard, Reply, classic};
use crate::runtime::Ticket;

/// From this version on the answer can say that there is no such group.
const FIRST_WITH_GROUP_NOT_FOUND: i16 = 9;
/// A commit that says when it is to go can only be written in this version.
const VERSION_WITH_EXPIRY: i16 = 1;
/// The version of all other commits.
const VERSION: i16 = 4;
/// No time is given.
const DEFAULT_RETENTION: i64 = -1;

/// Commits offsets. The topics are known to exist: the caller has looked.
pub(crate) fn commit(
    shard: &mut GroupShard,
    ticket: Ticket,
    caller: &Caller,
    request: OffsetCommitRequest,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    let response = match check(shard, caller.version, &request, cx) {
        Err(error) => refuse_all(&request, error),
        Ok(()) => {
            classic::heard_of(shard, &request.group_id, &request.member_id, cx);
            write_all(shard, &request, cx, &mut outcome)
        }
    };
    outcome.replies.push((ticket, Reply::OffsetCommit(response)));
    outcome
}

/// Whether the committer may.
fn check(
    shard: &GroupShard,
    version: i16,
    request: &OffsetCommitRequest,
    cx: &Circumstances<'_>,
) -> Result<(), ErrorCode> {
    let (member_id, epoch) = (&request.member_id, request.generation_id_or_member_epoch);
    match shard.groups.get(&request.group_id) {
        Some(Group::Classic(group)) => {
            group.check_commit(member_id, request.group_instance_id.as_ref(), epoch)
        }
        Some(Group::Consumer(group)) => {
            group.check_commit(member_id, epoch, version, partitions_of(request, cx.cluster))
        }
        // From a consumer that assigns itself, or from an administrator.
        None if epoch < 0 => Ok(()),
        None if version >= FIRST_WITH_GROUP_NOT_FOUND => Err(ErrorCode::GroupIdNotFound),
        None => Err(ErrorCode::IllegalGeneration),
    }
}

/// The partitions of a commit. Topics that are gone have none that a member could have.
fn partitions_of(request: &OffsetCommitRequest, cluster: &dyn Cluster) -> impl Iterator<Item = (Uuid, i32)> {
    request.topics.iter().flat_map(move |topic| {
        let id = match topic.topic_id.is_zero() {
            true => cluster.topic(&topic.name).map_or(Uuid::ZERO, |topic| topic.id),
            false => topic.topic_id,
        };
        topic.partitions.iter().map(move |partition| (id, partition.partition_index))
    })
}

fn write_all(
    shard: &mut GroupShard,
    request: &OffsetCommitRequest,
    cx: &Circumstances<'_>,
    outcome: &mut GroupOutcome,
) -> OffsetCommitResponse {
    let max_metadata_bytes = cx.settings.offsets.max_metadata_bytes;
    let expire_ms = (request.retention_time_ms != DEFAULT_RETENTION)
        .then(|| cx.now_ms.saturating_add(request.retention_time_ms));
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let metadata_bytes = partition.committed_metadata.as_ref().map_or(0, |text| text.len());
            let error = match metadata_bytes > max_metadata_bytes {
                true => ErrorCode::OffsetMetadataTooLarge,
                false => {
                    let key = OffsetCommitKey {
                        group: request.group_id.clone(),
                        topic: topic.name.clone(),
                        partition: partition.partition_index,
                    };
                    shard.write(outcome, record(key, partition, topic.topic_id, cx.now_ms, expire_ms));
                    ErrorCode::None
                }
            };
            partitions.push(answer(partition.partition_index, error));
        }
        topics.push(OffsetCommitResponseTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions,
            ..Default::default()
        });
    }
    OffsetCommitResponse { topics, ..Default::default() }
}

fn record(
    key: OffsetCommitKey,
    partition: &OffsetCommitRequestPartition,
    topic_id: Uuid,
    commit_timestamp: i64,
    expire_ms: Option<i64>,
) -> GroupRecord {
    let value = OffsetCommitValue {
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: partition.committed_metadata.clone().unwrap_or_default(),
        commit_timestamp,
        expire_timestamp: expire_ms.unwrap_or(-1),
        topic_id,
        ..Default::default()
    };
    GroupRecord::new(key, value, if expire_ms.is_some() { VERSION_WITH_EXPIRY } else { VERSION })
}

fn answer(partition_index: i32, error: ErrorCode) -> OffsetCommitResponsePartition {
    OffsetCommitResponsePartition { partition_index, error_code: error as i16, ..Default::default() }
}

/// The same error for all partitions.
fn refuse_all(request: &OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse {
    let topics = request.topics.iter().map(|topic| OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(|p| answer(p.partition_index, error)).collect(),
        ..Default::default()
    });
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}
