//! Heartbeat and LeaveGroup.

use callboard_protocol::messages::leave_group_request::MemberIdentity;
use callboard_protocol::messages::leave_group_response::MemberResponse;
use callboard_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, LeaveGroupRequest, LeaveGroupResponse,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::{Scene, State, step};
use crate::cluster::Circumstances;
use crate::group::{GroupOutcome, GroupShard, Reply};
use crate::runtime::Ticket;

/// A member says that it is there.
pub fn heartbeat(
    shard: &mut GroupShard,
    request: &HeartbeatRequest,
    cx: &mut Circumstances<'_>,
) -> HeartbeatResponse {
    let mut error = match request.group_id.is_empty() {
        true => ErrorCode::InvalidGroupId,
        false => ErrorCode::UnknownMemberId,
    };
    let outcome = step(shard, &request.group_id, cx, |scene| {
        error = scene.heartbeat(request).err().unwrap_or(ErrorCode::None);
    });
    debug_assert!(
        outcome.records.is_empty() && outcome.replies.is_empty(),
        "a heartbeat changes only a deadline"
    );
    HeartbeatResponse { error_code: error as i16, ..Default::default() }
}

/// Lets members go.
pub fn leave(
    shard: &mut GroupShard,
    ticket: Ticket,
    request: LeaveGroupRequest,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    if request.group_id.is_empty() {
        let error_code = ErrorCode::InvalidGroupId as i16;
        let response = LeaveGroupResponse { error_code, ..Default::default() };
        return GroupOutcome::reply(ticket, Reply::LeaveGroup(response));
    }
    let mut errors = vec![ErrorCode::UnknownMemberId; request.members.len()];
    let mut outcome = step(shard, &request.group_id, cx, |scene| {
        errors = request.members.iter().map(|member| scene.leave(member)).collect();
        if errors.contains(&ErrorCode::None) {
            scene.members_left();
        }
    });
    let members = request.members.into_iter().zip(errors).map(|(member, error)| MemberResponse {
        member_id: member.member_id,
        group_instance_id: member.group_instance_id,
        error_code: error as i16,
        ..Default::default()
    });
    let response = LeaveGroupResponse { members: members.collect(), ..Default::default() };
    outcome.replies.push((ticket, Reply::LeaveGroup(response)));
    outcome
}

impl Scene<'_, '_> {
    fn heartbeat(&mut self, request: &HeartbeatRequest) -> Result<(), ErrorCode> {
        self.group.check_member(&request.member_id, request.group_instance_id.as_ref())?;
        if request.generation_id != self.group.generation {
            return Err(ErrorCode::IllegalGeneration);
        }
        if self.group.state == State::Empty {
            return Err(ErrorCode::UnknownMemberId);
        }
        self.restart_session(&request.member_id);
        match self.group.state {
            // The member is to join again.
            State::PreparingRebalance => Err(ErrorCode::RebalanceInProgress),
            _ => Ok(()),
        }
    }

    fn leave(&mut self, leaving: &MemberIdentity) -> ErrorCode {
        let id = match self.find_leaving(leaving) {
            Ok(id) => id,
            Err(error) => return error,
        };
        if self.group.pending_members.remove(&id).is_some() {
            self.cancel_session(&id);
            return ErrorCode::None;
        }
        self.forget_member(&id);
        ErrorCode::None
    }

    /// A static member may be named by its instance id alone: that is how administrators remove it.
    fn find_leaving(&self, leaving: &MemberIdentity) -> Result<ByteString, ErrorCode> {
        let id = &leaving.member_id;
        match &leaving.group_instance_id {
            Some(instance) if id.is_empty() => {
                self.group.instances.get(instance).cloned().ok_or(ErrorCode::UnknownMemberId)
            }
            None if self.group.pending_members.contains(id) => Ok(id.clone()),
            instance => self.group.check_member(id, instance.as_ref()).map(|()| id.clone()),
        }
    }
}
