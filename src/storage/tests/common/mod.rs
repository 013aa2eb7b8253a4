//! Helpers of the storage tests.
#![allow(
    dead_code,
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper of tests, each using a part"
)]

use std::path::{Path, PathBuf};

use bytes::Bytes;
use callboard_protocol::records::control::EndTransactionMarker;
use callboard_protocol::records::rebuild::Ready;
use callboard_protocol::records::{BatchBuilder, RecordBatch, batches};
use callboard_storage::{Appended, Log, LogConfig, LogReader, OpenOptions, Origin, RecoveryReport};

pub const NOW: i64 = 1_800_000_000_000;

/// Small segments and indexes, so that little data does much.
pub fn small() -> LogConfig {
    LogConfig {
        segment_bytes: 2_000,
        segment_index_bytes: 256,
        index_interval_bytes: 200,
        ..LogConfig::default()
    }
}

pub fn open_with(
    dir: &Path,
    config: LogConfig,
    recovery_point: i64,
    clean_shutdown: bool,
) -> (Log, RecoveryReport) {
    let options =
        OpenOptions { config, recovery_point, clean_shutdown, now_ms: NOW, ..OpenOptions::default() };
    Log::open(dir, options).unwrap()
}

pub fn open(dir: &Path) -> Log {
    open_with(dir, small(), 0, false).0
}

pub fn ready(builder: BatchBuilder) -> Ready {
    let batch = RecordBatch::parse(builder.build().unwrap()).unwrap();
    Ready { header: batch.header, payload: batch.payload() }
}

/// A batch of these values, all at one timestamp.
pub fn values(values: &[&str], timestamp_ms: i64) -> Ready {
    let mut builder = BatchBuilder::new(0);
    values.iter().for_each(|value| builder.append(timestamp_ms, None, Some(value.as_bytes()), &[]));
    ready(builder)
}

/// A batch of `count` records of a producer.
pub fn sequenced(id: i64, epoch: i16, sequence: i32, count: usize) -> Ready {
    let mut builder = BatchBuilder::new(0).producer(id, epoch, sequence);
    (0..count).for_each(|_| builder.append(NOW, None, Some(b"v"), &[]));
    ready(builder)
}

pub fn transactional(id: i64, epoch: i16, sequence: i32) -> Ready {
    let mut builder = BatchBuilder::new(0).producer(id, epoch, sequence).transactional(true);
    builder.append(NOW, None, Some(b"t"), &[]);
    ready(builder)
}

pub fn marker(id: i64, epoch: i16, committed: bool, coordinator_epoch: i32) -> Ready {
    let marker = EndTransactionMarker { committed, coordinator_epoch };
    let batch = RecordBatch::parse(marker.batch(0, 0, id, epoch, NOW).unwrap()).unwrap();
    Ready { header: batch.header, payload: batch.payload() }
}

pub fn append(log: &mut Log, batch: Ready) -> Appended {
    log.append_as_leader(&[batch], 0, Origin::Client, NOW).unwrap()
}

/// Everything from `offset` on, as (offset, value), read as a consumer does.
pub fn read_values(reader: &LogReader, mut offset: i64) -> Vec<(i64, String)> {
    let mut found = Vec::new();
    while offset < reader.log_end_offset() {
        let bytes = read(reader, offset);
        let before = offset;
        for batch in batches(bytes) {
            let Ok(batch) = batch else { break };
            batch.verify_crc().unwrap();
            for record in batch.records().unwrap() {
                let record = record.unwrap();
                if record.offset >= offset {
                    found.push((
                        record.offset,
                        String::from_utf8_lossy(&record.value.unwrap_or_default()).into(),
                    ));
                }
            }
            offset = batch.header.next_offset();
        }
        assert!(offset > before, "the read at {before} gives nothing");
    }
    found
}

pub fn read(reader: &LogReader, offset: i64) -> Bytes {
    reader.read(offset, 1_000, i64::MAX, true).unwrap().to_bytes().unwrap()
}

/// A copy of a directory of `tests/data`, to work on.
pub fn fixture(name: &str) -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join(name);
    copy_dir(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name), &path);
    (temp, path)
}

pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
