//! Classic groups.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::leave_group_request::MemberIdentity;
use callboard_protocol::messages::{JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest};

use super::talk::{GROUP, REBALANCE_MS, SESSION_MS, Talk, join, join_as, protocols, sync};

fn code(error: ErrorCode) -> i16 {
    error as i16
}

#[test]
fn one_member_joins_syncs_and_leaves() {
    let mut talk = Talk::new();
    let ticket = talk.join();
    let joined = talk.joined(ticket);
    assert_eq!((joined.error_code, joined.generation_id), (0, 1));
    assert_eq!(joined.protocol_name.as_deref(), Some("range"));
    assert!(joined.member_id.starts_with("client-"));
    assert_eq!((&joined.leader, joined.members.len()), (&joined.member_id, 1));
    assert_eq!(talk.state(), "CompletingRebalance");
    let synced = talk.tell(5, sync(&joined, &[(joined.member_id.clone(), "all")]));
    assert_eq!(&synced.assignment[..], b"all");
    assert_eq!(talk.state(), "Stable");
    assert_eq!(talk.beat(&joined), ErrorCode::None);
    assert_eq!(talk.leave(&joined.member_id), ErrorCode::None);
    assert_eq!((talk.state().as_str(), talk.group().generation()), ("Empty", 2));
    assert_eq!(talk.beat(&joined), ErrorCode::UnknownMemberId);
    assert_eq!(talk.leave(&joined.member_id), ErrorCode::UnknownMemberId);
}

#[test]
fn a_second_member_makes_the_first_join_again() {
    let mut talk = Talk::new();
    let first = talk.stable(1).remove(0);
    let newcomer = talk.join();
    assert_eq!(talk.beat(&first), ErrorCode::RebalanceInProgress);
    assert_eq!(talk.tell(5, sync(&first, &[])).error_code, code(ErrorCode::RebalanceInProgress));
    assert!(talk.hears::<JoinGroupRequest>(newcomer).is_none(), "it waits for the first");
    let again = talk.ask(9, join(&first.member_id));
    let (first, second) = (talk.joined(again), talk.joined(newcomer));
    assert_eq!((first.generation_id, second.generation_id), (2, 2));
    assert_eq!((first.members.len(), second.members.len()), (2, 0), "only the leader is told who is in");
    assert_eq!(first.leader, second.leader);
    let waiting = talk.ask(5, sync(&second, &[]));
    assert!(talk.hears::<SyncGroupRequest>(waiting).is_none(), "it waits for the leader");
    assert_eq!(talk.beat(&second), ErrorCode::None);
    talk.tell(5, sync(&first, &[(second.member_id.clone(), "two")]));
    assert_eq!(&talk.synced(waiting).assignment[..], b"two");
}

#[test]
fn a_member_that_does_not_join_in_time_is_left_behind() {
    let mut talk = Talk::new();
    let first = talk.stable(1).remove(0);
    let newcomer = talk.join();
    // It goes on beating, so its session lasts; but it does not join.
    for _ in 0..2 * REBALANCE_MS / SESSION_MS {
        assert!(talk.hears::<JoinGroupRequest>(newcomer).is_none());
        assert_eq!(talk.beat(&first), ErrorCode::RebalanceInProgress);
        talk.wait(i64::from(SESSION_MS / 2));
    }
    let second = talk.joined(newcomer);
    assert_eq!((second.error_code, second.members.len()), (0, 1));
    assert_eq!(second.leader, second.member_id);
    assert_eq!(talk.beat(&first), ErrorCode::UnknownMemberId);
}

#[test]
fn a_silent_member_is_removed_and_one_that_waits_is_not() {
    let mut talk = Talk::new();
    let members = talk.stable(2);
    talk.wait(i64::from(SESSION_MS) - 1);
    assert_eq!(talk.beat(&members[0]), ErrorCode::None);
    talk.wait(1);
    assert_eq!(talk.beat(&members[0]), ErrorCode::RebalanceInProgress, "the other one is out");
    let again = talk.ask(9, join(&members[0].member_id));
    let alone = talk.joined(again);
    assert_eq!(alone.members.len(), 1);
    // Two in a rebalance: the first waits with its join for longer than its session.
    assert_eq!(talk.tell(5, sync(&alone, &[])).error_code, 0);
    let newcomer = talk.join();
    talk.wait(i64::from(SESSION_MS) - 1);
    assert_eq!(talk.beat(&alone), ErrorCode::RebalanceInProgress);
    talk.wait(i64::from(SESSION_MS) - 1);
    let again = talk.ask(9, join(&alone.member_id));
    assert_eq!((talk.joined(again).error_code, talk.joined(newcomer).error_code), (0, 0));
}

