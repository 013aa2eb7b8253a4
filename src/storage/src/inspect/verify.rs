//! Checking the files of a log, or of a whole log directory, without changing anything.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use callboard_protocol::records::RecordBatch;

use super::dump::{base_of, entries, word};
use crate::checkpoint;
use crate::directory::{MetaProperties, PartitionMetadata};
use crate::epoch_cache::EpochCache;
use crate::error::{IoContext, StorageError};
use crate::index::AbortedTxn;
use crate::names::{self, DirKind, TopicPartition};
use crate::producer;
use crate::scan::{FULL_CHUNK, ScanError, Scanner};

/// Something wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: String,
}

/// What a check has gone through, and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Partitions' directories.
    pub partitions: usize,
    /// Segments.
    pub segments: usize,
    /// Batches, each with its checksum.
    pub batches: u64,
    /// Records, each decoded.
    pub records: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl VerifyReport {
    fn found(&mut self, path: &Path, what: impl Into<String>) {
        self.findings.push(Finding { path: path.to_owned(), what: what.into() });
    }

    /// Notes damage; any other failure ends the check.
    fn damage<T>(&mut self, outcome: Result<T, StorageError>) -> Result<Option<T>, StorageError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(StorageError::Corrupt { path, reason }) => {
                self.found(&path, reason);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Checks a partition's directory, or a log directory with all partitions in it: batches with checksums and offsets,
/// every record, indexes against batches, producers' snapshots, leader epochs, checkpoints.
///
/// # Errors
/// A file can't be read; damage is no error but a [`Finding`].
pub fn verify_dir(dir: &Path) -> Result<VerifyReport, StorageError> {
    let mut report = VerifyReport::default();
    let names = list(dir)?;
    if names.iter().any(|name| names::offset_of(name, names::LOG).is_some()) {
        verify_partition(dir, &names, &mut report)?;
        return Ok(report);
    }
    let read = MetaProperties::read(dir);
    if report.damage(read)?.flatten().is_none() {
        report.found(&dir.join(MetaProperties::FILE), "missing: no formatted log directory");
    }
    let mut ends = BTreeMap::new();
    for name in &names {
        let path = dir.join(name);
        let Ok((partition, kind)) = names::parse_partition_dir(name) else { continue };
        if kind == DirKind::Delete || !path.is_dir() {
            continue;
        }
        let files = list(&path)?;
        if kind == DirKind::Current && !files.iter().any(|file| file == PartitionMetadata::FILE) {
            report.found(&path.join(PartitionMetadata::FILE), "missing");
        }
        let end = verify_partition(&path, &files, &mut report)?;
        if kind == DirKind::Current {
            ends.insert(partition, end);
        }
    }
    let files = [
        checkpoint::RECOVERY_POINTS,
        checkpoint::LOG_START_OFFSETS,
        checkpoint::HIGH_WATERMARKS,
        checkpoint::CLEANED_OFFSETS,
    ];
    for name in files {
        verify_checkpoint(&dir.join(name), &ends, &mut report)?;
    }
    Ok(report)
}

fn list(dir: &Path) -> Result<Vec<String>, StorageError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).at("list", dir)? {
        names.extend(entry.at("list", dir)?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

fn verify_checkpoint(
    path: &Path,
    ends: &BTreeMap<TopicPartition, i64>,
    report: &mut VerifyReport,
) -> Result<(), StorageError> {
    let Some(offsets) = report.damage(checkpoint::read_offsets(path))? else { return Ok(()) };
    for (partition, offset) in offsets {
        if let Some(end) = ends.get(&partition).filter(|end| offset > **end) {
            report.found(path, format!("{partition} is at {offset}, its log ends at {end}"));
        }
    }
    Ok(())
}

/// Checks one partition's files; gives the log's end.
fn verify_partition(dir: &Path, files: &[String], report: &mut VerifyReport) -> Result<i64, StorageError> {
    report.partitions += 1;
    report.damage(PartitionMetadata::read(dir))?;
    let epochs = report.damage(EpochCache::read(dir))?.unwrap_or_default();
    let bases: Vec<i64> = files.iter().filter_map(|name| names::offset_of(name, names::LOG)).collect();
    let mut end = bases.first().copied().unwrap_or(0);
    for base in &bases {
        let path = dir.join(names::segment_file(*base, names::LOG));
        if *base < end {
            report.found(&path, format!("begins at {base}, the segment before ends at {end}"));
        }
        end = end.max(verify_segment(&path, &epochs, report)?);
    }
    for (offset, path) in producer::list_snapshots(dir)? {
        report.damage(producer::read_snapshot(&path))?;
        if offset > end {
            report.found(&path, format!("lies beyond the log's end {end}"));
        }
    }
    for ending in [names::OFFSET_INDEX, names::TIME_INDEX, names::TXN_INDEX] {
        let strays =
            files.iter().filter(|name| names::offset_of(name, ending).is_some_and(|b| !bases.contains(&b)));
        strays.for_each(|name| report.found(&dir.join(name), "belongs to no segment"));
    }
    Ok(end)
}

/// A batch as the indexes know it.
struct Seen {
    position: u64,
    last_offset: i64,
    /// The largest timestamp up to here, this batch's included.
    newest_ms: i64,
}

/// Checks a segment and its indexes; gives the offset after its last batch.
fn verify_segment(path: &Path, epochs: &EpochCache, report: &mut VerifyReport) -> Result<i64, StorageError> {
    report.segments += 1;
    let base = base_of(path);
    let file = File::open(path).at("open", path)?;
    let size = file.metadata().at("stat", path)?.len();
    let mut scanner = Scanner::new(&file, 0, size, FULL_CHUNK);
    let (mut next, mut newest_ms, mut seen) = (base, -1, Vec::new());
    loop {
        let info = match scanner.next() {
            Ok(Some(info)) => info,
            Ok(None) => break,
            Err(ScanError::Io(error)) => return Err(error).at("read", path),
            Err(ScanError::Invalid { position, reason }) => {
                let rest = size - position;
                report.found(path, format!("at byte {position}: {reason}; {rest} bytes are not readable"));
                break;
            }
        };
        let position = info.position;
        if info.base_offset < next {
            report
                .found(path, format!("at byte {position}: offset {} where {next} is due", info.base_offset));
        }
        next = next.max(info.last_offset + 1);
        newest_ms = newest_ms.max(info.max_timestamp_ms);
        seen.push(Seen { position, last_offset: info.last_offset, newest_ms });
        report.batches += 1;
        let Some(header) = info.header else { continue };
        let bytes = match scanner.batch(&info) {
            Ok(bytes) => bytes,
            Err(ScanError::Io(error)) => return Err(error).at("read", path),
            Err(ScanError::Invalid { reason, .. }) => {
                report.found(path, reason);
                break;
            }
        };
        match records_of(bytes) {
            Ok(count) => report.records += count,
            Err(reason) => report.found(path, format!("at byte {position}: {reason}")),
        }
        let (epoch, known) = (header.partition_leader_epoch, epochs.epoch_of(header.base_offset));
        if epoch >= 0 && known.is_some_and(|known| known != epoch) {
            let known = known.unwrap_or(-1);
            report.found(
                path,
                format!("at byte {position}: leader epoch {epoch}, the checkpoint says {known}"),
            );
        }
    }
    verify_offset_index(&path.with_extension(names::OFFSET_INDEX), &seen, report)?;
    verify_time_index(&path.with_extension(names::TIME_INDEX), &seen, report)?;
    verify_txn_index(&path.with_extension(names::TXN_INDEX), base, next, report)?;
    Ok(next)
}

/// Checks a batch and all its records; gives their number.
fn records_of(bytes: bytes::Bytes) -> Result<u64, String> {
    let batch = RecordBatch::parse(bytes).map_err(|error| error.to_string())?;
    batch.verify_crc().map_err(|error| error.to_string())?;
    let (first, last) = (batch.header.base_offset, batch.header.last_offset());
    let (mut count, mut due) = (0, first);
    for record in batch.records().map_err(|error| error.to_string())? {
        let record = record.map_err(|error| format!("record {count}: {error}"))?;
        if record.offset < due || record.offset > last {
            return Err(format!(
                "record {count} has offset {}, between {due} and {last} is due",
                record.offset
            ));
        }
        (count, due) = (count + 1, record.offset + 1);
    }
    Ok(count)
}

/// The entries of an index file without the room that is not used yet; `None` if there is no file.
fn index_entries<const N: usize>(
    path: &Path,
    report: &mut VerifyReport,
) -> Result<Option<Vec<[u8; N]>>, StorageError> {
    if !path.exists() {
        report.found(path, "missing");
        return Ok(None);
    }
    let size = std::fs::metadata(path).at("stat", path)?.len();
    if size % N as u64 != 0 {
        report.found(path, format!("{size} bytes are no whole number of entries"));
    }
    let mut found = entries::<N>(path).at("read", path)?;
    while found.last().is_some_and(|entry| entry.iter().all(|byte| *byte == 0)) {
        found.pop();
    }
    Ok(Some(found))
}

fn verify_offset_index(path: &Path, seen: &[Seen], report: &mut VerifyReport) -> Result<(), StorageError> {
    let base = base_of(path);
    let Some(found) = index_entries::<8>(path, report)? else { return Ok(()) };
    let mut before = (-1, -1);
    for entry in found {
        let (offset, position) = (base + i64::from(word(&entry, 0)), i64::from(word(&entry, 4)));
        if (offset, position) <= before || position <= before.1 {
            report.found(path, format!("offset {offset} at position {position} is out of order"));
        }
        before = (offset, position);
        let at = seen.binary_search_by_key(&position, |batch| batch.position as i64);
        let holds = at.ok().and_then(|at| seen.get(at)).is_some_and(|batch| batch.last_offset == offset);
        if !holds {
            report.found(path, format!("no batch at position {position} ends at offset {offset}"));
        }
    }
    Ok(())
}

fn verify_time_index(path: &Path, seen: &[Seen], report: &mut VerifyReport) -> Result<(), StorageError> {
    let base = base_of(path);
    let Some(found) = index_entries::<12>(path, report)? else { return Ok(()) };
    let mut before = (-1, -1);
    for entry in found {
        let timestamp = (i64::from(word(&entry, 0)) << 32) | i64::from(word(&entry, 4));
        let offset = base + i64::from(word(&entry, 8));
        if timestamp <= before.0 || offset < before.1 {
            report.found(path, format!("timestamp {timestamp} at offset {offset} is out of order"));
        }
        before = (timestamp, offset);
        let at = seen.partition_point(|batch| batch.last_offset < offset);
        match seen.get(at) {
            Some(batch) if batch.newest_ms == timestamp => {}
            Some(batch) => {
                let newest = batch.newest_ms;
                report.found(path, format!("up to offset {offset} the newest is {newest}, not {timestamp}"));
            }
            None => report.found(path, format!("offset {offset} lies beyond the segment")),
        }
    }
    Ok(())
}

fn verify_txn_index(path: &Path, base: i64, end: i64, report: &mut VerifyReport) -> Result<(), StorageError> {
    let bytes = match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        read => read.at("read", path)?,
    };
    let mut before = -1;
    for entry in bytes.chunks(AbortedTxn::SIZE_BYTES) {
        let Some(txn) = AbortedTxn::parse(entry) else {
            report.found(path, "no row of aborted transactions");
            break;
        };
        if txn.last_offset <= before || !(base..end).contains(&txn.last_offset) {
            report.found(
                path,
                format!("a marker at offset {}, outside of {base}..{end} or out of order", txn.last_offset),
            );
        }
        before = txn.last_offset;
    }
    Ok(())
}
