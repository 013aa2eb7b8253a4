//! A classic group as `__consumer_offsets` keeps it.

use std::sync::Arc;

use callboard_protocol::ByteString;
use callboard_protocol::messages::group_metadata_value::MemberMetadata;
use callboard_protocol::messages::{GroupMetadataKey, GroupMetadataValue};

use super::{ClassicGroup, Member, State};
use crate::group::GroupRecord;

/// The version in which Kafka 4.4 writes a group.
const VALUE_VERSION: i16 = 3;

impl ClassicGroup {
    /// The record of the present generation, in which the members have what the leader gave them.
    pub fn to_record(&self) -> GroupRecord {
        let protocol = self.protocol.clone().unwrap_or_default();
        let member = |member: &Member| MemberMetadata {
            member_id: member.id.clone(),
            group_instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout: member.rebalance_timeout_ms,
            session_timeout: member.session_timeout_ms,
            subscription: member.metadata(&protocol),
            assignment: member.assignment.clone(),
            ..Default::default()
        };
        // A generation that is not agreed on yet is not worth keeping: its members join again.
        let keeps_members = self.state == State::Stable;
        let value = GroupMetadataValue {
            protocol_type: self.protocol_type(),
            generation: self.generation,
            protocol: self.protocol.clone().filter(|_| keeps_members),
            leader: self.leader.clone().filter(|_| keeps_members),
            current_state_timestamp: self.state_since_ms.unwrap_or(-1),
            members: if keeps_members { self.members().map(member).collect() } else { Vec::new() },
            ..Default::default()
        };
        GroupRecord::new(GroupMetadataKey { group: self.id.clone() }, value, VALUE_VERSION)
    }

    /// The group that a record tells of. Sessions begin when all is loaded.
    pub fn from_record(id: &ByteString, value: &GroupMetadataValue) -> Self {
        let mut group = Self::new(id.clone());
        group.generation = value.generation;
        group.state_since_ms = (value.current_state_timestamp >= 0).then_some(value.current_state_timestamp);
        if !value.protocol_type.is_empty() {
            group.protocol_type = Some(value.protocol_type.clone());
        }
        if value.members.is_empty() {
            return group;
        }
        group.state = State::Stable;
        group.protocol = value.protocol.clone();
        let protocol = value.protocol.clone().unwrap_or_default();
        for stored in &value.members {
            let member = Member {
                id: stored.member_id.clone(),
                instance_id: stored.group_instance_id.clone(),
                client_id: stored.client_id.clone(),
                client_host: stored.client_host.clone(),
                // Old records have none.
                rebalance_timeout_ms: match stored.rebalance_timeout {
                    -1 => stored.session_timeout,
                    timeout_ms => timeout_ms,
                },
                session_timeout_ms: stored.session_timeout,
                protocols: Arc::new(vec![(protocol.clone(), stored.subscription.clone())]),
                assignment: stored.assignment.clone(),
                is_new: false,
                joining: None,
                syncing: None,
            };
            group.add(member, &value.protocol_type);
        }
        group.leader = value.leader.clone();
        group
    }
}
