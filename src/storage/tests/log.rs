//! Appending, reading, rolling, looking up, truncating.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use bytes::{Bytes, BytesMut};
use callboard_protocol::records::{RecordBatch, TimestampType};
use callboard_storage::{AppendError, Log, LogConfig, OpenOptions, Origin, ReadError};
use common::*;

#[test]
fn offsets_epochs_and_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open(&temp.path().join("t-0"));
    let batch = values(&["a", "b"], 5);
    let sent = batch.to_bytes().unwrap();
    let first = log.append_as_leader(&[batch.clone(), batch], 7, Origin::Client, NOW).unwrap();
    assert_eq!((first.first_offset, first.last_offset, first.log_append_time_ms), (0, 3, -1));
    assert_eq!(first.size_bytes, 2 * sent.len() as u64);
    let stored = read(&log.reader(), 0);
    assert_eq!(stored.len(), 2 * sent.len());
    let second = RecordBatch::parse(stored.slice(sent.len()..)).unwrap();
    assert_eq!((second.header.base_offset, second.header.partition_leader_epoch), (2, 7));
    second.verify_crc().unwrap();
    // All but the base offset and the leader epoch is as it was sent.
    assert_eq!(second.bytes[8..12], sent[8..12]);
    assert_eq!(second.bytes[16..], sent[16..]);
    assert_eq!(log.reader().epoch_end_offset(7), Some((7, 4)));
}

#[test]
fn many_batches_in_one_append() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open_with(&temp.path().join("t-0"), LogConfig::default(), 0, false).0;
    let batches: Vec<_> = (0..100).map(|i| values(&[&format!("v{i}")], NOW)).collect();
    let appended = log.append_as_leader(&batches, 0, Origin::Client, NOW).unwrap();
    assert_eq!((appended.first_offset, appended.last_offset), (0, 99));
    let read = read_values(&log.reader(), 0);
    assert!(read.iter().enumerate().all(|(i, (at, value))| *at == i as i64 && *value == format!("v{i}")));
    assert_eq!(read.len(), 100);
}

#[test]
fn limits_of_a_read() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open_with(&temp.path().join("t-0"), LogConfig::default(), 0, false).0;
    let size = append(&mut log, values(&["a", "b"], 5)).size_bytes as u32;
    for _ in 0..3 {
        append(&mut log, values(&["a", "b"], 5));
    }
    let reader = log.reader();
    let read = |offset, max, limit, min_one| reader.read(offset, max, limit, min_one).unwrap();
    assert_eq!(read(0, 1, 8, true).size_bytes, size, "the first batch comes whole");
    assert_eq!(read(0, 1, 8, false).size_bytes, 0);
    assert_eq!(read(0, size + 5, 8, false).size_bytes, size + 5, "the last may be cut");
    let amid = read(3, 1_000_000, 8, false);
    assert_eq!((amid.position, amid.size_bytes, amid.first_offset), (size.into(), 3 * size, 2));
    assert_eq!(read(0, 1_000_000, 4, true).size_bytes, 2 * size, "nothing from the limit on");
    assert!(read(4, 1_000_000, 4, true).is_empty() && read(8, 100, 100, true).is_empty());
    for offset in [-1, 9] {
        let error = reader.read(offset, 1, 8, true).unwrap_err();
        assert!(matches!(error, ReadError::OffsetOutOfRange { log_end_offset: 8, .. }));
    }
}

