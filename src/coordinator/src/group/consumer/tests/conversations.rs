//! What members are told, step by step. The numbers are those of Kafka 4.4.0 in the same conversation.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::ConsumerGroupHeartbeatRequest;

use super::stage::*;
use crate::group::consumer::GroupState;
use crate::group::{DescribeConsumerGroup, TimerKind};

#[test]
fn two_members_share_and_one_leaves() {
    let mut stage = Stage::new();
    let t = stage.cluster.add("t", 4);
    assert_eq!(stage.beat("a", 0, joins(&["t"])), (Ok(2), gets(t, &[0, 1, 2, 3])));
    assert_eq!(stage.beat("a", 2, owns(t, &[0, 1, 2, 3])), (Ok(2), None));
    stage.advance(1_100);
    assert_eq!(stage.beat("b", 0, joins(&["t"])), (Ok(3), gets_nothing()));
    assert_eq!(stage.group("g").state(), GroupState::Reconciling);
    assert_eq!(stage.beat("a", 2, nothing), (Ok(2), gets(t, &[0, 1])), "it is told what it may keep");
    assert_eq!(stage.beat("b", 3, nothing), (Ok(3), None), "nothing is free yet");
    assert_eq!(stage.beat("a", 2, owns(t, &[0, 1])), (Ok(3), None));
    assert_eq!(stage.beat("b", 3, nothing), (Ok(3), gets(t, &[2, 3])));
    assert_eq!(stage.group("g").state(), GroupState::Stable);

    assert_eq!(stage.beat("b", -1, nothing), (Ok(-1), None));
    assert_eq!(stage.beat("b", 3, nothing).0, Err(ErrorCode::UnknownMemberId));
    stage.advance(1_100);
    assert_eq!(stage.beat("a", 3, nothing), (Ok(4), gets(t, &[0, 1, 2, 3])));
    assert_eq!(stage.beat("a", -1, nothing), (Ok(-1), None));
    let group = stage.group("g");
    assert_eq!((group.state(), group.epoch(), group.assignment_epoch()), (GroupState::Empty, 5, 5));
}

#[test]
fn within_the_interval_a_newcomer_waits_for_the_next_assignment() {
    let mut stage = Stage::new();
    let t = stage.cluster.add("t", 2);
    let _ = stage.beat("a", 0, joins(&["t"]));
    assert_eq!(
        stage.beat("b", 0, joins(&["t"])),
        (Ok(2), gets_nothing()),
        "it joins at the present assignment"
    );
    assert_eq!(stage.group("g").state(), GroupState::Assigning);
    assert_eq!(stage.beat("a", 2, nothing), (Ok(2), None));
    stage.advance(1_000);
    assert_eq!(stage.beat("a", 2, nothing), (Ok(2), gets(t, &[0])));
    assert_eq!(stage.beat("b", 2, nothing), (Ok(3), None));
}

#[test]
fn an_interval_of_the_group_itself_counts() {
    let mut stage = Stage::new();
    stage.cluster.add("t", 2);
    stage.cluster.configure("g", "consumer.assignment.interval.ms", "0");
    stage.cluster.configure("g", "consumer.heartbeat.interval.ms", "7000");
    let _ = stage.beat("a", 0, joins(&["t"]));
    assert_eq!(stage.beat_in_full("b", 0, joins(&["t"])).member_epoch, 3);
    assert_eq!(stage.beat_in_full("b", 3, nothing).heartbeat_interval_ms, 7_000);
    stage.cluster.configure("g", "consumer.heartbeat.interval.ms", "1");
    assert_eq!(stage.beat_in_full("b", 3, nothing).heartbeat_interval_ms, 5_000, "the broker's bound holds");
}

