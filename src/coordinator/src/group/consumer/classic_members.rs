//! Members of the classic protocol in a consumer group: the group goes on while its members are changed over one by one.
//!
//! To such a member the group looks classic: its epoch is the generation, and whenever it has another step to take it is
//! told that a rebalance is in progress, and joins again.

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, SyncGroupRequest,
    SyncGroupResponse,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::draft::Draft;
use super::embedded::{self, CONSUMER, Subscription};
use super::heartbeat::{check_size, replace};
use super::member::{ClassicPart, JOINING_EPOCH, Member, MemberState};
use super::regex;
use super::state::ConsumerGroup;
use crate::Circumstances;
use crate::group::{Caller, TimerKind};

/// From this version on a dynamic member is first told its id, and joins with it.
const FIRST_WITH_KNOWN_MEMBER_ID: i16 = 4;

/// A refusal: the error, and the member id that goes with it.
pub(super) type JoinRefusal = (ErrorCode, ByteString);

/// JoinGroup.
///
/// # Errors
/// What the member is told instead.
pub(super) fn join(
    draft: &mut Draft,
    request: &JoinGroupRequest,
    caller: &Caller,
    cx: &mut Circumstances<'_>,
) -> Result<JoinGroupResponse, JoinRefusal> {
    let refuse = |error| Err((error, request.member_id.clone()));
    let bounds = &cx.settings.classic;
    if !(bounds.min_session_timeout_ms..=bounds.max_session_timeout_ms).contains(&request.session_timeout_ms)
    {
        return refuse(ErrorCode::InvalidSessionTimeout);
    }
    if check_size(draft, &request.member_id, cx.settings.consumer.max_size).is_err() {
        return Err((ErrorCode::GroupMaxSizeReached, ByteString::new()));
    }
    if request.protocol_type != CONSUMER || !accepts(&draft.group, request) {
        return refuse(ErrorCode::InconsistentGroupProtocol);
    }
    let first = request.protocols.first();
    // The handshake comes first: a member that has no id yet is given one, whatever it says.
    let former = find_or_join(draft, request, caller, cx)?;
    let Some(subscription) = first.and_then(|first| embedded::subscription(&first.metadata)) else {
        return refuse(ErrorCode::InconsistentGroupProtocol);
    };
    // It was put out and does not know: it must let go of what it has, which may be another's by now. Kafka takes it in.
    if draft.group.member(&former.id).is_none()
        && subscription.owned.iter().any(|(_, owned)| !owned.is_empty())
    {
        return refuse(ErrorCode::UnknownMemberId);
    }
    let member = updated(&former, request, &subscription, caller);

    let topics_changed = draft.describe_member(&former, &member);
    regex::want(draft, &member, cx);
    draft.update_epoch(topics_changed, cx.cluster);
    draft.update_assignment(cx);
    let owned = subscription.owned_partitions(cx.cluster);
    draft.reconcile(&member.id, Some(&owned), topics_changed, cx);
    draft.keep_session(&member, cx);
    draft.timers.push((TimerKind::ConsumerJoin(member.id.clone()), None));
    let sync_time_ms = i64::from(member.rebalance_timeout_ms.max(0));
    draft.timers.push((TimerKind::ConsumerSync(member.id.clone()), Some(sync_time_ms)));

    let epoch = draft.group.member(&member.id).map_or(JOINING_EPOCH, |member| member.epoch);
    Ok(JoinGroupResponse {
        generation_id: epoch,
        protocol_type: Some(ByteString::from_static(CONSUMER)),
        protocol_name: first.map(|first| first.name.clone()),
        member_id: member.id,
        ..Default::default()
    })
}

