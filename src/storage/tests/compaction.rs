//! Compaction of a log: what stays, at which offsets, and what a crash amid it leaves.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use callboard_protocol::records::rebuild::Ready;
use callboard_protocol::records::{BatchBuilder, Compression, CompressionLevels, RecordBatch, batches};
use callboard_storage::{
    CleanReport, CleanedSegment, Cleaning, CleaningOptions, Log, LogConfig, Origin, Step, StorageError,
};
use common::*;

fn config() -> LogConfig {
    LogConfig { compacts: true, deletes: false, delete_retention_ms: 1_000, ..small() }
}

fn open_at(dir: &Path) -> Log {
    open_with(dir, config(), 0, false).0
}

/// A batch of keys and values; no value is a tombstone.
fn keyed(pairs: &[(&str, Option<&str>)]) -> Ready {
    keyed_by(BatchBuilder::new(0), pairs)
}

fn keyed_by(mut builder: BatchBuilder, pairs: &[(&str, Option<&str>)]) -> Ready {
    for (key, value) in pairs {
        builder.append(NOW, Some(key.as_bytes()), value.map(str::as_bytes), &[]);
    }
    ready(builder)
}

fn begin(log: &Log, compacted_to: Option<i64>, now_ms: i64, map_bytes: u64) -> Cleaning {
    let reader = log.reader();
    let stable = reader.last_stable_offset(log.log_end_offset());
    let cleanable = reader.cleanable(log.config(), compacted_to, stable, now_ms).unwrap();
    let options = CleaningOptions {
        config: log.config().clone(),
        cleanable,
        producers: log.last_of_producers(),
        map_bytes,
        load_factor: 0.9,
        now_ms,
    };
    Cleaning::new(&reader, options)
}

fn run(log: &mut Log, mut cleaning: Cleaning) -> Result<(i64, CleanReport), StorageError> {
    loop {
        match cleaning.step()? {
            Step::More { .. } => {}
            Step::Swap(cleaned) => {
                callboard_storage::delete_files(&log.swap_in(cleaned)?.expect("the log is as it was"))?;
            }
            Step::Done { end_offset } => return Ok((end_offset, cleaning.report())),
        }
    }
}

/// One round; gives the offset up to which all is compacted.
fn clean(log: &mut Log, compacted_to: i64, now_ms: i64) -> i64 {
    let cleaning = begin(log, Some(compacted_to), now_ms, 1 << 20);
    run(log, cleaning).unwrap().0
}

/// Offset, key and value of every record.
type Records = Vec<(i64, String, Option<String>)>;

fn records(log: &Log) -> Records {
    let text = |bytes: Option<bytes::Bytes>| bytes.map(|b| String::from_utf8(b.to_vec()).unwrap());
    let mut found = Vec::new();
    for batch in stored(log).into_iter().filter(|batch| !batch.header.is_control()) {
        for record in batch.records().unwrap().map(Result::unwrap) {
            found.push((record.offset, text(record.key).unwrap_or_default(), text(record.value)));
        }
    }
    found
}

/// Every batch, as a consumer reads them one after the other.
fn stored(log: &Log) -> Vec<RecordBatch> {
    let (reader, mut offset) = (log.reader(), log.log_start_offset());
    let mut found = Vec::new();
    while offset < reader.log_end_offset() {
        let region = reader.read(offset, 1 << 20, i64::MAX, true).unwrap();
        if region.is_empty() {
            break;
        }
        for batch in batches(region.to_bytes().unwrap()).map(Result::unwrap) {
            batch.verify_crc().unwrap();
            assert!(batch.header.last_offset() >= offset);
            offset = batch.header.next_offset();
            found.push(batch);
        }
    }
    found
}

fn of(records: &[(i64, &str, Option<&str>)]) -> Records {
    records.iter().map(|(o, k, v)| (*o, (*k).to_owned(), v.map(str::to_owned))).collect()
}

/// Larger segments from now on, so that several of those there are become one.
fn enlarge(log: &mut Log) {
    log.set_config(LogConfig { segment_bytes: 20_000, segment_index_bytes: 2_560, ..config() });
}