#[test]
fn epochs_fence() {
    let mut stage = Stage::new();
    let t = stage.cluster.add("t", 4);
    let _ = stage.beat("a", 0, joins(&["t"]));
    stage.advance(1_100);
    let _ = stage.beat("b", 0, joins(&["t"]));
    let _ = stage.beat("a", 2, nothing);
    let _ = stage.beat("a", 2, owns(t, &[0, 1]));
    assert_eq!(stage.beat("a", 4, nothing).0, Err(ErrorCode::FencedMemberEpoch));
    assert_eq!(stage.beat("a", 2, nothing).0, Err(ErrorCode::FencedMemberEpoch));
    assert_eq!(stage.beat("a", 2, owns(t, &[0, 1, 2])).0, Err(ErrorCode::FencedMemberEpoch));
    assert_eq!(stage.beat("a", 2, owns(t, &[0, 1])), (Ok(3), None), "the answer with the new epoch was lost");
    assert_eq!(stage.beat("a", 0, joins(&["t"])), (Ok(3), gets(t, &[0, 1])), "it starts anew");
    assert_eq!(stage.beat("c", 3, nothing).0, Err(ErrorCode::UnknownMemberId));
    let other = |request: &mut ConsumerGroupHeartbeatRequest| request.group_id = "other".into();
    assert_eq!(stage.beat("a", 3, other).0, Err(ErrorCode::GroupIdNotFound));
    assert_eq!(stage.beat("a", -1, other).0, Err(ErrorCode::GroupIdNotFound));
}

#[test]
fn a_static_member_comes_back_without_a_rebalance() {
    let mut stage = Stage::new();
    let t = stage.cluster.add("t", 2);
    assert_eq!(stage.beat("m1", 0, joins_as("i", &["t"])), (Ok(2), gets(t, &[0, 1])));
    assert_eq!(stage.beat("m2", 0, joins_as("i", &["t"])).0, Err(ErrorCode::UnreleasedInstanceId));
    assert_eq!(stage.beat("m1", 0, joins_as("i", &["t"])).0, Err(ErrorCode::UnreleasedInstanceId));
    assert_eq!(stage.beat("m1", 2, instance("i")), (Ok(2), None));
    assert_eq!(stage.beat("m2", -2, instance("i")).0, Err(ErrorCode::FencedInstanceId));
    assert_eq!(stage.beat("m1", -2, instance("i")), (Ok(-2), None));
    assert_eq!(stage.beat("m1", 2, instance("i")).0, Err(ErrorCode::FencedMemberEpoch));
    assert_eq!(stage.beat("m2", 0, joins_as("i", &["t"])), (Ok(2), gets(t, &[0, 1])));
    assert_eq!(stage.group("g").epoch(), 2);
    assert_eq!(stage.beat("m1", 2, instance("i")).0, Err(ErrorCode::FencedInstanceId));
    assert_eq!(stage.beat("m2", 2, owns(t, &[0, 1])), (Ok(2), None));
    assert_eq!(stage.beat("m2", -1, instance("i")), (Ok(-1), None));
    assert_eq!(stage.beat("m3", 0, joins_as("i", &["t"])), (Ok(4), gets(t, &[0, 1])));
    assert_eq!(stage.beat("m3", 1, nothing).0, Err(ErrorCode::FencedMemberEpoch));
    assert_eq!(stage.beat("m3", -2, nothing).0, Err(ErrorCode::InvalidRequest));
}

#[test]
fn a_static_member_that_stays_away_is_out_when_its_session_ends() {
    let mut stage = Stage::new();
    stage.cluster.add("t", 2);
    let _ = stage.beat("m1", 0, joins_as("i", &["t"]));
    let _ = stage.beat("m1", -2, instance("i"));
    stage.advance(44_999);
    assert_eq!(stage.group("g").len(), 1);
    stage.advance(1);
    assert!(stage.group("g").is_empty());
    assert!(stage.shard.timers.is_empty());
}

