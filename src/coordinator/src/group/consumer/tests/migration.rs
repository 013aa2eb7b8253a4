//! From the classic protocol to the consumer protocol while members go on, and back.

use bytes::Bytes;
use callboard_protocol::messages::consumer_protocol_subscription::TopicPartition;
use callboard_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use callboard_protocol::messages::leave_group_request::MemberIdentity;
use callboard_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use callboard_protocol::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, HeartbeatRequest, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, Message, SyncGroupRequest, SyncGroupResponse,
    consumer_protocol_assignment,
};
use callboard_protocol::wire::{Reader, Writer};
use callboard_protocol::{ByteString, ErrorCode};

use super::stage::*;
use crate::group::Group;
use crate::group::consumer::{GroupState, MigrationPolicy};

fn subscription(topics: &[&str], owned: &[i32]) -> Bytes {
    let message = ConsumerProtocolSubscription {
        topics: topics.iter().map(|topic| ByteString::from(*topic)).collect(),
        owned_partitions: match owned {
            [] => vec![],
            owned => vec![TopicPartition { topic: topics[0].into(), partitions: owned.to_vec() }],
        },
        ..Default::default()
    };
    in_version(3, |w| message.encode(w, 3).unwrap())
}

fn in_version(version: i16, write: impl FnOnce(&mut Writer)) -> Bytes {
    let mut w = Writer::contiguous();
    w.i16(version);
    write(&mut w);
    w.finish().into_bytes().unwrap()
}

fn assignment(topic: &str, partitions: &[i32]) -> Bytes {
    let topic =
        consumer_protocol_assignment::TopicPartition { topic: topic.into(), partitions: partitions.to_vec() };
    let message = ConsumerProtocolAssignment { assigned_partitions: vec![topic], ..Default::default() };
    in_version(3, |w| message.encode(w, 3).unwrap())
}

pub(super) fn partitions_in(bytes: &Bytes) -> Vec<i32> {
    let mut r = Reader::new(bytes);
    assert_eq!(r.i16().unwrap(), 3, "the version of the subscription");
    let read = ConsumerProtocolAssignment::decode(&mut r, 3).unwrap();
    read.assigned_partitions.into_iter().flat_map(|topic| topic.partitions).collect()
}

impl Stage {
    pub(super) fn join(
        &mut self,
        member: &ByteString,
        instance: Option<&str>,
        owned: &[i32],
    ) -> JoinGroupResponse {
        let protocol = JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: subscription(&["t"], owned),
            ..Default::default()
        };
        let request = JoinGroupRequest {
            group_id: "g".into(),
            member_id: member.clone(),
            group_instance_id: instance.map(ByteString::from),
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 30_000,
            protocol_type: "consumer".into(),
            protocols: vec![protocol],
            ..Default::default()
        };
        self.ask(9, request)
    }

    pub(super) fn sync(&mut self, member: &ByteString, generation: i32, gives: &[i32]) -> SyncGroupResponse {
        let assignments = match gives {
            [] => vec![],
            gives => vec![SyncGroupRequestAssignment {
                member_id: member.clone(),
                assignment: assignment("t", gives),
                ..Default::default()
            }],
        };
        let request = SyncGroupRequest {
            group_id: "g".into(),
            member_id: member.clone(),
            generation_id: generation,
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignments,
            ..Default::default()
        };
        self.ask(5, request)
    }

    pub(super) fn classic_beat(&mut self, member: &ByteString, generation: i32) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            member_id: member.clone(),
            generation_id: generation,
            ..Default::default()
        };
        ErrorCode::from(self.ask(4, request).error_code)
    }

    pub(super) fn leave(&mut self, member: &ByteString) -> i16 {
        let identity = MemberIdentity { member_id: member.clone(), ..Default::default() };
        let request =
            LeaveGroupRequest { group_id: "g".into(), members: vec![identity], ..Default::default() };
        self.ask(5, request).members[0].error_code
    }

    /// A classic group with one member that has all four partitions.
    fn classic_group(&mut self) -> ByteString {
        self.settings.classic.initial_rebalance_delay_ms = 0;
        self.cluster.add("t", 4);
        let id = self.join(&ByteString::new(), None, &[]).member_id;
        let ticket = {
            let protocol = JoinGroupRequestProtocol {
                name: "range".into(),
                metadata: subscription(&["t"], &[]),
                ..Default::default()
            };
            let request = JoinGroupRequest {
                group_id: "g".into(),
                member_id: id.clone(),
                session_timeout_ms: 10_000,
                rebalance_timeout_ms: 30_000,
                protocol_type: "consumer".into(),
                protocols: vec![protocol],
                ..Default::default()
            };
            self.send(9, request)
        };
        self.advance(0);
        let joined = self.answer::<JoinGroupRequest>(ticket).expect("the delay is over");
        assert_eq!((joined.error_code, joined.generation_id), (0, 1));
        assert_eq!(partitions_in(&self.sync(&id, 1, &[0, 1, 2, 3]).assignment), [0, 1, 2, 3]);
        id
    }
}

