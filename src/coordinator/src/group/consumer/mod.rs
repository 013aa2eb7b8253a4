//! Groups whose coordinator assigns partitions (KIP-848).
//!
//! The group knows three kinds of epochs. Its own grows when somebody wants other topics or the topics change. The
//! assignment's ([`assignor`]) follows it, at most once an interval (KIP-1263). Each member's follows that, once the
//! member has given up what it must (`reconcile`). A partition is given to a member only when its
//! former owner has said that it let go of it.
//!
//! A change is worked out on a copy of the group (`draft`), with the records that say it; only when nothing
//! refuses it does it come into the shard, together with deadlines and patterns to look up.

pub mod assignor;
mod check;
mod classic_members;
mod commit;
mod describe;
mod draft;
mod embedded;
mod error;
#[cfg(test)]
mod fixture;
mod hash;
mod heartbeat;
mod member;
mod migrate;
mod partitions;
mod reconcile;
mod records;
mod regex;
mod settings;
mod state;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard_protocol::messages::consumer_group_describe_response::DescribedGroup;
use callboard_protocol::messages::leave_group_response::MemberResponse;
use callboard_protocol::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatRequest, HeartbeatResponse,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, SyncGroupRequest,
    SyncGroupResponse,
};
use callboard_protocol::{ByteString, ErrorCode, Uuid};

pub use check::check_request;
pub use error::Refusal;
pub use member::{ClassicPart, Member, MemberState};
pub use partitions::{AssignedPartitions, Partitions};
pub use regex::{Found, LookUp};
pub use settings::{BoundedMs, ConsumerSettings, MigrationPolicy};
pub use state::{ConsumerGroup, GroupState};

use self::draft::Draft;
use self::member::{AWAY_EPOCH, JOINING_EPOCH, LEAVING_EPOCH};
use super::record::GroupRecord;
use super::shard::{Effect, GroupOutcome, GroupShard};
use super::timers::{Deadline, TimerKind};
use super::{Caller, Group, Reply, classic};
use crate::cluster::Circumstances;
use crate::error::ReplayError;
use crate::runtime::Ticket;

/// ConsumerGroupHeartbeat.
pub(super) fn heartbeat(
    shard: &mut GroupShard,
    ticket: Ticket,
    caller: &Caller,
    mut request: ConsumerGroupHeartbeatRequest,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    // From version 1 on the client makes its id itself.
    if caller.version == 0 && request.member_id.is_empty() {
        request.member_id = random_uuid(cx).to_string().into();
    }
    let mut outcome = GroupOutcome::default();
    let checked = check_request(&request, caller.version)
        .and_then(|()| check::check_assignor(&request, &cx.settings.consumer));
    let response = checked.and_then(|()| match request.member_epoch {
        LEAVING_EPOCH | AWAY_EPOCH => leave(shard, &request, &mut outcome, cx),
        _ => {
            let mut draft = draft_for(shard, &request, cx)?;
            let response = heartbeat::heartbeat(&mut draft, &request, caller, cx)?;
            install(shard, draft, &mut outcome, cx);
            Ok(response)
        }
    });
    let response = response.unwrap_or_else(|refusal| ConsumerGroupHeartbeatResponse {
        error_code: refusal.code() as i16,
        error_message: Some(refusal.to_string().into()),
        ..Default::default()
    });
    outcome.replies.push((ticket, Reply::ConsumerGroupHeartbeat(response)));
    outcome
}

/// A random id as Kafka makes them: of version 4.
fn random_uuid(cx: &mut Circumstances<'_>) -> Uuid {
    let (high, low) = ((cx.random)(), (cx.random)());
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    Uuid::from_u128((u128::from(high) << 64) | u128::from(low))
}

