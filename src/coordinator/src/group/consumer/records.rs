//! The records of consumer groups: how they are written, and how they are taken in.

use std::sync::Arc;

use callboard_protocol::messages::consumer_group_current_member_assignment_value::TopicPartitions as CurrentPartitions;
use callboard_protocol::messages::consumer_group_member_metadata_value::{
    ClassicMemberMetadata, ClassicProtocol,
};
use callboard_protocol::messages::consumer_group_target_assignment_member_value::TopicPartition as TargetPartitions;
use callboard_protocol::messages::group_record::{GroupRecordKey, GroupRecordValue};
use callboard_protocol::messages::{
    ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue, ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue, ConsumerGroupPartitionMetadataKey, ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue, ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue, ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
};
use callboard_protocol::{ByteString, Uuid};

use super::member::{ClassicPart, LEAVING_EPOCH, Member, MemberState};
use super::partitions::{AssignedPartitions, Partitions};
use super::state::{ConsumerGroup, ResolvedRegex};
use crate::group::GroupRecord;

/// What the records are called where a fault is told.
pub(super) const NAME: &str = "consumer group";
/// The version of all values of consumer groups.
const VERSION: i16 = 0;

fn group_key(group_id: &ByteString) -> ConsumerGroupMetadataKey {
    ConsumerGroupMetadataKey { group_id: group_id.clone() }
}

fn member_key(group_id: &ByteString, member_id: &ByteString) -> ConsumerGroupMemberMetadataKey {
    ConsumerGroupMemberMetadataKey { group_id: group_id.clone(), member_id: member_id.clone() }
}

fn target_key(group_id: &ByteString, member_id: &ByteString) -> ConsumerGroupTargetAssignmentMemberKey {
    ConsumerGroupTargetAssignmentMemberKey { group_id: group_id.clone(), member_id: member_id.clone() }
}

fn current_key(group_id: &ByteString, member_id: &ByteString) -> ConsumerGroupCurrentMemberAssignmentKey {
    ConsumerGroupCurrentMemberAssignmentKey { group_id: group_id.clone(), member_id: member_id.clone() }
}

fn regex_key(group_id: &ByteString, regex: &ByteString) -> ConsumerGroupRegularExpressionKey {
    ConsumerGroupRegularExpressionKey { group_id: group_id.clone(), regular_expression: regex.clone() }
}

/// The group's epoch and the hash of its topics.
pub(super) fn group_epoch(group_id: &ByteString, epoch: i32, metadata_hash: i64) -> GroupRecord {
    let value = ConsumerGroupMetadataValue { epoch, metadata_hash, ..Default::default() };
    GroupRecord::new(group_key(group_id), value, VERSION)
}

/// The group is gone.
pub(super) fn group_gone(group_id: &ByteString) -> GroupRecord {
    GroupRecord::tombstone(group_key(group_id))
}

/// The former record of the group's topics is gone; Kafka up to 4.0 wrote it.
pub(super) fn partition_metadata_gone(group_id: &ByteString) -> GroupRecord {
    GroupRecord::tombstone(ConsumerGroupPartitionMetadataKey { group_id: group_id.clone() })
}

/// What a member told of itself.
pub(super) fn member(group_id: &ByteString, member: &Member) -> GroupRecord {
    let classic_member_metadata = member.classic.as_ref().map(|classic| ClassicMemberMetadata {
        session_timeout_ms: classic.session_timeout_ms,
        supported_protocols: classic.protocols.iter().map(classic_protocol).collect(),
        ..Default::default()
    });
    let value = ConsumerGroupMemberMetadataValue {
        instance_id: member.instance_id.clone(),
        rack_id: member.rack_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        subscribed_topic_names: member.topics.iter().cloned().collect(),
        subscribed_topic_regex: Some(member.regex.clone()),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        server_assignor: member.server_assignor.clone(),
        classic_member_metadata,
        ..Default::default()
    };
    GroupRecord::new(member_key(group_id, &member.id), value, VERSION)
}

fn classic_protocol((name, metadata): &(ByteString, bytes::Bytes)) -> ClassicProtocol {
    ClassicProtocol { name: name.clone(), metadata: metadata.clone(), ..Default::default() }
}

/// A member is gone.
pub(super) fn member_gone(group_id: &ByteString, member_id: &ByteString) -> GroupRecord {
    GroupRecord::tombstone(member_key(group_id, member_id))
}

/// The epoch that the assignment was made for, and when.
pub(super) fn assignment_epoch(group_id: &ByteString, epoch: i32, timestamp_ms: i64) -> GroupRecord {
    let key = ConsumerGroupTargetAssignmentMetadataKey { group_id: group_id.clone() };
    let value = ConsumerGroupTargetAssignmentMetadataValue {
        assignment_epoch: epoch,
        assignment_timestamp: timestamp_ms,
        ..Default::default()
    };
    GroupRecord::new(key, value, VERSION)
}

