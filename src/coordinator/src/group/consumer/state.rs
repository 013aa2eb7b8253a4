//! The state of a consumer group: what its records say, and little beside.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callboard_protocol::{ByteString, Uuid};
use imbl::OrdMap;

use super::member::Member;
use super::partitions::{AssignedPartitions, Partitions, TopicPartition};
use crate::cluster::{Cluster, TopicView};

/// The epochs of a group that nobody has joined yet: its first rebalance has epoch 2, as in Kafka 4.4.
const FIRST_EPOCH: i32 = 1;

/// The topics that a pattern stood for when it was last looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedRegex {
    /// Their names.
    pub topics: BTreeSet<ByteString>,
    /// The metadata's offset at the time.
    pub version: i64,
    /// The time, in milliseconds since 1970.
    pub timestamp_ms: i64,
}

/// What a group knows that its log does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SoftState {
    /// The metadata's offset when the group's topics were last compared with it.
    pub compared_at: Option<i64>,
    /// Patterns are being looked up since this time, of the monotonic clock.
    pub resolving_since_ms: Option<i64>,
    /// The metadata's offset that patterns were last looked up at, and when, on the monotonic clock.
    pub resolved: Option<(i64, i64)>,
}

/// A group of the consumer protocol. Maps are persistent and members shared, so that a copy is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerGroup {
    pub(super) id: ByteString,
    pub(super) epoch: i32,
    pub(super) metadata_hash: i64,
    pub(super) assignment_epoch: i32,
    /// When the assignment was made, in milliseconds since 1970; 0 if it holds nobody back.
    pub(super) assignment_timestamp_ms: i64,
    pub(super) members: OrdMap<ByteString, Arc<Member>>,
    /// Member ids by instance id.
    pub(super) static_members: OrdMap<ByteString, ByteString>,
    pub(super) targets: OrdMap<ByteString, Arc<Partitions>>,
    /// Who has a partition, or has yet to give it up.
    pub(super) owners: OrdMap<TopicPartition, ByteString>,
    pub(super) regexes: OrdMap<ByteString, Arc<ResolvedRegex>>,
    pub(super) soft: SoftState,
}

/// The states of a group, as ListGroups and ConsumerGroupDescribe name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupState {
    /// Nobody is in it.
    Empty,
    /// It needs a new assignment.
    Assigning,
    /// Members are on the way to the assignment.
    Reconciling,
    /// Every member has what the assignment gives it.
    Stable,
}

impl GroupState {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Assigning => "Assigning",
            Self::Reconciling => "Reconciling",
            Self::Stable => "Stable",
        }
    }
}

impl ConsumerGroup {
    /// A group that nobody has joined yet.
    pub fn new(id: ByteString) -> Self {
        Self {
            id,
            epoch: FIRST_EPOCH,
            metadata_hash: 0,
            assignment_epoch: FIRST_EPOCH,
            assignment_timestamp_ms: 0,
            members: OrdMap::new(),
            static_members: OrdMap::new(),
            targets: OrdMap::new(),
            owners: OrdMap::new(),
            regexes: OrdMap::new(),
            soft: SoftState::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &ByteString {
        &self.id
    }

    /// Its epoch: it grows whenever a new assignment is needed.
    pub fn epoch(&self) -> i32 {
        self.epoch
    }

    /// The epoch that its assignment was made for.
    pub fn assignment_epoch(&self) -> i32 {
        self.assignment_epoch
    }

    /// Its members, in the order of their ids.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values().map(AsRef::as_ref)
    }

    /// A member by its id.
    pub fn member(&self, id: &str) -> Option<&Arc<Member>> {
        self.members.get(id)
    }

    /// The member of an instance id.
    pub fn static_member(&self, instance_id: &str) -> Option<&Arc<Member>> {
        self.members.get(self.static_members.get(instance_id)?)
    }

    /// How many members it has.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What the assignment gives a member.
    pub fn target(&self, member_id: &str) -> Arc<Partitions> {
        self.targets.get(member_id).cloned().unwrap_or_default()
    }

    /// Its state.
    pub fn state(&self) -> GroupState {
        if self.members.is_empty() {
            GroupState::Empty
        } else if self.epoch > self.assignment_epoch {
            GroupState::Assigning
        } else if self.members.values().all(|member| member.is_reconciled_to(self.assignment_epoch)) {
            GroupState::Stable
        } else {
            GroupState::Reconciling
        }
    }

    /// The state's name, as ListGroups has it.
    pub fn state_name(&self) -> &'static str {
        self.state().name()
    }