#[test]
fn who_is_silent_or_does_not_give_up_partitions_is_out() {
    let mut stage = Stage::new();
    let t = stage.cluster.add("t", 2);
    let _ = stage.beat("a", 0, joins(&["t"]));
    stage.advance(1_100);
    let _ = stage.beat("b", 0, joins(&["t"]));
    assert_eq!(stage.beat("a", 2, nothing), (Ok(2), gets(t, &[0])));
    for _ in 0..2 {
        stage.advance(14_000);
        assert_eq!(
            stage.beat("a", 2, owns(t, &[0, 1])),
            (Ok(2), None),
            "it sends heartbeats, but keeps what it has"
        );
        let _ = stage.beat("b", 3, nothing);
    }
    stage.advance(2_000);
    assert_eq!(stage.beat("a", 2, nothing).0, Err(ErrorCode::UnknownMemberId));
    assert_eq!(stage.beat("b", 3, nothing), (Ok(4), gets(t, &[0, 1])));
    stage.advance(45_000);
    assert!(stage.group("g").is_empty(), "the other one was silent");
}

#[test]
fn a_member_that_gives_up_in_time_stays() {
    let mut stage = Stage::new();
    let t = stage.cluster.add("t", 2);
    let _ = stage.beat("a", 0, joins(&["t"]));
    stage.advance(1_100);
    let _ = stage.beat("b", 0, joins(&["t"]));
    let _ = stage.beat("a", 2, nothing);
    let deadline = TimerKind::ConsumerRebalance("a".into());
    assert!(stage.shard.timers.get(&"g".into(), deadline.clone()).is_some());
    let _ = stage.beat("a", 2, owns(t, &[0]));
    assert_eq!(stage.shard.timers.get(&"g".into(), deadline), None);
}

#[test]
fn topics_that_come_grow_and_go_are_followed() {
    let mut stage = Stage::new();
    assert_eq!(stage.beat("a", 0, joins(&["t"])), (Ok(2), gets_nothing()));
    let t = stage.cluster.add("t", 1);
    stage.advance(1_000);
    assert_eq!(stage.beat("a", 2, nothing), (Ok(3), gets(t, &[0])));
    stage.cluster.add("t", 2);
    stage.advance(1_000);
    assert_eq!(stage.beat("a", 3, nothing), (Ok(4), gets(t, &[0, 1])));
    stage.cluster.add("unrelated", 2);
    stage.advance(1_000);
    assert_eq!(stage.beat("a", 4, nothing), (Ok(4), None));
    stage.cluster.delete("t");
    assert_eq!(stage.beat("a", 4, nothing), (Ok(4), gets_nothing()));
    assert_eq!(stage.beat("a", 4, |request| request.topic_partitions = Some(vec![])), (Ok(5), None));
}

#[test]
fn a_topic_no_longer_wanted_is_given_up_before_the_next_assignment() {
    let mut stage = Stage::new();
    let (t, u) = (stage.cluster.add("t", 1), stage.cluster.add("u", 1));
    let mut both = vec![(t, vec![0]), (u, vec![0])];
    both.sort();
    assert_eq!(stage.beat("a", 0, joins(&["t", "u"])), (Ok(2), Some(both)));
    let only_u =
        |request: &mut ConsumerGroupHeartbeatRequest| request.subscribed_topic_names = Some(vec!["u".into()]);
    assert_eq!(stage.beat("a", 2, only_u), (Ok(2), gets(u, &[0])));
    assert_eq!(stage.beat("a", 2, owns(u, &[0])), (Ok(2), None));
}

#[test]
fn a_group_takes_no_more_than_it_may() {
    let mut stage = Stage::new();
    stage.settings.consumer.max_size = 1;
    stage.cluster.add("t", 2);
    let _ = stage.beat("a", 0, joins(&["t"]));
    assert_eq!(stage.beat("b", 0, joins(&["t"])).0, Err(ErrorCode::GroupMaxSizeReached));
    assert_eq!(stage.beat("a", 0, joins(&["t"])).0, Ok(2));
}

