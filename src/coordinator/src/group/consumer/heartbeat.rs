//! ConsumerGroupHeartbeat: how a member joins, tells what it wants and has, and learns what it gets.

use std::collections::BTreeSet;

use callboard_protocol::ByteString;
use callboard_protocol::messages::ConsumerGroupHeartbeatRequest;
use callboard_protocol::messages::ConsumerGroupHeartbeatResponse;
use callboard_protocol::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};

use super::check;
use super::draft::Draft;
use super::error::Refusal;
use super::member::{AWAY_EPOCH, JOINING_EPOCH, Member};
use super::partitions::{AssignedPartitions, Partitions};
use super::records;
use super::regex;
use crate::Circumstances;
use crate::group::{Caller, TimerKind};

/// A heartbeat of a member that is in the group or joins it.
///
/// # Errors
/// What the member must be told instead.
pub(super) fn heartbeat(
    draft: &mut Draft,
    request: &ConsumerGroupHeartbeatRequest,
    caller: &Caller,
    cx: &Circumstances<'_>,
) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
    let settings = &cx.settings.consumer;
    check_size(draft, &request.member_id, settings.max_size)?;
    let owned = check::owned(request);
    let former = find_or_join(draft, request, owned.as_ref())?;
    let member = updated(&former, request, caller)?;

    let topics_changed = draft.describe_member(&former, &member);
    let regex_changed = former.regex != member.regex;
    let resolved = !member.regex.is_empty() && draft.group.regexes.contains_key(&member.regex);
    regex::want(draft, &member, cx);
    // A pattern that is not looked up yet changes nothing yet; dropping one does.
    let bump = topics_changed || (regex_changed && (resolved || !former.regex.is_empty()));
    draft.update_epoch(bump, cx.cluster);
    draft.update_assignment(cx);
    draft.reconcile(&member.id, owned.as_ref(), topics_changed || regex_changed, cx);
    draft.keep_session(&member, cx);

    let now = draft.group.members.get(&member.id).cloned().unwrap_or_default();
    let is_told = check::is_full(request) || !now.assigned.same_partitions(&former.assigned);
    Ok(ConsumerGroupHeartbeatResponse {
        member_id: Some(member.id.clone()),
        member_epoch: now.epoch,
        heartbeat_interval_ms: settings.heartbeat_interval_ms(cx.cluster, &draft.group.id),
        assignment: is_told.then(|| assignment(&now.assigned)),
        ..Default::default()
    })
}

/// A full group takes nobody new.
pub(super) fn check_size(draft: &Draft, member_id: &ByteString, max_size: usize) -> Result<(), Refusal> {
    if draft.group.len() >= max_size && !draft.group.members.contains_key(member_id) {
        return Err(Refusal::MaxSizeReached(max_size));
    }
    Ok(())
}

/// The member that a heartbeat is of, as the group knows it; a new one if it joins.
fn find_or_join(
    draft: &mut Draft,
    request: &ConsumerGroupHeartbeatRequest,
    owned: Option<&Partitions>,
) -> Result<Member, Refusal> {
    let joins = request.member_epoch == JOINING_EPOCH;
    let id = &request.member_id;
    let Some(instance_id) = &request.instance_id else {
        return match draft.group.members.get(id) {
            Some(member) => check_epoch(member, request.member_epoch, owned).map(|()| Member::clone(member)),
            None if joins => Ok(Member::new(id.clone())),
            None => Err(unknown_member(draft, id)),
        };
    };
    let Some(holder) = draft.group.static_member(instance_id).cloned() else {
        if !joins {
            return Err(Refusal::UnknownInstance(instance_id.clone()));
        }
        let known = draft.group.members.get(id);
        return Ok(known.map_or_else(|| Member::new(id.clone()), |member| Member::clone(member)));
    };
    if joins {
        // A classic member does not say that it goes, so whoever comes with its instance id takes its place.
        if holder.epoch != AWAY_EPOCH && !holder.uses_classic_protocol() {
            let (member_id, instance_id) = (id.clone(), instance_id.clone());
            return Err(Refusal::UnreleasedInstance { member_id, instance_id, owner: holder.id.clone() });
        }
        return Ok(replace(draft, &holder, id));
    }
    check_holder(&holder, id, instance_id)?;
    check_epoch(&holder, request.member_epoch, owned)?;
    Ok(Member::clone(&holder))
}

fn unknown_member(draft: &Draft, member_id: &ByteString) -> Refusal {
    Refusal::UnknownMember { member_id: member_id.clone(), group_id: draft.id() }
}

fn check_holder(holder: &Member, member_id: &ByteString, instance_id: &ByteString) -> Result<(), Refusal> {
    if holder.id == *member_id {
        return Ok(());
    }
    Err(Refusal::FencedInstance {
        member_id: member_id.clone(),
        instance_id: instance_id.clone(),
        by: holder.id.clone(),
    })
}

