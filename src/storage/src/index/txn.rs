//! `.txnindex`: the aborted transactions that end in a segment. There only if there are any.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::error::{IoContext, StorageError};
use crate::fs::{self, Dir};
use crate::names;

/// An aborted transaction of one producer. Read-committed readers skip its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbortedTxn {
    /// The producer.
    pub producer_id: i64,
    /// Offset of the transaction's first record.
    pub first_offset: i64,
    /// Offset of its abort marker.
    pub last_offset: i64,
    /// The last stable offset once the marker was written.
    pub last_stable_offset: i64,
}

const ENTRY_SIZE: usize = 34;

impl AbortedTxn {
    pub(crate) fn to_bytes(self) -> [u8; ENTRY_SIZE] {
        let mut bytes = [0; ENTRY_SIZE];
        let fields = [self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset];
        // Two bytes of version 0 come first.
        for (slot, field) in bytes[2..].chunks_exact_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    /// Size of an entry in the file.
    pub(crate) const SIZE_BYTES: usize = ENTRY_SIZE;

    pub(crate) fn parse(bytes: &[u8]) -> Option<AbortedTxn> {
        let (version, rest) = bytes.split_first_chunk::<2>()?;
        let mut fields = rest.chunks_exact(8).map(|field| field.try_into().map_or(0, i64::from_be_bytes));
        let txn = AbortedTxn {
            producer_id: fields.next()?,
            first_offset: fields.next()?,
            last_offset: fields.next()?,
            last_stable_offset: fields.next()?,
        };
        (*version == [0, 0] && txn.first_offset <= txn.last_offset).then_some(txn)
    }
}

/// The aborted transactions of one segment, by the offsets of their markers.
#[derive(Debug)]
pub(crate) struct TxnIndex {
    dir: Dir,
    name: String,
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    entries: Vec<AbortedTxn>,
    file: Option<File>,
}

impl TxnIndex {
    pub(crate) fn new(dir: &Dir, base_offset: i64) -> TxnIndex {
        let name = names::segment_file(base_offset, names::TXN_INDEX);
        TxnIndex { dir: dir.clone(), name, state: Mutex::new(None) }
    }

    /// The index of a segment that has just been made: nothing on disk to look at.
    pub(crate) fn empty(dir: &Dir, base_offset: i64) -> TxnIndex {
        let index = TxnIndex::new(dir, base_offset);
        *index.state.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(State { entries: Vec::new(), file: None });
        index
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> Result<T, StorageError>) -> Result<T, StorageError> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = match guard.take() {
            Some(state) => state,
            None => State { entries: self.load()?, file: None },
        };
        act(guard.insert(state))
    }

    /// Reads the file now, so that a later file of the same name is not taken for it.
    pub(crate) fn pin(&self) -> Result<(), StorageError> {
        self.with(|_| Ok(()))
    }

    /// Reads the file; fails if it is no whole, ordered row of entries.
    pub(crate) fn load(&self) -> Result<Vec<AbortedTxn>, StorageError> {
        let path = self.path();
        let bytes = match std::fs::read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            result => result.at("read", &path)?,
        };
        let entries: Option<Vec<_>> = bytes.chunks(ENTRY_SIZE).map(AbortedTxn::parse).collect();
        let rising = |entries: &Vec<AbortedTxn>| entries.is_sorted_by(|a, b| a.last_offset < b.last_offset);
        entries.filter(rising).ok_or_else(|| StorageError::corrupt(&path, "no row of aborted transactions"))
    }

    pub(crate) fn append(&self, txn: AbortedTxn) -> Result<(), StorageError> {
        let path = self.path();
        self.with(|state| {
            let file = match state.file.take() {
                Some(file) => file,
                None => fs::open_or_create(&path)?,
            };
            let position = (state.entries.len() * ENTRY_SIZE) as u64;
            file.write_all_at(&txn.to_bytes(), position).at("write", &path)?;
            state.entries.push(txn);
            state.file = Some(file);
            Ok(())
        })
    }

    /// The transactions aborted here that a reader of `from..until` must skip, and whether later segments can not
    /// have any.
    pub(crate) fn collect(
        &self,
        from: i64,
        until: i64,
        into: &mut Vec<AbortedTxn>,
    ) -> Result<bool, StorageError> {
        self.with(|state| {
            for txn in state.entries.iter().filter(|txn| txn.last_offset >= from) {
                if txn.first_offset < until {
                    into.push(*txn);
                }
                // Every transaction whose marker comes later begins at or after this one's last stable offset.
                if txn.last_stable_offset >= until {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Drops the transactions whose markers are at or after `offset`.
    pub(crate) fn truncate(&self, offset: i64) -> Result<(), StorageError> {
        let path = self.path();
        self.with(|state| {
            let before = state.entries.len();
            state.entries.retain(|txn| txn.last_offset < offset);
            if state.entries.len() == before {
                return Ok(());
            }
            let size = (state.entries.len() * ENTRY_SIZE) as u64;
            fs::open(&path)?.set_len(size).at("truncate", &path)
        })
    }

    /// Forgets all, on disk too: before a rebuild.
    pub(crate) fn reset(&self) -> Result<(), StorageError> {
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *guard = Some(State { entries: Vec::new(), file: None });
        fs::remove_if_exists(&self.path())
    }

    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        let path = self.path();
        match fs::open(&path) {
            Ok(file) => file.sync_all().at("sync", &path),
            Err(e) if e.is_not_found() => Ok(()),
            Err(e) => Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_in_kafkas_format() {
        let temp = tempfile::tempdir().unwrap();
        let dir = Dir::new(temp.path());
        let index = TxnIndex::new(&dir, 4);
        let txn = |first_offset, last_offset, last_stable_offset| AbortedTxn {
            producer_id: 0,
            first_offset,
            last_offset,
            last_stable_offset,
        };
        index.append(txn(5, 8, 9)).unwrap();
        index.append(txn(15, 18, 19)).unwrap();
        let bytes = std::fs::read(index.path()).unwrap();
        assert_eq!(bytes.len(), 68);
        assert_eq!(bytes[..18], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
        let index = TxnIndex::new(&dir, 4);
        let collect = |from, until| {
            let mut found = Vec::new();
            index.collect(from, until, &mut found).unwrap();
            found.iter().map(|t| t.first_offset).collect::<Vec<_>>()
        };
        assert_eq!(
            (collect(0, 5), collect(0, 6), collect(9, 30), collect(0, 30)),
            (vec![], vec![5], vec![15], vec![5, 15])
        );
        index.truncate(18).unwrap();
        assert_eq!(std::fs::metadata(index.path()).unwrap().len(), 34);
        std::fs::write(index.path(), [0; 33]).unwrap();
        assert!(TxnIndex::new(&dir, 4).load().is_err());
        index.reset().unwrap();
        assert!(!index.path().exists());
    }
}
