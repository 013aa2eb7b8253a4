//! Classic groups that become consumer groups, and the way back.

use std::sync::Arc;

use callboard_protocol::messages::JoinGroupResponse;
use callboard_protocol::{ByteString, ErrorCode};

use super::{ClassicGroup, Member, State, step, sync};
use crate::cluster::Circumstances;
use crate::group::{Group, GroupOutcome, GroupShard, Reply, TimerKind};

impl ClassicGroup {
    /// What the members of this generation agreed on.
    pub fn protocol(&self) -> Option<&ByteString> {
        self.protocol.as_ref()
    }

    /// A stable group of members that have their assignments.
    pub fn of_members(
        id: ByteString,
        generation: i32,
        protocol_type: ByteString,
        members: Vec<Member>,
        now_ms: i64,
    ) -> Self {
        let mut group = Self::new(id);
        for member in members {
            group.add(member, &protocol_type);
        }
        group.generation = generation;
        group.protocol = group.select_protocol();
        group.set_state(State::Stable, now_ms);
        group
    }
}

/// Takes a group with members over into the shard: their sessions begin, and they are to join again.
pub(in crate::group) fn take_over(
    shard: &mut GroupShard,
    group: ClassicGroup,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    let id = group.id.clone();
    outcome.records.push(group.to_record());
    shard.groups.insert(id.clone(), Group::Classic(Arc::new(group)));
    outcome.extend(step(shard, &id, cx, |scene| {
        let ids: Vec<ByteString> = scene.group.members().map(|member| member.id.clone()).collect();
        for id in &ids {
            scene.restart_session(id);
        }
        scene.prepare_rebalance();
    }));
    outcome
}

/// Answers all who wait in a group that is about to go, and waits for nothing of it any more.
pub(in crate::group) fn dissolve(
    shard: &mut GroupShard,
    group_id: &ByteString,
    error: ErrorCode,
    outcome: &mut GroupOutcome,
) {
    let Some((group, timers)) = shard.classic_mut(group_id) else { return };
    for member in group.members() {
        if let Some(ticket) = member.joining {
            let refusal = JoinGroupResponse {
                error_code: error as i16,
                generation_id: -1,
                member_id: member.id.clone(),
                ..Default::default()
            };
            outcome.replies.push((ticket, Reply::JoinGroup(refusal)));
        }
        if let Some(ticket) = member.syncing {
            outcome.replies.push((ticket, sync::refusal(error)));
        }
        timers.cancel(group_id, TimerKind::ClassicSession(member.id.clone()));
    }
    for id in group.pending_members() {
        timers.cancel(group_id, TimerKind::ClassicSession(id.clone()));
    }
    timers.cancel(group_id, TimerKind::ClassicJoin);
    timers.cancel(group_id, TimerKind::ClassicSync);
}
