//! What is left of a log after a crash: torn and flipped ends, bad indexes, half-done deletions.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use common::*;

const BATCHES: i64 = 12;

/// A log of 12 batches in several segments, not closed.
fn crashed(dir: &Path) -> Vec<(i64, String)> {
    let mut log = open(dir);
    for i in 0..BATCHES {
        append(&mut log, values(&[&"x".repeat(400 + i as usize), "second"], 1_000 + i));
    }
    read_values(&log.reader(), 0)
}

fn logs(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
    paths.sort();
    paths
}

/// Opens, checks that what is there is a prefix of what was, and that the log goes on from there.
fn check_prefix(dir: &Path, all: &[(i64, String)], at_least: usize, what: &str) -> usize {
    let (mut log, _) = open_with(dir, small(), 0, false);
    let left = read_values(&log.reader(), 0);
    assert_eq!(left, all[..left.len()], "{what}");
    assert!(left.len() >= at_least, "{what}: {} of {at_least}", left.len());
    let found = log.reader().offset_for_timestamp(1_000).unwrap();
    assert_eq!(found.is_some(), !left.is_empty(), "{what}");
    let next = append(&mut log, values(&["after"], 5_000)).first_offset;
    assert_eq!(next, left.len() as i64, "{what}");
    assert_eq!(read_values(&log.reader(), 0).len(), left.len() + 1, "{what}");
    left.len()
}

#[test]
fn torn_at_each_byte_of_the_last_segment() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().join("base-0");
    let all = crashed(&base);
    let last = logs(&base).pop().unwrap();
    let size = std::fs::metadata(&last).unwrap().len();
    let before: usize = last.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let mut lengths = std::collections::BTreeSet::new();
    // Each byte of the last batch and of the header before it, some of the others.
    let cuts = (0..size - 600).step_by(41).chain(size - 600..size);
    for cut in cuts {
        let dir = temp.path().join("torn-0");
        copy_dir(&base, &dir);
        let file = std::fs::OpenOptions::new().write(true).open(dir.join(last.file_name().unwrap())).unwrap();
        file.set_len(cut).unwrap();
        lengths.insert(check_prefix(&dir, &all, before, &format!("cut at {cut}")));
        std::fs::remove_dir_all(&dir).unwrap();
    }
    assert!(lengths.len() > 1 && lengths.iter().all(|length| length % 2 == 0), "{lengths:?}");
}

#[test]
fn a_flipped_byte_anywhere() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().join("base-0");
    let all = crashed(&base);
    let first = logs(&base).remove(0);
    let bytes = std::fs::read(&first).unwrap();
    let start = 12 + i32::from_be_bytes(bytes[8..12].try_into().unwrap()) as usize;
    // Of the second batch: the upper half of its offset, its length, what its checksum covers, and some records. The
    // checksum covers neither the lower half of the offset nor the leader epoch.
    let header = (0..3).chain(8..12).chain(16..61);
    for at in header.chain((61..400).step_by(37)).map(|at| start + at) {
        let dir = temp.path().join("flipped-0");
        copy_dir(&base, &dir);
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        std::fs::write(dir.join(first.file_name().unwrap()), flipped).unwrap();
        check_prefix(&dir, &all, 0, &format!("byte {at}"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn garbage_and_zeros_behind_the_end() {
    let temp = tempfile::tempdir().unwrap();
    for tail in [
        vec![0; 300],
        vec![0xff; 300],
        b"text that is no batch at all, but long enough to be one, perhaps".to_vec(),
    ] {
        let dir = temp.path().join("t-0");
        let all = crashed(&dir);
        let last = logs(&dir).pop().unwrap();
        let mut bytes = std::fs::read(&last).unwrap();
        bytes.extend_from_slice(&tail);
        std::fs::write(&last, bytes).unwrap();
        check_prefix(&dir, &all, all.len(), "garbage");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn a_batch_cut_in_an_early_segment_takes_the_later_ones_along() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let all = crashed(&dir);
    let first = logs(&dir).remove(0);
    let size = std::fs::metadata(&first).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&first).unwrap().set_len(size - 1).unwrap();
    let (log, report) = open_with(&dir, small(), 0, false);
    assert_eq!(report.removed_segments, logs(&base_of(&all, &temp)).len() - 1);
    assert_eq!(read_values(&log.reader(), 0), all[..6]);
}

/// The same log once more, whole.
fn base_of(all: &[(i64, String)], temp: &tempfile::TempDir) -> PathBuf {
    let dir = temp.path().join("whole-0");
    assert_eq!(crashed(&dir), all);
    dir
}

#[test]
fn only_what_lies_above_the_recovery_point_is_checked() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    crashed(&dir);
    let count = logs(&dir).len();
    assert!(count >= 3);
    let (_, report) = open_with(&dir, small(), 2 * BATCHES, false);
    assert_eq!((report.scanned_segments, report.rebuilt_indexes), (1, 0));
    let (_, report) = open_with(&dir, small(), 0, false);
    assert_eq!(report.scanned_segments, count);
}

#[test]
fn indexes_missing_cut_or_wrong() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().join("base-0");
    let all = crashed(&base);
    let good: Vec<u8> = std::fs::read(logs(&base)[0].with_extension("index")).unwrap();
    assert!(good.len() >= 16);
    let far: Vec<u8> = good.iter().map(|_| 0x7f).collect();
    let amid: Vec<u8> = good
        .chunks(8)
        .flat_map(|e| [e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7].wrapping_add(9)])
        .collect();
    let kinds: [(&str, Option<&[u8]>); 6] = [
        ("missing", None),
        ("not whole", Some(&good[..13])),
        ("zeros", Some(&[0; 256])),
        ("far", Some(&far)),
        ("amid batches", Some(&amid)),
        ("empty", Some(&[])),
    ];
    for clean in [true, false] {
        for (kind, content) in kinds {
            for ending in ["index", "timeindex"] {
                let dir = temp.path().join("t-0");
                copy_dir(&base, &dir);
                let path = logs(&dir)[0].with_extension(ending);
                match content {
                    Some(content) => std::fs::write(&path, content).unwrap(),
                    None => std::fs::remove_file(&path).unwrap(),
                }
                let (log, _) = open_with(&dir, small(), 2 * BATCHES, clean);
                for offset in 0..all.len() {
                    let left = read_values(&log.reader(), offset as i64);
                    assert_eq!(left, all[offset..], "{ending} {kind}, clean {clean}, offset {offset}");
                }
                drop(log);
                std::fs::remove_dir_all(&dir).unwrap();
            }
        }
    }
}

