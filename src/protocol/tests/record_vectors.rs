//! Batches that Kafka 4.4's own code wrote, and what it reads from them.

use bytes::Bytes;
use callboard_protocol::records::control::{ControlType, EndTransactionMarker, KRaftRecord, kraft_batch};
use callboard_protocol::records::legacy::{AnyBatch, any_batches};
use callboard_protocol::records::{
    BatchBuilder, Compression, CompressionLevels, Record, RecordBatch, TimestampType, decompress,
};
use serde_json::Value;

fn vectors() -> Vec<Value> {
    include_str!("vectors/record-batches.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a vector is JSON"))
        .collect()
}

fn unhex(text: &str) -> Bytes {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn optional(field: Option<&Bytes>) -> Value {
    field.map_or(Value::Null, |bytes| hex(bytes).into())
}

fn kind(timestamp_type: Option<TimestampType>) -> &'static str {
    match timestamp_type {
        None => "NoTimestampType",
        Some(TimestampType::CreateTime) => "CreateTime",
        Some(TimestampType::LogAppendTime) => "LogAppendTime",
    }
}

fn check_record(name: &str, got: &Record, want: &Value, with_headers: bool) {
    assert_eq!(want["offset"], got.offset, "{name}");
    assert_eq!(want["timestamp"], got.timestamp, "{name}");
    assert_eq!(want["key"], optional(got.key.as_ref()), "{name}");
    assert_eq!(want["value"], optional(got.value.as_ref()), "{name}");
    let headers: Vec<Value> = got
        .headers
        .iter()
        .map(|header| {
            let key = String::from_utf8(header.key.to_vec()).expect("a name");
            serde_json::json!({"key": key, "value": optional(header.value.as_ref())})
        })
        .collect();
    if with_headers {
        assert_eq!(want["headers"], Value::Array(headers), "{name}");
    }
}

fn check_header(name: &str, batch: &RecordBatch, want: &Value) {
    let header = &batch.header;
    batch.verify_crc().expect("a good checksum");
    assert_eq!(want["baseOffset"], header.base_offset, "{name}");
    assert_eq!(want["lastOffset"], header.last_offset(), "{name}");
    assert_eq!(want["partitionLeaderEpoch"], header.partition_leader_epoch, "{name}");
    assert_eq!(want["crc"], header.crc, "{name}");
    assert_eq!(want["compression"], header.compression().expect("a codec").name(), "{name}");
    assert_eq!(want["timestampType"], kind(Some(header.timestamp_type())), "{name}");
    assert_eq!(want["maxTimestamp"], header.max_timestamp, "{name}");
    assert_eq!(want["producerId"], header.producer_id, "{name}");
    assert_eq!(want["producerEpoch"], header.producer_epoch, "{name}");
    assert_eq!(want["baseSequence"], header.base_sequence, "{name}");
    assert_eq!(want["lastSequence"], header.last_sequence(), "{name}");
    assert_eq!(want["transactional"], header.is_transactional(), "{name}");
    assert_eq!(want["control"], header.is_control(), "{name}");
    assert_eq!(want["sizeInBytes"], batch.bytes.len(), "{name}");
    assert_eq!(&header.to_bytes()[..], &batch.bytes[..61], "{name}");
}

#[test]
fn every_batch_reads_as_kafka_reads_it() {
    let mut seen = 0;
    for vector in vectors() {
        let name = vector["name"].as_str().expect("a name");
        let batches: Vec<AnyBatch> = any_batches(unhex(vector["hex"].as_str().expect("hex")))
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let wanted = vector["batches"].as_array().expect("batches");
        assert_eq!(batches.len(), wanted.len(), "{name}");
        for (batch, want) in batches.iter().zip(wanted) {
            let with_headers = match batch {
                AnyBatch::Batch(batch) => {
                    check_header(name, batch, want);
                    true
                }
                AnyBatch::Legacy(legacy) => {
                    assert_eq!(want["magic"], legacy.magic, "{name}");
                    assert_eq!(want["compression"], legacy.compression.name(), "{name}");
                    assert_eq!(want["timestampType"], kind(legacy.timestamp_type), "{name}");
                    assert_eq!(want["maxTimestamp"], legacy.max_timestamp, "{name}");
                    assert_eq!(want["sizeInBytes"], legacy.size_bytes, "{name}");
                    false
                }
            };
            let records: Vec<Record> =
                batch.records().expect("readable").collect::<Result<_, _>>().expect("good records");
            let wanted = want["records"].as_array().expect("records");
            assert_eq!(records.len(), wanted.len(), "{name}");
            for (record, want) in records.iter().zip(wanted) {
                check_record(name, record, want, with_headers);
                seen += 1;
            }
        }
    }
    assert!(seen > 1_700, "only {seen} records");
}