#[test]
fn rolls_by_size_time_and_index() {
    let temp = tempfile::tempdir().unwrap();
    let by_size = LogConfig { segment_bytes: 200, ..LogConfig::default() };
    let mut log = open_with(&temp.path().join("size-0"), by_size, 0, false).0;
    assert!(
        (0..6)
            .map(|_| append(&mut log, values(&["abcdefghij"], 5)).rolled)
            .eq([false, false, true, false, true, false])
    );
    let error = log.append_as_leader(&[values(&["x"; 100], 5)], 0, Origin::Client, NOW).unwrap_err();
    assert!(matches!(error, AppendError::TooLarge { segment_bytes: 200, .. }));

    let by_time = LogConfig { segment_ms: 1_000, ..LogConfig::default() };
    let mut log = open_with(&temp.path().join("time-0"), by_time, 0, false).0;
    let times = [10_000, 11_000, 11_001, 5_000, 12_002];
    assert!(
        times
            .map(|at| append(&mut log, values(&["v"], at)).rolled)
            .into_iter()
            .eq([false, false, true, false, true])
    );

    let by_index = LogConfig { segment_index_bytes: 24, index_interval_bytes: 1, ..LogConfig::default() };
    let mut log = open_with(&temp.path().join("index-0"), by_index, 0, false).0;
    // The time index has room for two entries, one of which is kept for the roll.
    let rolled: Vec<_> = (0..6).map(|i| append(&mut log, values(&["v"], i)).rolled).collect();
    assert_eq!(rolled, [false, false, true, false, true, false]);
    assert_eq!(read_values(&log.reader(), 0).len(), 6);
}

#[test]
fn a_roll_leaves_whole_indexes_and_a_snapshot() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open(&dir);
    for i in 0..4 {
        append(&mut log, values(&["a long enough value"; 10], 100 + i));
    }
    let size = |name: &str| std::fs::metadata(dir.join(name)).unwrap().len();
    assert_eq!((size("00000000000000000000.index"), size("00000000000000000000.timeindex")), (256, 252));
    log.roll(NOW).unwrap();
    log.roll(NOW).unwrap();
    assert_eq!((size("00000000000000000000.index"), size("00000000000000000000.timeindex")), (24, 36));
    assert_eq!(size("00000000000000000040.snapshot"), 10);
    assert_eq!(log.reader().segments(), [(0, 4 * 321), (40, 0)]);
}

#[test]
fn timestamps() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open(&temp.path().join("t-0"));
    let reader = log.reader();
    assert_eq!((reader.max_timestamp().unwrap(), reader.offset_for_timestamp(0).unwrap()), (None, None));
    let times = [100, 200, 150, 300, 300, 250];
    for at in times.repeat(20) {
        append(&mut log, values(&["first value", "second value"], at));
    }
    log.roll(NOW).unwrap();
    assert!(reader.segments().len() > 3);
    let find = |at| reader.offset_for_timestamp(at).unwrap().map(|found| (found.offset, found.timestamp_ms));
    assert_eq!(
        (find(0), find(101), find(201), find(300)),
        (Some((0, 100)), Some((2, 200)), Some((6, 300)), Some((6, 300)))
    );
    assert_eq!(find(301), None);
    let max = reader.max_timestamp().unwrap().unwrap();
    assert_eq!((max.offset, max.timestamp_ms, max.leader_epoch), (6, 300, Some(0)));
    log.set_log_start_offset(9).unwrap();
    assert_eq!(find(0), Some((9, 300)), "records below the start are not found, though in the same batch");
}

#[test]
fn the_append_time_of_a_stamped_topic() {
    let temp = tempfile::tempdir().unwrap();
    let config = LogConfig { timestamp_type: TimestampType::LogAppendTime, ..LogConfig::default() };
    let mut log = open_with(&temp.path().join("t-0"), config, 0, false).0;
    let mut batch = values(&["a", "b"], 5);
    batch.header.set_timestamp_type(TimestampType::LogAppendTime);
    batch.header.max_timestamp = 77;
    batch.header.seal(&batch.payload);
    assert_eq!(append(&mut log, batch).log_append_time_ms, 77);
    assert_eq!(log.reader().offset_for_timestamp(6).unwrap().unwrap().timestamp_ms, 77);
}

