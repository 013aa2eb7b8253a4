//! Snapshot files: `<end offset>-<epoch>.checkpoint`, as Kafka writes them.
//!
//! A snapshot is a row of batches: one of control records (header, and with dynamic voters their version and set),
//! those of the records, and one with the footer. Offsets count from 0 within the file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use callboard_metadata::VersionedRecord;
use callboard_protocol::messages::{SnapshotFooterRecord, SnapshotHeaderRecord};
use callboard_protocol::records::control::KRaftRecord;
use callboard_protocol::records::{BatchBuilder, batches};
use callboard_raft::{ControlRecord, SnapshotId};

use super::control_records::{self, QuorumRecords};
use super::messages::Snapshot;
use super::{LogError, MAX_BATCH_BYTES, batches as metadata_batches};

const ENDING: &str = ".checkpoint";
/// Of a file not finished yet, as Kafka names it.
const PART: &str = ".part";
/// Nobody writes a snapshot again.
const READ_ONLY: u32 = 0o444;

/// The file of a snapshot.
pub fn path(dir: &Path, id: SnapshotId) -> PathBuf {
    dir.join(format!("{:020}-{:010}{ENDING}", id.end_offset, id.epoch))
}

/// The snapshots in a directory, oldest first. Unfinished ones are removed.
pub fn list(dir: &Path) -> Result<Vec<SnapshotId>, LogError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.ends_with(PART) {
            std::fs::remove_file(dir.join(name))?;
        } else if let Some(id) = parse_name(name) {
            found.push(id);
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn parse_name(name: &str) -> Option<SnapshotId> {
    let (offset, epoch) = name.strip_suffix(ENDING)?.split_once('-')?;
    (offset.len() == 20 && epoch.len() == 10)
        .then(|| Some(SnapshotId { end_offset: offset.parse().ok()?, epoch: epoch.parse().ok()? }))?
}

/// Reads a snapshot file: its records, and what it says of the quorum.
pub fn read(dir: &Path, id: SnapshotId) -> Result<(Snapshot, QuorumRecords), LogError> {
    read_file(&path(dir, id), id)
}

/// Reads a file of a snapshot's format, such as `bootstrap.checkpoint`. A footer must end it.
pub fn read_file(path: &Path, id: SnapshotId) -> Result<(Snapshot, QuorumRecords), LogError> {
    let bytes = Bytes::from(std::fs::read(path)?);
    let mut quorum = QuorumRecords::default();
    let mut records = Vec::new();
    let (mut last_contained_log_timestamp_ms, mut ended) = (-1, false);
    for batch in batches(bytes) {
        let batch = batch?;
        if !batch.header.is_control() {
            records.extend(metadata_batches::versioned_records(&batch)?);
            continue;
        }
        batch.verify_crc()?;
        quorum.note(&batch)?;
        for record in batch.records()? {
            match KRaftRecord::read(&record?)? {
                Some(KRaftRecord::SnapshotHeader(header)) => {
                    last_contained_log_timestamp_ms = header.last_contained_log_timestamp;
                }
                Some(KRaftRecord::SnapshotFooter(_)) => ended = true,
                _ => {}
            }
        }
    }
    if !ended {
        return Err(LogError::Damaged(format!("{} has no end", path.display())));
    }
    Ok((Snapshot { id, last_contained_log_timestamp_ms, records }, quorum))
}

/// Writes a snapshot so that it is there whole and durable, or not at all.
pub fn write(dir: &Path, snapshot: &Snapshot, quorum: &QuorumRecords, now_ms: i64) -> Result<(), LogError> {
    let to = path(dir, snapshot.id);
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(PART);
    let part = to.with_file_name(name);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(&part)?;
    for batch in encode(snapshot, quorum, now_ms)? {
        file.write_all(&batch)?;
    }
    file.set_permissions(std::fs::Permissions::from_mode(READ_ONLY))?;
    file.sync_all()?;
    drop(file);
    std::fs::rename(&part, &to)?;
    Ok(File::open(dir)?.sync_all()?)
}

/// The batches of a snapshot.
fn encode(snapshot: &Snapshot, quorum: &QuorumRecords, now_ms: i64) -> Result<Vec<Bytes>, LogError> {
    let epoch = snapshot.id.epoch;
    let mut out = Vec::new();
    let mut head = BatchBuilder::new(0).partition_leader_epoch(epoch).control(true);
    let header = KRaftRecord::SnapshotHeader(SnapshotHeaderRecord {
        last_contained_log_timestamp: snapshot.last_contained_log_timestamp_ms,
        ..Default::default()
    });
    header.append_to(&mut head, now_ms)?;
    let version = quorum.kraft_version.filter(|version| *version > 0).map(ControlRecord::KRaftVersion);
    let voters = quorum.voters.clone().filter(|_| version.is_some()).map(ControlRecord::Voters);
    for record in version.iter().chain(&voters) {
        control_records::to_wire(record).append_to(&mut head, now_ms)?;
    }
    let mut offset = i64::try_from(head.len()).unwrap_or(i64::MAX);
    out.push(head.build()?);
    let mut batch = BatchBuilder::new(offset).partition_leader_epoch(epoch);
    for VersionedRecord { record, version } in &snapshot.records {
        let value = record.encode_frame(*version)?;
        if !batch.is_empty() && batch.size_bytes() + value.len() > MAX_BATCH_BYTES {
            let full = BatchBuilder::new(offset).partition_leader_epoch(epoch);
            out.push(std::mem::replace(&mut batch, full).build()?);
        }
        batch.append(now_ms, None, Some(&value), &[]);
        offset += 1;
    }
    if !batch.is_empty() {
        out.push(batch.build()?);
    }
    let mut foot = BatchBuilder::new(offset).partition_leader_epoch(epoch).control(true);
    KRaftRecord::SnapshotFooter(SnapshotFooterRecord::default()).append_to(&mut foot, now_ms)?;
    out.push(foot.build()?);
    Ok(out)
}

/// Removes a snapshot's file; one already gone is fine.
pub fn remove(dir: &Path, id: SnapshotId) -> Result<(), LogError> {
    match std::fs::remove_file(path(dir, id)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kafkas() {
        let id = SnapshotId { end_offset: 34, epoch: 1 };
        let file = path(Path::new("d"), id);
        assert_eq!(file, Path::new("d/00000000000000000034-0000000001.checkpoint"));
        assert_eq!(parse_name("00000000000000000034-0000000001.checkpoint"), Some(id));
        assert_eq!(parse_name("34-1.checkpoint"), None);
        assert_eq!(parse_name("bootstrap.checkpoint"), None);
    }
}