/// What was read, written again with the same codec.
fn rewritten(batch: &RecordBatch) -> Bytes {
    let header = &batch.header;
    let codec = header.compression().expect("a codec");
    let mut builder = BatchBuilder::new(header.base_offset)
        .compression(codec, CompressionLevels::default())
        .partition_leader_epoch(header.partition_leader_epoch)
        .producer(header.producer_id, header.producer_epoch, header.base_sequence)
        .transactional(header.is_transactional())
        .control(header.is_control());
    if header.timestamp_type() == TimestampType::LogAppendTime {
        // The records keep the producer's times as deltas, which readers don't see.
        return batch.bytes.clone();
    }
    for record in batch.records().expect("readable") {
        builder.append_record(&record.expect("good")).expect("fits");
    }
    builder.build().expect("built")
}

#[test]
fn what_is_written_is_what_kafka_writes() {
    let (mut same, mut alike) = (0, 0);
    for vector in vectors() {
        let name = vector["name"].as_str().expect("a name");
        for batch in any_batches(unhex(vector["hex"].as_str().expect("hex"))) {
            let AnyBatch::Batch(batch) = batch.expect("readable") else { continue };
            let again = rewritten(&batch);
            if batch.header.compression() == Ok(Compression::None) {
                assert_eq!(hex(&again), hex(&batch.bytes), "{name}");
                same += 1;
                continue;
            }
            let codec = batch.header.compression().expect("a codec");
            let again = RecordBatch::parse(again).expect("whole");
            again.verify_crc().expect("sealed");
            let body = |batch: &RecordBatch| decompress(codec, &batch.payload(), 1 << 20).expect("readable");
            assert_eq!(hex(&body(&again)), hex(&body(&batch)), "{name}");
            alike += 1;
        }
    }
    assert_eq!((same, alike), (15, 29));
}

#[test]
fn control_batches_are_kafkas() {
    let batch_of = |name: &str| {
        let vector = vectors().into_iter().find(|vector| vector["name"] == name).expect("the vector");
        RecordBatch::parse(unhex(vector["hex"].as_str().expect("hex"))).expect("a batch")
    };
    for (name, committed) in [("marker-COMMIT", true), ("marker-ABORT", false)] {
        let batch = batch_of(name);
        let record = batch.records().expect("readable").next().expect("one").expect("good");
        let marker = EndTransactionMarker::read(&record).expect("long enough").expect("a marker");
        assert_eq!(marker.committed, committed);
        let header = batch.header;
        let again = marker.batch(
            header.base_offset,
            header.partition_leader_epoch,
            header.producer_id,
            header.producer_epoch,
            record.timestamp,
        );
        assert_eq!(hex(&again.expect("small")), hex(&batch.bytes));
    }
    for (name, kind) in [
        ("leader-change", ControlType::LeaderChange),
        ("snapshot-header", ControlType::SnapshotHeader),
        ("snapshot-footer", ControlType::SnapshotFooter),
        ("kraft-version", ControlType::KRaftVersion),
        ("voters", ControlType::KRaftVoters),
    ] {
        let batch = batch_of(name);
        let record = batch.records().expect("readable").next().expect("one").expect("good");
        assert_eq!(ControlType::from_key(record.key.as_deref().expect("a key")), Ok(Some(kind)));
        assert_eq!(EndTransactionMarker::read(&record), Ok(None));
        let (offset, epoch) = (batch.header.base_offset, batch.header.partition_leader_epoch);
        let value = record.value.as_deref().expect("a value");
        let again = kraft_batch(kind, value, offset, epoch, record.timestamp).expect("small");
        assert_eq!(hex(&again), hex(&batch.bytes), "{name}");
        let read = KRaftRecord::read(&record).expect("readable").expect("of KRaft");
        assert_eq!(read.control_type(), kind);
        let mut builder = BatchBuilder::new(offset).partition_leader_epoch(epoch).control(true);
        read.append_to(&mut builder, record.timestamp).expect("encodable");
        assert_eq!(hex(&builder.build().expect("small")), hex(&batch.bytes), "{name}");
    }
}
