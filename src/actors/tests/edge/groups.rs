//! Groups over real sockets: their life, and what outlives a restart of the node and a crash of the shard.

use std::time::Duration;

use bytes::Bytes;
use callboard_actors::supervision::faults;
use callboard_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use callboard_protocol::messages::leave_group_request::MemberIdentity;
use callboard_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use callboard_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use callboard_protocol::messages::offset_fetch_response::OffsetFetchResponsePartitions;
use callboard_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use callboard_protocol::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetFetchRequest,
    SyncGroupRequest,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::common::{Client, with_node, with_node_in};

const GROUP: ByteString = ByteString::from_static("readers");
const TOPIC: ByteString = ByteString::from_static("t");
/// Between two tries of something that is about to be.
const PAUSE: Duration = Duration::from_millis(5);

/// Finds the coordinator, which creates its topic, and asks until the shard has loaded.
async fn coordinator(client: &mut Client) {
    let find = FindCoordinatorRequest { coordinator_keys: vec![GROUP], ..Default::default() };
    let found = client.ask(&find, 6).await;
    assert_eq!((found.coordinators[0].error_code, found.coordinators[0].node_id), (0, 1));
    let list = ListGroupsRequest::default();
    while client.ask(&list, 5).await.error_code == ErrorCode::CoordinatorLoadInProgress as i16 {
        tokio::time::sleep(PAUSE).await;
    }
}

fn join(member_id: &ByteString) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: GROUP,
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member_id.clone(),
        protocol_type: ByteString::from_static("consumer"),
        protocols: vec![JoinGroupRequestProtocol {
            name: ByteString::from_static("range"),
            metadata: Bytes::from_static(b"what I want"),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// Joins with the handshake, alone, and shares out nothing but a word.
async fn become_member(client: &mut Client) -> JoinGroupResponse {
    let first = client.ask(&join(&ByteString::new()), 9).await;
    assert_eq!(first.error_code, ErrorCode::MemberIdRequired as i16);
    let joined = client.ask(&join(&first.member_id), 9).await;
    assert_eq!(joined.error_code, 0);
    let sync = SyncGroupRequest {
        group_id: GROUP,
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        protocol_type: joined.protocol_type.clone(),
        protocol_name: joined.protocol_name.clone(),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: Bytes::from_static(b"all of it"),
            ..Default::default()
        }],
        ..Default::default()
    };
    let synced = client.ask(&sync, 5).await;
    assert_eq!((synced.error_code, &synced.assignment[..]), (0, b"all of it".as_slice()));
    joined
}

async fn beat(client: &mut Client, member: &JoinGroupResponse) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: GROUP,
        generation_id: member.generation_id,
        member_id: member.member_id.clone(),
        ..Default::default()
    };
    client.ask(&request, 4).await.error_code.into()
}

async fn commit(client: &mut Client, member: &JoinGroupResponse, offset: i64) -> ErrorCode {
    let partition = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: offset,
        committed_leader_epoch: 0,
        committed_metadata: Some(ByteString::from_static("mine")),
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: GROUP,
        generation_id_or_member_epoch: member.generation_id,
        member_id: member.member_id.clone(),
        topics: vec![OffsetCommitRequestTopic {
            name: TOPIC,
            // The topic has no second partition.
            partitions: vec![partition(0), partition(1)],
            ..Default::default()
        }],
        ..Default::default()
    };
    let answers = client.ask(&request, 9).await.topics.remove(0).partitions;
    assert_eq!(answers[1].error_code, ErrorCode::UnknownTopicOrPartition as i16);
    answers[0].error_code.into()
}

async fn committed(client: &mut Client) -> OffsetFetchResponsePartitions {
    let group = OffsetFetchRequestGroup {
        group_id: GROUP,
        topics: Some(vec![OffsetFetchRequestTopics {
            name: TOPIC,
            partition_indexes: vec![0],
            ..Default::default()
        }]),
        member_epoch: -1,
        ..Default::default()
    };
    let request = OffsetFetchRequest { groups: vec![group], require_stable: true, ..Default::default() };
    loop {
        let mut group = client.ask(&request, 9).await.groups.remove(0);
        match ErrorCode::from(group.error_code) {
            ErrorCode::None => return group.topics.remove(0).partitions.remove(0),
            ErrorCode::CoordinatorLoadInProgress | ErrorCode::NotCoordinator => {
                tokio::time::sleep(PAUSE).await
            }
            error => panic!("{error:?}"),
        }
    }
}

