//! Online migration: a classic group becomes a consumer group when the first member of that protocol joins, and a classic
//! group again when the last one goes.

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard_protocol::messages::GroupMetadataKey;
use callboard_protocol::{ByteString, ErrorCode};

use super::draft::{Draft, session_timeout_ms};
use super::embedded::{self, CONSUMER};
use super::error::Refusal;
use super::hash::{group_hash, topic_hash};
use super::member::{ClassicPart, Member, MemberState};
use super::records;
use super::state::ConsumerGroup;
use crate::Circumstances;
use crate::group::classic::{self, ClassicGroup};
use crate::group::{GroupOutcome, GroupRecord, GroupShard, TimerKind};

/// A classic group as a consumer group: its members go on with what they have, at the generation as their epoch.
///
/// # Errors
/// GROUP_ID_NOT_FOUND with the reason why not.
pub(super) fn upgrade(
    group: &ClassicGroup,
    group_id: &ByteString,
    cx: &Circumstances<'_>,
) -> Result<Draft, Refusal> {
    let mut draft = Draft::new(ConsumerGroup::new(group_id.clone()));
    draft.replaces_classic = true;
    let classic_members: Vec<_> = group.members().collect();
    if classic_members.is_empty() {
        return Ok(draft);
    }
    let settings = &cx.settings.consumer;
    let refuse = |reason| Err(Refusal::NoUpgrade { group_id: group_id.clone(), reason });
    if !settings.migration_policy.allows_upgrade() {
        return Err(Refusal::NotAConsumerGroup(group_id.clone()));
    }
    if group.protocol_type() != CONSUMER {
        return refuse("its members are no consumers");
    }
    if classic_members.len() > settings.max_size {
        return refuse("it has too many members");
    }
    let generation = group.generation();
    let members: Option<Vec<Member>> =
        classic_members.into_iter().map(|member| as_consumer(member, group, generation, cx)).collect();
    let Some(members) = members else {
        return refuse(
            "a member's subscription or assignment can't be read, or has data of a custom assignor",
        );
    };
    write_upgraded(&mut draft, &members, generation, cx);
    Ok(draft)
}

fn as_consumer(
    member: &classic::Member,
    group: &ClassicGroup,
    generation: i32,
    cx: &Circumstances<'_>,
) -> Option<Member> {
    let protocol = group.protocol();
    let metadata = match protocol {
        Some(protocol) => member.metadata(protocol),
        None => member.protocols.first().map(|(_, metadata)| metadata.clone()).unwrap_or_default(),
    };
    let subscription = embedded::subscription(&metadata)?;
    let assigned = embedded::assignment(&member.assignment, cx.cluster)?;
    Some(Member {
        instance_id: member.instance_id.clone(),
        rack_id: subscription.rack_id,
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        topics: subscription.topics,
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        classic: Some(ClassicPart {
            session_timeout_ms: member.session_timeout_ms,
            protocols: member.protocols.to_vec(),
        }),
        state: MemberState::Stable,
        epoch: generation,
        previous_epoch: generation,
        assigned: assigned.iter().map(|(topic, partition)| (topic, partition, generation)).collect(),
        ..Member::new(member.id.clone())
    })
}

fn write_upgraded(draft: &mut Draft, members: &[Member], generation: i32, cx: &Circumstances<'_>) {
    let id = draft.id();
    for member in members {
        draft.write(records::member(&id, member));
    }
    let topics = draft.group.existing_topics(cx.cluster);
    let hash = group_hash(topics.values().map(|topic| topic_hash(cx.cluster, topic)));
    draft.write(records::group_epoch(&id, generation, hash));
    for member in members {
        draft.write(records::target(&id, &member.id, &member.assigned.partitions()));
    }
    draft.write(records::assignment_epoch(&id, generation, 0));
    for member in members {
        draft.write(records::current(&id, member));
        draft.keep_session(member, cx);
    }
}