fn error(code: i16) -> ErrorCode {
    ErrorCode::from(code)
}

#[test]
fn a_group_goes_up_and_down_without_a_stop() {
    let mut stage = Stage::new();
    let classic = stage.classic_group();
    let t = stage.cluster.add("t", 4);

    assert_eq!(stage.beat("new", 0, joins(&["t"])), (Ok(2), gets_nothing()));
    assert_eq!((stage.group("g").len(), stage.group("g").state()), (2, GroupState::Reconciling));
    assert_eq!(stage.classic_beat(&classic, 1), ErrorCode::RebalanceInProgress);
    let joined = stage.join(&classic, None, &[0, 1, 2, 3]);
    assert_eq!((joined.error_code, joined.generation_id, &*joined.leader), (0, 1, ""), "first it gives up");
    assert_eq!(error(stage.sync(&classic, 2, &[]).error_code), ErrorCode::IllegalGeneration);
    assert_eq!(partitions_in(&stage.sync(&classic, 1, &[]).assignment), [0, 1]);
    assert_eq!(stage.beat("new", 2, nothing), (Ok(2), None));
    assert_eq!(stage.classic_beat(&classic, 1), ErrorCode::RebalanceInProgress);
    assert_eq!(stage.join(&classic, None, &[0, 1]).generation_id, 2);
    assert_eq!(partitions_in(&stage.sync(&classic, 2, &[]).assignment), [0, 1]);
    assert_eq!(stage.classic_beat(&classic, 2), ErrorCode::None);
    assert_eq!(stage.beat("new", 2, nothing), (Ok(2), gets(t, &[2, 3])));
    assert_eq!(stage.group("g").state(), GroupState::Stable);
    let check = |stage: &Stage, epoch| stage.group("g").check_commit(&classic, epoch, 8, std::iter::empty());
    assert_eq!(check(&stage, 2), Ok(()));
    assert_eq!(check(&stage, 1), Err(ErrorCode::IllegalGeneration));

    assert_eq!(stage.beat("new", -1, nothing).0, Ok(-1));
    let Some(Group::Classic(group)) = stage.shard.groups.get("g") else { panic!("it is classic again") };
    assert_eq!((group.generation(), group.state().name()), (2, "PreparingRebalance"));
    assert_eq!(stage.classic_beat(&classic, 2), ErrorCode::RebalanceInProgress);
    let joined = stage.join(&classic, None, &[0, 1]);
    assert_eq!((joined.error_code, joined.generation_id, joined.leader), (0, 3, classic.clone()));
    assert_eq!(partitions_in(&stage.sync(&classic, 3, &[0, 1, 2, 3]).assignment), [0, 1, 2, 3]);
}

#[test]
fn the_last_classic_member_leaves_a_consumer_group() {
    let mut stage = Stage::new();
    let classic = stage.classic_group();
    let t = stage.cluster.add("t", 4);
    let _ = stage.beat("new", 0, joins(&["t"]));
    assert_eq!(stage.leave(&classic), 0);
    stage.advance(1_000);
    assert_eq!(stage.beat("new", 2, nothing), (Ok(3), gets(t, &[0, 1, 2, 3])));
}

#[test]
fn an_administrator_removes_members_of_either_protocol() {
    let mut stage = Stage::new();
    stage.cluster.add("t", 2);
    let _ = stage.beat("a", 0, joins(&["t"]));
    assert_eq!(stage.leave(&"a".into()), 0);
    assert_eq!(error(stage.leave(&"a".into())), ErrorCode::UnknownMemberId);
    assert!(stage.group("g").is_empty());
}

#[test]
fn a_policy_may_forbid_either_way() {
    let mut stage = Stage::new();
    stage.settings.consumer.migration_policy = MigrationPolicy::Downgrade;
    let classic = stage.classic_group();
    assert_eq!(stage.beat("new", 0, joins(&["t"])).0, Err(ErrorCode::GroupIdNotFound));
    assert_eq!(stage.classic_beat(&classic, 1), ErrorCode::None, "the group goes on undisturbed");
    stage.settings.consumer.migration_policy = MigrationPolicy::Upgrade;
    assert_eq!(stage.beat("new", 0, joins(&["t"])).0, Ok(2));
    let _ = stage.beat("new", -1, nothing);
    assert_eq!(stage.group("g").len(), 1, "it stays a consumer group");
}