/// Whether the classic members and the newcomer have a protocol in common.
fn accepts(group: &ConsumerGroup, request: &JoinGroupRequest) -> bool {
    let others = || group.members().filter(|member| member.id != request.member_id);
    let mut classic = others().filter_map(|member| member.classic.as_ref()).peekable();
    if classic.peek().is_none() {
        return !request.protocols.is_empty();
    }
    let names: BTreeSet<&ByteString> = request.protocols.iter().map(|protocol| &protocol.name).collect();
    let common = classic.fold(names, |common, part| {
        let offered: BTreeSet<&ByteString> = part.protocols.iter().map(|(name, _)| name).collect();
        common.intersection(&offered).copied().collect()
    });
    !common.is_empty()
}

fn find_or_join(
    draft: &mut Draft,
    request: &JoinGroupRequest,
    caller: &Caller,
    cx: &mut Circumstances<'_>,
) -> Result<Member, JoinRefusal> {
    let id = &request.member_id;
    let new_id = |cx: &mut Circumstances<'_>, name: &ByteString| -> ByteString {
        format!("{name}-{}", cx.random_uuid_text()).into()
    };
    let Some(instance_id) = &request.group_instance_id else {
        if !id.is_empty() {
            let known = draft.group.member(id);
            return Ok(known.map_or_else(|| Member::new(id.clone()), |member| Member::clone(member)));
        }
        let id = new_id(cx, &caller.client_id);
        return match caller.version >= FIRST_WITH_KNOWN_MEMBER_ID {
            true => Err((ErrorCode::MemberIdRequired, id)),
            false => Ok(Member::new(id)),
        };
    };
    match draft.group.static_member(instance_id).cloned() {
        None if id.is_empty() => Ok(Member::new(new_id(cx, instance_id))),
        None => Err((ErrorCode::UnknownMemberId, id.clone())),
        // A classic member does not say that it went: whoever comes with its instance id takes its place.
        Some(holder) if id.is_empty() => Ok(replace(draft, &holder, &new_id(cx, instance_id))),
        Some(holder) if holder.id != *id => Err((ErrorCode::FencedInstanceId, id.clone())),
        Some(holder) => Ok(Member::clone(&holder)),
    }
}

fn updated(former: &Member, request: &JoinGroupRequest, said: &Subscription, caller: &Caller) -> Member {
    let protocols =
        request.protocols.iter().map(|protocol| (protocol.name.clone(), protocol.metadata.clone()));
    Member {
        instance_id: request.group_instance_id.clone(),
        rack_id: said.rack_id.clone(),
        client_id: caller.client_id.clone(),
        client_host: caller.client_host.clone(),
        topics: said.topics.clone(),
        regex: ByteString::new(),
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        server_assignor: None,
        classic: Some(ClassicPart {
            session_timeout_ms: request.session_timeout_ms,
            protocols: protocols.collect(),
        }),
        ..former.clone()
    }
}

/// The classic member that a request comes from, and what it said of itself.
fn find<'a>(
    group: &'a ConsumerGroup,
    member_id: &ByteString,
    instance_id: Option<&ByteString>,
    generation: i32,
) -> Result<(&'a Arc<Member>, &'a ClassicPart), ErrorCode> {
    if let Some(instance_id) = instance_id {
        let holder = group.static_member(instance_id).ok_or(ErrorCode::UnknownMemberId)?;
        if holder.id != *member_id {
            return Err(ErrorCode::FencedInstanceId);
        }
    }
    let member = group.member(member_id).ok_or(ErrorCode::UnknownMemberId)?;
    let classic = member.classic.as_ref().ok_or(ErrorCode::UnknownMemberId)?;
    if generation != member.epoch {
        return Err(ErrorCode::IllegalGeneration);
    }
    Ok((member, classic))
}

/// SyncGroup.
pub(super) fn sync(
    draft: &mut Draft,
    request: &SyncGroupRequest,
    cx: &Circumstances<'_>,
) -> SyncGroupResponse {
    match assigned(draft, request, cx) {
        Ok(response) => response,
        Err(error) => SyncGroupResponse { error_code: error as i16, ..Default::default() },
    }
}

