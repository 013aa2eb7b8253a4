//! Produce, Fetch and Metadata, decoded and encoded by this crate and by the `kafka-protocol` crate, on the same
//! bytes: `cargo bench -p callboard-protocol [-- NAME]`. The two take turns; each figure is the fastest of its rounds,
//! which other work on the machine disturbs least.

use bytes::{Bytes, BytesMut};
use callboard_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use callboard_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use callboard_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use callboard_protocol::messages::{
    FetchResponse, Message, MetadataRequest, MetadataResponse, ProduceRequest,
};
use callboard_protocol::wire::{DecodeError, Reader, Records, Writer};
use callboard_protocol::{ByteString, Uuid};
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 200;
const ROUND: Duration = Duration::from_millis(2);

/// Nanoseconds of one call, in one round.
fn round(call: &mut dyn FnMut()) -> f64 {
    let start = Instant::now();
    let mut calls = 0u32;
    while start.elapsed() < ROUND {
        for _ in 0..16 {
            call();
        }
        calls += 16;
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn compare(name: &str, mut ours: impl FnMut(), mut theirs: impl FnMut()) {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    if filter.is_some_and(|filter| !name.contains(&filter)) {
        return;
    }
    let (mut our_best, mut their_best) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        our_best = our_best.min(round(&mut ours));
        their_best = their_best.min(round(&mut theirs));
    }
    println!("{name:<46} {our_best:>10.0} ns {their_best:>10.0} ns {:>7.1} x", their_best / our_best);
}

/// Reads as the broker does: what it forwards whole stays in the frame.
fn read<O: Message>(bytes: &Bytes, version: i16) -> Result<O, DecodeError> {
    O::decode(&mut Reader::in_place(bytes), version)
}

fn decode<O: Message, T: Decodable>(name: &str, bytes: &Bytes, version: i16) {
    let their_message = T::decode(&mut bytes.clone(), version);
    assert!(read::<O>(bytes, version).is_ok() && their_message.is_ok(), "{name} decodes");
    compare(
        &format!("{name} v{version}, decode"),
        || drop(black_box(read::<O>(black_box(bytes), version))),
        || drop(black_box(T::decode(&mut black_box(bytes).clone(), version))),
    );
}

fn encode<O: Message, T: Decodable + Encodable>(name: &str, bytes: &Bytes, version: i16) {
    let ours = O::from_bytes(bytes, version).expect("decodes");
    let theirs = T::decode(&mut bytes.clone(), version).expect("decodes");
    let mut check = BytesMut::new();
    theirs.encode(&mut check, version).expect("encodes");
    assert_eq!(ours.to_bytes(version).as_ref(), Ok(&check.freeze()), "{name}: both write the same");
    compare(
        &format!("{name} v{version}, encode"),
        || {
            let mut w = Writer::new();
            let _ = black_box(&ours).encode(&mut w, version);
            drop(black_box(w.finish()));
        },
        || {
            let mut buffer = BytesMut::new();
            let _ = black_box(&theirs).encode(&mut buffer, version);
            drop(black_box(buffer.freeze()));
        },
    );
}

fn topic(at: usize) -> ByteString {
    ByteString::from(format!("payments-eu-west-{at}"))
}

fn produce(topics: usize, partitions: i32, record_bytes: usize) -> ProduceRequest {
    let records = Bytes::from(vec![7; record_bytes]);
    let partition = |index| PartitionProduceData {
        index,
        records: Some(Records::Bytes(records.clone())),
        ..Default::default()
    };
    let topic_data = (0..topics).map(|at| TopicProduceData {
        name: topic(at),
        partition_data: (0..partitions).map(partition).collect(),
        ..Default::default()
    });
    ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: topic_data.collect(), ..Default::default() }
}

fn fetch(topics: usize, partitions: i32, record_bytes: usize) -> FetchResponse {
    let records = Bytes::from(vec![7; record_bytes]);
    let partition = |partition_index| PartitionData {
        partition_index,
        high_watermark: 1 << 40,
        last_stable_offset: 1 << 40,
        records: Some(Records::Bytes(records.clone())),
        ..Default::default()
    };
    let responses = (0..topics).map(|at| FetchableTopicResponse {
        topic: topic(at),
        partitions: (0..partitions).map(partition).collect(),
        ..Default::default()
    });
    FetchResponse { responses: responses.collect(), ..Default::default() }
}

fn metadata(topics: usize, partitions: i32) -> MetadataResponse {
    let broker = |node_id| MetadataResponseBroker {
        node_id,
        host: format!("broker-{node_id}.example.org").into(),
        port: 9092,
        ..Default::default()
    };
    let partition = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: partition_index % 3,
        replica_nodes: vec![0, 1, 2],
        isr_nodes: vec![0, 1, 2],
        ..Default::default()
    };
    let topics = (0..topics).map(|at| MetadataResponseTopic {
        name: Some(topic(at)),
        topic_id: Uuid::from_u128(at as u128),
        partitions: (0..partitions).map(partition).collect(),
        ..Default::default()
    });
    MetadataResponse {
        brokers: (0..3).map(broker).collect(),
        cluster_id: Some("uK3zP7hQSuW2o3xJ5bN8wg".into()),
        topics: topics.collect(),
        ..Default::default()
    }
}

fn main() {
    println!("{:<46} {:>13} {:>13} {:>9}", "", "callboard", "kafka-protocol", "ratio");
    for (topics, partitions, record_bytes) in [(1, 1, 1024), (1, 1, 65_536), (5, 10, 16_384)] {
        let name = format!("Produce {topics} x {partitions} x {record_bytes} B");
        let bytes = produce(topics, partitions, record_bytes).to_bytes(11).expect("encodes");
        decode::<ProduceRequest, theirs::ProduceRequest>(&name, &bytes, 11);
        let bytes = produce(topics, partitions, record_bytes).to_bytes(8).expect("encodes");
        decode::<ProduceRequest, theirs::ProduceRequest>(&name, &bytes, 8);
    }
    for (topics, partitions, record_bytes) in [(1, 1, 100), (5, 10, 100), (1, 1, 65_536), (5, 10, 16_384)] {
        let name = format!("Fetch {topics} x {partitions} x {record_bytes} B");
        for version in [11, 12] {
            let bytes = fetch(topics, partitions, record_bytes).to_bytes(version).expect("encodes");
            encode::<FetchResponse, theirs::FetchResponse>(&name, &bytes, version);
        }
    }
    let names = (0..10).map(|at| callboard_protocol::messages::metadata_request::MetadataRequestTopic {
        name: Some(topic(at)),
        ..Default::default()
    });
    let request = MetadataRequest { topics: Some(names.collect()), ..Default::default() };
    let bytes = request.to_bytes(12).expect("encodes");
    decode::<MetadataRequest, theirs::MetadataRequest>("Metadata request of 10 topics", &bytes, 12);
    let bytes = metadata(100, 12).to_bytes(12).expect("encodes");
    decode::<MetadataResponse, theirs::MetadataResponse>("Metadata response 100 x 12", &bytes, 12);
    encode::<MetadataResponse, theirs::MetadataResponse>("Metadata response 100 x 12", &bytes, 12);
}