/// The group that a member goes on in or joins; a new one, or one that was classic, if it joins.
fn draft_for(
    shard: &GroupShard,
    request: &ConsumerGroupHeartbeatRequest,
    cx: &Circumstances<'_>,
) -> Result<Draft, Refusal> {
    let group_id = &request.group_id;
    let joins = request.member_epoch == JOINING_EPOCH;
    match shard.groups.get(group_id) {
        Some(Group::Consumer(group)) => Ok(Draft::new(ConsumerGroup::clone(group))),
        Some(Group::Classic(group)) if joins => migrate::upgrade(group, group_id, cx),
        Some(Group::Classic(_)) => Err(Refusal::NotAConsumerGroup(group_id.clone())),
        None if joins => Ok(Draft::new(ConsumerGroup::new(group_id.clone()))),
        None => Err(Refusal::ConsumerGroupNotFound(group_id.clone())),
    }
}

fn leave(
    shard: &mut GroupShard,
    request: &ConsumerGroupHeartbeatRequest,
    outcome: &mut GroupOutcome,
    cx: &mut Circumstances<'_>,
) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
    let group_id = &request.group_id;
    let mut draft = match shard.groups.get(group_id) {
        Some(Group::Consumer(group)) => Draft::new(ConsumerGroup::clone(group)),
        Some(Group::Classic(_)) => return Err(Refusal::NotAConsumerGroup(group_id.clone())),
        None => return Err(Refusal::GroupNotFound(group_id.clone())),
    };
    let member = heartbeat::leaving(&draft, request)?;
    if request.member_epoch == AWAY_EPOCH {
        heartbeat::go_away(&mut draft, &member);
        install(shard, draft, outcome, cx);
    } else {
        outcome.extend(remove(shard, group_id, &BTreeSet::from([member.id.clone()]), cx));
    }
    Ok(heartbeat::farewell(member, request.member_epoch))
}

/// Takes members out of a group. If only classic members are left, it becomes a classic group.
fn remove(
    shard: &mut GroupShard,
    group_id: &ByteString,
    gone: &BTreeSet<ByteString>,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    let Some(group) = consumer(shard, group_id) else { return GroupOutcome::default() };
    if migrate::is_to_be_classic(&group, gone, cx) {
        return migrate::downgrade(shard, &group, gone, cx);
    }
    let mut outcome = GroupOutcome::default();
    let mut draft = Draft::new(ConsumerGroup::clone(&group));
    heartbeat::fence(&mut draft, gone, cx);
    install(shard, draft, &mut outcome, cx);
    outcome
}

fn consumer(shard: &GroupShard, group_id: &str) -> Option<Arc<ConsumerGroup>> {
    match shard.groups.get(group_id) {
        Some(Group::Consumer(group)) => Some(Arc::clone(group)),
        _ => None,
    }
}

/// Takes a change into the shard. The draft's group is what its records make of the group before, so they need not be
/// taken in once more.
fn install(shard: &mut GroupShard, draft: Draft, outcome: &mut GroupOutcome, cx: &Circumstances<'_>) {
    let id = draft.id();
    if draft.replaces_classic {
        migrate::end_classic(shard, &id, outcome);
    }
    for (kind, delay_ms) in draft.timers {
        match delay_ms {
            Some(delay_ms) => shard.timers.set(cx, &id, kind, delay_ms),
            None => shard.timers.cancel(&id, kind),
        }
    }
    if let Some((kind, delay_ms)) = draft.join_deadline
        && shard.timers.get(&id, kind.clone()).is_none()
    {
        shard.timers.set(cx, &id, kind, delay_ms);
    }
    outcome.records.extend(draft.records);
    outcome.effects.extend(draft.look_up.map(Effect::LookUp));
    shard.groups.insert(id, Group::Consumer(Arc::new(draft.group)));
}

/// ConsumerGroupDescribe.
pub(super) fn describe(shard: &GroupShard, group_id: ByteString, cx: &Circumstances<'_>) -> DescribedGroup {
    let refusal = match shard.groups.get(&group_id) {
        Some(Group::Consumer(group)) => return group.describe(cx),
        Some(Group::Classic(_)) => Refusal::NotAConsumerGroup(group_id.clone()),
        None => Refusal::GroupNotFound(group_id.clone()),
    };
    DescribedGroup {
        error_code: refusal.code() as i16,
        error_message: Some(refusal.to_string().into()),
        group_id,
        ..Default::default()
    }
}