    /// Whether a member wants a topic.
    pub fn member_wants(&self, member: &Member, topic: &str) -> bool {
        member.topics.contains(topic)
            || self.regexes.get(&member.regex).is_some_and(|regex| regex.topics.contains(topic))
    }

    /// The topics that members subscribe to, by name or by pattern.
    pub fn subscribed_topics(&self) -> BTreeSet<ByteString> {
        self.wanted_topics().into_iter().cloned().collect()
    }

    /// All names that somebody wants, in order.
    pub(super) fn wanted_topics(&self) -> BTreeSet<&ByteString> {
        let mut names = BTreeSet::new();
        let mut regexes = BTreeSet::new();
        for member in self.members.values() {
            names.extend(&member.topics);
            if !member.regex.is_empty() {
                regexes.insert(&member.regex);
            }
        }
        names.extend(regexes.into_iter().filter_map(|regex| self.regexes.get(regex)).flat_map(|r| &r.topics));
        names
    }

    /// The topics that somebody wants and that exist, in the order of their names.
    pub(super) fn existing_topics(&self, cluster: &dyn Cluster) -> BTreeMap<ByteString, TopicView> {
        let topics = self.wanted_topics().into_iter().filter_map(|name| cluster.topic(name));
        topics.map(|topic| (topic.name.clone(), topic)).collect()
    }

    /// Whether a partition has no owner, or this one.
    pub(super) fn is_free_for(&self, member_id: &str, topic: Uuid, partition: i32) -> bool {
        self.owners.get(&(topic, partition)).is_none_or(|owner| owner == member_id)
    }

    /// Whether a partition that the member is to get still has another owner.
    pub(super) fn waits_for_others(&self, member: &Member) -> bool {
        self.target(&member.id)
            .iter()
            .any(|(topic, partition)| !self.is_free_for(&member.id, topic, partition))
    }

    /// Whether every member speaks the classic protocol.
    pub(super) fn all_use_classic_protocol_except(&self, gone: &BTreeSet<ByteString>) -> bool {
        self.members.values().all(|member| gone.contains(&member.id) || member.uses_classic_protocol())
    }

    /// The patterns of members, each once.
    pub(super) fn patterns(&self) -> BTreeSet<ByteString> {
        self.members.values().map(|member| &member.regex).filter(|regex| !regex.is_empty()).cloned().collect()
    }

    pub(super) fn put_member(&mut self, member: Member) {
        let id = member.id.clone();
        if let Some(former) = self.members.get(&id).cloned() {
            self.release(&former.id, &former.assigned);
            self.release(&former.id, &former.pending_revocation);
            if former.instance_id != member.instance_id {
                self.forget_instance(&former);
            }
        }
        for (topic, partition, _) in member.assigned.iter().chain(member.pending_revocation.iter()) {
            self.owners.insert((topic, partition), id.clone());
        }
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), id.clone());
        }
        self.members.insert(id, Arc::new(member));
    }

    pub(super) fn take_member(&mut self, id: &str) {
        let Some(member) = self.members.remove(id) else { return };
        self.release(&member.id, &member.assigned);
        self.release(&member.id, &member.pending_revocation);
        self.forget_instance(&member);
    }

    /// Frees partitions, unless another member has them already.
    fn release(&mut self, id: &ByteString, partitions: &AssignedPartitions) {
        for (topic, partition, _) in partitions.iter() {
            if self.owners.get(&(topic, partition)) == Some(id) {
                self.owners.remove(&(topic, partition));
            }
        }
    }

    /// Forgets the instance id of a member, unless another member has it already.
    fn forget_instance(&mut self, member: &Member) {
        if let Some(instance_id) = &member.instance_id
            && self.static_members.get(instance_id) == Some(&member.id)
        {
            self.static_members.remove(instance_id);
        }
    }
}