/// The assignment is gone.
pub(super) fn assignment_gone(group_id: &ByteString) -> GroupRecord {
    GroupRecord::tombstone(ConsumerGroupTargetAssignmentMetadataKey { group_id: group_id.clone() })
}

/// What the assignment gives a member.
pub(super) fn target(group_id: &ByteString, member_id: &ByteString, partitions: &Partitions) -> GroupRecord {
    let topic_partitions = partitions
        .topics()
        .map(|(topic_id, partitions)| TargetPartitions {
            topic_id,
            partitions: partitions.iter().copied().collect(),
            ..Default::default()
        })
        .collect();
    let value = ConsumerGroupTargetAssignmentMemberValue { topic_partitions, ..Default::default() };
    GroupRecord::new(target_key(group_id, member_id), value, VERSION)
}

/// The assignment gives a member nothing any more: it is gone.
pub(super) fn target_gone(group_id: &ByteString, member_id: &ByteString) -> GroupRecord {
    GroupRecord::tombstone(target_key(group_id, member_id))
}

/// What a member has.
pub(super) fn current(group_id: &ByteString, member: &Member) -> GroupRecord {
    let value = ConsumerGroupCurrentMemberAssignmentValue {
        member_epoch: member.epoch,
        previous_member_epoch: member.previous_epoch,
        state: member.state.value(),
        assigned_partitions: current_partitions(&member.assigned),
        partitions_pending_revocation: current_partitions(&member.pending_revocation),
        ..Default::default()
    };
    GroupRecord::new(current_key(group_id, &member.id), value, VERSION)
}

fn current_partitions(partitions: &AssignedPartitions) -> Vec<CurrentPartitions> {
    let topic = |(topic_id, partitions): (Uuid, &std::collections::BTreeMap<i32, i32>)| CurrentPartitions {
        topic_id,
        partitions: partitions.keys().copied().collect(),
        assignment_epochs: Some(partitions.values().copied().collect()),
        ..Default::default()
    };
    partitions.topics().map(topic).collect()
}

/// A member has nothing any more.
pub(super) fn current_gone(group_id: &ByteString, member_id: &ByteString) -> GroupRecord {
    GroupRecord::tombstone(current_key(group_id, member_id))
}

/// What a pattern stands for.
pub(super) fn regex(group_id: &ByteString, regex: &ByteString, resolved: &ResolvedRegex) -> GroupRecord {
    let value = ConsumerGroupRegularExpressionValue {
        topics: resolved.topics.iter().cloned().collect(),
        version: resolved.version,
        timestamp: resolved.timestamp_ms,
        ..Default::default()
    };
    GroupRecord::new(regex_key(group_id, regex), value, VERSION)
}

/// Nobody has the pattern any more.
pub(super) fn regex_gone(group_id: &ByteString, regex: &ByteString) -> GroupRecord {
    GroupRecord::tombstone(regex_key(group_id, regex))
}

/// The group that a record of this protocol speaks of, and whether it makes the group if there is none. `None` for a
/// record of another kind.
pub(super) fn group_of(record: &GroupRecord) -> Option<(&ByteString, bool)> {
    let has_value = record.value.is_some();
    Some(match &record.key {
        GroupRecordKey::ConsumerGroupMetadataKey(key) => (&key.group_id, has_value),
        GroupRecordKey::ConsumerGroupMemberMetadataKey(key) => (&key.group_id, has_value),
        GroupRecordKey::ConsumerGroupPartitionMetadataKey(key) => (&key.group_id, false),
        GroupRecordKey::ConsumerGroupTargetAssignmentMetadataKey(key) => (&key.group_id, has_value),
        GroupRecordKey::ConsumerGroupTargetAssignmentMemberKey(key) => (&key.group_id, has_value),
        GroupRecordKey::ConsumerGroupCurrentMemberAssignmentKey(key) => (&key.group_id, has_value),
        GroupRecordKey::ConsumerGroupRegularExpressionKey(key) => (&key.group_id, has_value),
        _ => return None,
    })
}

/// Whether a record says that its group is gone.
pub(super) fn ends_group(record: &GroupRecord) -> bool {
    matches!(record.key, GroupRecordKey::ConsumerGroupMetadataKey(_)) && record.value.is_none()
}