async fn state(client: &mut Client) -> String {
    let request = DescribeGroupsRequest { groups: vec![GROUP], ..Default::default() };
    client.ask(&request, 5).await.groups[0].group_state.to_string()
}

async fn leave(client: &mut Client, member: &JoinGroupResponse) {
    let members = vec![MemberIdentity { member_id: member.member_id.clone(), ..Default::default() }];
    let request = LeaveGroupRequest { group_id: GROUP, members, ..Default::default() };
    let left = client.ask(&request, 5).await;
    assert_eq!((left.error_code, left.members[0].error_code), (0, 0));
}

#[test]
fn a_group_lives_and_is_deleted() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        client.create_topic("t", 1).await;
        coordinator(&mut client).await;
        let member = become_member(&mut client).await;
        assert_eq!(beat(&mut client, &member).await, ErrorCode::None);
        assert_eq!(commit(&mut client, &member, 42).await, ErrorCode::None);
        assert_eq!(committed(&mut client).await.committed_offset, 42);
        assert_eq!(state(&mut client).await, "Stable");
        let listed = client.ask(&ListGroupsRequest::default(), 5).await.groups;
        let listed: Vec<_> = listed.iter().map(|g| (&*g.group_id, &*g.group_state, &*g.group_type)).collect();
        assert_eq!(listed, [("readers", "Stable", "classic")]);
        let delete = DeleteGroupsRequest { groups_names: vec![GROUP], ..Default::default() };
        let busy = client.ask(&delete, 2).await.results[0].error_code;
        assert_eq!(busy, ErrorCode::NonEmptyGroup as i16);
        leave(&mut client, &member).await;
        assert_eq!(state(&mut client).await, "Empty");
        assert_eq!(client.ask(&delete, 2).await.results[0].error_code, 0);
        assert_eq!(state(&mut client).await, "Dead");
        assert_eq!(committed(&mut client).await.committed_offset, -1);
    });
}

#[test]
fn members_and_offsets_outlive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut member = None;
    with_node_in(dir.path(), async |_, address| {
        let mut client = Client::connect(address).await;
        client.create_topic("t", 1).await;
        coordinator(&mut client).await;
        let joined = become_member(&mut client).await;
        assert_eq!(commit(&mut client, &joined, 7).await, ErrorCode::None);
        member = Some(joined);
    });
    let member = member.unwrap();
    with_node_in(dir.path(), async |_, address| {
        let mut client = Client::connect(address).await;
        let kept = committed(&mut client).await;
        assert_eq!((kept.committed_offset, kept.committed_leader_epoch), (7, 0));
        assert_eq!(kept.metadata.as_deref(), Some("mine"));
        assert_eq!(state(&mut client).await, "Stable");
        assert_eq!(beat(&mut client, &member).await, ErrorCode::None, "the member has noticed nothing");
        assert_eq!(commit(&mut client, &member, 8).await, ErrorCode::None);
    });
}

#[test]
fn members_and_offsets_outlive_a_crash_of_the_shard() {
    let dir = tempfile::tempdir().unwrap();
    with_node_in(dir.path(), async |node, address| {
        let mut client = Client::connect(address).await;
        client.create_topic("t", 1).await;
        coordinator(&mut client).await;
        let member = become_member(&mut client).await;
        for round in 1..=3 {
            assert_eq!(commit(&mut client, &member, round).await, ErrorCode::None);
            for shard in 0..3 {
                assert!(faults::crash(node.tree(), &format!("node/groups/shards/shard-{shard}")));
            }
            assert_eq!(committed(&mut client).await.committed_offset, round);
            assert_eq!(beat(&mut client, &member).await, ErrorCode::None);
        }
    });
}
