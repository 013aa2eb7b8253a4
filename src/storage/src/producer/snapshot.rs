//! `<offset>.snapshot`: the producers as they were at an offset.
//!
//! Version 1: a 16-bit version, a CRC-32C of the rest, a 32-bit count, and entries of 46 bytes.

use std::path::{Path, PathBuf};

use bytes::{Buf, BufMut};

use super::entry::{ProducerBatch, ProducerEntry};
use super::state::ProducerState;
use crate::error::{IoContext, StorageError};
use crate::fs::{self, Durability};
use crate::names;

const VERSION: i16 = 1;
const CRC_END: usize = 6;
const ENTRY_SIZE: usize = 46;

/// The snapshots in a partition's directory, oldest first.
pub(crate) fn list(dir: &Path) -> Result<Vec<(i64, PathBuf)>, StorageError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).at("list", dir)? {
        let path = entry.at("list", dir)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(offset) = names::offset_of(name, names::SNAPSHOT) {
            found.push((offset, path));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Writes the snapshot of the state at `offset`. It is not waited for: after a crash a bad one is passed over.
pub(crate) fn write(dir: &Path, offset: i64, state: &ProducerState) -> Result<(), StorageError> {
    let mut bytes = Vec::with_capacity(10 + state.entries().len() * ENTRY_SIZE);
    bytes.put_i16(VERSION);
    bytes.put_u32(0);
    bytes.put_u32(state.entries().len() as u32);
    for entry in state.entries() {
        let last = entry.last_batch();
        bytes.put_i64(entry.producer_id);
        bytes.put_i16(entry.epoch);
        bytes.put_i32(last.map_or(-1, |batch| batch.last_sequence));
        bytes.put_i64(last.map_or(-1, |batch| batch.last_offset));
        bytes.put_i32(last.map_or(0, |batch| batch.offset_delta));
        bytes.put_i64(entry.last_timestamp_ms);
        bytes.put_i32(entry.coordinator_epoch);
        bytes.put_i64(entry.txn_first_offset.unwrap_or(-1));
    }
    let crc = crc32c::crc32c(bytes.get(CRC_END..).unwrap_or_default());
    if let Some(slot) = bytes.get_mut(2..CRC_END) {
        slot.copy_from_slice(&crc.to_be_bytes());
    }
    fs::write_atomically(&dir.join(names::segment_file(offset, names::SNAPSHOT)), &bytes, Durability::Cached)
}

/// Reads a snapshot.
pub(crate) fn read(path: &Path) -> Result<Vec<ProducerEntry>, StorageError> {
    let bytes = std::fs::read(path).at("read", path)?;
    let mut rest = bytes.as_slice();
    if rest.len() < 10 || rest.get_i16() != VERSION {
        return Err(StorageError::corrupt(path, "no snapshot of version 1"));
    }
    if rest.get_u32() != crc32c::crc32c(rest) {
        return Err(StorageError::corrupt(path, "wrong checksum"));
    }
    let count = rest.get_u32() as usize;
    if count.checked_mul(ENTRY_SIZE) != Some(rest.len()) {
        return Err(StorageError::corrupt(path, "its size does not fit its count of entries"));
    }
    Ok(rest.chunks_exact(ENTRY_SIZE).map(parse).collect())
}

fn parse(mut bytes: &[u8]) -> ProducerEntry {
    let mut entry = ProducerEntry::new(bytes.get_i64());
    entry.epoch = bytes.get_i16();
    let (last_sequence, last_offset, offset_delta) = (bytes.get_i32(), bytes.get_i64(), bytes.get_i32());
    entry.last_timestamp_ms = bytes.get_i64();
    entry.coordinator_epoch = bytes.get_i32();
    entry.txn_first_offset = Some(bytes.get_i64()).filter(|offset| *offset >= 0);
    if last_offset >= 0 {
        entry.push(ProducerBatch {
            last_sequence,
            last_offset,
            offset_delta,
            timestamp_ms: entry.last_timestamp_ms,
        });
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Kafka 4.4.0 wrote for a partition with one producer amid a transaction.
    const KAFKAS: [u8; 56] = [
        0x00, 0x01, 0x19, 0x9c, 0x7a, 0x47, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0,
        0, 0, 0, 0,
    ];

    #[test]
    fn kafkas_own_snapshot_goes_round() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000000000000000001.snapshot");
        std::fs::write(&path, KAFKAS).unwrap();
        let entries = read(&path).unwrap();
        let [entry] = entries.as_slice() else { panic!("one producer") };
        assert_eq!(
            (entry.producer_id, entry.epoch, entry.last_sequence(), entry.txn_first_offset),
            (0, 0, 0, Some(0))
        );
        assert_eq!((entry.last_timestamp_ms, entry.coordinator_epoch), (1_700_000_000_000, -1));
        write(dir.path(), 1, &ProducerState::from_entries(entries.clone())).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), KAFKAS);
        assert_eq!(list(dir.path()).unwrap(), vec![(1, path)]);
    }

    #[test]
    fn damage_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000000000000000001.snapshot");
        for at in 0..KAFKAS.len() {
            let mut bytes = KAFKAS;
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            assert!(read(&path).is_err(), "byte {at}");
            std::fs::write(&path, &KAFKAS[..at]).unwrap();
            assert!(read(&path).is_err(), "{at} bytes");
        }
    }
}