#[test]
fn a_follower_takes_batches_as_they_are() {
    let temp = tempfile::tempdir().unwrap();
    let mut leader = open(&temp.path().join("leader-0"));
    for i in 0..30 {
        leader
            .append_as_leader(&[values(&["some value", "another"], i)], i as i32 / 10, Origin::Client, NOW)
            .unwrap();
    }
    let mut follower = open(&temp.path().join("follower-0"));
    while follower.log_end_offset() < 60 {
        // The reads end amid batches.
        let bytes = read(&leader.reader(), follower.log_end_offset());
        follower.append_as_follower(bytes, NOW).unwrap();
    }
    assert_eq!(read_values(&follower.reader(), 0), read_values(&leader.reader(), 0));
    assert_eq!(follower.reader().epoch_end_offset(1), Some((1, 40)));

    let again = read(&leader.reader(), 0);
    let error = follower.append_as_follower(again.clone(), NOW).unwrap_err();
    assert!(matches!(error, AppendError::UnexpectedOffset { offset: 0, expected: 60 }));
    let mut flipped = BytesMut::from(&again[..]);
    flipped[80] ^= 1;
    let mut empty = open(&temp.path().join("empty-0"));
    let flipped = Bytes::from(flipped);
    let error = empty.append_as_follower(flipped, NOW).unwrap_err();
    assert!(matches!(error, AppendError::InvalidBatch { .. }), "{error}");
}

#[test]
fn truncation() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open(&dir);
    for i in 0..60 {
        log.append_as_leader(
            &[values(&["some value", "another"], 100 + i)],
            i as i32 / 20,
            Origin::Client,
            NOW,
        )
        .unwrap();
    }
    let reader = log.reader();
    let all = read_values(&reader, 0);
    assert!(!log.truncate_to(120, NOW).unwrap());
    assert!(log.truncate_to(41, NOW).unwrap());
    assert_eq!(log.log_end_offset(), 40);
    assert_eq!(read_values(&reader, 0), all[..40], "the batch that holds the offset goes whole");
    assert_eq!(
        (reader.latest_epoch(), reader.max_timestamp().unwrap().unwrap().timestamp_ms),
        (Some(0), 119)
    );
    log.append_as_leader(&[values(&["new"], 500)], 5, Origin::Client, NOW).unwrap();
    assert_eq!(read_values(&reader, 40).last().unwrap().1, "new");
    assert_eq!(reader.offset_for_timestamp(400).unwrap().unwrap().offset, 40);
    drop(log);
    let (mut log, report) = open_with(&dir, small(), 41, false);
    assert_eq!((log.log_end_offset(), report.truncated_bytes), (41, 0));
    log.restart_at(1000, NOW).unwrap();
    assert_eq!((log.log_start_offset(), append(&mut log, values(&["x"], 1)).first_offset), (1000, 1000));
    assert_eq!(log.reader().epoch_of(1000), Some(0));
    assert!(log.truncate_to(900, NOW).unwrap());
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (900, 900));
}

#[test]
fn segments_below_the_start_go_in_two_steps() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open(&dir);
    for i in 0..60 {
        append(&mut log, values(&["some value", "another"], i));
    }
    let reader = log.reader();
    let bases: Vec<_> = reader.segments().iter().map(|segment| segment.0).collect();
    let held = reader.read(0, 100, 120, true).unwrap();
    assert!(log.set_log_start_offset(bases[2] + 1).unwrap());
    let paths = log.remove_segments_below_start().unwrap();
    assert_eq!(reader.segments()[0].0, bases[2]);
    assert!(paths.iter().all(|path| path.exists() && path.to_string_lossy().ends_with(".deleted")));
    callboard_storage::delete_files(&paths).unwrap();
    assert!(!paths[0].exists());
    assert_eq!(held.to_bytes().unwrap().len(), held.size_bytes as usize, "a region stays readable");
    assert!(!log.set_log_start_offset(3).unwrap());
    assert!(log.set_log_start_offset(500).unwrap());
    assert_eq!(log.log_start_offset(), 120, "not above the end");
}