fn assigned(
    draft: &mut Draft,
    request: &SyncGroupRequest,
    cx: &Circumstances<'_>,
) -> Result<SyncGroupResponse, ErrorCode> {
    let instance_id = request.group_instance_id.as_ref();
    let (member, classic) = find(&draft.group, &request.member_id, instance_id, request.generation_id)?;
    let offers = |name: &ByteString| classic.protocols.iter().any(|(own, _)| own == name);
    if request.protocol_type.as_deref().is_some_and(|kind| kind != CONSUMER)
        || request.protocol_name.as_ref().is_some_and(|name| !offers(name))
    {
        return Err(ErrorCode::InconsistentGroupProtocol);
    }
    let member = Arc::clone(member);
    let metadata = classic.protocols.first().map(|(_, metadata)| metadata.clone()).unwrap_or_default();
    let first_name = classic.protocols.first().map(|(name, _)| name.clone());
    // A member that has yet to give something up learns so by what it is assigned, and joins again on its own.
    if member.epoch < draft.group.epoch && member.state != MemberState::UnrevokedPartitions {
        expect_join(draft, &member);
        return Err(ErrorCode::RebalanceInProgress);
    }
    draft.timers.push((TimerKind::ConsumerSync(member.id.clone()), None));
    draft.keep_session(&member, cx);
    let version = embedded::subscription(&metadata).map_or(0, |subscription| subscription.version);
    Ok(SyncGroupResponse {
        protocol_type: Some(ByteString::from_static(CONSUMER)),
        protocol_name: request.protocol_name.clone().or(first_name),
        assignment: embedded::assignment_bytes(&member.assigned, version, cx.cluster),
        ..Default::default()
    })
}

/// Heartbeat.
pub(super) fn heartbeat(
    draft: &mut Draft,
    request: &HeartbeatRequest,
    cx: &Circumstances<'_>,
) -> HeartbeatResponse {
    let instance_id = request.group_instance_id.as_ref();
    let error = match find(&draft.group, &request.member_id, instance_id, request.generation_id) {
        Err(error) => error,
        Ok((member, _)) => {
            let member = Arc::clone(member);
            draft.keep_session(&member, cx);
            match has_a_step_to_take(&draft.group, &member) {
                false => ErrorCode::None,
                true => {
                    expect_join(draft, &member);
                    ErrorCode::RebalanceInProgress
                }
            }
        }
    };
    HeartbeatResponse { error_code: error as i16, ..Default::default() }
}

/// Whether joining again would bring the member further.
fn has_a_step_to_take(group: &ConsumerGroup, member: &Member) -> bool {
    member.epoch < group.epoch
        || match member.state {
            MemberState::Stable => false,
            MemberState::UnrevokedPartitions | MemberState::Unknown => true,
            MemberState::UnreleasedPartitions => !group.waits_for_others(member),
        }
}

/// The member was told to join: it has its rebalance timeout to do so, from the first time that it was told.
fn expect_join(draft: &mut Draft, member: &Member) {
    let time_ms = i64::from(member.rebalance_timeout_ms.max(0));
    draft.join_deadline = Some((TimerKind::ConsumerJoin(member.id.clone()), time_ms));
}

/// Whom LeaveGroup names. Administrators remove members of either protocol by it.
///
/// # Errors
/// What the member is told instead.
pub(super) fn leaving(
    group: &ConsumerGroup,
    member_id: &ByteString,
    instance_id: Option<&ByteString>,
) -> Result<ByteString, ErrorCode> {
    let Some(instance_id) = instance_id else {
        return group.member(member_id).map(|member| member.id.clone()).ok_or(ErrorCode::UnknownMemberId);
    };
    let holder = group.static_member(instance_id).ok_or(ErrorCode::UnknownMemberId)?;
    // An administrator names the instance alone.
    if member_id.is_empty() || holder.id == *member_id {
        Ok(holder.id.clone())
    } else {
        Err(ErrorCode::FencedInstanceId)
    }
}
