//! Printing the files of a log, line by line as Kafka 4.4's `kafka-dump-log.sh` does.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use callboard_protocol::records::control::{ControlType, EndTransactionMarker};
use callboard_protocol::records::legacy::any_batches;
use callboard_protocol::records::{
    BatchHeader, Compression, Record, RecordBatch, TimestampType, add_sequence,
};

use crate::index::AbortedTxn;
use crate::names;
use crate::producer::{self, ProducerEntry};
use crate::scan::{BatchInfo, FULL_CHUNK, LOOKUP_CHUNK, ScanError, Scanner};

/// What is printed of indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DumpMode {
    /// Every entry, each checked against the log.
    #[default]
    Print,
    /// Nothing; each entry is checked against the log (`--verify-index-only`).
    VerifyIndex,
    /// Nothing; an index is only looked at as a broker does at start (`--index-sanity-check`).
    SanityCheck,
}

/// What to print.
#[derive(Debug, Clone, Copy)]
pub struct DumpOptions {
    /// Every record, not only batches (`--deep-iteration`).
    pub deep: bool,
    /// Keys and values too (`--print-data-log`).
    pub print_data: bool,
    /// Nothing of a record but key and value (`--skip-record-metadata`).
    pub skip_record_metadata: bool,
    /// Batches are printed up to so many bytes of a log (`--max-bytes`).
    pub max_bytes: u64,
    /// What is printed of indexes.
    pub mode: DumpMode,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self {
            deep: false,
            print_data: false,
            skip_record_metadata: false,
            max_bytes: i32::MAX as u64,
            mode: DumpMode::Print,
        }
    }
}

/// Prints files, and gathers what is wrong with them for the end.
#[derive(Debug)]
pub struct Dumper<W> {
    out: W,
    options: DumpOptions,
    problems: Vec<(String, PathBuf, Vec<String>)>,
}

impl<W: Write> Dumper<W> {
    /// Prints to `out`.
    pub fn new(out: W, options: DumpOptions) -> Self {
        Self { out, options, problems: Vec::new() }
    }