#[test]
fn a_renamed_directory_goes_on_working() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open(&temp.path().join("t-0"));
    for i in 0..20 {
        append(&mut log, values(&["some value", "another"], i));
    }
    let to = temp.path().join("t-0.00000000000000000000000000000000-delete");
    log.rename_dir(&to).unwrap();
    for i in 0..20 {
        append(&mut log, values(&["some value", "another"], i));
    }
    assert_eq!(read_values(&log.reader(), 0).len(), 80);
    drop(log);
    callboard_storage::delete_dir(&to).unwrap();
    callboard_storage::delete_dir(&to).unwrap();
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn flushing_moves_the_recovery_point() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open(&temp.path().join("t-0"));
    assert!(log.flush_handle().is_none());
    for i in 0..60 {
        append(&mut log, values(&["some value", "another"], i));
    }
    let handle = log.flush_handle().unwrap();
    append(&mut log, values(&["later"], 1));
    let handle = std::thread::spawn(move || handle.run().map(|()| handle)).join().unwrap().unwrap();
    log.mark_flushed(handle.up_to());
    assert_eq!(log.recovery_point(), 120);
    log.flush().unwrap();
    assert_eq!(log.recovery_point(), 121);
    log.truncate_to(50, NOW).unwrap();
    log.mark_flushed(handle.up_to());
    assert_eq!(log.recovery_point(), 50);
}

#[test]
fn a_clean_start_reads_next_to_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open(&dir);
    for i in 0..60 {
        append(&mut log, sequenced(4, 0, i * 2, 2));
    }
    let values = read_values(&log.reader(), 0);
    let max = log.reader().max_timestamp().unwrap();
    log.close().unwrap();
    let (mut log, report) = open_with(&dir, small(), 0, true);
    assert_eq!(report, Default::default());
    assert_eq!((log.log_end_offset(), log.recovery_point()), (120, 120));
    assert_eq!((read_values(&log.reader(), 0), log.reader().max_timestamp().unwrap()), (values, max));
    assert!(append(&mut log, sequenced(4, 0, 118, 2)).duplicate);
    assert_eq!(append(&mut log, sequenced(4, 0, 120, 2)).first_offset, 120);
}

#[test]
fn a_start_above_the_end_begins_anew() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open(&dir);
    append(&mut log, values(&["a"], 1));
    drop(log);
    let options =
        OpenOptions { config: small(), log_start_offset: 50, now_ms: NOW, ..OpenOptions::default() };
    let (mut log, _) = Log::open(&dir, options).unwrap();
    assert_eq!((log.log_start_offset(), log.log_end_offset()), (50, 50));
    assert_eq!(append(&mut log, values(&["b"], 1)).first_offset, 50);
}

/// A flush runs in the background, and files that go meanwhile are no fault of the disk.
#[test]
fn a_flush_passes_over_segments_removed_since() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let fill = |log: &mut Log| {
        for i in 0..60 {
            append(log, values(&[&format!("{i:0>100}")], NOW));
        }
    };
    let mut log = open(&dir);
    fill(&mut log);
    let below_start = log.flush_handle().unwrap();
    log.set_log_start_offset(log.log_end_offset()).unwrap();
    assert!(!log.remove_segments_below_start().unwrap().is_empty());
    below_start.run().unwrap();
    let truncated = log.flush_handle().unwrap();
    log.restart_at(1_000, NOW).unwrap();
    truncated.run().unwrap();
    fill(&mut log);
    let cut = log.flush_handle().unwrap();
    log.truncate_to(1_001, NOW).unwrap();
    cut.run().unwrap();
}

/// The file of a segment that is in use must be there.
#[test]
fn a_flush_misses_a_file_that_should_be_there() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open(&dir);
    for i in 0..60 {
        append(&mut log, values(&[&format!("{i:0>100}")], NOW));
    }
    let handle = log.flush_handle().unwrap();
    std::fs::remove_file(dir.join("00000000000000000000.index")).unwrap();
    assert!(handle.run().is_err());
}
