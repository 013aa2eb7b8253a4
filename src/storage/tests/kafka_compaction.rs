//! The same log compacted by Kafka 4.4.0 and here: the same batches and records are left, at the same offsets.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::path::Path;

use callboard_protocol::records::{Record, RecordBatch, batches};
use callboard_storage::{Cleaning, CleaningOptions, Log, LogConfig, OpenOptions, Step};
use common::*;

/// A batch but for what depends on the time of the round and on the codec's library.
type Left = ((i64, i64, i32), (i64, i16, i32), (i16, i64, i32), Vec<Record>);

fn left(batch: &RecordBatch) -> Left {
    let header = &batch.header;
    (
        (header.base_offset, header.last_offset(), header.record_count),
        (header.producer_id, header.producer_epoch, header.base_sequence),
        (header.attributes, header.max_timestamp, header.partition_leader_epoch),
        batch.records().unwrap().map(Result::unwrap).collect(),
    )
}

/// Base offset and batches of each segment of a directory.
fn segments(dir: &Path) -> Vec<(i64, Vec<Left>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "log") {
            let base = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
            let bytes = bytes::Bytes::from(std::fs::read(&path).unwrap());
            found.push((base, batches(bytes).map(|batch| left(&batch.unwrap())).collect()));
        }
    }
    found.sort_by_key(|(base, _)| *base);
    found
}

fn compacts_as_kafka(before: &Path, after: &Path) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    copy_dir(before, &dir);
    let config = LogConfig {
        segment_bytes: 1 << 20,
        compacts: true,
        deletes: false,
        producer_id_expiration_ms: i64::MAX,
        ..LogConfig::default()
    };
    let options = OpenOptions { config: config.clone(), now_ms: NOW, ..OpenOptions::default() };
    let (mut log, report) = Log::open(&dir, options).unwrap();
    assert_eq!(report.truncated_bytes, 0, "{report:?}");
    let end = log.log_end_offset();
    log.advance_high_watermark(end);
    let reader = log.reader();
    let cleanable = reader.cleanable(&config, None, reader.last_stable_offset(end), NOW).unwrap();
    let options = CleaningOptions {
        config,
        cleanable,
        producers: log.last_of_producers(),
        map_bytes: 128 << 20,
        load_factor: 0.9,
        now_ms: NOW,
    };
    let mut cleaning = Cleaning::new(&reader, options);
    loop {
        match cleaning.step().unwrap() {
            Step::More { .. } => {}
            Step::Swap(cleaned) => {
                callboard_storage::delete_files(&log.swap_in(cleaned).unwrap().unwrap()).unwrap();
            }
            Step::Done { .. } => break,
        }
    }
    let (ours, kafkas) = (segments(&dir), segments(after));
    let bases = |segments: &[(i64, Vec<Left>)]| segments.iter().map(|(base, _)| *base).collect::<Vec<_>>();
    assert_eq!(bases(&ours), bases(&kafkas));
    for ((base, ours), (_, kafkas)) in ours.iter().zip(&kafkas) {
        for (ours, kafkas) in ours.iter().zip(kafkas) {
            assert_eq!(ours, kafkas, "in segment {base}");
        }
        assert_eq!(ours.len(), kafkas.len(), "in segment {base}");
    }
}

#[test]
fn leaves_what_kafka_leaves() {
    // Another pair of directories on demand: COMPACTED=DIR, with before-0 and after-0 in it.
    let data = std::env::var("COMPACTED")
        .unwrap_or_else(|_| format!("{}/tests/data/compaction", env!("CARGO_MANIFEST_DIR")));
    let data = Path::new(&data);
    compacts_as_kafka(&data.join("before-0"), &data.join("after-0"));
}