/// Many batches over few keys, and what must stay once all but the last segment is compacted.
fn load(log: &mut Log, batches: usize) -> BTreeMap<String, (i64, String)> {
    let mut last = BTreeMap::new();
    for batch in 0..batches {
        let pairs: Vec<_> =
            (0..5).map(|i| (format!("k{}", (batch * 5 + i * 7) % 23), format!("{batch}.{i}"))).collect();
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.as_str(), Some(v.as_str()))).collect();
        let first = append(log, keyed(&pairs)).first_offset;
        for (at, (key, value)) in (first..).zip(pairs) {
            last.insert(key.to_owned(), (at, value.unwrap_or_default().to_owned()));
        }
    }
    last
}

#[test]
fn the_last_record_of_each_key_stays_where_it_was() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open_at(&dir);
    let last = load(&mut log, 60);
    log.roll(NOW).unwrap();
    enlarge(&mut log);
    let (end, before) = (log.log_end_offset(), log.reader().size_bytes());
    let cleaning = begin(&log, None, NOW, 1 << 20);
    let (end_offset, report) = run(&mut log, cleaning).unwrap();
    assert_eq!((end_offset, log.log_end_offset()), (end, end));
    assert!(report.segments_before > 3 * report.segments_after, "small segments become one: {report:?}");
    assert_eq!((report.keys, report.records_kept), (23, 23));
    assert!(log.reader().size_bytes() < before / 2);
    let mut expected: Records =
        last.into_iter().map(|(key, (offset, value))| (offset, key, Some(value))).collect();
    expected.sort();
    assert_eq!(records(&log), expected);
    // From any offset a reader gets the next record that is left.
    for offset in 0..end {
        let first = batches(read(&log.reader(), offset))
            .flat_map(|batch| batch.unwrap().records().unwrap())
            .map(|record| record.unwrap().offset)
            .find(|at| *at >= offset);
        let next = expected.iter().map(|(at, ..)| *at).find(|at| *at >= offset);
        assert_eq!(first, next, "from {offset}");
    }
    append(&mut log, keyed(&[("k1", Some("new"))]));
    let all = records(&log);
    assert_eq!(all.last().map(|r| r.0), Some(end), "appends go on at the end");
    drop(log);
    for clean_shutdown in [false, true] {
        assert_eq!(records(&open_with(&dir, config(), 0, clean_shutdown).0), all);
    }
    assert!(std::fs::read_dir(&dir).unwrap().all(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        ![".cleaned", ".swap", ".deleted"].iter().any(|ending| name.ends_with(ending))
    }));
}

#[test]
fn a_map_that_is_too_small_does_a_part_each_round() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open_at(&temp.path().join("t-0"));
    let last = load(&mut log, 60);
    log.roll(NOW).unwrap();
    let (mut compacted_to, mut rounds) = (0, 0);
    while compacted_to < log.log_end_offset() {
        let cleaning = begin(&log, Some(compacted_to), NOW, 24 * 9);
        let (end_offset, report) = run(&mut log, cleaning).unwrap();
        assert!(end_offset > compacted_to && report.keys <= 8, "round {rounds}: {report:?}");
        (compacted_to, rounds) = (end_offset, rounds + 1);
    }
    assert!(rounds > 3);
    let mut left: BTreeMap<_, _> = BTreeMap::new();
    for (offset, key, value) in records(&log) {
        left.insert(key, (offset, value.unwrap()));
    }
    assert_eq!(left, last, "nothing that is last was lost");
}

