//! TxnOffsetCommit: offsets that count once a transaction is committed.

use callboard_protocol::messages::txn_offset_commit_request::TxnOffsetCommitRequestPartition;
use callboard_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use callboard_protocol::messages::{
    OffsetCommitKey, OffsetCommitValue, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
};
use callboard_protocol::{ErrorCode, Uuid};

use crate::cluster::Circumstances;
use crate::group::{Group, GroupOutcome, GroupRecord, GroupShard, Reply};
use crate::runtime::{Producer, Ticket};

/// The version of these records.
const VERSION: i16 = 4;
/// The version of OffsetCommit by whose rules members of consumer groups commit. A wrong epoch is told as a wrong
/// generation.
const LIKE_OFFSET_COMMIT: i16 = 9;

/// Commits offsets on behalf of a transaction, which the caller has seen to be open. The topics are known to exist.
pub(crate) fn txn_commit(
    shard: &mut GroupShard,
    ticket: Ticket,
    request: TxnOffsetCommitRequest,
    cx: &Circumstances<'_>,
) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    let allowed = check(shard, &request);
    let producer = Producer { id: request.producer_id, epoch: request.producer_epoch };
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            let metadata_bytes = partition.committed_metadata.as_ref().map_or(0, |text| text.len());
            let error = match allowed {
                Err(error) => error,
                Ok(()) if metadata_bytes > cx.settings.offsets.max_metadata_bytes => {
                    ErrorCode::OffsetMetadataTooLarge
                }
                Ok(()) => {
                    let key = OffsetCommitKey {
                        group: request.group_id.clone(),
                        topic: topic.name.clone(),
                        partition: partition.partition_index,
                    };
                    let record = record(key, partition, topic.topic_id, cx.now_ms);
                    shard.write_pending(&mut outcome, producer, record);
                    ErrorCode::None
                }
            };
            partitions.push(TxnOffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: error as i16,
                ..Default::default()
            });
        }
        topics.push(TxnOffsetCommitResponseTopic {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions,
            ..Default::default()
        });
    }
    let response = TxnOffsetCommitResponse { topics, ..Default::default() };
    outcome.replies.push((ticket, Reply::TxnOffsetCommit(response)));
    outcome
}

/// Whether the committer may. One that names neither a member nor a generation may always: the transaction alone
/// fences it (all clients before version 3, and those that assign themselves).
fn check(shard: &GroupShard, request: &TxnOffsetCommitRequest) -> Result<(), ErrorCode> {
    let (member_id, epoch) = (&request.member_id, request.generation_id_or_member_epoch);
    if epoch < 0 && member_id.is_empty() && request.group_instance_id.is_none() {
        return Ok(());
    }
    match shard.groups.get(&request.group_id) {
        Some(Group::Classic(group)) => {
            match group.check_commit(member_id, request.group_instance_id.as_ref(), epoch) {
                // What was read in the last generation may go with the transaction.
                Err(ErrorCode::RebalanceInProgress) => Ok(()),
                checked => checked,
            }
        }
        Some(Group::Consumer(group)) => {
            let partitions = request
                .topics
                .iter()
                .flat_map(|topic| topic.partitions.iter().map(|of| (topic.topic_id, of.partition_index)));
            match group.check_commit(member_id, epoch, LIKE_OFFSET_COMMIT, partitions) {
                Err(ErrorCode::StaleMemberEpoch) => Err(ErrorCode::IllegalGeneration),
                checked => checked,
            }
        }
        None if epoch < 0 => Ok(()),
        None => Err(ErrorCode::IllegalGeneration),
    }
}

fn record(
    key: OffsetCommitKey,
    partition: &TxnOffsetCommitRequestPartition,
    topic_id: Uuid,
    commit_timestamp: i64,
) -> GroupRecord {
    let value = OffsetCommitValue {
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: partition.committed_metadata.clone().unwrap_or_default(),
        commit_timestamp,
        expire_timestamp: -1,
        topic_id,
        ..Default::default()
    };
    GroupRecord::new(key, value, VERSION)
}
