//! A classic group's state, and the questions asked of it.

use std::sync::Arc;

use bytes::Bytes;
use callboard_protocol::{ByteString, ErrorCode};
use imbl::{OrdMap, OrdSet};

use super::member::{Member, Protocols};
use crate::runtime::Ticket;

/// Where a group stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It has no members.
    Empty,
    /// Members join.
    PreparingRebalance,
    /// All have joined, and the leader has yet to send the assignment.
    CompletingRebalance,
    /// All have what the leader gave them, or may fetch it.
    Stable,
}

impl State {
    /// The name that clients see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}

/// A group of the classic protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassicGroup {
    pub(super) id: ByteString,
    pub(super) state: State,
    /// Since when it is in that state, in milliseconds since 1970.
    pub(super) state_since_ms: Option<i64>,
    /// What kind of thing its members are (`consumer`, `connect`); none if it only has offsets.
    pub(super) protocol_type: Option<ByteString>,
    /// What the members of this generation agreed on.
    pub(super) protocol: Option<ByteString>,
    pub(super) generation: i32,
    pub(super) leader: Option<ByteString>,
    pub(super) members: OrdMap<ByteString, Arc<Member>>,
    /// Member ids of static members by instance id.
    pub(super) instances: OrdMap<ByteString, ByteString>,
    /// Ids that were given out and not joined with yet.
    pub(super) pending_members: OrdSet<ByteString>,
    /// Members of this generation that have not synced yet.
    pub(super) pending_sync: OrdSet<ByteString>,
    /// How many members offer a protocol.
    pub(super) offered: OrdMap<ByteString, usize>,
    /// How many members wait for the end of the join.
    pub(super) joining: usize,
    /// While an empty group waits for more members: how much longer it may, in milliseconds.
    pub(super) initial_delay_left_ms: Option<i64>,
    /// Whether a member came during the present piece of that wait.
    pub(super) newcomer: bool,
}

impl ClassicGroup {
    /// An empty group.
    pub fn new(id: ByteString) -> Self {
        Self {
            id,
            state: State::Empty,
            state_since_ms: None,
            protocol_type: None,
            protocol: None,
            generation: 0,
            leader: None,
            members: OrdMap::new(),
            instances: OrdMap::new(),
            pending_members: OrdSet::new(),
            pending_sync: OrdSet::new(),
            offered: OrdMap::new(),
            joining: 0,
            initial_delay_left_ms: None,
            newcomer: false,
        }
    }

    /// Where it stands.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Since when, in milliseconds since 1970, if that is known.
    pub const fn state_since_ms(&self) -> Option<i64> {
        self.state_since_ms
    }

    /// What kind of thing its members are; empty if it only has offsets.
    pub fn protocol_type(&self) -> ByteString {
        self.protocol_type.clone().unwrap_or_default()
    }

    /// Whether it ever had members: then it has a protocol type.
    pub const fn has_protocol_type(&self) -> bool {
        self.protocol_type.is_some()
    }

    /// The present generation.
    pub const fn generation(&self) -> i32 {
        self.generation
    }

    /// The leader's member id.
    pub fn leader(&self) -> Option<&ByteString> {
        self.leader.as_ref()
    }

    /// The members, by id.
    pub fn members(&self) -> impl ExactSizeIterator<Item = &Member> {
        self.members.values().map(Arc::as_ref)
    }

    /// A member by its id.
    pub fn member(&self, id: &str) -> Option<&Member> {
        self.members.get(id).map(Arc::as_ref)
    }

    /// The ids that were given out and not joined with yet.
    pub fn pending_members(&self) -> impl Iterator<Item = &ByteString> {
        self.pending_members.iter()
    }

    /// Whether nothing holds it: no member, and nobody about to become one.
    pub fn is_unused(&self) -> bool {
        self.members.is_empty() && self.pending_members.is_empty()
    }

    pub(super) fn is_leader(&self, id: &str) -> bool {
        self.leader.as_deref() == Some(id)
    }

    pub(super) fn set_state(&mut self, state: State, now_ms: i64) {
        self.state = state;
        self.state_since_ms = Some(now_ms);
    }

