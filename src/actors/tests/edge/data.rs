//! Produce, Fetch and what belongs to them.

use callboard_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use callboard_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use callboard_protocol::messages::{
    ApiVersionsRequest, FetchRequest, FetchResponse, InitProducerIdRequest, ListOffsetsRequest,
    ProduceRequest,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::common::{Client, batch, produce, with_node};

const TOPIC: &str = "topic";

/// A fetch of partitions of the topic, each from an offset, by name.
fn fetch(offsets: &[(i32, i64)], max_wait_ms: i32, session: (i32, i32)) -> FetchRequest {
    let partition = |(partition, fetch_offset): &(i32, i64)| FetchPartition {
        partition: *partition,
        fetch_offset: *fetch_offset,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = FetchTopic {
        topic: ByteString::from_static(TOPIC),
        partitions: offsets.iter().map(partition).collect(),
        ..Default::default()
    };
    FetchRequest {
        max_wait_ms,
        min_bytes: 1,
        session_id: session.0,
        session_epoch: session.1,
        topics: if offsets.is_empty() { Vec::new() } else { vec![topic] },
        ..Default::default()
    }
}

/// Partitions, and the size of their records.
fn read(response: &FetchResponse) -> Vec<(i32, usize)> {
    let parts = response.responses.iter().flat_map(|topic| &topic.partitions);
    parts
        .map(|part| (part.partition_index, part.records.as_ref().map_or(0, |records| records.size_bytes())))
        .collect()
}

fn produced(response: &callboard_protocol::messages::ProduceResponse) -> (i16, i64) {
    let part = &response.responses[0].partition_responses[0];
    (part.error_code, part.base_offset)
}

#[test]
fn what_is_produced_is_fetched_in_every_version() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        client.create_topic(TOPIC, 2).await;
        for (version, offset) in (3..=12).zip(0..) {
            let request = produce(TOPIC, 0, -1, batch("value"));
            assert_eq!(produced(&client.ask(&request, version).await), (0, offset));
        }
        let size = batch("value").len() * 10;
        for version in 4..=12 {
            let response = client.ask(&fetch(&[(0, 0), (1, 0)], 0, (0, -1)), version).await;
            assert_eq!(read(&response), [(0, size), (1, 0)], "version {version}");
        }
    });
}

#[test]
fn a_session_answers_only_what_is_new() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        client.create_topic(TOPIC, 3).await;
        let all = [(0, 0), (1, 0), (2, 0)];
        let full = client.ask(&fetch(&all, 0, (0, 0)), 12).await;
        let id = full.session_id;
        assert!(id != 0 && read(&full).len() == 3);
        assert_eq!(read(&client.ask(&fetch(&[], 0, (id, 1)), 12).await), []);
        client.ask(&produce(TOPIC, 1, -1, batch("x")), 9).await;
        let size = batch("x").len();
        assert_eq!(read(&client.ask(&fetch(&[], 0, (id, 2)), 12).await), [(1, size)]);
        let stale = client.ask(&fetch(&[], 0, (id, 2)), 12).await;
        assert_eq!(stale.error_code, ErrorCode::InvalidFetchSessionEpoch as i16);
    });
}

#[test]
fn a_long_poll_ends_when_records_come_and_holds_back_what_follows() {
    with_node(async |address| {
        let (mut reader, mut writer) = (Client::connect(address).await, Client::connect(address).await);
        writer.create_topic(TOPIC, 1).await;
        reader.send(&fetch(&[(0, 0)], 20_000, (0, -1)), 12).await;
        reader.send(&ApiVersionsRequest::default(), 0).await;
        writer.ask(&produce(TOPIC, 0, 1, batch("x")), 9).await;
        let first = reader.receive().await.unwrap();
        let (correlation_id, response) =
            callboard_protocol::header::decode_response::<FetchRequest>(&first, 12).unwrap();
        assert_eq!((correlation_id, read(&response)), (1, vec![(0, batch("x").len())]));
        assert!(reader.answer::<ApiVersionsRequest>(0).await.is_some());
    });
}

#[test]
fn requests_in_flight_together_keep_their_order() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        client.create_topic(TOPIC, 1).await;
        for _ in 0..100 {
            client.send(&produce(TOPIC, 0, -1, batch("x")), 9).await;
        }
        for offset in 0..100 {
            let frame = client.receive().await.unwrap();
            let (_, response) =
                callboard_protocol::header::decode_response::<ProduceRequest>(&frame, 9).unwrap();
            assert_eq!(produced(&response), (0, offset));
        }
    });
}

#[test]
fn without_acknowledgement_an_error_closes_the_connection() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        client.create_topic(TOPIC, 1).await;
        client.send(&produce(TOPIC, 0, 0, batch("x")), 9).await;
        let response = client.ask(&fetch(&[(0, 0)], 0, (0, -1)), 12).await;
        assert_eq!(read(&response), [(0, batch("x").len())]);
        client.send(&produce(TOPIC, 7, 0, batch("x")), 9).await;
        assert!(client.receive().await.is_none());
    });
}

#[test]
fn a_corrupt_batch_refuses_the_whole_request() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        client.create_topic(TOPIC, 2).await;
        let mut bad = batch("x").to_vec();
        bad[16] = 3;
        let mut request = produce(TOPIC, 0, -1, batch("x"));
        let other = produce(TOPIC, 1, -1, bad.into());
        request.topic_data[0].partition_data.extend(other.topic_data[0].partition_data.clone());
        let response = client.ask(&request, 9).await;
        let errors = response.responses[0].partition_responses.iter().map(|part| part.error_code);
        assert_eq!(errors.collect::<Vec<_>>(), [ErrorCode::CorruptMessage as i16; 2]);
    });
}

#[test]
fn offsets_and_producer_ids_are_given_out() {
    with_node(async |address| {
        let mut client = Client::connect(address).await;
        client.create_topic(TOPIC, 1).await;
        client.ask(&produce(TOPIC, 0, -1, batch("x")), 9).await;
        for version in 1..=11 {
            for (timestamp, wanted) in [(-1, 1), (-2, 0), (1_000, 0), (1_001, -1)] {
                let partition = ListOffsetsPartition { timestamp, ..Default::default() };
                let topic = ListOffsetsTopic {
                    name: ByteString::from_static(TOPIC),
                    partitions: vec![partition],
                    ..Default::default()
                };
                let request =
                    ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() };
                let found = client.ask(&request, version).await;
                assert_eq!(found.topics[0].partitions[0].offset, wanted, "{timestamp} in version {version}");
            }
        }
        let mut last = -1;
        for _ in 0..2_500 {
            let request = InitProducerIdRequest { transactional_id: None, ..Default::default() };
            let response = client.ask(&request, 4).await;
            assert_eq!((response.error_code, response.producer_epoch), (0, 0));
            assert!(response.producer_id > last);
            last = response.producer_id;
        }
    });
}
