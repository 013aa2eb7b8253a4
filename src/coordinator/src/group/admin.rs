//! What administrators ask of groups: a list, one group, and to delete one.

use callboard_protocol::messages::GroupMetadataKey;
use callboard_protocol::messages::delete_groups_response::DeletableGroupResult;
use callboard_protocol::messages::describe_groups_response::DescribedGroup;
use callboard_protocol::messages::list_groups_response::ListedGroup;
use callboard_protocol::{ByteString, ErrorCode};

use super::classic::State;
use super::request::{ListGroups, Reply};
use super::shard::{GroupOutcome, GroupShard};
use super::{Group, GroupRecord, TimerKind};
use crate::runtime::Ticket;

/// From this version of DescribeGroups on, a group that is not there is an error.
const FIRST_DESCRIBE_WITH_NOT_FOUND: i16 = 6;
/// What DescribeGroups says of a group that is not there.
const DEAD: &str = "Dead";
/// Clients did not ask what they may do.
const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

/// The groups of a shard that pass the filters.
pub(super) fn list(shard: &GroupShard, request: &ListGroups) -> Vec<ListedGroup> {
    let passes = |filter: &[ByteString], name: &str| {
        filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
    };
    let wanted = shard.groups.iter().filter(|(_, group)| {
        passes(&request.states, group.state_name()) && passes(&request.types, group.type_name())
    });
    let listed = wanted.map(|(id, group)| ListedGroup {
        group_id: id.clone(),
        protocol_type: match group {
            Group::Classic(group) => group.protocol_type(),
            Group::Consumer(_) => ByteString::from_static("consumer"),
        },
        group_state: group.state_name().into(),
        group_type: group.type_name().into(),
        ..Default::default()
    });
    listed.collect()
}

/// A classic group; one of another kind is not found.
pub(super) fn describe(shard: &GroupShard, group_id: ByteString, version: i16) -> DescribedGroup {
    if let Some(group) = shard.classic(&group_id) {
        return group.describe();
    }
    let mut described = DescribedGroup {
        group_state: DEAD.into(),
        authorized_operations: OPERATIONS_NOT_ASKED,
        ..Default::default()
    };
    if version >= FIRST_DESCRIBE_WITH_NOT_FOUND {
        let text = match shard.groups.contains_key(&group_id) {
            true => format!("Group {group_id} is not a classic group."),
            false => format!("Group {group_id} not found."),
        };
        described.error_code = ErrorCode::GroupIdNotFound as i16;
        described.error_message = Some(text.into());
    }
    described.group_id = group_id;
    described
}

/// Deletes a group without members, and what it has committed.
pub(super) fn delete(shard: &mut GroupShard, ticket: Ticket, group_id: ByteString) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    let error = match shard.groups.get(&group_id) {
        None => ErrorCode::GroupIdNotFound,
        Some(group) if !group.is_empty() => ErrorCode::NonEmptyGroup,
        Some(_) => {
            shard.delete_group(&group_id, &mut outcome);
            ErrorCode::None
        }
    };
    let result = DeletableGroupResult { group_id, error_code: error as i16, ..Default::default() };
    outcome.replies.push((ticket, Reply::DeleteGroup(result)));
    outcome
}

impl Group {
    /// Whether it has no members.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Classic(group) => group.state() == State::Empty,
            Self::Consumer(group) => group.is_empty(),
        }
    }
}

impl GroupShard {
    /// Writes that a group without members, and all that it has committed, is no more.
    pub(crate) fn delete_group(&mut self, group_id: &ByteString, outcome: &mut GroupOutcome) {
        for record in self.offsets.tombstones(group_id) {
            self.write(outcome, record);
        }
        match self.groups.get(group_id) {
            Some(Group::Classic(group)) => {
                for id in group.pending_members() {
                    self.timers.cancel(group_id, TimerKind::ClassicSession(id.clone()));
                }
                let key = GroupMetadataKey { group: group_id.clone() };
                self.write(outcome, GroupRecord::tombstone(key));
            }
            Some(Group::Consumer(group)) => {
                for record in group.tombstones(group_id) {
                    self.write(outcome, record);
                }
            }
            None => {}
        }
    }
}
