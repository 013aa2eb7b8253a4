//! Printing as Kafka's dump-log prints, and checking directories that Kafka wrote and that were damaged.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::path::{Path, PathBuf};

use callboard_storage::{DumpMode, DumpOptions, Dumper, LogConfig, verify_dir};
use common::*;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn dump(files: &[PathBuf], options: DumpOptions) -> (String, Vec<String>) {
    let mut out = Vec::new();
    let mut dumper = Dumper::new(&mut out, options);
    files.iter().for_each(|file| dumper.file(file).unwrap());
    let problems = dumper.problems().collect();
    (String::from_utf8(out).unwrap(), problems)
}

/// The files that Kafka 4.4.0 was given for what is in `tests/data/dump-log`, in its order.
fn dumped() -> Vec<PathBuf> {
    let text = std::fs::read_to_string(data().join("dump-log/print.txt")).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("Dumping ")).map(|file| data().join(file)).collect()
}

#[test]
fn prints_what_kafka_prints() {
    let kinds = [
        ("plain.txt", DumpOptions::default()),
        ("print.txt", DumpOptions { deep: true, print_data: true, ..DumpOptions::default() }),
    ];
    for (name, options) in kinds {
        let expected = std::fs::read_to_string(data().join("dump-log").join(name)).unwrap();
        let (printed, _) = dump(&dumped(), options);
        let prefix = format!("{}/", data().display());
        let printed = printed.replace(&prefix, "");
        for (ours, kafkas) in printed.lines().zip(expected.lines()) {
            assert_eq!(ours, kafkas, "{name}");
        }
        assert_eq!(printed.lines().count(), expected.lines().count(), "{name}");
    }
}

#[test]
fn gaps_and_wrong_entries_are_told_at_the_end() {
    let log = data().join("compacted-0/00000000000000000000.log");
    let (_, problems) = dump(&[log], DumpOptions { deep: true, ..DumpOptions::default() });
    assert!(problems[0].starts_with("Non-consecutive offsets in "), "{problems:?}");
    assert!(problems[0].contains("\n  0 is followed by 20"), "{problems:?}");
    let (temp, dir) = filled();
    let index = dir.join("00000000000000000000.index");
    let mut bytes = std::fs::read(&index).unwrap();
    bytes[3] += 1;
    std::fs::write(&index, bytes).unwrap();
    let options = DumpOptions { mode: DumpMode::VerifyIndex, ..DumpOptions::default() };
    let (printed, problems) = dump(std::slice::from_ref(&index), options);
    assert_eq!(printed.lines().count(), 1);
    assert!(problems.concat().starts_with("Mismatches in :"), "{problems:?}");
    drop(temp);
}

/// A log of several segments, closed in order.
fn filled() -> (tempfile::TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let config = LogConfig { index_interval_bytes: 100, ..small() };
    let mut log = open_with(&dir, config, 0, false).0;
    for i in 0..20 {
        append(&mut log, values(&[&"x".repeat(300), "second"], 1_000 + i));
    }
    log.close().unwrap();
    (temp, dir)
}

#[test]
fn whole_directories_pass() {
    for entry in std::fs::read_dir(data()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        // Those of a killed broker are cut at the end.
        if path.is_dir() && name.ends_with(|c: char| c.is_ascii_digit()) && !name.starts_with("load") {
            let findings = verify_dir(&path).unwrap().findings;
            let missing = |finding: &callboard_storage::Finding| finding.what != "missing";
            let findings: Vec<_> = findings.iter().filter(|finding| missing(finding)).collect();
            assert!(findings.is_empty(), "{name}: {findings:?}");
        }
    }
    let (_temp, dir) = filled();
    let report = verify_dir(&dir).unwrap();
    assert_eq!((report.partitions, report.batches, report.records, report.findings), (1, 20, 40, vec![]));
    assert!(report.segments > 2);
}

#[test]
fn damage_is_found_in_its_file() {
    let (temp, good) = filled();
    let base = "00000000000000000000";
    let write = |name: &str, at: usize, what: &[u8]| {
        let dir = temp.path().join("damaged-0");
        let _ = std::fs::remove_dir_all(&dir);
        copy_dir(&good, &dir);
        let path = dir.join(name);
        let mut bytes = std::fs::read(&path).unwrap_or_default();
        bytes.resize(bytes.len().max(at + what.len()), 0);
        bytes[at..at + what.len()].copy_from_slice(what);
        std::fs::write(&path, bytes).unwrap();
        (verify_dir(&dir).unwrap().findings, path)
    };
    let damages: [(String, usize, &[u8]); 8] = [
        (format!("{base}.log"), 100, b"?"),
        (format!("{base}.log"), 0, &[9; 8]),
        (format!("{base}.index"), 0, &[0, 0, 1, 0]),
        (format!("{base}.index"), 4, &[0, 0, 0, 3]),
        (format!("{base}.timeindex"), 0, &[0x70]),
        (format!("{base}.txnindex"), 0, b"nonsense"),
        ("leader-epoch-checkpoint".to_owned(), 0, b"x"),
        ("00000000000000000040.snapshot".to_owned(), 3, b"x"),
    ];
    for (name, at, what) in damages {
        let (findings, path) = write(&name, at, what);
        assert!(!findings.is_empty(), "{name} at {at}");
        assert!(findings.iter().any(|finding| finding.path == path), "{name} at {at}: {findings:?}");
    }
}
