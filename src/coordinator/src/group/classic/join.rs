//! JoinGroup.

use std::sync::Arc;

use bytes::Bytes;
use callboard_protocol::messages::join_group_response::JoinGroupResponseMember;
use callboard_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::member::Protocols;
use super::{ClassicGroup, Member, Scene, State, ensure, step};
use crate::cluster::Circumstances;
use crate::group::{Caller, GroupOutcome, GroupShard, Reply};
use crate::runtime::Ticket;

/// From this version on a dynamic member is first told its id, and joins with it.
const FIRST_WITH_KNOWN_MEMBER_ID: i16 = 4;
/// From this version on a leader can be told to leave the assignment as it is.
const FIRST_WITH_SKIPPED_ASSIGNMENT: i16 = 9;
/// How long a member may wait in its first join before it is given up, as Kafka has it.
pub(super) const NEW_MEMBER_JOIN_TIMEOUT_MS: i64 = 5 * 60 * 1_000;

/// One request to join.
struct Joining<'a> {
    ticket: Ticket,
    caller: &'a Caller,
    request: JoinGroupRequest,
    protocols: Protocols,
}

/// Lets a member join. It is answered when all have.
pub fn join(
    shard: &mut GroupShard,
    ticket: Ticket,
    caller: &Caller,
    request: JoinGroupRequest,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    let refuse = |error| refused(ticket, error, request.member_id.clone());
    if request.group_id.is_empty() {
        return refuse(ErrorCode::InvalidGroupId);
    }
    let settings = &cx.settings.classic;
    if !(settings.min_session_timeout_ms..=settings.max_session_timeout_ms)
        .contains(&request.session_timeout_ms)
    {
        return refuse(ErrorCode::InvalidSessionTimeout);
    }
    let is_new = !shard.groups.contains_key(&request.group_id);
    if is_new && !request.member_id.is_empty() {
        return refuse(ErrorCode::UnknownMemberId);
    }
    ensure(shard, &request.group_id);
    let group_id = request.group_id.clone();
    let protocols = request.protocols.iter().map(|p| (p.name.clone(), p.metadata.clone())).collect();
    let joining = Joining { ticket, caller, request, protocols: Arc::new(protocols) };
    let mut outcome = step(shard, &group_id, cx, |scene| scene.join(joining));
    if is_new && outcome.records.is_empty() {
        match shard.classic(&group_id) {
            // The log knows a group from its first moment.
            Some(group) if !group.is_unused() => outcome.records.push(group.to_record()),
            _ => drop(shard.groups.remove(&group_id)),
        }
    }
    outcome
}

fn refused(ticket: Ticket, error: ErrorCode, member_id: ByteString) -> GroupOutcome {
    GroupOutcome::reply(ticket, Reply::JoinGroup(refusal(error, member_id)))
}

/// What a member is told that may not join.
pub fn refusal(error: ErrorCode, member_id: ByteString) -> JoinGroupResponse {
    JoinGroupResponse {
        error_code: error as i16,
        generation_id: -1,
        protocol_type: None,
        protocol_name: None,
        member_id,
        ..Default::default()
    }
}

impl Scene<'_, '_> {
    fn refuse_join(&mut self, ticket: Ticket, error: ErrorCode, member_id: &ByteString) {
        self.outcome.replies.push((ticket, Reply::JoinGroup(refusal(error, member_id.clone()))));
    }

    fn join(&mut self, joining: Joining<'_>) {
        let request = &joining.request;
        let (ticket, id) = (joining.ticket, request.member_id.clone());
        if !self.has_room_for(&id) {
            self.group.pending_members.remove(&id);
            return self.refuse_join(ticket, ErrorCode::GroupMaxSizeReached, &ByteString::new());
        }
        if !self.group.accepts(&request.protocol_type, &joining.protocols) {
            return self.refuse_join(ticket, ErrorCode::InconsistentGroupProtocol, &id);
        }
        match (id.is_empty(), &request.group_instance_id) {
            (true, Some(instance)) => match self.group.instances.get(instance).cloned() {
                Some(former) => self.replace_static_member(joining, &former),
                None => self.add_member(joining, None),
            },
            (true, None) if joining.caller.version >= FIRST_WITH_KNOWN_MEMBER_ID => self.give_id(&joining),
            (true, None) => self.add_member(joining, None),
            (false, None) if self.group.pending_members.contains(&id) => self.add_member(joining, Some(id)),
            (false, instance) => match self.group.check_member(&id, instance.as_ref()) {
                Err(error) => self.refuse_join(ticket, error, &id),
                Ok(()) => self.join_again(joining),
            },
        }
    }

    /// Whether the group may have this member, as `group.max.size` says.
    fn has_room_for(&self, id: &str) -> bool {
        let most = self.cx.settings.classic.max_size;
        let group = &*self.group;
        match group.state {
            State::Empty => true,
            // Only those who are quick enough may stay when a group is too large.
            State::PreparingRebalance => {
                group.member(id).is_some_and(|member| member.joining.is_some()) || group.joining < most
            }
            State::CompletingRebalance | State::Stable => {
                group.member(id).is_some() || group.members.len() < most
            }
        }
    }

    fn new_id(&mut self, joining: &Joining<'_>) -> ByteString {
        let name = joining.request.group_instance_id.as_ref().unwrap_or(&joining.caller.client_id);
        format!("{name}-{}", self.cx.random_uuid_text()).into()
    }

    /// The first half of the handshake: a member that never comes back with its id costs little.
    fn give_id(&mut self, joining: &Joining<'_>) {
        let id = self.new_id(joining);
        self.group.pending_members.insert(id.clone());
        self.set_session(&id, i64::from(joining.request.session_timeout_ms));
        self.refuse_join(joining.ticket, ErrorCode::MemberIdRequired, &id);
    }