/// Takes the classic group away that a draft replaces: whoever waits in it is told to join again.
pub(super) fn end_classic(shard: &mut GroupShard, group_id: &ByteString, outcome: &mut GroupOutcome) {
    classic::dissolve(shard, group_id, ErrorCode::RebalanceInProgress, outcome);
    let key = GroupMetadataKey { group: group_id.clone() };
    shard.write(outcome, GroupRecord::tombstone(key));
}

/// Whether a group without some members is to be a classic group: if others are left, and all of them are classic.
pub(super) fn is_to_be_classic(
    group: &ConsumerGroup,
    gone: &BTreeSet<ByteString>,
    cx: &Circumstances<'_>,
) -> bool {
    let left = group.members().filter(|member| !gone.contains(&member.id)).count();
    left > 0
        && left <= cx.settings.classic.max_size
        && cx.settings.consumer.migration_policy.allows_downgrade()
        && group.all_use_classic_protocol_except(gone)
}

/// Makes a consumer group a classic group of the members that are left, and has them join again.
pub(super) fn downgrade(
    shard: &mut GroupShard,
    group: &ConsumerGroup,
    gone: &BTreeSet<ByteString>,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    for id in group.members.keys() {
        for kind in [
            TimerKind::ConsumerSession,
            TimerKind::ConsumerRebalance,
            TimerKind::ConsumerJoin,
            TimerKind::ConsumerSync,
        ] {
            shard.timers.cancel(&group.id, kind(id.clone()));
        }
    }
    for record in group.tombstones(&group.id) {
        shard.write(&mut outcome, record);
    }
    let left = group.members.values().filter(|member| !gone.contains(&member.id));
    let members: Vec<_> = left.filter_map(|member| as_classic(member, cx)).collect();
    let classic_group =
        ClassicGroup::of_members(group.id.clone(), group.epoch, CONSUMER.into(), members, cx.now_ms);
    outcome.extend(classic::take_over(shard, classic_group, cx));
    outcome
}

fn as_classic(member: &Arc<Member>, cx: &Circumstances<'_>) -> Option<classic::Member> {
    let classic = member.classic.as_ref()?;
    let first = classic.protocols.first().map(|(_, metadata)| metadata);
    let version = first.and_then(embedded::subscription).map_or(0, |subscription| subscription.version);
    Some(classic::Member {
        id: member.id.clone(),
        instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        session_timeout_ms: classic.session_timeout_ms,
        protocols: Arc::new(classic.protocols.clone()),
        assignment: embedded::assignment_bytes(&member.assigned, version, cx.cluster),
        is_new: false,
        joining: None,
        syncing: None,
    })
}

impl ConsumerGroup {
    /// What takes the group off the log.
    pub fn tombstones(&self, group_id: &ByteString) -> Vec<GroupRecord> {
        let ids = || self.members.keys();
        let mut tombstones: Vec<_> = ids().map(|id| records::current_gone(group_id, id)).collect();
        tombstones.extend(self.targets.keys().map(|id| records::target_gone(group_id, id)));
        tombstones.push(records::assignment_gone(group_id));
        tombstones.extend(ids().map(|id| records::member_gone(group_id, id)));
        tombstones.extend(self.regexes.keys().map(|regex| records::regex_gone(group_id, regex)));
        tombstones.push(records::partition_metadata_gone(group_id));
        tombstones.push(records::group_gone(group_id));
        tombstones
    }

    /// When each member's session ends, so many milliseconds from now, if nobody is heard of.
    pub(super) fn sessions(&self, cx: &Circumstances<'_>) -> Vec<(TimerKind, i64)> {
        let mut timers = Vec::new();
        for member in self.members() {
            let timeout_ms = session_timeout_ms(self, member, cx);
            timers.push((TimerKind::ConsumerSession(member.id.clone()), timeout_ms));
            if member.state == MemberState::UnrevokedPartitions {
                let timeout_ms = i64::from(member.rebalance_timeout_ms.max(0));
                timers.push((TimerKind::ConsumerRebalance(member.id.clone()), timeout_ms));
            }
        }
        timers
    }
}