#[test]
fn a_request_must_be_as_it_must_be() {
    let mut stage = Stage::new();
    let mut refused = |says: &dyn Fn(&mut ConsumerGroupHeartbeatRequest)| {
        let (result, _) = stage.beat("m", 0, |request| {
            joins(&["t"])(request);
            says(request);
        });
        result.err()
    };
    let invalid = Some(ErrorCode::InvalidRequest);
    assert_eq!(refused(&|request| request.group_id = " ".into()), invalid);
    assert_eq!(refused(&|request| request.member_id = "".into()), invalid);
    assert_eq!(refused(&|request| request.instance_id = Some("".into())), invalid);
    assert_eq!(refused(&|request| request.rack_id = Some(" ".into())), invalid);
    assert_eq!(refused(&|request| request.rebalance_timeout_ms = -1), invalid);
    assert_eq!(refused(&|request| request.topic_partitions = None), invalid);
    assert_eq!(refused(&|request| owns(uuid(), &[0])(request)), invalid);
    assert_eq!(refused(&|request| request.subscribed_topic_names = None), invalid);
    assert_eq!(refused(&|request| request.member_epoch = -3), invalid);
    assert_eq!(refused(&|request| request.member_epoch = -2), invalid);
    let unsupported = Some(ErrorCode::UnsupportedAssignor);
    assert_eq!(refused(&|request| request.server_assignor = Some("none-such".into())), unsupported);
    assert_eq!(refused(&|request| request.server_assignor = Some("".into())), unsupported);
    assert_eq!(refused(&|request| request.rebalance_timeout_ms = 0), None);
    assert_eq!(refused(&|request| request.server_assignor = Some("range".into())), None);
}

fn uuid() -> callboard_protocol::Uuid {
    callboard_protocol::Uuid::from_u128(1)
}

#[test]
fn version_0_makes_member_ids() {
    let mut stage = Stage::new();
    let mut request = ConsumerGroupHeartbeatRequest { group_id: "g".into(), ..Default::default() };
    joins(&["t"])(&mut request);
    let response = stage.ask(0, request);
    assert_eq!(response.member_id.map(|id| id.len()), Some(22));
}

#[test]
fn most_votes_decide_on_the_assignor() {
    let mut stage = Stage::new();
    stage.cluster.add("t", 2);
    let asking = |assignor: &'static str| {
        move |request: &mut ConsumerGroupHeartbeatRequest| {
            joins(&["t"])(request);
            request.server_assignor = Some(assignor.into());
        }
    };
    let assignor = |stage: &mut Stage| {
        let described = stage.ask(1, DescribeConsumerGroup { group_id: "g".into() });
        described.assignor_name.to_string()
    };
    let _ = stage.beat("a", 0, joins(&["t"]));
    assert_eq!(assignor(&mut stage), "uniform");
    let _ = stage.beat("b", 0, asking("range"));
    assert_eq!(assignor(&mut stage), "range");
    let _ = stage.beat("c", 0, asking("uniform"));
    assert_eq!(assignor(&mut stage), "uniform", "of equals, the first that is configured");
}

#[test]
fn describe_shows_what_members_have_and_are_to_have() {
    let mut stage = Stage::new();
    let t = stage.cluster.add("t", 2);
    let _ = stage.beat("a", 0, joins(&["t"]));
    stage.advance(1_100);
    let _ = stage.beat("b", 0, joins(&["t"]));
    let _ = stage.beat("a", 2, nothing);
    let described = stage.ask(1, DescribeConsumerGroup { group_id: "g".into() });
    assert_eq!(
        (&*described.group_state, described.group_epoch, described.assignment_epoch),
        ("Reconciling", 3, 3)
    );
    let shown = described.members.iter().map(|member| {
        let parts =
            |assignment: &callboard_protocol::messages::consumer_group_describe_response::Assignment| {
                assignment
                    .topic_partitions
                    .iter()
                    .flat_map(|topic| topic.partitions.clone())
                    .collect::<Vec<_>>()
            };
        (&*member.member_id, member.member_epoch, parts(&member.assignment), parts(&member.target_assignment))
    });
    let expected = vec![("a", 2, vec![0, 1], vec![0]), ("b", 3, vec![], vec![1])];
    assert_eq!(shown.collect::<Vec<_>>(), expected, "{t}");
    let missing = stage.ask(1, DescribeConsumerGroup { group_id: "other".into() });
    assert_eq!(missing.error_code, ErrorCode::GroupIdNotFound as i16);
}

