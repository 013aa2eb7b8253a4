//! Batches to produce, good and bad.

use bytes::Bytes;
use callboard_protocol::ByteString;
use callboard_protocol::Uuid;
use callboard_protocol::messages::ProduceRequest;
use callboard_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use callboard_protocol::records::{BatchBuilder, BatchHeader, HEADER_SIZE};
use callboard_protocol::wire::Records;

use crate::stage::Stage;

/// The time of records that need none in particular: October 2025, in milliseconds.
pub const TIME_MS: i64 = 1_760_000_000_000;

/// A batch of records with these values, a second apart.
pub fn batch(values: &[&str]) -> Bytes {
    fill(BatchBuilder::default(), values)
}

/// A batch of an idempotent producer.
pub fn sequenced(producer_id: i64, epoch: i16, sequence: i32, values: &[&str]) -> Bytes {
    fill(BatchBuilder::default().producer(producer_id, epoch, sequence), values)
}

/// Adds records and builds the batch.
pub fn fill(mut builder: BatchBuilder, values: &[&str]) -> Bytes {
    for (at, value) in values.iter().enumerate() {
        builder.append(TIME_MS + 1000 * at as i64, Some(b"k"), Some(value.as_bytes()), &[(b"h", Some(b"v"))]);
    }
    builder.build().expect("a small batch")
}

/// The batch with another header and a checksum that fits it.
pub fn with_header(batch: &Bytes, change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let mut header = BatchHeader::parse(batch).expect("a batch");
    change(&mut header);
    let payload = &batch[HEADER_SIZE..];
    header.seal(payload);
    [&header.to_bytes()[..], payload].concat().into()
}

/// The batch with some bytes changed, the checksum left as it is.
pub fn with_bytes(batch: &Bytes, at: usize, bytes: &[u8]) -> Bytes {
    let mut changed = batch.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    changed.into()
}

/// A request for one partition, naming the topic as the version does.
pub fn produce(
    s: &Stage<'_>,
    topic: (&ByteString, Uuid),
    partition: i32,
    records: Option<Bytes>,
) -> ProduceRequest {
    produce_all(1, vec![topic_data(s, topic, vec![(partition, records)])])
}

/// A request for some topics.
pub fn produce_all(acks: i16, topic_data: Vec<TopicProduceData>) -> ProduceRequest {
    ProduceRequest { acks, timeout_ms: 10_000, topic_data, ..Default::default() }
}

/// One topic's part of a request.
pub fn topic_data(
    s: &Stage<'_>,
    (name, id): (&ByteString, Uuid),
    partitions: Vec<(i32, Option<Bytes>)>,
) -> TopicProduceData {
    let by_id = s.version() >= 13;
    TopicProduceData {
        name: if by_id { ByteString::new() } else { name.clone() },
        topic_id: if by_id { id } else { Uuid::ZERO },
        partition_data: partitions
            .into_iter()
            .map(|(index, records)| PartitionProduceData {
                index,
                records: records.map(Records::Bytes),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

/// Puts batches into a partition, for scenarios about other APIs.
pub fn store(s: &mut Stage<'_>, topic: Uuid, partition: i32, batches: &[Bytes]) {
    for batch in batches {
        let data = TopicProduceData {
            topic_id: topic,
            partition_data: vec![PartitionProduceData {
                index: partition,
                records: Some(Records::Bytes(batch.clone())),
                ..Default::default()
            }],
            ..Default::default()
        };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![data], ..Default::default() };
        let answer = s.ask(&request);
        let stored = &answer.responses[0].partition_responses[0];
        assert_eq!(stored.error_code, 0, "{:?}", stored.error_message);
    }
}

/// Messages of the formats before batches, one after the other.
pub fn legacy(magic: i8, values: &[&str]) -> Bytes {
    let mut all = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let mut message = vec![magic as u8, 0];
        if magic == 1 {
            message.extend(TIME_MS.to_be_bytes());
        }
        message.extend((-1_i32).to_be_bytes());
        message.extend((value.len() as i32).to_be_bytes());
        message.extend(value.as_bytes());
        all.extend((at as i64).to_be_bytes());
        all.extend((message.len() as i32 + 4).to_be_bytes());
        all.extend(crc32(&message).to_be_bytes());
        all.extend(message);
    }
    all.into()
}

/// The checksum of those formats: CRC-32 as in zip files.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            let low = crc & 1;
            (crc >> 1) ^ (0xedb8_8320 * low)
        })
    };
    !bytes.iter().fold(!0, step)
}
