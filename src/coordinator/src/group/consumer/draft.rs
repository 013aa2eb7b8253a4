//! A change of a group while it is being worked out: nothing of it counts if it is refused half-way.

use std::sync::Arc;

use callboard_protocol::{ByteString, Uuid};

use super::assignor::{GroupSpec, MemberSpec};
use super::hash::{group_hash, topic_hash};
use super::member::{Member, MemberState};
use super::partitions::Partitions;
use super::reconcile::Aim;
use super::records;
use super::regex::LookUp;
use super::state::ConsumerGroup;
use crate::Circumstances;
use crate::cluster::Cluster;
use crate::group::{GroupRecord, TimerKind};

/// The group as it will be, the records that make it so, and what goes with them.
#[derive(Debug)]
pub(super) struct Draft {
    pub group: ConsumerGroup,
    pub records: Vec<GroupRecord>,
    /// Deadlines to set, so many milliseconds from now, or to cancel.
    pub timers: Vec<(TimerKind, Option<i64>)>,
    /// The deadline of a member that was told to join: it stays if it is set already.
    pub join_deadline: Option<(TimerKind, i64)>,
    /// Whether it takes the place of a classic group.
    pub replaces_classic: bool,
    /// Patterns to look up.
    pub look_up: Option<LookUp>,
}

impl Draft {
    pub fn new(group: ConsumerGroup) -> Self {
        Self {
            group,
            records: Vec::new(),
            timers: Vec::new(),
            join_deadline: None,
            replaces_classic: false,
            look_up: None,
        }
    }

    /// Adds a record, which holds from now on.
    pub fn write(&mut self, record: GroupRecord) {
        let fits = self.group.apply(&record);
        debug_assert!(fits, "a record of this module has the value of its key");
        self.records.push(record);
    }

    pub fn id(&self) -> ByteString {
        self.group.id.clone()
    }

    /// Writes down what a member told of itself, if that is new. Whether it wants other topics by name.
    pub fn describe_member(&mut self, former: &Member, member: &Member) -> bool {
        let is_known = self.group.members.contains_key(&member.id);
        if !is_known || !former.same_description(member) {
            self.write(records::member(&self.id(), member));
        }
        if former.regex != member.regex {
            self.drop_unused_regex(&former.regex);
        }
        former.topics != member.topics
    }

    /// Forgets a pattern that nobody has any more.
    pub fn drop_unused_regex(&mut self, regex: &ByteString) {
        let used = self.group.members().any(|member| member.regex == *regex);
        if !used && self.group.regexes.contains_key(regex) {
            self.write(records::regex_gone(&self.id(), regex));
        }
    }

    /// Starts a new epoch if the group needs a new assignment: because somebody wants other topics (`bump`), or because
    /// the topics are not what they were.
    pub fn update_epoch(&mut self, bump: bool, cluster: &dyn Cluster) {
        let offset = cluster.metadata_offset();
        if !bump && self.group.soft.compared_at == Some(offset) {
            return;
        }
        self.group.soft.compared_at = Some(offset);
        let topics = self.group.existing_topics(cluster);
        let hash = group_hash(topics.values().map(|topic| topic_hash(cluster, topic)));
        if bump || hash != self.group.metadata_hash {
            let epoch = self.group.epoch.saturating_add(1);
            self.write(records::group_epoch(&self.id(), epoch, hash));
        }
    }

    /// Assigns anew if the group's epoch asks for it and the last time is long enough ago (KIP-1263).
    pub fn update_assignment(&mut self, cx: &Circumstances<'_>) {
        if self.group.epoch <= self.group.assignment_epoch {
            return;
        }
        let interval_ms = i64::from(cx.settings.consumer.assignment_interval_ms(cx.cluster, &self.group.id));
        let since_ms = cx.now_ms.saturating_sub(self.group.assignment_timestamp_ms);
        // A time in the future is of another clock: it must not hold the group back.
        if self.group.assignment_timestamp_ms > 0 && (0..interval_ms).contains(&since_ms) {
            return;
        }
        let assignor = cx.settings.consumer.assignor_of(&self.group);
        let assignment = assignor.assign(&self.group_spec(cx.cluster));
        let id = self.id();
        for (member_id, partitions) in assignment {
            if self.group.targets.get(&member_id).is_none_or(|former| **former != partitions) {
                self.write(records::target(&id, &member_id, &partitions));
            }
        }
        self.write(records::assignment_epoch(&id, self.group.epoch, cx.now_ms));
    }