#[test]
fn commits_go_by_member_epochs() {
    let mut stage = Stage::new();
    let t = stage.cluster.add("t", 4);
    let _ = stage.beat("a", 0, joins(&["t"]));
    let check = |stage: &Stage, member: &str, epoch: i32, version: i16, partitions: &[i32]| {
        let partitions = partitions.iter().map(|partition| (t, *partition));
        stage.group("g").check_commit(member, epoch, version, partitions)
    };
    assert_eq!(check(&stage, "a", 2, 9, &[0]), Ok(()));
    assert_eq!(check(&stage, "a", 3, 9, &[0]), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(check(&stage, "a", 2, 8, &[0]), Err(ErrorCode::UnsupportedVersion));
    assert_eq!(check(&stage, "b", 2, 9, &[0]), Err(ErrorCode::UnknownMemberId));
    assert_eq!(check(&stage, "", -1, 9, &[0]), Err(ErrorCode::UnknownMemberId));
    stage.advance(1_100);
    let _ = stage.beat("b", 0, joins(&["t"]));
    let _ = stage.beat("a", 2, nothing);
    assert_eq!(check(&stage, "a", 2, 9, &[0, 3]), Ok(()), "what it has yet to give up is still its own");
    let _ = stage.beat("a", 2, owns(t, &[0, 1]));
    assert_eq!(check(&stage, "a", 2, 9, &[0, 1]), Ok(()), "it has had them since that epoch");
    assert_eq!(check(&stage, "a", 2, 9, &[0, 3]), Err(ErrorCode::StaleMemberEpoch));
    let _ = stage.beat("b", 3, nothing);
    assert_eq!(check(&stage, "b", 2, 9, &[2]), Err(ErrorCode::StaleMemberEpoch), "it did not have it then");
    let fetch = |stage: &Stage, member: &str, epoch: i32| stage.group("g").check_fetch(member, epoch);
    assert_eq!(fetch(&stage, "a", 3), Ok(()));
    assert_eq!(fetch(&stage, "a", 2), Err(ErrorCode::StaleMemberEpoch));
    assert_eq!(fetch(&stage, "c", 3), Err(ErrorCode::UnknownMemberId));
    let _ = stage.beat("a", -1, nothing);
    let _ = stage.beat("b", -1, nothing);
    assert_eq!(check(&stage, "", -1, 9, &[0]), Ok(()), "nobody is in the group");
}

#[test]
fn another_broker_goes_on_from_the_log() {
    let mut stage = Stage::new();
    let t = stage.cluster.add("t", 2);
    let _ = stage.beat("a", 0, joins(&["t"]));
    stage.advance(1_100);
    let _ = stage.beat("b", 0, joins(&["t"]));
    let _ = stage.beat("a", 2, nothing);
    stage.fail_over();
    assert_eq!(stage.beat("b", 3, nothing), (Ok(3), None));
    assert_eq!(stage.beat("a", 2, owns(t, &[0])), (Ok(3), None));
    assert_eq!(stage.beat("b", 3, nothing), (Ok(3), gets(t, &[1])));
    stage.fail_over();
    stage.advance(45_000);
    assert!(stage.group("g").is_empty(), "their sessions began when the log was read");
}