    /// Prints one file; its ending says what it is.
    pub fn file(&mut self, path: &Path) -> io::Result<()> {
        writeln!(self.out, "Dumping {}", path.display())?;
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("log" | "checkpoint") => self.log(path),
            Some("index") => self.offset_index(path),
            Some("timeindex") => self.time_index(path),
            Some("txnindex") => self.txn_index(path),
            Some("snapshot") => self.snapshot(path),
            _ => writeln!(self.out, "Ignoring unknown file {}", path.display()),
        }
    }

    /// What was found wrong, as Kafka's tool prints it after all files.
    pub fn problems(&self) -> impl Iterator<Item = String> {
        self.problems.iter().map(|(what, path, lines)| {
            let lines: String = lines.iter().map(|line| format!("\n  {line}")).collect();
            format!("{what}{}{lines}", path.display())
        })
    }

    fn note(&mut self, what: &str, path: &Path, lines: Vec<String>) {
        if !lines.is_empty() {
            self.problems.push((what.to_owned(), path.to_owned(), lines));
        }
    }

    fn log(&mut self, path: &Path) -> io::Result<()> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let start = name.split(['.', '-']).next().and_then(|digits| digits.parse::<i64>().ok()).unwrap_or(0);
        match path.extension().is_some_and(|ending| ending == "log") {
            true => writeln!(self.out, "Log starting offset: {start}")?,
            false => {
                let epoch = name.split(['.', '-']).nth(1).and_then(|digits| digits.parse::<i32>().ok());
                writeln!(self.out, "Snapshot end offset: {start}, epoch: {}", epoch.unwrap_or(0))?;
            }
        }
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut scanner = Scanner::new(&file, 0, size, FULL_CHUNK);
        let (mut end, mut last_offset, mut gaps) = (0, -1, Vec::new());
        while end < self.options.max_bytes {
            let info = match scanner.next() {
                Ok(Some(info)) => info,
                Ok(None) => break,
                Err(ScanError::Io(error)) => return Err(error),
                Err(ScanError::Invalid { .. }) => {
                    writeln!(self.out, "Found {} invalid bytes at the end of {name}", size - end)?;
                    break;
                }
            };
            end = info.end();
            self.batch(&info, &mut scanner, &mut last_offset, &mut gaps)?;
        }
        self.note("Non-consecutive offsets in ", path, gaps);
        Ok(())
    }

    fn batch(
        &mut self,
        info: &BatchInfo,
        scanner: &mut Scanner<'_>,
        last_offset: &mut i64,
        gaps: &mut Vec<String>,
    ) -> io::Result<()> {
        let bytes = match scanner.batch(info) {
            Ok(bytes) => bytes,
            Err(ScanError::Io(error)) => return Err(error),
            Err(ScanError::Invalid { reason, .. }) => return writeln!(self.out, "{reason}"),
        };
        let batch = info.header.and_then(|_| RecordBatch::parse(bytes.clone()).ok());
        let valid = batch.as_ref().is_none_or(|batch| batch.verify_crc().is_ok());
        if let Some(batch) = &batch {
            batch_line(&mut self.out, &batch.header, info.position, valid)?;
        } else {
            writeln!(
                self.out,
                "offset: {} position: {} size: {}",
                info.last_offset, info.position, info.size_bytes
            )?;
        }
        if !self.options.deep && !self.options.print_data {
            return Ok(());
        }
        let header = info.header;
        for part in any_batches(bytes) {
            let records = part.and_then(|part| part.records()).map_err(io::Error::other)?;
            for record in records {
                let record = record.map_err(io::Error::other)?;
                if record.offset != *last_offset + 1 {
                    gaps.push(format!("{last_offset} is followed by {}", record.offset));
                }
                *last_offset = record.offset;
                self.record(header.as_ref(), &record)?;
            }
        }
        Ok(())
    }

    fn record(&mut self, header: Option<&BatchHeader>, record: &Record) -> io::Result<()> {
        let is_control = header.is_some_and(BatchHeader::is_control);
        let mut line = String::from("|");
        if !self.options.skip_record_metadata {
            line += &format!(
                " offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [{}]",
                record.offset,
                header.map_or("CreateTime", time_kind),
                record.timestamp,
                size_of(record.key.as_deref()),
                size_of(record.value.as_deref()),
                header.map_or(-1, |header| sequence_of(header, record.offset)),
                record.headers.iter().map(|h| String::from_utf8_lossy(&h.key)).collect::<Vec<_>>().join(",")
            );
        }
        if is_control {
            if self.options.skip_record_metadata {
                return Ok(());
            }
            line += &control(record);
        } else if self.options.print_data {
            for (name, field) in [("key", &record.key), ("payload", &record.value)] {
                if let Some(field) = field {
                    line += &format!(" {name}: {}", String::from_utf8_lossy(field));
                }
            }
        }
        writeln!(self.out, "{line}")
    }

    fn offset_index(&mut self, path: &Path) -> io::Result<()> {
        let base = base_of(path);
        let entries = entries::<8>(path)?;
        if entries.is_empty() {
            return writeln!(self.out, "{} is empty.", path.display());
        }
        if self.options.mode == DumpMode::SanityCheck {
            let size = std::fs::metadata(path)?.len();
            let last = entries.last().map_or(base, |entry| base + i64::from(word(entry, 0)));
            return if size % 8 == 0 && last > base {
                writeln!(self.out, "{} passed sanity check.", path.display())
            } else {
                writeln!(
                    self.out,
                    "{} failed its sanity check: {size} bytes, last offset {last}",
                    path.display()
                )
            };
        }
        let log = File::open(path.with_extension(names::LOG))?;
        let size = log.metadata()?.len();
        let mut wrong = Vec::new();
        for entry in entries {
            let (offset, position) = (base + i64::from(word(&entry, 0)), word(&entry, 4));
            // Room that was not cut off when the segment was left by a crash.
            if offset == base && position == 0 {
                break;
            }
            if self.options.mode == DumpMode::Print {
                writeln!(self.out, "offset: {offset} position: {position}")?;
            }
            let found = Scanner::new(&log, position.into(), size, LOOKUP_CHUNK).next();
            match found {
                Ok(Some(batch)) if batch.last_offset == offset => {}
                Ok(Some(batch)) => {
                    wrong.push(format!("Index offset: {offset}, log offset: {}", batch.last_offset));
                }
                _ => wrong.push(format!("Index offset: {offset}, no batch at position {position}")),
            }
        }
        self.note("Mismatches in :", path, wrong);
        Ok(())
    }

    fn time_index(&mut self, path: &Path) -> io::Result<()> {
        let base = base_of(path);
        let entries = entries::<12>(path)?;
        if self.options.mode == DumpMode::SanityCheck {
            let timestamp = |entry: &[u8; 12]| (i64::from(word(entry, 0)) << 32) | i64::from(word(entry, 4));
            let rising = match (entries.first(), entries.last()) {
                (Some(first), Some(last)) => {
                    timestamp(last) >= timestamp(first) && word(last, 8) >= word(first, 8)
                }
                _ => true,
            };
            return if rising && std::fs::metadata(path)?.len() % 12 == 0 {
                writeln!(self.out, "{} passed sanity check.", path.display())
            } else {
                writeln!(self.out, "{} failed its sanity check", path.display())
            };
        }
        let (mut unordered, mut before) = (Vec::new(), -1);
        for entry in entries {
            let timestamp = (i64::from(word(&entry, 0)) << 32) | i64::from(word(&entry, 4));
            let offset = base + i64::from(word(&entry, 8));
            if timestamp == 0 && offset == base {
                break;
            }
            if self.options.mode == DumpMode::Print {
                writeln!(self.out, "timestamp: {timestamp} offset: {offset}")?;
            }
            if timestamp < before {
                unordered
                    .push(format!("Index timestamp: {timestamp}, Previously indexed timestamp: {before}"));
            }
            before = timestamp;
        }
        self.note("Found out of order timestamp in :", path, unordered);
        Ok(())
    }

    fn txn_index(&mut self, path: &Path) -> io::Result<()> {
        for bytes in std::fs::read(path)?.chunks(AbortedTxn::SIZE_BYTES) {
            let Some(txn) = AbortedTxn::parse(bytes) else {
                return writeln!(self.out, "{} is corrupt", path.display());
            };
            writeln!(
                self.out,
                "version: 0 producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
                txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset
            )?;
        }
        Ok(())
    }

    fn snapshot(&mut self, path: &Path) -> io::Result<()> {
        match producer::read_snapshot(path) {
            Ok(entries) => entries.iter().try_for_each(|entry| snapshot_line(&mut self.out, entry)),
            Err(error) => writeln!(self.out, "{error}"),
        }
    }
}

