//! Any value survives the way out and back, at every version that has its fields.

use bytes::Bytes;
use callboard_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use callboard_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use callboard_protocol::messages::{Message, MetadataResponse, ProduceRequest};
use callboard_protocol::wire::{Element, RawTaggedField, Reader, Records, UnknownTaggedFields, Writer};
use callboard_protocol::{ByteString, Uuid};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = ByteString> {
    ".{0,40}".prop_map(ByteString::from)
}

fn blob(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<[u8; 16]>().prop_map(Uuid::from_bytes)
}

/// Tags no schema has, so that they stay unknown.
fn unknown_tags() -> impl Strategy<Value = UnknownTaggedFields> {
    btree_map(100u32..100_000, blob(300), 0..3).prop_map(|fields| {
        fields.into_iter().map(|(tag, data)| RawTaggedField { tag, data }).collect::<Vec<_>>().into()
    })
}

fn produce_request() -> impl Strategy<Value = ProduceRequest> {
    let partition = (any::<i32>(), option::of(blob(3000).prop_map(Records::Bytes)), unknown_tags()).prop_map(
        |(index, records, unknown_tagged_fields)| PartitionProduceData {
            index,
            records,
            unknown_tagged_fields,
        },
    );
    let topic = (text(), vec(partition, 0..4), unknown_tags()).prop_map(|(name, partition_data, tags)| {
        TopicProduceData { name, partition_data, unknown_tagged_fields: tags, ..Default::default() }
    });
    let header = (option::of(text()), any::<i16>(), any::<i32>(), unknown_tags());
    (header, vec(topic, 0..4)).prop_map(|((transactional_id, acks, timeout_ms, tags), topic_data)| {
        ProduceRequest { transactional_id, acks, timeout_ms, topic_data, unknown_tagged_fields: tags }
    })
}

fn metadata_response() -> impl Strategy<Value = MetadataResponse> {
    let broker =
        (any::<i32>(), text(), any::<i32>(), option::of(text())).prop_map(|(node_id, host, port, rack)| {
            MetadataResponseBroker { node_id, host, port, rack, ..Default::default() }
        });
    let nodes = || vec(any::<i32>(), 0..4);
    let partition = (any::<i16>(), any::<i32>(), nodes(), nodes(), nodes()).prop_map(
        |(error_code, leader_id, a, b, c)| MetadataResponsePartition {
            error_code,
            leader_id,
            replica_nodes: a,
            isr_nodes: b,
            offline_replicas: c,
            ..Default::default()
        },
    );
    let topic = (option::of(text()), uuid(), vec(partition, 0..5), any::<bool>()).prop_map(
        |(name, topic_id, partitions, is_internal)| MetadataResponseTopic {
            name,
            topic_id,
            partitions,
            is_internal,
            ..Default::default()
        },
    );
    (vec(broker, 0..4), vec(topic, 0..4), option::of(text()), any::<i16>()).prop_map(
        |(brokers, topics, cluster_id, error_code)| MetadataResponse {
            brokers,
            topics,
            cluster_id,
            error_code,
            ..Default::default()
        },
    )
}

fn round_trip<M: Message>(message: &M, version: i16) -> Result<M, TestCaseError> {
    let mut w = Writer::new();
    message.encode(&mut w, version).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let size = w.size_bytes();
    let bytes = w.finish().into_bytes().expect("in memory");
    prop_assert_eq!(bytes.len(), size);
    prop_assert_eq!(message.to_bytes(version), Ok(bytes.clone()));
    let mut r = Reader::new(&bytes);
    let read = M::decode(&mut r, version).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert_eq!(r.remaining(), 0);
    Ok(read)
}

fn element_round_trip<T: Element + PartialEq + std::fmt::Debug>(items: Vec<T>) -> Result<(), TestCaseError> {
    for flexible in [false, true] {
        let mut w = Writer::contiguous();
        w.array(&items, flexible).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let bytes = w.finish().head;
        let read = Reader::new(&bytes).array::<T>(flexible);
        prop_assert_eq!(read.as_ref(), Ok(&items));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn produce_requests(request in produce_request()) {
        for version in 9..=12 {
            prop_assert_eq!(&round_trip(&request, version)?, &request);
        }
    }

    #[test]
    fn metadata_responses(response in metadata_response()) {
        prop_assert_eq!(&round_trip(&response, 13)?, &response);
    }

    #[test]
    fn arrays(
        ints in vec(any::<i32>(), 0..50),
        texts in vec(text(), 0..20),
        blobs in vec(blob(50), 0..20),
        uuids in vec(uuid(), 0..20),
        longs in vec(any::<i64>(), 0..20),
    ) {
        element_round_trip(ints)?;
        element_round_trip(texts)?;
        element_round_trip(blobs)?;
        element_round_trip(uuids)?;
        element_round_trip(longs)?;
    }

    #[test]
    fn varints(value in any::<u32>()) {
        let mut w = Writer::new();
        w.uvarint(value);
        prop_assert_eq!(Reader::new(&w.finish().head).uvarint(), Ok(value));
    }

    #[test]
    fn uuids(uuid in uuid()) {
        prop_assert_eq!(uuid.to_string().parse(), Ok(uuid));
    }
}