#[test]
fn tombstones_wait_for_their_horizon() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open_at(&temp.path().join("t-0"));
    append(&mut log, keyed(&[("a", Some("1")), ("b", Some("1"))]));
    append(&mut log, keyed(&[("a", None), ("c", Some("1"))]));
    append(&mut log, keyed(&[("z", Some("1"))]));
    log.roll(NOW).unwrap();
    clean(&mut log, 0, NOW);
    let with_tombstone = of(&[(1, "b", Some("1")), (2, "a", None), (3, "c", Some("1")), (4, "z", Some("1"))]);
    assert_eq!(records(&log), with_tombstone);
    let horizons: Vec<_> = stored(&log).iter().map(|batch| batch.header.delete_horizon_ms()).collect();
    assert_eq!(horizons, [None, Some(NOW + 1_000), None]);
    assert_eq!(stored(&log)[1].header.max_timestamp, NOW, "the records' own times stay");
    clean(&mut log, 0, NOW + 999);
    assert_eq!(records(&log), with_tombstone);
    clean(&mut log, 0, NOW + 1_000);
    assert_eq!(records(&log), of(&[(1, "b", Some("1")), (3, "c", Some("1")), (4, "z", Some("1"))]));
}

#[test]
fn records_without_a_key_go_and_codecs_stay() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open_at(&temp.path().join("t-0"));
    append(&mut log, values(&["no key"], NOW));
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let builder = BatchBuilder::new(0).compression(codec, CompressionLevels::default());
        append(&mut log, keyed_by(builder, &[("a", Some("x")), (&format!("{codec:?}"), Some("y"))]));
    }
    append(&mut log, keyed(&[("a", Some("last"))]));
    log.roll(NOW).unwrap();
    clean(&mut log, 0, NOW);
    let codecs: Vec<_> = stored(&log).iter().map(|b| b.header.compression().unwrap()).collect();
    let expected =
        [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd, Compression::None];
    assert_eq!(codecs, expected);
    assert_eq!(records(&log).iter().map(|r| r.0).collect::<Vec<_>>(), [2, 4, 6, 8, 9]);
}

fn send(log: &mut Log, batch: Ready, origin: Origin) -> i64 {
    log.append_as_leader(&[batch], 0, origin, NOW).unwrap().last_offset
}

fn txn(id: i64, sequence: i32, pairs: &[(&str, Option<&str>)]) -> Ready {
    keyed_by(BatchBuilder::new(0).producer(id, 0, sequence).transactional(true), pairs)
}

#[test]
fn aborted_records_go_at_once_and_markers_once_nothing_is_left() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open_at(&dir);
    let (client, coordinator) = (Origin::Client, Origin::Coordinator);
    for (sequence, key) in (0..3).zip(["a", "b", "c"]) {
        send(&mut log, txn(1, sequence, &[(key, Some("good"))]), client);
        send(&mut log, txn(2, sequence, &[(key, Some("bad"))]), client);
        log.roll(NOW).unwrap();
    }
    send(&mut log, marker(1, 0, true, 0), coordinator);
    send(&mut log, marker(2, 0, false, 0), coordinator);
    // The producers go on elsewhere, so that their batches here are not the last ones known.
    send(&mut log, txn(1, 3, &[("d", Some("open"))]), client);
    send(&mut log, txn(2, 3, &[("d", Some("open"))]), client);
    send(&mut log, marker(1, 0, true, 0), coordinator);
    send(&mut log, marker(2, 0, true, 0), coordinator);
    log.roll(NOW).unwrap();
    log.advance_high_watermark(log.log_end_offset());
    clean(&mut log, 0, NOW);
    let left =
        of(&[(0, "a", Some("good")), (2, "b", Some("good")), (4, "c", Some("good")), (9, "d", Some("open"))]);
    assert_eq!(records(&log), left);
    let markers = |log: &Log| {
        stored(log).iter().filter(|b| b.header.is_control()).map(|b| b.header.base_offset).collect::<Vec<_>>()
    };
    assert_eq!(markers(&log), [6, 7, 10, 11]);
    let aborted = |log: &Log| log.reader().aborted_transactions(0, 12).unwrap().len();
    assert_eq!(aborted(&log), 1, "this round has still met its records");
    // All of the first transaction is replaced. A round that meets nothing of it lets the marker begin to wait.
    let end = log.log_end_offset();
    append(&mut log, keyed(&[("a", Some("2")), ("b", Some("2")), ("c", Some("2"))]));
    log.roll(NOW).unwrap();
    log.advance_high_watermark(log.log_end_offset());
    clean(&mut log, end, NOW + 10);
    assert_eq!((markers(&log), aborted(&log)), (vec![6, 7, 10, 11], 0));
    clean(&mut log, end, NOW + 20);
    clean(&mut log, end, NOW + 1_010);
    assert_eq!(
        markers(&log),
        [6, 10, 11],
        "the aborted one's began to wait at 10, the committed one's at 20"
    );
    clean(&mut log, end, NOW + 1_020);
    assert_eq!(markers(&log), [10, 11]);
    drop(log);
    let log = open_at(&dir);
    assert_eq!(records(&log).len(), 4);
    assert_eq!(log.producer(1).unwrap().txn_first_offset, None);
}