    /// Whether a member of this id, and of this instance if it names one, takes part.
    pub(super) fn check_member(&self, id: &str, instance: Option<&ByteString>) -> Result<(), ErrorCode> {
        if let Some(instance) = instance {
            match self.instances.get(instance) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(present) if present != id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    /// Whether somebody with these protocols can be a member beside the present ones.
    pub(super) fn accepts(&self, protocol_type: &str, protocols: &[(ByteString, Bytes)]) -> bool {
        if self.members.is_empty() {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        let all = self.members.len();
        self.protocol_type.as_deref() == Some(protocol_type)
            && protocols.iter().any(|(name, _)| self.offered.get(name) == Some(&all))
    }

    pub(super) fn add(&mut self, member: Member, protocol_type: &ByteString) {
        if self.members.is_empty() {
            self.protocol_type = Some(protocol_type.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(member.id.clone());
        }
        if let Some(instance) = &member.instance_id {
            self.instances.insert(instance.clone(), member.id.clone());
        }
        self.pending_members.remove(&member.id);
        self.joining += usize::from(member.joining.is_some());
        self.count(&member.protocols, true);
        self.members.insert(member.id.clone(), Arc::new(member));
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Member> {
        let member = Arc::unwrap_or_clone(self.members.remove(id)?);
        if let Some(instance) = &member.instance_id
            && self.instances.get(instance).is_some_and(|present| present == id)
        {
            self.instances.remove(instance);
        }
        self.pending_sync.remove(id);
        self.joining -= usize::from(member.joining.is_some());
        self.count(&member.protocols, false);
        if self.is_leader(id) {
            self.leader = self.members.keys().next().cloned();
        }
        Some(member)
    }

    /// Gives a member the protocols it now offers, and its new timeouts.
    pub(super) fn update(
        &mut self,
        id: &str,
        protocols: Protocols,
        rebalance_timeout_ms: i32,
        session_timeout_ms: i32,
    ) {
        let Some(member) = self.members.get_mut(id) else { return };
        let member = Arc::make_mut(member);
        let former = std::mem::replace(&mut member.protocols, Arc::clone(&protocols));
        member.rebalance_timeout_ms = rebalance_timeout_ms;
        member.session_timeout_ms = session_timeout_ms;
        self.count(&former, false);
        self.count(&protocols, true);
    }

    fn count(&mut self, protocols: &Protocols, more: bool) {
        // A name given twice counts twice, as in Kafka: it is nothing that all members agree on.
        for (name, _) in protocols.iter() {
            let members = self.offered.get(name).copied().unwrap_or(0);
            match if more { members + 1 } else { members.saturating_sub(1) } {
                0 => self.offered.remove(name),
                members => self.offered.insert(name.clone(), members),
            };
        }
    }

    pub(super) fn member_mut(&mut self, id: &str) -> Option<&mut Member> {
        self.members.get_mut(id).map(Arc::make_mut)
    }

    /// Notes the JoinGroup that a member waits with, in place of a former one.
    pub(super) fn wait_to_join(&mut self, id: &str, ticket: Ticket) -> Option<Ticket> {
        let member = self.member_mut(id)?;
        let former = member.joining.replace(ticket);
        self.joining += usize::from(former.is_none());
        former
    }

    /// Takes the JoinGroup that a member waits with.
    pub(super) fn take_joining(&mut self, id: &str) -> Option<Ticket> {
        let ticket = self.member_mut(id)?.joining.take();
        self.joining -= usize::from(ticket.is_some());
        ticket
    }

    /// Whether all members have joined, and all who are about to.
    pub(super) fn all_joined(&self) -> bool {
        self.joining == self.members.len() && self.pending_members.is_empty()
    }

    /// The longest that a member may take to join, in milliseconds.
    pub(super) fn rebalance_timeout_ms(&self) -> i64 {
        self.members().map(|member| i64::from(member.rebalance_timeout_ms)).max().unwrap_or(0).max(0)
    }

    /// What most members want, among what all of them can. Of equals, the first by name.
    pub(super) fn select_protocol(&self) -> Option<ByteString> {
        let all = self.members.len();
        let mut votes: std::collections::BTreeMap<&ByteString, usize> = std::collections::BTreeMap::new();
        for member in self.members() {
            if let Some(vote) = member.vote(|name| self.offered.get(name) == Some(&all)) {
                *votes.entry(vote).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name.clone())
    }
}