/// JoinGroup to a consumer group: as a classic member, or to a classic group if nobody is in this one.
pub(super) fn join(
    shard: &mut GroupShard,
    ticket: Ticket,
    caller: &Caller,
    request: JoinGroupRequest,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    let Some(group) = consumer(shard, &request.group_id) else { return outcome };
    if group.is_empty() {
        // A group is made for one who comes without an id only.
        if !request.member_id.is_empty() {
            let response = refused_join(ErrorCode::UnknownMemberId, request.member_id);
            return GroupOutcome::reply(ticket, Reply::JoinGroup(response));
        }
        for record in group.tombstones(&request.group_id) {
            shard.write(&mut outcome, record);
        }
        outcome.extend(classic::join(shard, ticket, caller, request, cx));
        return outcome;
    }
    let mut draft = Draft::new(ConsumerGroup::clone(&group));
    match classic_members::join(&mut draft, &request, caller, cx) {
        Ok(response) => {
            let was_classic = group.all_use_classic_protocol_except(&BTreeSet::new());
            let member_id = response.member_id.clone();
            install(shard, draft, &mut outcome, cx);
            let group = consumer(shard, &request.group_id).unwrap_or(group);
            if !was_classic && migrate::is_to_be_classic(&group, &BTreeSet::new(), cx) {
                // It took the place of the last member of the consumer protocol.
                outcome.extend(migrate::downgrade(shard, &group, &BTreeSet::new(), cx));
                let request = JoinGroupRequest { member_id, ..request };
                outcome.extend(classic::join(shard, ticket, caller, request, cx));
            } else {
                outcome.replies.push((ticket, Reply::JoinGroup(response)));
            }
        }
        Err((error, member_id)) => {
            outcome.replies.push((ticket, Reply::JoinGroup(refused_join(error, member_id))));
        }
    }
    outcome
}

fn refused_join(error: ErrorCode, member_id: ByteString) -> JoinGroupResponse {
    JoinGroupResponse { error_code: error as i16, generation_id: -1, member_id, ..Default::default() }
}

/// SyncGroup of a classic member.
pub(super) fn sync(
    shard: &mut GroupShard,
    request: &SyncGroupRequest,
    cx: &Circumstances<'_>,
) -> SyncGroupResponse {
    let Some(group) = consumer(shard, &request.group_id) else {
        return SyncGroupResponse { error_code: ErrorCode::UnknownMemberId as i16, ..Default::default() };
    };
    let mut draft = Draft::new(ConsumerGroup::clone(&group));
    let response = classic_members::sync(&mut draft, request, cx);
    install_deadlines(shard, draft, cx);
    response
}

/// Heartbeat of a classic member.
pub(super) fn classic_heartbeat(
    shard: &mut GroupShard,
    request: &HeartbeatRequest,
    cx: &Circumstances<'_>,
) -> HeartbeatResponse {
    let Some(group) = consumer(shard, &request.group_id) else {
        return HeartbeatResponse { error_code: ErrorCode::UnknownMemberId as i16, ..Default::default() };
    };
    let mut draft = Draft::new(ConsumerGroup::clone(&group));
    let response = classic_members::heartbeat(&mut draft, request, cx);
    install_deadlines(shard, draft, cx);
    response
}

/// Takes in what changes nothing but deadlines.
fn install_deadlines(shard: &mut GroupShard, draft: Draft, cx: &Circumstances<'_>) {
    let mut outcome = GroupOutcome::default();
    install(shard, draft, &mut outcome, cx);
    debug_assert!(outcome.records.is_empty(), "nothing durable has changed");
}

