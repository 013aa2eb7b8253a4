//! ConsumerGroupDescribe.

use callboard_protocol::messages::consumer_group_describe_response::{
    Assignment, DescribedGroup, Member as DescribedMember, TopicPartitions,
};
use callboard_protocol::{ByteString, Uuid};

use super::member::Member;
use super::state::ConsumerGroup;
use crate::Circumstances;
use crate::cluster::Cluster;

/// Clients did not ask what they may do.
const OPERATIONS_NOT_ASKED: i32 = i32::MIN;
/// How a member of each protocol is told, from version 1 on.
const CLASSIC_MEMBER: i8 = 0;
const CONSUMER_MEMBER: i8 = 1;

impl ConsumerGroup {
    /// The group as ConsumerGroupDescribe shows it.
    pub(super) fn describe(&self, cx: &Circumstances<'_>) -> DescribedGroup {
        DescribedGroup {
            group_id: self.id.clone(),
            group_state: self.state_name().into(),
            group_epoch: self.epoch,
            assignment_epoch: self.assignment_epoch,
            assignor_name: cx.settings.consumer.assignor_of(self).name().into(),
            members: self.members().map(|member| self.describe_member(member, cx.cluster)).collect(),
            authorized_operations: OPERATIONS_NOT_ASKED,
            ..Default::default()
        }
    }

    fn describe_member(&self, member: &Member, cluster: &dyn Cluster) -> DescribedMember {
        // What it has yet to give up is still its own.
        let mut current = member.assigned.partitions();
        member.pending_revocation.iter().for_each(|(topic, partition, _)| current.insert(topic, partition));
        DescribedMember {
            member_id: member.id.clone(),
            instance_id: member.instance_id.clone(),
            rack_id: member.rack_id.clone(),
            member_epoch: member.epoch,
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            subscribed_topic_names: member.topics.iter().cloned().collect(),
            subscribed_topic_regex: Some(member.regex.clone()),
            assignment: assignment(&current, cluster),
            target_assignment: assignment(&self.target(&member.id), cluster),
            member_type: if member.uses_classic_protocol() { CLASSIC_MEMBER } else { CONSUMER_MEMBER },
            ..Default::default()
        }
    }
}

/// Partitions by topic name; those of deleted topics are left out.
fn assignment(partitions: &super::Partitions, cluster: &dyn Cluster) -> Assignment {
    let named = |(topic_id, partitions): (Uuid, &std::collections::BTreeSet<i32>)| {
        let topic_name: ByteString = cluster.topic_by_id(topic_id)?.name;
        let partitions = partitions.iter().copied().collect();
        Some(TopicPartitions { topic_id, topic_name, partitions, ..Default::default() })
    };
    Assignment { topic_partitions: partitions.topics().filter_map(named).collect(), ..Default::default() }
}
