//! Writing what stays into new files: `.cleaned`, beside the segments that they will replace.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::BytesMut;

use crate::config::LogConfig;
use crate::error::{IoContext, StorageError};
use crate::fs::{self, Dir};
use crate::index::{AbortedTxn, TimeEntry};
use crate::names;
use crate::scan::BatchInfo;

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// A segment of what compaction keeps, complete and on the device, not yet part of the log.
#[derive(Debug)]
pub(crate) struct CleanedFiles {
    pub(crate) base_offset: i64,
    pub(crate) file: Arc<File>,
    pub(crate) size_bytes: u64,
    pub(crate) index_bytes: u64,
    pub(crate) time_index_bytes: u64,
    pub(crate) max_timestamp: TimeEntry,
}

/// Writes one such segment. The indexes are small, so they are kept in memory until the end.
#[derive(Debug)]
pub(crate) struct CleanedWriter {
    dir: Dir,
    base_offset: i64,
    interval_bytes: u64,
    file: File,
    written: u64,
    pending: BytesMut,
    bytes_since_index: u64,
    offsets: Vec<u8>,
    times: Vec<u8>,
    last_time: TimeEntry,
    max_timestamp: TimeEntry,
}

impl CleanedWriter {
    pub(crate) fn create(
        dir: &Dir,
        base_offset: i64,
        config: &LogConfig,
    ) -> Result<CleanedWriter, StorageError> {
        let path = cleaned_path(dir, base_offset, names::LOG);
        let none = TimeEntry { timestamp_ms: -1, offset: base_offset };
        Ok(CleanedWriter {
            dir: dir.clone(),
            base_offset,
            interval_bytes: config.index_interval_bytes,
            file: File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(true)
                .open(&path)
                .at("create", &path)?,
            written: 0,
            pending: BytesMut::new(),
            bytes_since_index: 0,
            offsets: Vec::new(),
            times: Vec::new(),
            last_time: none,
            max_timestamp: none,
        })
    }

    /// Bytes so far.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Adds a batch as it is to be stored. `info` says what is in it; its position is set here.
    pub(crate) fn add(&mut self, info: &BatchInfo, bytes: &[u8]) -> Result<(), StorageError> {
        let position = self.size_bytes();
        if info.max_timestamp_ms > self.max_timestamp.timestamp_ms {
            self.max_timestamp = TimeEntry { timestamp_ms: info.max_timestamp_ms, offset: info.last_offset };
        }
        if self.bytes_since_index > self.interval_bytes {
            let relative = u32::try_from(info.last_offset - self.base_offset).unwrap_or(u32::MAX);
            self.offsets.extend(relative.to_be_bytes());
            self.offsets.extend(u32::try_from(position).unwrap_or(u32::MAX).to_be_bytes());
            self.index_time();
            self.bytes_since_index = 0;
        }
        self.bytes_since_index += bytes.len() as u64;
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= WRITE_BYTES {
            self.write_pending()?;
        }
        Ok(())
    }

    fn index_time(&mut self) {
        if self.max_timestamp.timestamp_ms > self.last_time.timestamp_ms {
            self.last_time = self.max_timestamp;
            let relative = u32::try_from(self.last_time.offset - self.base_offset).unwrap_or(u32::MAX);
            self.times.extend(self.last_time.timestamp_ms.to_be_bytes());
            self.times.extend(relative.to_be_bytes());
        }
    }

    fn write_pending(&mut self) -> Result<(), StorageError> {
        use std::os::unix::fs::FileExt;
        let path = cleaned_path(&self.dir, self.base_offset, names::LOG);
        self.file.write_all_at(&self.pending, self.written).at("write", &path)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Writes the indexes and waits until the device has all. The file gets the time of the last segment it stands
    /// for, by which records without timestamps are judged.
    pub(crate) fn finish(
        mut self,
        aborted: &[AbortedTxn],
        modified: Option<std::time::SystemTime>,
    ) -> Result<CleanedFiles, StorageError> {
        self.write_pending()?;
        self.index_time();
        let path = cleaned_path(&self.dir, self.base_offset, names::LOG);
        if let Some(modified) = modified {
            self.file.set_modified(modified).at("set the time of", &path)?;
        }
        self.file.sync_all().at("sync", &path)?;
        // A transaction index even if it is empty: recovery then knows that it has the new one.
        let txns: Vec<u8> = aborted.iter().flat_map(|txn| txn.to_bytes()).collect();
        let others = [
            (names::OFFSET_INDEX, &self.offsets),
            (names::TIME_INDEX, &self.times),
            (names::TXN_INDEX, &txns),
        ];
        for (ending, content) in others {
            let path = cleaned_path(&self.dir, self.base_offset, ending);
            std::fs::write(&path, content).at("write", &path)?;
            File::open(&path).and_then(|file| file.sync_all()).at("sync", &path)?;
        }
        fs::sync_dir(&self.dir.path())?;
        Ok(CleanedFiles {
            base_offset: self.base_offset,
            file: Arc::new(self.file),
            size_bytes: self.written,
            index_bytes: self.offsets.len() as u64,
            time_index_bytes: self.times.len() as u64,
            max_timestamp: self.max_timestamp,
        })
    }
}

/// Removes the files of a segment that will not be used.
pub(crate) fn discard(dir: &Dir, base_offset: i64) -> Result<(), StorageError> {
    super::swap::ENDINGS
        .iter()
        .try_for_each(|ending| fs::remove_if_exists(&cleaned_path(dir, base_offset, ending)))
}

pub(crate) fn cleaned_path(dir: &Dir, base_offset: i64, ending: &str) -> PathBuf {
    dir.join(&(names::segment_file(base_offset, ending) + names::CLEANED))
}
