//! Records as Kafka writes and reads them.

use bytes::Bytes;
use callboard_coordinator::transaction::{Decision, State, TransactionRecord};
use callboard_protocol::ByteString;

use crate::desk::{Desk, partition, producer};

#[test]
fn before_version_1_of_the_feature_records_have_the_former_format() {
    for (level, version) in [(0, 0), (1, 1), (2, 1)] {
        let mut desk = Desk::new();
        desk.level = level;
        desk.init("a").unwrap();
        let (_, value) = desk.log.last().cloned().unwrap();
        assert_eq!(value.unwrap()[..2], [0, version]);
    }
}

#[test]
fn a_new_id_in_the_former_format() {
    let mut desk = Desk::new();
    desk.level = 0;
    desk.init("a").unwrap();
    let (key, value) = desk.log[0].clone();
    assert_eq!(key, [&[0, 0, 0, 1][..], b"a"].concat());
    let mut expected = vec![0, 0];
    expected.extend(1_000_i64.to_be_bytes());
    expected.extend(0_i16.to_be_bytes());
    expected.extend(60_000_i32.to_be_bytes());
    expected.push(0);
    expected.extend((-1_i32).to_be_bytes());
    expected.extend(1_000_000_i64.to_be_bytes());
    expected.extend((-1_i64).to_be_bytes());
    assert_eq!(value.unwrap(), expected);
}

#[test]
fn each_step_is_one_record_with_all_there_is() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add_by("a", p, &[partition("u", 1), partition("t", 4), partition("t", 2)], 2).unwrap();
    let value = desk.last_record().value.unwrap().0;
    let topics = value.transaction_partitions.clone().unwrap();
    let topics: Vec<(ByteString, Vec<i32>)> =
        topics.into_iter().map(|of| (of.topic, of.partition_ids)).collect();
    assert_eq!(topics, [("t".into(), vec![2, 4]), ("u".into(), vec![1])]);
    assert_eq!((value.transaction_status, value.client_transaction_version), (1, 2));
    assert_eq!((value.producer_id, value.producer_epoch), (p.id, 0));
    desk.end_by("a", p, Decision::Commit, 2).unwrap();
    let value = desk.last_record().value.unwrap().0;
    assert_eq!((value.transaction_status, value.producer_epoch), (2, 1));
    assert_eq!(value.transaction_partitions.map_or(0, |topics| topics.len()), 2);
    desk.mark();
    let value = desk.last_record().value.unwrap().0;
    assert_eq!((value.transaction_status, value.producer_epoch), (4, 1));
    assert_eq!(value.transaction_partitions, Some(Vec::new()));
    assert_eq!(value.transaction_start_timestamp_ms, 1_000_000);
}

#[test]
fn a_record_read_says_what_was_written() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add_by("a", p, &[partition("t", 0)], 2).unwrap();
    desk.end_by("a", p, Decision::Abort, 2).unwrap();
    desk.mark();
    for (key, value) in &desk.log {
        let record = TransactionRecord::decode(key, value.as_ref()).unwrap();
        let again =
            TransactionRecord::of(&record.transactional_id, &record.transaction().unwrap().unwrap(), 2);
        assert_eq!(record, again);
        assert_eq!(&again.encode().unwrap().value, value);
    }
    let transaction = desk.last_record().transaction().unwrap().unwrap();
    assert_eq!((transaction.state, transaction.producer), (State::CompleteAbort, producer(p.id, 1)));
}

#[test]
fn a_state_without_meaning_and_a_key_of_a_later_kafka_are_errors() {
    let mut desk = Desk::new();
    desk.init("a").unwrap();
    let (key, value) = desk.log[0].clone();
    let mut record = TransactionRecord::decode(&key, value.as_ref()).unwrap();
    if let Some((value, _)) = &mut record.value {
        value.transaction_status = 7;
    }
    assert!(record.transaction().is_err());
    assert!(TransactionRecord::decode(&Bytes::from_static(&[0, 9, 0, 0]), None).is_err());
}

/// What Kafka 4.4.0 wrote for a producer's first transaction at transaction.version 2: a new id, a partition, the
/// decision, its end.
const KAFKAS: [&str; 4] = [
    "0001000000000000000000000000ea600000000001a22c0bc958ffffffffffffffff0100080000000000000000",
    "0001000000000000000000000000ea6001020274020000000000000001a22c0bda77000001a22c0bda77020008000000000000000002020002",
    "0001000000000000000000010000ea6002020274020000000000000001a22c0bdf00000001a22c0bda77020008000000000000000002020002",
    "0001000000000000000000010000ea600401000001a22c0be0a0000001a22c0bda77020008000000000000000002020002",
];

#[test]
fn the_same_transaction_is_written_byte_for_byte_as_kafka_does() {
    let mut desk = Desk::new();
    let at = |desk: &mut Desk, now_ms| desk.now_ms = now_ms;
    desk.next_producer_id = 0;
    at(&mut desk, 0x01a2_2c0b_c958);
    let p = desk.init("tx-a").unwrap();
    at(&mut desk, 0x01a2_2c0b_da77);
    desk.add_by("tx-a", p, &[partition("t", 0)], 2).unwrap();
    at(&mut desk, 0x01a2_2c0b_df00);
    desk.end_by("tx-a", p, Decision::Commit, 2).unwrap();
    at(&mut desk, 0x01a2_2c0b_e0a0);
    desk.mark();
    assert_eq!(desk.log.len(), KAFKAS.len());
    for ((key, value), kafkas) in desk.log.iter().zip(KAFKAS) {
        assert_eq!(*key, [&[0, 0, 0, 4][..], b"tx-a"].concat());
        let hex: String = value.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, kafkas);
    }
}