impl ConsumerGroup {
    /// Takes a record of this group into memory. Whether key and value go together.
    pub(super) fn apply(&mut self, record: &GroupRecord) -> bool {
        use GroupRecordKey as Key;
        use GroupRecordValue as Value;
        match (&record.key, record.value.as_ref().map(|(value, _)| value)) {
            (Key::ConsumerGroupMetadataKey(_), Some(Value::ConsumerGroupMetadataValue(value))) => {
                self.epoch = value.epoch;
                self.metadata_hash = value.metadata_hash;
            }
            (
                Key::ConsumerGroupMemberMetadataKey(key),
                Some(Value::ConsumerGroupMemberMetadataValue(value)),
            ) => self.apply_member(&key.member_id, value),
            (Key::ConsumerGroupMemberMetadataKey(key), None) => self.take_member(&key.member_id),
            (
                Key::ConsumerGroupTargetAssignmentMetadataKey(_),
                Some(Value::ConsumerGroupTargetAssignmentMetadataValue(value)),
            ) => {
                self.assignment_epoch = value.assignment_epoch;
                self.assignment_timestamp_ms = value.assignment_timestamp;
            }
            (
                Key::ConsumerGroupTargetAssignmentMemberKey(key),
                Some(Value::ConsumerGroupTargetAssignmentMemberValue(value)),
            ) => {
                let topics = value.topic_partitions.iter();
                let partitions = topics.flat_map(|t| t.partitions.iter().map(|p| (t.topic_id, *p))).collect();
                self.targets.insert(key.member_id.clone(), Arc::new(partitions));
            }
            (Key::ConsumerGroupTargetAssignmentMemberKey(key), None) => {
                self.targets.remove(&key.member_id);
            }
            (
                Key::ConsumerGroupCurrentMemberAssignmentKey(key),
                Some(Value::ConsumerGroupCurrentMemberAssignmentValue(value)),
            ) => self.apply_current(&key.member_id, value),
            (Key::ConsumerGroupCurrentMemberAssignmentKey(key), None) => self.reset_current(&key.member_id),
            (
                Key::ConsumerGroupRegularExpressionKey(key),
                Some(Value::ConsumerGroupRegularExpressionValue(value)),
            ) => {
                let resolved = ResolvedRegex {
                    topics: value.topics.iter().cloned().collect(),
                    version: value.version,
                    timestamp_ms: value.timestamp,
                };
                self.regexes.insert(key.regular_expression.clone(), Arc::new(resolved));
            }
            (Key::ConsumerGroupRegularExpressionKey(key), None) => {
                self.regexes.remove(&key.regular_expression);
            }
            // A tombstone of the group itself is for whoever holds the groups; the topics' former record says nothing.
            (
                Key::ConsumerGroupMetadataKey(_)
                | Key::ConsumerGroupTargetAssignmentMetadataKey(_)
                | Key::ConsumerGroupPartitionMetadataKey(_),
                None,
            )
            | (
                Key::ConsumerGroupPartitionMetadataKey(_),
                Some(Value::ConsumerGroupPartitionMetadataValue(_)),
            ) => {}
            _ => return false,
        }
        true
    }

    fn member_or_new(&self, id: &ByteString) -> Member {
        self.members.get(id).map_or_else(|| Member::new(id.clone()), |member| Member::clone(member))
    }

    fn apply_member(&mut self, id: &ByteString, value: &ConsumerGroupMemberMetadataValue) {
        let classic = value.classic_member_metadata.as_ref().map(|classic| ClassicPart {
            session_timeout_ms: classic.session_timeout_ms,
            protocols: classic
                .supported_protocols
                .iter()
                .map(|protocol| (protocol.name.clone(), protocol.metadata.clone()))
                .collect(),
        });
        self.put_member(Member {
            instance_id: value.instance_id.clone(),
            rack_id: value.rack_id.clone(),
            client_id: value.client_id.clone(),
            client_host: value.client_host.clone(),
            topics: value.subscribed_topic_names.iter().cloned().collect(),
            regex: value.subscribed_topic_regex.clone().unwrap_or_default(),
            rebalance_timeout_ms: value.rebalance_timeout_ms,
            server_assignor: value.server_assignor.clone(),
            classic,
            ..self.member_or_new(id)
        });
    }

    fn apply_current(&mut self, id: &ByteString, value: &ConsumerGroupCurrentMemberAssignmentValue) {
        let assigned = |topics: &[CurrentPartitions]| -> AssignedPartitions {
            topics.iter().flat_map(|topic| with_epochs(topic, value.member_epoch)).collect()
        };
        self.put_member(Member {
            epoch: value.member_epoch,
            previous_epoch: value.previous_member_epoch,
            state: MemberState::from_value(value.state),
            assigned: assigned(&value.assigned_partitions),
            pending_revocation: assigned(&value.partitions_pending_revocation),
            ..self.member_or_new(id)
        });
    }

    fn reset_current(&mut self, id: &ByteString) {
        if let Some(member) = self.members.get(id) {
            self.put_member(Member {
                epoch: LEAVING_EPOCH,
                previous_epoch: LEAVING_EPOCH,
                state: MemberState::Stable,
                assigned: AssignedPartitions::new(),
                pending_revocation: AssignedPartitions::new(),
                ..Member::clone(member)
            });
        }
    }
}

/// The partitions of a topic with their epochs. Kafka before 4.3 wrote none: then the member's own is the safe one.
fn with_epochs(topic: &CurrentPartitions, member_epoch: i32) -> impl Iterator<Item = (Uuid, i32, i32)> {
    let epochs = topic.assignment_epochs.as_deref().unwrap_or_default();
    topic.partitions.iter().enumerate().map(move |(index, partition)| {
        (topic.topic_id, *partition, epochs.get(index).copied().unwrap_or(member_epoch))
    })
}
