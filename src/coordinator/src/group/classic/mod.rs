//! Groups whose members agree among themselves: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (Kafka's classic protocol).
//!
//! A generation begins when members join (`join.rs`), is agreed on when all have (`rebalance.rs`), and holds
//! once the leader has sent the assignment (`sync.rs`). A group of offsets alone, whose consumers assign partitions
//! themselves, is a classic group without members and without a protocol type.

mod commit;
mod describe;
mod join;
mod leave;
mod member;
mod migrate;
mod rebalance;
mod state;
mod stored;
mod subscription;
mod sync;

pub use join::{join, refusal as join_refusal};
pub use leave::{heartbeat, leave};
pub use member::Member;
pub(super) use migrate::{dissolve, take_over};
pub use state::{ClassicGroup, State};
pub use sync::{refused as sync_refusal, sync};

use std::sync::Arc;

use callboard_protocol::ByteString;

use super::timers::{Deadline, TimerKind, Timers};
use super::{Group, GroupOutcome, GroupShard};
use crate::cluster::Circumstances;

/// A group, and what a step of it may change beside.
struct Scene<'a, 'c> {
    group: &'a mut ClassicGroup,
    timers: &'a mut Timers,
    cx: &'a mut Circumstances<'c>,
    outcome: &'a mut GroupOutcome,
}

/// Takes a step in a group, if it is there and of this protocol.
fn step(
    shard: &mut GroupShard,
    group_id: &str,
    cx: &mut Circumstances<'_>,
    step: impl FnOnce(&mut Scene<'_, '_>),
) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    if let Some((group, timers)) = shard.classic_mut(group_id) {
        step(&mut Scene { group, timers, cx, outcome: &mut outcome });
    }
    outcome
}

/// A deadline of a classic group is due.
pub(super) fn on_deadline(
    shard: &mut GroupShard,
    deadline: &Deadline,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    step(shard, &deadline.group_id, cx, |scene| match &deadline.kind {
        TimerKind::ClassicSession(member_id) => scene.session_over(member_id),
        TimerKind::ClassicJoin => scene.join_time_over(),
        TimerKind::ClassicSync => scene.sync_time_over(),
        _ => {}
    })
}

/// The group was read from the log: its members' sessions begin.
pub(super) fn loaded(shard: &mut GroupShard, group_id: &str, cx: &mut Circumstances<'_>) -> GroupOutcome {
    step(shard, group_id, cx, |scene| {
        let ids: Vec<ByteString> = scene.group.members().map(|member| member.id.clone()).collect();
        for id in &ids {
            scene.restart_session(id);
        }
        // The limit may have been lowered since.
        if ids.len() > scene.cx.settings.classic.max_size {
            scene.prepare_rebalance();
        }
    })
}

/// The group of an id, made if there is none. False if there is one of another kind.
pub(crate) fn ensure(shard: &mut GroupShard, group_id: &ByteString) -> bool {
    match shard.groups.get(group_id) {
        Some(group) => matches!(group, Group::Classic(_)),
        None => {
            let group = ClassicGroup::new(group_id.clone());
            shard.groups.insert(group_id.clone(), Group::Classic(Arc::new(group)));
            true
        }
    }
}

/// A member was heard of by another request than its heartbeat.
pub(crate) fn heard_of(
    shard: &mut GroupShard,
    group_id: &str,
    member_id: &ByteString,
    cx: &mut Circumstances<'_>,
) {
    // It only moves a deadline.
    drop(step(shard, group_id, cx, |scene| scene.restart_session(member_id)));
}
