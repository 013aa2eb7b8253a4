//! APIs that are not built yet: each answers at once and says so, in every version.

use callboard_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, DeleteGroupsRequest, DescribeGroupsRequest,
    DescribeTransactionsRequest, EndTxnRequest, FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest,
    OffsetCommitRequest, OffsetFetchRequest, Request, ShareFetchRequest, StreamsGroupDescribeRequest,
    offset_commit_request, offset_fetch_request,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::common::{Client, with_node};

const REFUSED: i16 = ErrorCode::UnsupportedVersion as i16;
const NAME: ByteString = ByteString::from_static("name");

/// Asks at every version that Kafka has, and looks an error up in each answer.
async fn at_every_version<Q: Request>(
    client: &mut Client,
    request: impl Fn(i16) -> Q,
    error: impl Fn(&Q::Response) -> i16,
) {
    let api = Q::KEY.info();
    for version in api.min_version.max(Q::MIN_VERSION)..=api.max_version {
        let response = client.ask(&request(version), version).await;
        assert_eq!(error(&response), REFUSED, "{} version {version}", Q::NAME);
    }
}

#[test]
fn each_names_its_error() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        let c = &mut client;
        at_every_version(c, |_| JoinGroupRequest::default(), |r| r.error_code).await;
        at_every_version(c, |_| HeartbeatRequest::default(), |r| r.error_code).await;
        at_every_version(c, |_| EndTxnRequest::default(), |r| r.error_code).await;
        at_every_version(c, |_| ConsumerGroupHeartbeatRequest::default(), |r| r.error_code).await;
        at_every_version(c, |_| ShareFetchRequest::default(), |r| r.error_code).await;
        let find = |version| match version {
            0..4 => FindCoordinatorRequest { key: NAME, ..Default::default() },
            _ => FindCoordinatorRequest { coordinator_keys: vec![NAME], ..Default::default() },
        };
        at_every_version(c, find, |r| r.coordinators.first().map_or(r.error_code, |found| found.error_code))
            .await;
    });
}

#[test]
fn each_names_the_error_of_each_item() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        let c = &mut client;
        let describe = |_| DescribeGroupsRequest { groups: vec![NAME], ..Default::default() };
        at_every_version(c, describe, |r| r.groups[0].error_code).await;
        let describe = |_| ConsumerGroupDescribeRequest { group_ids: vec![NAME], ..Default::default() };
        at_every_version(c, describe, |r| r.groups[0].error_code).await;
        let describe = |_| StreamsGroupDescribeRequest { group_ids: vec![NAME], ..Default::default() };
        at_every_version(c, describe, |r| r.groups[0].error_code).await;
        let delete = |_| DeleteGroupsRequest { groups_names: vec![NAME], ..Default::default() };
        at_every_version(c, delete, |r| r.results[0].error_code).await;
        let describe =
            |_| DescribeTransactionsRequest { transactional_ids: vec![NAME], ..Default::default() };
        at_every_version(c, describe, |r| r.transaction_states[0].error_code).await;
    });
}

#[test]
fn each_names_the_error_of_each_partition() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        let commit = |version| OffsetCommitRequest {
            topics: vec![offset_commit_request::OffsetCommitRequestTopic {
                name: if version < 10 { NAME } else { ByteString::new() },
                partitions: vec![offset_commit_request::OffsetCommitRequestPartition::default()],
                ..Default::default()
            }],
            ..Default::default()
        };
        at_every_version(&mut client, commit, |r| r.topics[0].partitions[0].error_code).await;
        let fetch = |version| match version {
            0..8 => OffsetFetchRequest {
                topics: Some(vec![offset_fetch_request::OffsetFetchRequestTopic {
                    name: NAME,
                    partition_indexes: vec![0],
                    ..Default::default()
                }]),
                ..Default::default()
            },
            _ => OffsetFetchRequest {
                groups: vec![offset_fetch_request::OffsetFetchRequestGroup {
                    group_id: NAME,
                    topics: None,
                    ..Default::default()
                }],
                ..Default::default()
            },
        };
        let error = |r: &callboard_protocol::messages::OffsetFetchResponse| match (
            r.groups.first(),
            r.topics.first(),
        ) {
            (Some(group), _) => group.error_code,
            (None, Some(topic)) => topic.partitions[0].error_code,
            (None, None) => r.error_code,
        };
        at_every_version(&mut client, fetch, error).await;
    });
}