/// LeaveGroup.
pub(super) fn classic_leave(
    shard: &mut GroupShard,
    ticket: Ticket,
    request: LeaveGroupRequest,
    cx: &mut Circumstances<'_>,
) -> GroupOutcome {
    let Some(group) = consumer(shard, &request.group_id) else { return GroupOutcome::default() };
    let mut gone = BTreeSet::new();
    let mut members = Vec::with_capacity(request.members.len());
    for member in request.members {
        let found = classic_members::leaving(&group, &member.member_id, member.group_instance_id.as_ref());
        // Named twice, it is not there the second time.
        let error = match found {
            Ok(id) => match gone.insert(id) {
                true => ErrorCode::None,
                false => ErrorCode::UnknownMemberId,
            },
            Err(error) => error,
        };
        members.push(MemberResponse {
            member_id: member.member_id,
            group_instance_id: member.group_instance_id,
            error_code: error as i16,
            ..Default::default()
        });
    }
    let mut outcome = match gone.is_empty() {
        true => GroupOutcome::default(),
        false => remove(shard, &request.group_id, &gone, cx),
    };
    outcome.replies.push((ticket, Reply::LeaveGroup(LeaveGroupResponse { members, ..Default::default() })));
    outcome
}

/// Takes in a record of this protocol.
///
/// # Errors
/// The record speaks of a group of another kind, or its value is of another type.
pub fn replay(shard: &mut GroupShard, record: &GroupRecord) -> Result<(), ReplayError> {
    let Some((group_id, makes_group)) = records::group_of(record) else {
        return Err(ReplayError::Unexpected { key: record.key.api_key() });
    };
    let is_simple = |group: &classic::ClassicGroup| group.is_unused() && !group.has_protocol_type();
    match shard.groups.get(group_id) {
        None if !makes_group => return Ok(()),
        Some(Group::Consumer(_)) => {}
        // Its offsets came first in a compacted log: they made a group of their own.
        Some(Group::Classic(group)) if makes_group && is_simple(group) => {
            shard.groups.remove(group_id);
        }
        // What is left of a group that has become a classic one.
        Some(Group::Classic(_)) if !makes_group => return Ok(()),
        Some(Group::Classic(_)) => {
            let (group, record) = (group_id.to_string(), records::NAME);
            return Err(ReplayError::OtherKind { group, record });
        }
        None => {}
    }
    if records::ends_group(record) {
        shard.groups.remove(group_id);
        return Ok(());
    }
    let new = || Group::Consumer(Arc::new(ConsumerGroup::new(group_id.clone())));
    if let Group::Consumer(group) = shard.groups.entry(group_id.clone()).or_insert_with(new)
        && !Arc::make_mut(group).apply(record)
    {
        return Err(record.mismatch());
    }
    Ok(())
}

/// A deadline of a group of this protocol is due: the member has not kept it, and is out.
pub fn on_deadline(shard: &mut GroupShard, deadline: &Deadline, cx: &mut Circumstances<'_>) -> GroupOutcome {
    let (TimerKind::ConsumerSession(member_id)
    | TimerKind::ConsumerRebalance(member_id)
    | TimerKind::ConsumerJoin(member_id)
    | TimerKind::ConsumerSync(member_id)) = &deadline.kind
    else {
        return GroupOutcome::default();
    };
    let group_id = &deadline.group_id;
    if consumer(shard, group_id).is_none_or(|group| group.member(member_id).is_none()) {
        return GroupOutcome::default();
    }
    remove(shard, group_id, &BTreeSet::from([member_id.clone()]), cx)
}

/// The shard has read its log: sessions begin.
pub fn loaded(shard: &mut GroupShard, group_id: &str, cx: &mut Circumstances<'_>) -> GroupOutcome {
    if let Some(group) = consumer(shard, group_id) {
        for (kind, delay_ms) in group.sessions(cx) {
            shard.timers.set(cx, group.id(), kind, delay_ms);
        }
    }
    GroupOutcome::default()
}

/// Patterns have been looked up.
pub(super) fn found(shard: &mut GroupShard, found: &Found, cx: &Circumstances<'_>) -> GroupOutcome {
    let mut outcome = GroupOutcome::default();
    if let Some(group) = consumer(shard, &found.group_id) {
        let mut draft = Draft::new(ConsumerGroup::clone(&group));
        regex::found(&mut draft, found, cx);
        install(shard, draft, &mut outcome, cx);
    }
    outcome
}
