//! Directories that Kafka wrote, opened here.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use callboard_storage::{AbortedTxn, EpochEntry, LogConfig, OpenOptions, PartitionMetadata};
use common::*;

fn kafkas_config() -> LogConfig {
    LogConfig { segment_bytes: 1 << 30, segment_index_bytes: 4096, ..LogConfig::default() }
}

fn open_clean(path: &std::path::Path, log_start_offset: i64) -> callboard_storage::Log {
    let options = OpenOptions {
        config: kafkas_config(),
        clean_shutdown: true,
        log_start_offset,
        now_ms: 1_700_000_000_000,
        ..OpenOptions::default()
    };
    let (log, report) = callboard_storage::Log::open(path, options).unwrap();
    assert_eq!(
        (report.scanned_segments, report.rebuilt_indexes, report.replayed_batches),
        (0, 0, 0),
        "nothing is scanned"
    );
    log
}

#[test]
fn killed_logs_lose_their_torn_ends_only() {
    for (name, end) in [("load-0", 660), ("load-1", 660), ("load-2", 660), ("load-3", 700)] {
        let (_temp, path) = fixture(name);
        let (mut log, report) = open_with(&path, kafkas_config(), 0, false);
        assert_eq!(log.log_end_offset(), end, "{name}");
        assert!(report.truncated_bytes > 0, "{name}");
        let values = read_values(&log.reader(), 500);
        assert_eq!(values.len() as i64, end - 500, "{name}");
        assert_eq!(append(&mut log, common::values(&["x"], NOW)).first_offset, end);
    }
}

#[test]
fn rebuilt_indexes_are_as_kafka_made_them() {
    let (_temp, path) = fixture("load-0");
    let files = [
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "00000000000000000240.index",
        "00000000000000000240.timeindex",
    ];
    let kafkas: Vec<_> = files.iter().map(|file| std::fs::read(path.join(file)).unwrap()).collect();
    assert_eq!(kafkas[0].len(), 24);
    for file in files {
        std::fs::write(path.join(file), [0; 7]).unwrap();
    }
    let (_, report) = open_with(&path, kafkas_config(), 500, false);
    assert_eq!(report.rebuilt_indexes, 2);
    let ours: Vec<_> = files.iter().map(|file| std::fs::read(path.join(file)).unwrap()).collect();
    assert_eq!(ours, kafkas);
}

#[test]
fn snapshots_made_in_recovery_are_as_kafka_made_them() {
    let (_temp, path) = fixture("load-0");
    let file = path.join("00000000000000000500.snapshot");
    let kafkas = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let options = OpenOptions { config: kafkas_config(), ..OpenOptions::default() };
    let (log, report) = callboard_storage::Log::open(&path, options).unwrap();
    assert_eq!(report.scanned_segments, 3);
    assert_eq!(std::fs::read(&file).unwrap(), kafkas);
    assert_eq!(log.producers().len(), 1);
}

#[test]
fn transactions_of_a_stopped_log() {
    let (_temp, path) = fixture("transactional-0");
    let mut log = open_clean(&path, 0);
    let reader = log.reader();
    assert_eq!(log.log_end_offset(), 32);
    assert_eq!(reader.first_unstable_offset(), Some(30), "one transaction is open");
    assert_eq!(reader.last_stable_offset(32), 30);
    let aborted = reader.aborted_transactions(0, 32).unwrap();
    let known = [(5, 8), (15, 18), (20, 23)].map(|(first_offset, last_offset)| AbortedTxn {
        producer_id: 0,
        first_offset,
        last_offset,
        last_stable_offset: last_offset + 1,
    });
    assert_eq!(aborted, known);
    assert_eq!(reader.aborted_transactions(9, 20).unwrap(), known[1..2]);
    let producer = log.producer(0).unwrap();
    assert_eq!(
        (producer.epoch, producer.last_sequence(), producer.last_batch().unwrap().last_offset),
        (0, 17, 27)
    );
    log.append_as_leader(&[marker(1, 1, false, 0)], 2, callboard_storage::Origin::Coordinator, NOW).unwrap();
    assert_eq!(reader.first_unstable_offset(), Some(30), "not replicated yet");
    log.advance_high_watermark(33);
    assert_eq!(reader.last_stable_offset(33), 33);
    assert_eq!(reader.aborted_transactions(30, 33).unwrap()[0].first_offset, 30);
}

#[test]
fn a_transaction_index_built_again_is_as_kafka_made_it() {
    let (_temp, path) = fixture("transactional-0");
    let file = path.join("00000000000000000004.txnindex");
    let kafkas = std::fs::read(&file).unwrap();
    std::fs::write(&file, b"damaged").unwrap();
    for snapshot in ["00000000000000000004.snapshot", "00000000000000000032.snapshot"] {
        std::fs::remove_file(path.join(snapshot)).unwrap();
    }
    let options =
        OpenOptions { config: kafkas_config(), now_ms: 1_700_000_000_000, ..OpenOptions::default() };
    let (mut log, _) = callboard_storage::Log::open(&path, options).unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), kafkas);
    log.advance_high_watermark(32);
    assert_eq!(log.reader().first_unstable_offset(), Some(30));
}

#[test]
fn a_raised_start_and_two_epochs() {
    let (_temp, path) = fixture("plain-1");
    let log = open_clean(&path, 65);
    let reader = log.reader();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (65, 300));
    assert!(reader.read(64, 100, 300, true).is_err());
    // Record 65 is in a batch that begins before it.
    assert_eq!(read_values(&reader, 65).len(), 235);
    assert_eq!(reader.epoch_end_offset(0), Some((0, 300)));
    assert_eq!(reader.epoch_of(299), Some(0));
    assert!(!path.join("00000000000000000000.log.deleted").exists());
    let id = PartitionMetadata::read(&path).unwrap().unwrap().topic_id;
    assert_eq!(id.to_string(), "VIYaLQ2XSlKK8APGPbn5Tg");
}

#[test]
fn a_compacted_log_has_gaps() {
    let (_temp, path) = fixture("compacted-0");
    let log = open_clean(&path, 0);
    let values = read_values(&log.reader(), 0);
    assert_eq!((values.len(), log.log_end_offset()), (35, 105));
    for offset in 0..105 {
        let next = values.iter().map(|(at, _)| *at).find(|at| *at >= offset);
        let region = log.reader().read(offset, 1, 105, true).unwrap();
        assert_eq!(region.is_empty(), next.is_none(), "offset {offset}");
        assert_eq!(read_values(&log.reader(), offset).first().map(|(at, _)| *at), next, "offset {offset}");
    }
    let entries = callboard_storage::EpochCache::read(&path).unwrap().entries().to_vec();
    assert_eq!(entries, [EpochEntry { epoch: 0, start_offset: 0 }], "an epoch without records is forgotten");
}