#[test]
fn a_member_that_does_not_sync_in_time_is_removed() {
    let mut talk = Talk::new();
    let first = talk.stable(1).remove(0);
    let newcomer = talk.join();
    let again = talk.ask(9, join(&first.member_id));
    let (first, second) = (talk.joined(again), talk.joined(newcomer));
    assert_eq!(talk.tell(5, sync(&first, &[])).error_code, 0);
    for _ in 0..2 * REBALANCE_MS / SESSION_MS {
        assert_eq!((talk.beat(&first), talk.beat(&second)), (ErrorCode::None, ErrorCode::None));
        talk.wait(i64::from(SESSION_MS / 2));
    }
    assert_eq!(talk.beat(&second), ErrorCode::UnknownMemberId);
    assert_eq!(talk.beat(&first), ErrorCode::RebalanceInProgress);
}

#[test]
fn an_empty_group_waits_for_more_members_while_they_come() {
    let mut talk = Talk::new();
    talk.settings.classic.initial_rebalance_delay_ms = 3_000;
    let first = talk.join();
    talk.wait(2_000);
    let second = talk.join();
    talk.wait(2_000);
    assert!(talk.hears::<JoinGroupRequest>(first).is_none(), "the newcomer has given everybody more time");
    talk.wait(2_000);
    let (first, second) = (talk.joined(first), talk.joined(second));
    assert_eq!((first.generation_id, second.generation_id), (1, 1));
}

#[test]
fn an_id_that_nobody_joins_with_is_forgotten() {
    let mut talk = Talk::new();
    let first = talk.tell(9, join(""));
    talk.wait(i64::from(SESSION_MS));
    let late = talk.tell(9, join(&first.member_id));
    assert_eq!(late.error_code, code(ErrorCode::UnknownMemberId));
    // While it counted, others had to wait for it.
    let slow = talk.tell(9, join("")).member_id;
    let quick = talk.join();
    assert_eq!(talk.joined(quick).generation_id, 1, "a first generation does not wait for it");
    assert_eq!(talk.leave(&slow), ErrorCode::None);
}