#[test]
fn an_aborted_transaction_that_is_not_wholly_compacted_stays_marked() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open_at(&dir);
    send(&mut log, txn(2, 0, &[("a", Some("bad"))]), Origin::Client);
    // Its last batch must be kept for its sequence, without the record.
    send(&mut log, marker(2, 0, false, 0), Origin::Coordinator);
    log.roll(NOW).unwrap();
    log.advance_high_watermark(log.log_end_offset());
    clean(&mut log, 0, NOW);
    assert_eq!(records(&log), []);
    let aborted = log.reader().aborted_transactions(0, 2).unwrap();
    assert_eq!(aborted.iter().map(|txn| (txn.first_offset, txn.last_offset)).collect::<Vec<_>>(), [(0, 1)]);
    drop(log);
    let mut log = open_at(&dir);
    assert_eq!(log.producer(2).unwrap().last_sequence(), 0);
    assert_eq!(log.reader().aborted_transactions(0, 2).unwrap(), aborted);
    send(&mut log, txn(2, 1, &[("a", Some("next"))]), Origin::Client);
}

#[test]
fn a_producer_s_sequence_outlives_its_records() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open_at(&dir);
    for (sequence, value) in (0..).zip(["1", "2", "3"]) {
        let builder = BatchBuilder::new(0).producer(7, 0, sequence);
        send(&mut log, keyed_by(builder, &[("a", Some(value))]), Origin::Client);
    }
    append(&mut log, keyed(&[("a", Some("another's"))]));
    log.roll(NOW).unwrap();
    clean(&mut log, 0, NOW);
    assert_eq!(records(&log), of(&[(3, "a", Some("another's"))]));
    let sizes: Vec<_> = stored(&log).iter().map(|b| (b.header.base_offset, b.header.record_count)).collect();
    assert_eq!(sizes, [(2, 0), (3, 1)]);
    for snapshot in std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()) {
        if snapshot.extension().is_some_and(|e| e == "snapshot") {
            std::fs::remove_file(snapshot).unwrap();
        }
    }
    drop(log);
    let mut log = open_at(&dir);
    let builder = || BatchBuilder::new(0).producer(7, 0, 3);
    send(&mut log, keyed_by(builder(), &[("a", Some("4"))]), Origin::Client);
}

#[test]
fn what_is_open_or_young_or_written_to_is_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open_at(&temp.path().join("t-0"));
    for value in ["1", "2", "3"] {
        append(&mut log, keyed(&[("a", Some(value))]));
        log.roll(NOW).unwrap();
    }
    append(&mut log, keyed(&[("a", Some("4"))]));
    let cleanable = |log: &Log, stable, now_ms| {
        let found = log.reader().cleanable(log.config(), Some(0), stable, now_ms).unwrap();
        (found.first_uncleanable_offset, found.is_due(log.config()))
    };
    assert_eq!(cleanable(&log, 4, NOW), (3, true));
    assert_eq!(cleanable(&log, 2, NOW), (2, true), "not past the last stable offset");
    log.set_config(LogConfig { min_compaction_lag_ms: 1_000, ..config() });
    assert_eq!(cleanable(&log, 4, NOW + 1_000), (3, true));
    assert_eq!(cleanable(&log, 4, NOW + 999), (0, false));
    log.set_config(LogConfig { min_cleanable_dirty_ratio: 1.0, ..config() });
    assert_eq!(cleanable(&log, 4, NOW), (3, false));
    log.set_config(LogConfig { min_cleanable_dirty_ratio: 1.0, max_compaction_lag_ms: 5_000, ..config() });
    assert_eq!(cleanable(&log, 4, NOW + 5_000), (3, false));
    assert_eq!(cleanable(&log, 4, NOW + 5_001), (3, true), "overdue");
    assert_eq!(clean(&mut log, 0, NOW), 3);
    assert_eq!(records(&log), of(&[(2, "a", Some("3")), (3, "a", Some("4"))]));
}