    fn add_member(&mut self, joining: Joining<'_>, id: Option<ByteString>) {
        let id = id.unwrap_or_else(|| self.new_id(&joining));
        let Joining { ticket, caller, request, protocols } = joining;
        let member = Member {
            id: id.clone(),
            instance_id: request.group_instance_id,
            client_id: caller.client_id.clone(),
            client_host: caller.client_host.clone(),
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            protocols,
            assignment: Bytes::new(),
            is_new: true,
            joining: Some(ticket),
            syncing: None,
        };
        self.group.newcomer |= self.group.initial_delay_left_ms.is_some();
        self.group.add(member, &request.protocol_type);
        self.set_session(&id, NEW_MEMBER_JOIN_TIMEOUT_MS);
        self.rebalance_or_complete();
    }

    /// A member that is in the group already joins.
    fn join_again(&mut self, joining: Joining<'_>) {
        let id = &joining.request.member_id;
        let same = self.group.member(id).is_some_and(|member| member.matches(&joining.protocols));
        match self.group.state {
            State::Empty => self.refuse_join(joining.ticket, ErrorCode::UnknownMemberId, &id.clone()),
            // It has not seen the answer to its last join, or asks for it anew: nothing has changed.
            State::CompletingRebalance if same => self.answer_join(joining.ticket, &id.clone()),
            State::Stable if same && !self.group.is_leader(id) => {
                self.answer_join(joining.ticket, &id.clone());
            }
            _ => self.update_member(joining),
        }
    }

    fn update_member(&mut self, joining: Joining<'_>) {
        let Joining { ticket, request, protocols, .. } = joining;
        let id = request.member_id;
        self.group.update(&id, protocols, request.rebalance_timeout_ms, request.session_timeout_ms);
        self.wait_to_join(&id, ticket);
        self.rebalance_or_complete();
    }

    /// Notes a JoinGroup that waits. One that waited before is answered: its client has gone or asks twice.
    fn wait_to_join(&mut self, id: &ByteString, ticket: Ticket) {
        if let Some(former) = self.group.wait_to_join(id, ticket) {
            self.refuse_join(former, ErrorCode::UnknownMemberId, id);
        }
    }

    /// A static member is back under a new id: it takes the place of its former self.
    fn replace_static_member(&mut self, joining: Joining<'_>, former_id: &ByteString) {
        let id = self.new_id(&joining);
        let former_leader = self.group.leader.clone();
        let former_protocol = self.group.protocol.clone();
        let unsynced = self.group.pending_sync.contains(former_id);
        let Some(former) = self.group.remove(former_id) else { return };
        for (ticket, reply) in fence(&former) {
            self.outcome.replies.push((ticket, reply));
        }
        self.cancel_session(former_id);
        let Joining { ticket, caller, request, protocols } = joining;
        let member = Member {
            id: id.clone(),
            client_id: caller.client_id.clone(),
            client_host: caller.client_host.clone(),
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            session_timeout_ms: request.session_timeout_ms,
            protocols,
            joining: None,
            syncing: None,
            ..former
        };
        self.group.add(member, &request.protocol_type);
        if former_leader.as_ref() == Some(former_id) {
            self.group.leader = Some(id.clone());
        }
        if unsynced {
            self.group.pending_sync.insert(id.clone());
        }
        self.restart_session(&id);
        match self.group.state {
            State::Stable if self.group.select_protocol() == former_protocol => {
                self.outcome.records.push(self.group.to_record());
                self.answer_static_return(ticket, caller.version, &id, former_leader);
            }
            _ => {
                self.wait_to_join(&id, ticket);
                self.rebalance_or_complete();
            }
        }
    }

    /// The generation goes on as it is. A leader that is back must not assign anew: if its version can't be told so,
    /// it is told that somebody else leads.
    fn answer_static_return(
        &mut self,
        ticket: Ticket,
        version: i16,
        id: &ByteString,
        former_leader: Option<ByteString>,
    ) {
        let mut response = self.group.join_response(id);
        if version >= FIRST_WITH_SKIPPED_ASSIGNMENT {
            response.skip_assignment = self.group.is_leader(id);
        } else {
            response.leader = former_leader.unwrap_or_default();
            response.members = Vec::new();
        }
        self.outcome.replies.push((ticket, Reply::JoinGroup(response)));
    }

    /// Tells a member of the present generation.
    pub(super) fn answer_join(&mut self, ticket: Ticket, id: &ByteString) {
        let response = self.group.join_response(id);
        self.outcome.replies.push((ticket, Reply::JoinGroup(response)));
    }
}

/// What a static member's former self is told, wherever it waits.
fn fence(former: &Member) -> impl Iterator<Item = (Ticket, Reply)> + use<> {
    let joining = former
        .joining
        .map(|ticket| (ticket, Reply::JoinGroup(refusal(ErrorCode::FencedInstanceId, former.id.clone()))));
    let syncing = former.syncing.map(|ticket| (ticket, super::sync::refusal(ErrorCode::FencedInstanceId)));
    joining.into_iter().chain(syncing)
}

impl ClassicGroup {
    /// The present generation as one member is told of it; the leader gets all members.
    pub(super) fn join_response(&self, id: &ByteString) -> JoinGroupResponse {
        let protocol = self.protocol.clone().unwrap_or_default();
        let member = |member: &Member| JoinGroupResponseMember {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            metadata: member.metadata(&protocol),
            ..Default::default()
        };
        JoinGroupResponse {
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            member_id: id.clone(),
            members: if self.is_leader(id) { self.members().map(member).collect() } else { Vec::new() },
            ..Default::default()
        }
    }
}