#[test]
fn damaged_epochs_are_read_from_the_batches() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open(&dir);
    for i in 0..20 {
        let batch = values(&[&"x".repeat(300)], i);
        log.append_as_leader(&[batch], i as i32 / 4, callboard_storage::Origin::Client, NOW).unwrap();
    }
    let file = dir.join("leader-epoch-checkpoint");
    let good = std::fs::read(&file).unwrap();
    drop(log);
    for (content, recovery_point) in [(&b"nonsense"[..], 20), (b"", 0), (b"0\n1\n0 0\n", 0)] {
        std::fs::write(&file, content).unwrap();
        let (log, _) = open_with(&dir, small(), recovery_point, false);
        assert_eq!(log.latest_epoch(), Some(4));
        assert_eq!(std::fs::read(&file).unwrap(), good);
    }
}

#[test]
fn leftovers_are_removed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let all = crashed(&dir);
    let leftovers = [
        "00000000000000000000.log.deleted",
        "00000000000000000000.log.cleaned",
        "leader-epoch-checkpoint.tmp",
        "00000000000000099999.index",
    ];
    for name in leftovers {
        std::fs::write(dir.join(name), b"x").unwrap();
    }
    std::fs::write(dir.join("00000000000000099999.snapshot"), b"x").unwrap();
    std::fs::write(dir.join("notes.txt"), b"x").unwrap();
    let log = open(&dir);
    assert_eq!(read_values(&log.reader(), 0), all);
    assert!(leftovers.iter().all(|name| !dir.join(name).exists()));
    assert!(!dir.join("00000000000000099999.snapshot").exists() && dir.join("notes.txt").exists());
}

#[test]
fn a_damaged_transaction_index_is_built_again() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().join("base-0");
    let mut log = open(&base);
    let send = |log: &mut callboard_storage::Log, batch, origin| {
        log.append_as_leader(&[batch], 0, origin, NOW).unwrap();
    };
    for sequence in 0..3 {
        send(&mut log, transactional(1, 0, sequence), callboard_storage::Origin::Client);
        log.roll(NOW).unwrap();
    }
    send(&mut log, marker(1, 0, false, 0), callboard_storage::Origin::Coordinator);
    send(&mut log, transactional(1, 0, 3), callboard_storage::Origin::Client);
    log.roll(NOW).unwrap();
    let aborted = log.reader().aborted_transactions(0, 5).unwrap();
    assert_eq!(aborted.len(), 1);
    log.close().unwrap();
    let name = "00000000000000000003.txnindex";
    let good = std::fs::read(base.join(name)).unwrap();
    for damage in [&b"nonsense"[..], &good[..20], &[0xff; 34]] {
        for clean in [true, false] {
            let dir = temp.path().join("t-0");
            copy_dir(&base, &dir);
            std::fs::write(dir.join(name), damage).unwrap();
            let (log, report) = open_with(&dir, small(), 5, clean);
            assert_eq!(log.reader().aborted_transactions(0, 5).unwrap(), aborted);
            assert_eq!((report.rebuilt_indexes, std::fs::read(dir.join(name)).unwrap()), (1, good.clone()));
            assert_eq!(log.producer(1).unwrap().txn_first_offset, Some(4));
            std::fs::remove_dir_all(&dir).unwrap();
        }
    }
}