#[test]
fn a_refused_join_leaves_the_classic_group_as_it_was() {
    let mut stage = Stage::new();
    let classic = stage.classic_group();
    let before = stage.log.len();
    let invalid = |request: &mut callboard_protocol::messages::ConsumerGroupHeartbeatRequest| {
        joins(&["t"])(request);
        request.subscribed_topic_regex = Some("[".into());
    };
    assert_eq!(stage.beat("new", 0, invalid).0, Err(ErrorCode::InvalidRegularExpression));
    assert_eq!(stage.log.len(), before);
    assert_eq!(stage.classic_beat(&classic, 1), ErrorCode::None);
}

#[test]
fn a_classic_member_must_join_and_sync_in_time() {
    let mut stage = Stage::new();
    let classic = stage.classic_group();
    let _ = stage.beat("new", 0, joins(&["t"]));
    for _ in 0..4 {
        assert_eq!(stage.classic_beat(&classic, 1), ErrorCode::RebalanceInProgress);
        stage.advance(9_000);
        let _ = stage.beat("new", 2, nothing);
    }
    assert_eq!(stage.classic_beat(&classic, 1), ErrorCode::UnknownMemberId);

    let mut stage = Stage::new();
    let classic = stage.classic_group();
    let _ = stage.beat("new", 0, joins(&["t"]));
    stage.join(&classic, None, &[]);
    for _ in 0..4 {
        stage.advance(9_000);
        stage.classic_beat(&classic, 2);
        let _ = stage.beat("new", 2, nothing);
    }
    assert_eq!(stage.classic_beat(&classic, 2), ErrorCode::UnknownMemberId, "it never synced");
}

#[test]
fn an_empty_group_of_either_kind_becomes_one_of_the_other() {
    let mut stage = Stage::new();
    stage.cluster.add("t", 4);
    let _ = stage.beat("a", 0, joins(&["t"]));
    let _ = stage.beat("a", -1, nothing);
    assert_eq!(error(stage.join(&"who".into(), None, &[]).error_code), ErrorCode::UnknownMemberId);
    assert_eq!(stage.group("g").state(), GroupState::Empty);
    let id = stage.join(&ByteString::new(), None, &[]).member_id;
    assert!(matches!(stage.shard.groups.get("g"), Some(Group::Classic(_))), "{id}");
    assert_eq!(stage.beat("a", 0, joins(&["t"])).0, Ok(2));
    stage.fail_over();
    assert_eq!(stage.group("g").len(), 1);
}

#[test]
fn a_static_member_changes_protocol_by_its_instance_id() {
    let mut stage = Stage::new();
    stage.classic_group();
    let _ = stage.beat("other", 0, joins(&["t"]));
    let joined = stage.join(&ByteString::new(), Some("i"), &[]);
    assert_eq!(error(joined.error_code), ErrorCode::None);
    let epoch = joined.generation_id;
    assert_eq!(
        stage.beat("m", 0, joins_as("i", &["t"])).0,
        Ok(epoch),
        "it takes the place of the classic one"
    );
    assert_eq!(error(stage.sync(&joined.member_id, epoch, &[]).error_code), ErrorCode::UnknownMemberId);
    let again = stage.join(&ByteString::new(), Some("i"), &[]);
    assert_eq!(error(again.error_code), ErrorCode::None, "and the other way round");
}

#[test]
fn a_classic_member_gets_its_id_before_it_is_asked_what_it_wants() {
    let mut stage = Stage::new();
    stage.cluster.add("t", 4);
    let _ = stage.beat("a", 0, joins(&["t"]));
    let mut request = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(b"no subscription"),
            ..Default::default()
        }],
        ..Default::default()
    };
    let given = stage.ask(9, request.clone());
    assert_eq!(error(given.error_code), ErrorCode::MemberIdRequired);
    request.member_id = given.member_id;
    assert_eq!(error(stage.ask(9, request).error_code), ErrorCode::InconsistentGroupProtocol);
    assert_eq!(stage.group("g").len(), 1);
}

#[test]
fn a_classic_member_that_was_put_out_lets_go_of_what_it_has_before_it_joins() {
    let mut stage = Stage::new();
    let classic = stage.classic_group();
    let _ = stage.beat("new", 0, joins(&["t"]));
    assert_eq!(stage.leave(&classic), 0);
    let refused = stage.join(&classic, None, &[0, 1, 2, 3]);
    assert_eq!(error(refused.error_code), ErrorCode::UnknownMemberId);
    assert_eq!(error(stage.join(&classic, None, &[]).error_code), ErrorCode::None);
}