/// Puts a new member in the place of the one that had its instance id: it gets the same partitions, without a new epoch.
pub(super) fn replace(draft: &mut Draft, holder: &Member, id: &ByteString) -> Member {
    let group_id = draft.id();
    let target = draft.group.target(&holder.id);
    // The pattern is still wanted: it must not go with the old member.
    draft.write(records::current_gone(&group_id, &holder.id));
    draft.write(records::target_gone(&group_id, &holder.id));
    draft.write(records::member_gone(&group_id, &holder.id));
    draft.cancel_timers(&holder.id);
    let member = Member {
        id: id.clone(),
        epoch: JOINING_EPOCH,
        previous_epoch: JOINING_EPOCH,
        // Its epoch starts anew, so its commits can't be told by it from those of the assignments before.
        assigned: holder.assigned.with_epoch(0),
        ..holder.clone()
    };
    draft.write(records::member(&group_id, &member));
    draft.write(records::target(&group_id, id, &target));
    draft.write(records::current(&group_id, &member));
    member
}

/// A member must come with its epoch. Two others are good too: 0, when it has lost everything and starts anew; and the
/// one before, if it has nothing but what it was given: the answer with the new epoch may have been lost.
fn check_epoch(member: &Member, received: i32, owned: Option<&Partitions>) -> Result<(), Refusal> {
    let known = member.epoch;
    if received > known {
        return Err(Refusal::EpochAhead { received, known });
    }
    if received == known || received == JOINING_EPOCH {
        return Ok(());
    }
    let has_only_its_own =
        owned.is_some_and(|owned| owned.iter().all(|(t, p)| member.assigned.contains(t, p)));
    if received == member.previous_epoch && has_only_its_own {
        return Ok(());
    }
    Err(Refusal::EpochBehind { received, known })
}

/// The member with what the request tells of it.
fn updated(
    former: &Member,
    request: &ConsumerGroupHeartbeatRequest,
    caller: &Caller,
) -> Result<Member, Refusal> {
    let mut member = former.clone();
    member.client_id.clone_from(&caller.client_id);
    member.client_host.clone_from(&caller.client_host);
    member.classic = None;
    if request.instance_id.is_some() {
        member.instance_id.clone_from(&request.instance_id);
    }
    if request.rack_id.is_some() {
        member.rack_id.clone_from(&request.rack_id);
    }
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
    }
    if request.server_assignor.is_some() {
        member.server_assignor.clone_from(&request.server_assignor);
    }
    if let Some(names) = &request.subscribed_topic_names {
        member.topics = names.iter().cloned().collect();
    }
    if let Some(regex) = &request.subscribed_topic_regex {
        member.regex.clone_from(regex);
        if !regex.is_empty() && former.regex != *regex {
            regex::check(regex)?;
        }
    }
    Ok(member)
}

/// Who leaves.
///
/// # Errors
/// What it must be told instead.
pub(super) fn leaving(draft: &Draft, request: &ConsumerGroupHeartbeatRequest) -> Result<Member, Refusal> {
    let id = &request.member_id;
    let member = match &request.instance_id {
        None => draft.group.members.get(id).ok_or_else(|| unknown_member(draft, id))?,
        Some(instance_id) => {
            let holder = draft.group.static_member(instance_id);
            let holder = holder.ok_or_else(|| Refusal::UnknownInstance(instance_id.clone()))?;
            check_holder(holder, id, instance_id)?;
            holder
        }
    };
    Ok(Member::clone(member))
}

/// A static member leaves for a while: it keeps what it has until its session ends.
pub(super) fn go_away(draft: &mut Draft, member: &Member) {
    let away = Member {
        epoch: AWAY_EPOCH,
        assigned: member.assigned.with_epoch(0),
        pending_revocation: AssignedPartitions::new(),
        ..member.clone()
    };
    draft.write(records::current(&draft.id(), &away));
    // What it had to give up is free: it has stopped.
    draft.timers.push((TimerKind::ConsumerRebalance(member.id.clone()), None));
}

/// What a member is told that has left, for good or for a while.
pub(super) fn farewell(member: Member, epoch: i32) -> ConsumerGroupHeartbeatResponse {
    ConsumerGroupHeartbeatResponse { member_id: Some(member.id), member_epoch: epoch, ..Default::default() }
}

/// Takes members out of the group and starts a new epoch.
pub(super) fn fence(draft: &mut Draft, member_ids: &BTreeSet<ByteString>, cx: &Circumstances<'_>) {
    for id in member_ids {
        draft.remove(id);
    }
    if !member_ids.is_empty() {
        draft.epoch_after_removal(cx.cluster);
    }
}

fn assignment(assigned: &AssignedPartitions) -> Assignment {
    let topic_partitions = assigned
        .topics()
        .map(|(topic_id, partitions)| TopicPartitions {
            topic_id,
            partitions: partitions.keys().copied().collect(),
            ..Default::default()
        })
        .collect();
    Assignment { topic_partitions, ..Default::default() }
}