    /// The group as assignors see it.
    fn group_spec(&self, cluster: &dyn Cluster) -> GroupSpec {
        let topics = self.group.existing_topics(cluster);
        let member_spec = |member: &Arc<Member>| {
            let by_regex = self.group.regexes.get(&member.regex).map(|regex| &regex.topics);
            let names = member.topics.iter().chain(by_regex.into_iter().flatten());
            MemberSpec {
                instance_id: member.instance_id.clone(),
                topics: names.filter_map(|name| topics.get(name)).map(|topic| topic.id).collect(),
                current: Partitions::clone(&self.group.target(&member.id)),
            }
        };
        GroupSpec {
            members: self
                .group
                .members
                .iter()
                .map(|(id, member)| (id.clone(), member_spec(member)))
                .collect(),
            partition_counts: topics.values().map(|topic| (topic.id, topic.partitions)).collect(),
        }
    }

    /// Takes a member one step towards its target, and writes down where it is then.
    pub fn reconcile(
        &mut self,
        member_id: &ByteString,
        owned: Option<&Partitions>,
        subscription_changed: bool,
        cx: &Circumstances<'_>,
    ) {
        let Some(member) = self.group.members.get(member_id).cloned() else { return };
        let target = self.group.target(member_id);
        let wants = |topic: Uuid| {
            let view = cx.cluster.topic_by_id(topic);
            // A deleted topic is no longer wanted by anybody.
            view.is_some_and(|view| self.group.member_wants(&member, &view.name))
        };
        let next = Aim {
            epoch: self.group.assignment_epoch,
            target: &target,
            wants: &wants,
            is_free: &|topic, partition| self.group.is_free_for(member_id, topic, partition),
            owned,
            subscription_changed,
        }
        .step(&member);
        if next.same_position(&member) {
            return;
        }
        self.write(records::current(&self.id(), &next));
        let deadline = TimerKind::ConsumerRebalance(member_id.clone());
        if next.state == MemberState::UnrevokedPartitions {
            self.timers.push((deadline, Some(i64::from(next.rebalance_timeout_ms.max(0)))));
        } else if member.state == MemberState::UnrevokedPartitions {
            self.timers.push((deadline, None));
        }
    }

    /// Starts a member's session anew.
    pub fn keep_session(&mut self, member: &Member, cx: &Circumstances<'_>) {
        let timeout_ms = session_timeout_ms(&self.group, member, cx);
        self.timers.push((TimerKind::ConsumerSession(member.id.clone()), Some(timeout_ms)));
    }

    /// Takes a member out, without yet starting a new epoch.
    pub fn remove(&mut self, member_id: &ByteString) {
        let regex = self.group.members.get(member_id).map(|member| member.regex.clone()).unwrap_or_default();
        let id = self.id();
        self.write(records::current_gone(&id, member_id));
        self.write(records::target_gone(&id, member_id));
        self.write(records::member_gone(&id, member_id));
        self.drop_unused_regex(&regex);
        self.cancel_timers(member_id);
    }

    /// Waits for nothing of a member any more.
    pub fn cancel_timers(&mut self, member_id: &ByteString) {
        let kinds = [
            TimerKind::ConsumerSession,
            TimerKind::ConsumerRebalance,
            TimerKind::ConsumerJoin,
            TimerKind::ConsumerSync,
        ];
        self.timers.extend(kinds.into_iter().map(|kind| (kind(member_id.clone()), None)));
    }

    /// Starts a new epoch since members are gone. A group without members needs no assignment: it has it already.
    pub fn epoch_after_removal(&mut self, cluster: &dyn Cluster) {
        self.update_epoch(true, cluster);
        if self.group.is_empty() {
            self.write(records::assignment_epoch(&self.id(), self.group.epoch, 0));
        }
    }
}

/// How long a member may be silent, in milliseconds: members of the classic protocol say it themselves.
pub(super) fn session_timeout_ms(group: &ConsumerGroup, member: &Member, cx: &Circumstances<'_>) -> i64 {
    i64::from(match &member.classic {
        Some(classic) => classic.session_timeout_ms,
        None => cx.settings.consumer.session_timeout_ms(cx.cluster, &group.id),
    })
}
