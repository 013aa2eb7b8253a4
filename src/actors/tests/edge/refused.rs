//! APIs that are not built yet: each answers at once and says so, in every version.

use callboard_protocol::messages::{
    FindCoordinatorRequest, ReadShareGroupStateRequest, Request, ShareFetchRequest,
    StreamsGroupDescribeRequest, read_share_group_state_request,
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
        at_every_version(c, |_| ShareFetchRequest::default(), |r| r.error_code).await;
        let share = 2;
        for version in 1..=6 {
            let request = match version {
                1..4 => FindCoordinatorRequest { key: NAME, key_type: share, ..Default::default() },
                _ => FindCoordinatorRequest {
                    coordinator_keys: vec![NAME],
                    key_type: share,
                    ..Default::default()
                },
            };
            let found = c.ask(&request, version).await;
            let error = found.coordinators.first().map_or(found.error_code, |found| found.error_code);
            assert_eq!(error, REFUSED, "FindCoordinator version {version}");
        }
    });
}

#[test]
fn each_names_the_error_of_each_item() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        let c = &mut client;
        let describe = |_| StreamsGroupDescribeRequest { group_ids: vec![NAME], ..Default::default() };
        at_every_version(c, describe, |r| r.groups[0].error_code).await;
    });
}

#[test]
fn each_names_the_error_of_each_partition() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        let read = |_| ReadShareGroupStateRequest {
            topics: vec![read_share_group_state_request::ReadStateData {
                partitions: vec![read_share_group_state_request::PartitionData::default()],
                ..Default::default()
            }],
            ..Default::default()
        };
        at_every_version(&mut client, read, |r| r.results[0].partitions[0].error_code).await;
    });
}
