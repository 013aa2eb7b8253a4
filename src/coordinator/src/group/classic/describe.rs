//! DescribeGroups.

use callboard_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};

use super::{ClassicGroup, Member, State};

/// Clients did not ask what they may do.
const OPERATIONS_NOT_ASKED: i32 = i32::MIN;

impl ClassicGroup {
    /// The group as DescribeGroups shows it: what members say and have counts only once they agreed on it.
    pub(crate) fn describe(&self) -> DescribedGroup {
        let protocol = self.protocol.clone().filter(|_| self.state == State::Stable);
        let member = |member: &Member| DescribedGroupMember {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            member_metadata: protocol.as_ref().map(|name| member.metadata(name)).unwrap_or_default(),
            member_assignment: member.assignment.clone(),
            ..Default::default()
        };
        DescribedGroup {
            group_id: self.id.clone(),
            group_state: self.state.name().into(),
            protocol_type: self.protocol_type(),
            protocol_data: protocol.clone().unwrap_or_default(),
            members: self.members().map(member).collect(),
            authorized_operations: OPERATIONS_NOT_ASKED,
            ..Default::default()
        }
    }
}