#[test]
fn a_damaged_batch_stops_the_round_and_changes_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open_at(&dir);
    load(&mut log, 20);
    log.roll(NOW).unwrap();
    let path = dir.join("00000000000000000000.log");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let cleaning = begin(&log, None, NOW, 1 << 20);
    let error = run(&mut log, cleaning).unwrap_err();
    assert!(matches!(&error, StorageError::Corrupt { path: at, .. } if *at == path), "{error}");
    assert_eq!(append(&mut log, keyed(&[("a", Some("b"))])).first_offset, 100);
}

fn first_swap(log: &Log) -> CleanedSegment {
    let mut cleaning = begin(log, None, NOW, 1 << 20);
    loop {
        match cleaning.step().unwrap() {
            Step::More { .. } => {}
            Step::Swap(cleaned) => return cleaned,
            Step::Done { .. } => panic!("nothing to swap"),
        }
    }
}

#[test]
fn a_log_that_has_changed_meanwhile_is_not_overwritten() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open_at(&dir);
    load(&mut log, 60);
    log.roll(NOW).unwrap();
    enlarge(&mut log);
    let cleaned = first_swap(&log);
    assert!(cleaned.replaces() > 1);
    log.set_log_start_offset(150).unwrap();
    assert!(!log.remove_segments_below_start().unwrap().is_empty());
    let left = records(&log);
    assert_eq!(log.swap_in(cleaned).unwrap(), None);
    assert_eq!(records(&log), left);
    let names = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.ends_with(".cleaned")));
}

#[test]
fn a_crash_at_any_step_of_a_swap_leaves_the_old_or_the_new() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open_at(&dir);
    send(&mut log, txn(2, 0, &[("a", Some("bad"))]), Origin::Client);
    send(&mut log, marker(2, 0, false, 0), Origin::Coordinator);
    load(&mut log, 60);
    log.roll(NOW).unwrap();
    enlarge(&mut log);
    log.advance_high_watermark(log.log_end_offset());
    let old = records(&log);
    let cleaned = first_swap(&log);
    let before = temp.path().join("before");
    copy_dir(&dir, &before);
    let renamed = log.swap_in(cleaned).unwrap().unwrap();
    let new = records(&log);
    let aborted = log.reader().aborted_transactions(0, 300).unwrap();
    assert!(new.len() < old.len() && aborted.len() == 1);
    // The same renames one by one, a crash after each.
    let base = "00000000000000000000";
    let endings = ["index", "timeindex", "txnindex", "log"];
    let mut steps: Vec<(String, String)> = Vec::new();
    for ending in endings {
        steps.push((format!("{base}.{ending}.cleaned"), format!("{base}.{ending}.swap")));
    }
    for path in renamed {
        let to = path.file_name().unwrap().to_str().unwrap().to_owned();
        steps.push((to.trim_end_matches(".deleted").to_owned(), to));
    }
    for ending in endings {
        steps.push((format!("{base}.{ending}.swap"), format!("{base}.{ending}")));
    }
    for crash_after in 0..=steps.len() {
        let at = temp.path().join(format!("crash-{crash_after}"));
        copy_dir(&before, &at);
        for (from, to) in &steps[..crash_after] {
            std::fs::rename(at.join(from), at.join(to)).unwrap();
        }
        for clean_shutdown in [false, true] {
            let log = open_with(&at, config(), 0, clean_shutdown).0;
            let found = records(&log);
            assert_eq!(
                found,
                if crash_after < 4 { old.clone() } else { new.clone() },
                "after {crash_after} steps"
            );
            assert_eq!(
                log.reader().aborted_transactions(0, 300).unwrap(),
                aborted,
                "after {crash_after} steps"
            );
        }
    }
}