fn batch_line(out: &mut impl Write, header: &BatchHeader, position: u64, valid: bool) -> io::Result<()> {
    writeln!(
        out,
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {} position: {position} {}: {} \
         size: {} magic: {} compresscodec: {} crc: {} isvalid: {valid}",
        header.base_offset,
        header.last_offset(),
        header.record_count,
        header.base_sequence,
        header.last_sequence(),
        header.producer_id,
        header.producer_epoch,
        header.partition_leader_epoch,
        header.is_transactional(),
        header.is_control(),
        optional(header.delete_horizon_ms()),
        time_kind(header),
        header.max_timestamp,
        header.size_bytes(),
        header.magic,
        header.compression().map_or("unknown", codec_name),
        header.crc,
    )
}

fn snapshot_line(out: &mut impl Write, entry: &ProducerEntry) -> io::Result<()> {
    write!(
        out,
        "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {} lastTimestamp: {} ",
        entry.producer_id,
        entry.epoch,
        entry.coordinator_epoch,
        optional(entry.txn_first_offset),
        entry.last_timestamp_ms
    )?;
    match entry.last_batch() {
        Some(batch) => writeln!(
            out,
            "firstSequence: {} lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}",
            batch.first_sequence(),
            batch.last_sequence,
            batch.last_offset,
            batch.offset_delta,
            batch.timestamp_ms
        ),
        None => writeln!(out),
    }
}

fn control(record: &Record) -> String {
    let key = record.key.as_deref().unwrap_or_default();
    match ControlType::from_key(key) {
        Ok(Some(kind @ (ControlType::Abort | ControlType::Commit))) => {
            let name = if kind == ControlType::Commit { "COMMIT" } else { "ABORT" };
            match EndTransactionMarker::read(record) {
                Ok(Some(marker)) => {
                    format!(" endTxnMarker: {name} coordinatorEpoch: {}", marker.coordinator_epoch)
                }
                _ => format!(" endTxnMarker: {name}"),
            }
        }
        Ok(Some(ControlType::LeaderChange)) => " LeaderChange".to_owned(),
        Ok(Some(ControlType::SnapshotHeader)) => " SnapshotHeader".to_owned(),
        Ok(Some(ControlType::SnapshotFooter)) => " SnapshotFooter".to_owned(),
        Ok(Some(ControlType::KRaftVersion)) => " KRaftVersion".to_owned(),
        Ok(Some(ControlType::KRaftVoters)) => " KRaftVoters".to_owned(),
        Ok(None) | Err(_) => " controlType: UNKNOWN".to_owned(),
    }
}

fn optional(value: Option<i64>) -> String {
    value.map_or_else(|| "OptionalLong.empty".to_owned(), |value| format!("OptionalLong[{value}]"))
}

fn time_kind(header: &BatchHeader) -> &'static str {
    match header.timestamp_type() {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

fn codec_name(codec: Compression) -> &'static str {
    match codec {
        Compression::None => "none",
        Compression::Gzip => "gzip",
        Compression::Snappy => "snappy",
        Compression::Lz4 => "lz4",
        Compression::Zstd => "zstd",
    }
}

fn sequence_of(header: &BatchHeader, offset: i64) -> i32 {
    if header.base_sequence < 0 {
        return -1;
    }
    add_sequence(header.base_sequence, i32::try_from(offset - header.base_offset).unwrap_or(0))
}

fn size_of(field: Option<&[u8]>) -> i64 {
    field.map_or(-1, |field| field.len() as i64)
}

pub(super) fn base_of(path: &Path) -> i64 {
    path.file_stem().and_then(|stem| stem.to_str()?.parse().ok()).unwrap_or(0)
}

pub(super) fn entries<const N: usize>(path: &Path) -> io::Result<Vec<[u8; N]>> {
    let bytes = std::fs::read(path)?;
    Ok(bytes.chunks_exact(N).filter_map(|entry| entry.try_into().ok()).collect())
}

pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_be_bytes)
}