#[test]
fn members_agree_on_a_protocol_that_all_can() {
    let mut talk = Talk::new();
    let offer = |names: &[&'static str]| JoinGroupRequest { protocols: protocols(names), ..join("") };
    talk.settings.classic.initial_rebalance_delay_ms = 1_000;
    let joins = [
        talk.ask(3, offer(&["sticky", "range", "old"])),
        talk.ask(3, offer(&["range", "old"])),
        talk.ask(3, offer(&["old", "range"])),
    ];
    let stranger = talk.tell(3, offer(&["sticky"]));
    assert_eq!(stranger.error_code, code(ErrorCode::InconsistentGroupProtocol));
    let other = JoinGroupRequest { protocol_type: "connect".into(), ..offer(&["range"]) };
    assert_eq!(talk.tell(3, other).error_code, code(ErrorCode::InconsistentGroupProtocol));
    talk.wait(4_000);
    for ticket in joins {
        assert_eq!(talk.joined(ticket).protocol_name.as_deref(), Some("range"), "two votes of three");
    }
}

#[test]
fn requests_of_another_generation_or_member_are_refused() {
    let mut talk = Talk::new();
    let member = talk.stable(1).remove(0);
    let mut late = member.clone();
    late.generation_id -= 1;
    assert_eq!(talk.beat(&late), ErrorCode::IllegalGeneration);
    assert_eq!(talk.tell(5, sync(&late, &[])).error_code, code(ErrorCode::IllegalGeneration));
    late.member_id = "stranger".into();
    assert_eq!(talk.beat(&late), ErrorCode::UnknownMemberId);
    assert_eq!(talk.tell(9, join("stranger")).error_code, code(ErrorCode::UnknownMemberId));
    let wrong = SyncGroupRequest { protocol_name: Some("sticky".into()), ..sync(&member, &[]) };
    assert_eq!(talk.tell(5, wrong).error_code, code(ErrorCode::InconsistentGroupProtocol));
    let nameless = JoinGroupRequest { group_id: "".into(), ..join("") };
    assert_eq!(talk.tell(9, nameless).error_code, code(ErrorCode::InvalidGroupId));
    let hasty = JoinGroupRequest { session_timeout_ms: 5_999, ..join("") };
    assert_eq!(talk.tell(9, hasty).error_code, code(ErrorCode::InvalidSessionTimeout));
}

#[test]
fn a_follower_that_asks_again_is_told_the_same_and_a_leader_begins_anew() {
    let mut talk = Talk::new();
    let members = talk.stable(2);
    let generation = members[0].generation_id;
    let again = talk.tell(9, join(&members[1].member_id));
    assert_eq!((again.error_code, again.generation_id), (0, generation));
    assert_eq!(talk.state(), "Stable");
    let waiting = talk.ask(9, join(&members[0].member_id));
    assert!(talk.hears::<JoinGroupRequest>(waiting).is_none());
    assert_eq!(talk.state(), "PreparingRebalance");
}

#[test]
fn a_group_takes_no_more_members_than_it_may() {
    let mut talk = Talk::new();
    talk.settings.classic.max_size = 2;
    let members = talk.stable(2);
    let refused = talk.tell(9, join(""));
    assert_eq!(refused.error_code, code(ErrorCode::GroupMaxSizeReached));
    assert_eq!(refused.member_id.as_ref() as &str, "");
    assert_eq!(talk.beat(&members[0]), ErrorCode::None);
}

/// A stable group of one static member, which leads it.
fn static_leader(talk: &mut Talk) -> callboard_protocol::messages::JoinGroupResponse {
    let ticket = talk.ask(9, join_as("i", ""));
    let joined = talk.joined(ticket);
    assert!(joined.member_id.starts_with("i-"));
    assert_eq!(talk.tell(5, sync(&joined, &[(joined.member_id.clone(), "all")])).error_code, 0);
    joined
}

#[test]
fn a_static_member_comes_back_without_a_rebalance() {
    for (version, skips) in [(8, false), (9, true)] {
        let mut talk = Talk::new();
        let former = static_leader(&mut talk);
        let back = talk.tell(version, join_as("i", ""));
        assert_eq!((back.error_code, back.generation_id), (0, former.generation_id));
        assert_ne!(back.member_id, former.member_id);
        assert_eq!(back.skip_assignment, skips);
        // One that can't be told to leave the assignment as it is must not think that it leads.
        assert_eq!(back.leader == back.member_id, skips);
        assert_eq!(talk.state(), "Stable");
        assert_eq!(&talk.tell(5, sync(&back, &[])).assignment[..], b"all");
        assert_eq!(talk.beat(&former), ErrorCode::UnknownMemberId);
        let fenced = talk.tell(9, join_as("i", &former.member_id));
        assert_eq!(fenced.error_code, code(ErrorCode::FencedInstanceId));
        talk.fail_over();
        assert_eq!(talk.beat(&back), ErrorCode::None, "the log knows the new id");
    }
}

#[test]
fn a_static_member_that_offers_something_else_causes_a_rebalance() {
    let mut talk = Talk::new();
    static_leader(&mut talk);
    let changed = JoinGroupRequest { protocols: protocols(&["roundrobin"]), ..join_as("i", "") };
    let ticket = talk.ask(9, changed);
    let joined = talk.joined(ticket);
    assert_eq!((joined.generation_id, joined.protocol_name.as_deref()), (2, Some("roundrobin")));
}

#[test]
fn two_with_one_instance_fence_each_other_while_they_wait() {
    let mut talk = Talk::new();
    talk.settings.classic.initial_rebalance_delay_ms = 1_000;
    let first = talk.ask(9, join_as("i", ""));
    let second = talk.ask(9, join_as("i", ""));
    assert_eq!(talk.joined(first).error_code, code(ErrorCode::FencedInstanceId));
    talk.wait(5_000);
    assert_eq!(talk.joined(second).error_code, 0);
}

#[test]
fn a_static_member_stays_while_it_is_away_and_can_be_removed_by_name() {
    let mut talk = Talk::new();
    let member = static_leader(&mut talk);
    talk.wait(i64::from(SESSION_MS) - 1);
    assert_eq!(talk.state(), "Stable");
    let by_name = MemberIdentity { group_instance_id: Some("i".into()), ..Default::default() };
    let unknown = MemberIdentity { group_instance_id: Some("j".into()), ..Default::default() };
    let fenced = MemberIdentity {
        group_instance_id: Some("i".into()),
        member_id: "another".into(),
        ..Default::default()
    };
    let members = vec![unknown, fenced, by_name];
    let left = talk.tell(5, LeaveGroupRequest { group_id: GROUP.into(), members, ..Default::default() });
    let errors: Vec<_> = left.members.iter().map(|member| ErrorCode::from(member.error_code)).collect();
    assert_eq!(errors, [ErrorCode::UnknownMemberId, ErrorCode::FencedInstanceId, ErrorCode::None]);
    assert_eq!(talk.beat(&member), ErrorCode::UnknownMemberId);
    assert_eq!(talk.state(), "Empty");
}

#[test]
fn a_new_coordinator_knows_the_generation_and_gives_members_their_time() {
    let mut talk = Talk::new();
    let members = talk.stable(2);
    talk.wait(i64::from(SESSION_MS) - 1);
    talk.fail_over();
    talk.wait(i64::from(SESSION_MS) - 1);
    assert_eq!((talk.beat(&members[0]), talk.beat(&members[1])), (ErrorCode::None, ErrorCode::None));
    let again = talk.tell(5, sync(&members[1], &[]));
    assert_eq!(&again.assignment[..], b"part");
    talk.wait(i64::from(SESSION_MS));
    assert_eq!(talk.state(), "Empty");
}

#[test]
fn only_groups_without_members_are_deleted() {
    let mut talk = Talk::new();
    assert_eq!(talk.delete_group(), ErrorCode::GroupIdNotFound);
    let member = talk.stable(1).remove(0);
    assert_eq!(talk.delete_group(), ErrorCode::NonEmptyGroup);
    talk.leave(&member.member_id);
    assert_eq!(talk.delete_group(), ErrorCode::None);
    assert_eq!(talk.state(), "Dead");
    talk.fail_over();
    assert_eq!(talk.state(), "Dead", "its tombstone is in the log");
}
