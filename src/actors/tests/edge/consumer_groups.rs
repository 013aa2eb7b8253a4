//! Groups of the consumer protocol over real sockets: two members share a topic, a pattern finds its topics, and what
//! outlives a restart of the node and a crash of the shard.

use std::time::Duration;

use callboard_actors::supervision::faults;
use callboard_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use callboard_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse,
    FindCoordinatorRequest, IncrementalAlterConfigsRequest, ListGroupsRequest,
    incremental_alter_configs_request,
};
use callboard_protocol::{ByteString, ErrorCode, Uuid};

use super::common::{Client, with_node, with_node_in};

const GROUP: ByteString = ByteString::from_static("sharers");
const TOPIC: ByteString = ByteString::from_static("t");
const GROUP_CONFIG: i8 = 32;
/// Between two tries of something that is about to be.
const PAUSE: Duration = Duration::from_millis(5);

async fn coordinator(client: &mut Client) {
    let find = FindCoordinatorRequest { coordinator_keys: vec![GROUP], ..Default::default() };
    let found = client.ask(&find, 6).await;
    assert_eq!((found.coordinators[0].error_code, found.coordinators[0].node_id), (0, 1));
    let list = ListGroupsRequest::default();
    while client.ask(&list, 5).await.error_code == ErrorCode::CoordinatorLoadInProgress as i16 {
        tokio::time::sleep(PAUSE).await;
    }
}

fn heartbeat(member: &'static str, epoch: i32) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        group_id: GROUP,
        member_id: ByteString::from_static(member),
        member_epoch: epoch,
        ..Default::default()
    }
}

fn join(member: &'static str) -> ConsumerGroupHeartbeatRequest {
    ConsumerGroupHeartbeatRequest {
        rebalance_timeout_ms: 10_000,
        subscribed_topic_names: Some(vec![TOPIC]),
        topic_partitions: Some(Vec::new()),
        ..heartbeat(member, 0)
    }
}

fn owning(
    member: &'static str,
    epoch: i32,
    topic_id: Uuid,
    partitions: &[i32],
) -> ConsumerGroupHeartbeatRequest {
    let owned = TopicPartitions { topic_id, partitions: partitions.to_vec(), ..Default::default() };
    ConsumerGroupHeartbeatRequest { topic_partitions: Some(vec![owned]), ..heartbeat(member, epoch) }
}

fn partitions(response: &ConsumerGroupHeartbeatResponse) -> Option<Vec<i32>> {
    let assignment = response.assignment.as_ref()?;
    Some(assignment.topic_partitions.iter().flat_map(|topic| topic.partitions.clone()).collect())
}

/// The group's assignments follow one another without a pause.
async fn without_interval(client: &mut Client) {
    let config = incremental_alter_configs_request::AlterableConfig {
        name: ByteString::from_static("consumer.assignment.interval.ms"),
        value: Some(ByteString::from_static("0")),
        ..Default::default()
    };
    let resource = incremental_alter_configs_request::AlterConfigsResource {
        resource_type: GROUP_CONFIG,
        resource_name: GROUP,
        configs: vec![config],
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answer = client.ask(&request, 1).await;
    assert_eq!(answer.responses[0].error_code, 0, "{:?}", answer.responses[0].error_message);
}

#[test]
fn two_members_share_a_topic_and_the_group_outlives_crash_and_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut topic_id = Uuid::ZERO;
    with_node_in(dir.path(), async |node, address| {
        let mut client = Client::connect(address).await;
        let c = &mut client;
        c.create_topic("t", 4).await;
        coordinator(c).await;
        without_interval(c).await;
        let first = c.ask(&join("a"), 1).await;
        assert_eq!((first.error_code, first.member_epoch, first.heartbeat_interval_ms), (0, 2, 5_000));
        assert_eq!(partitions(&first), Some(vec![0, 1, 2, 3]));
        topic_id = first.assignment.unwrap().topic_partitions[0].topic_id;

        let second = c.ask(&join("b"), 1).await;
        assert_eq!((second.member_epoch, partitions(&second)), (3, Some(vec![])));
        assert_eq!(partitions(&c.ask(&heartbeat("a", 2), 1).await), Some(vec![0, 1]));

        // The shard's actor is built anew from the log.
        for shard in 0..3 {
            assert!(faults::crash(node.tree(), &format!("node/groups/shards/shard-{shard}")));
        }
        let mut given_up = c.ask(&owning("a", 2, topic_id, &[0, 1]), 1).await;
        while ErrorCode::from(given_up.error_code) != ErrorCode::None {
            tokio::time::sleep(PAUSE).await;
            given_up = c.ask(&owning("a", 2, topic_id, &[0, 1]), 1).await;
        }
        assert_eq!(given_up.member_epoch, 3);
        assert_eq!(partitions(&c.ask(&heartbeat("b", 3), 1).await), Some(vec![2, 3]));
    });
    with_node_in(dir.path(), async |_, address| {
        let mut client = Client::connect(address).await;
        let c = &mut client;
        coordinator(c).await;
        let describe = ConsumerGroupDescribeRequest {
            group_ids: vec![GROUP],
            include_authorized_operations: true,
            ..Default::default()
        };
        let group = c.ask(&describe, 1).await.groups.remove(0);
        assert_eq!((&*group.group_state, group.group_epoch, &*group.assignor_name), ("Stable", 3, "uniform"));
        assert_eq!(group.members.len(), 2);
        assert_ne!(group.authorized_operations, i32::MIN);
        assert_eq!(c.ask(&owning("b", 3, topic_id, &[2, 3]), 1).await.error_code, 0);
        assert_eq!(c.ask(&heartbeat("a", -1), 1).await.member_epoch, -1);
        assert_eq!(partitions(&c.ask(&heartbeat("b", 3), 1).await), Some(vec![0, 1, 2, 3]));
    });
}

#[test]
fn a_pattern_finds_its_topics() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        let c = &mut client;
        c.create_topic("logs-a", 1).await;
        c.create_topic("other", 1).await;
        coordinator(c).await;
        without_interval(c).await;
        let by_pattern = ConsumerGroupHeartbeatRequest {
            subscribed_topic_names: None,
            subscribed_topic_regex: Some(ByteString::from_static("logs-.*")),
            ..join("a")
        };
        let mut told = c.ask(&by_pattern, 1).await;
        assert_eq!((told.error_code, told.member_epoch), (0, 1));
        while partitions(&told) != Some(vec![0]) {
            tokio::time::sleep(PAUSE).await;
            told = c.ask(&heartbeat("a", told.member_epoch), 1).await;
            assert_eq!(told.error_code, 0, "{:?}", told.error_message);
        }
    });
}

#[test]
fn a_wrong_request_needs_no_coordinator() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        for version in 0..=1 {
            let answer = client.ask(&ConsumerGroupHeartbeatRequest::default(), version).await;
            assert_eq!(ErrorCode::from(answer.error_code), ErrorCode::InvalidRequest);
        }
        let describe =
            ConsumerGroupDescribeRequest { group_ids: vec![ByteString::new()], ..Default::default() };
        let answer = client.ask(&describe, 1).await;
        assert_eq!(ErrorCode::from(answer.groups[0].error_code), ErrorCode::InvalidGroupId);
    });
}
