//! SyncGroup.

use std::collections::BTreeMap;

use bytes::Bytes;
use callboard_protocol::messages::{SyncGroupRequest, SyncGroupResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::{ClassicGroup, Scene, State, step};
use crate::cluster::Circumstances;
use crate::group::{GroupOutcome, GroupShard, Reply};
use crate::runtime::Ticket;

/// Takes the assignment from the leader, and gives each member its part of it.
pub fn sync(
    shard: &mut GroupShard,
    ticket: Ticket,
    request: SyncGroupRequest,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    let error = match shard.classic(&request.group_id) {
        _ if request.group_id.is_empty() => ErrorCode::InvalidGroupId,
        None => ErrorCode::UnknownMemberId,
        Some(group) => match group.check_sync(&request) {
            Err(error) => error,
            Ok(()) => {
                let group_id = request.group_id.clone();
                return step(shard, &group_id, cx, |scene| scene.sync(ticket, request));
            }
        },
    };
    GroupOutcome::reply(ticket, refusal(error))
}

/// What a member is told that gets no assignment.
pub fn refused(error: ErrorCode) -> SyncGroupResponse {
    SyncGroupResponse {
        error_code: error as i16,
        protocol_type: None,
        protocol_name: None,
        ..Default::default()
    }
}

pub(super) fn refusal(error: ErrorCode) -> Reply {
    Reply::SyncGroup(refused(error))
}

impl ClassicGroup {
    fn check_sync(&self, request: &SyncGroupRequest) -> Result<(), ErrorCode> {
        self.check_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != self.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        let differs =
            |given: &Option<ByteString>, ours: &Option<ByteString>| given.is_some() && given != ours;
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol_name, &self.protocol)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        match self.state {
            State::Empty => Err(ErrorCode::UnknownMemberId),
            State::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
            State::CompletingRebalance | State::Stable => Ok(()),
        }
    }

    fn assignment(&self, id: &str) -> SyncGroupResponse {
        SyncGroupResponse {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            assignment: self.member(id).map(|member| member.assignment.clone()).unwrap_or_default(),
            ..Default::default()
        }
    }
}

impl Scene<'_, '_> {
    /// A member of this generation wants its assignment.
    fn sync(&mut self, ticket: Ticket, request: SyncGroupRequest) {
        let id = request.member_id;
        self.group.pending_sync.remove(&id);
        if self.group.pending_sync.is_empty() {
            self.end_sync_time();
        }
        self.restart_session(&id);
        if self.group.state == State::Stable {
            return self.answer_sync(ticket, &id);
        }
        let former = self.group.member_mut(&id).and_then(|member| member.syncing.replace(ticket));
        if let Some(former) = former {
            self.outcome.replies.push((former, refusal(ErrorCode::UnknownMemberId)));
        }
        if self.group.is_leader(&id) {
            let given = request.assignments.into_iter().map(|part| (part.member_id, part.assignment));
            self.assign(given.collect());
        }
    }

    /// The leader has decided: the group is stable, once this is in the log.
    fn assign(&mut self, mut given: BTreeMap<ByteString, Bytes>) {
        let ids: Vec<ByteString> = self.group.members.keys().cloned().collect();
        for id in &ids {
            if let Some(member) = self.group.member_mut(id) {
                member.assignment = given.remove(id).unwrap_or_default();
            }
        }
        self.group.set_state(State::Stable, self.cx.now_ms);
        self.outcome.records.push(self.group.to_record());
        for id in &ids {
            if let Some(ticket) = self.group.member_mut(id).and_then(|member| member.syncing.take()) {
                self.answer_sync(ticket, id);
                self.restart_session(id);
            }
        }
    }

    fn answer_sync(&mut self, ticket: Ticket, id: &ByteString) {
        self.outcome.replies.push((ticket, Reply::SyncGroup(self.group.assignment(id))));
    }
}
