//! The log directories of a node: what is in them at start, their checkpoints, and whether they still work.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use callboard_protocol::Uuid;
use callboard_storage::checkpoint::{
    HIGH_WATERMARKS, LOG_START_OFFSETS, RECOVERY_POINTS, read_offsets, write_offsets,
};
use callboard_storage::{
    CleanShutdown, DirKind, Durability, PartitionMetadata, StorageError, TopicPartition, parse_partition_dir,
    partition_dir_name,
};

use super::view::{PartitionHandle, Status};

/// The metadata log's topic, which is not the replicas manager's.
const METADATA_TOPIC: &str = "__cluster_metadata";

/// One of `log.dirs`.
#[derive(Debug)]
pub struct LogDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// Its id, from `meta.properties`.
    pub id: Uuid,
    failed: AtomicBool,
    /// Bytes that may still be appended before the reserve is touched, as far as is known.
    room_bytes: AtomicI64,
}

impl LogDirectory {
    /// A directory that works as far as is known.
    pub const fn new(path: PathBuf, id: Uuid) -> Self {
        Self { path, id, failed: AtomicBool::new(false), room_bytes: AtomicI64::new(i64::MAX) }
    }

    /// Whether an I/O error has taken it offline.
    pub fn is_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Takes room for an append; false if there is none outside the reserve.
    pub(super) fn take_room(&self, bytes: usize) -> bool {
        if self.room_bytes.load(Ordering::Relaxed) <= 0 {
            return false;
        }
        self.room_bytes.fetch_sub(i64::try_from(bytes).unwrap_or(i64::MAX), Ordering::Relaxed);
        true
    }

    /// Looks how much room there is outside the reserve. It blocks, if shortly. Says so when that changes what
    /// producers are told.
    pub(super) fn measure_room(&self, reserve_bytes: u64) {
        // A file system that does not say is not held against anybody: a write will tell.
        let Ok(found) = rustix::fs::statvfs(&self.path) else { return };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let room = signed(free).saturating_sub(signed(reserve_bytes));
        let had_room = self.room_bytes.swap(room, Ordering::Relaxed) > 0;
        let directory = self.path.display().to_string();
        if had_room && room <= 0 {
            tracing::error!(directory, free_bytes = free, "the disk is nearly full: appends are refused");
        } else if !had_room && room > 0 {
            tracing::info!(directory, free_bytes = free, "there is room again");
        }
    }

    /// Says whether it had worked until now.
    pub(super) fn set_failed(&self) -> bool {
        !self.failed.swap(true, Ordering::SeqCst)
    }
}

/// Where a partition's directory was found, and what the checkpoints say of it.
#[derive(Debug, Clone)]
pub struct Found {
    pub directory: usize,
    pub path: PathBuf,
    pub recovery_point: i64,
    pub log_start_offset: i64,
    pub clean_shutdown: bool,
}

/// What is in the log directories at start.
#[derive(Debug, Default)]
pub struct Inventory {
    pub partitions: HashMap<(Uuid, i32), Found>,
    /// Directories whose removal was begun in an earlier life.
    pub half_deleted: Vec<PathBuf>,
    /// Directories that could not be read, with the reason.
    pub failed: Vec<(usize, String)>,
}

impl Inventory {
    /// Reads all directories, and takes their clean-shutdown markers away: from now on a crash means recovery.
    pub fn read(directories: &[LogDirectory]) -> Self {
        let mut inventory = Self::default();
        for (index, directory) in directories.iter().enumerate() {
            if let Err(error) = inventory.read_one(index, &directory.path) {
                inventory.failed.push((index, error.to_string()));
            }
        }
        inventory
    }

    fn read_one(&mut self, directory: usize, root: &Path) -> Result<(), StorageError> {
        let clean_shutdown = CleanShutdown::read(root)?.is_some();
        CleanShutdown::remove(root)?;
        let recovery_points = checkpointed(root, RECOVERY_POINTS);
        let log_starts = checkpointed(root, LOG_START_OFFSETS);
        let failed = |source| StorageError::Io { action: "list", path: root.to_owned(), source };
        for entry in std::fs::read_dir(root).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !path.is_dir() {
                continue;
            }
            match parse_partition_dir(&name) {
                Ok((_, DirKind::Delete)) => self.half_deleted.push(path),
                Ok((partition, DirKind::Current)) if partition.topic != METADATA_TOPIC => {
                    let metadata = match PartitionMetadata::read(&path) {
                        Ok(Some(metadata)) => metadata,
                        Ok(None) => {
                            let path = path.display().to_string();
                            tracing::warn!(path, "has no partition.metadata; left alone");
                            continue;
                        }
                        // If the partition is still wanted, it will find the damage itself and go offline.
                        Err(error) if !error.takes_directory() => {
                            tracing::error!("{error}; left alone");
                            continue;
                        }
                        Err(error) => return Err(error),
                    };
                    let offset =
                        |of: &BTreeMap<TopicPartition, i64>| of.get(&partition).copied().unwrap_or(0);
                    let found = Found {
                        directory,
                        path,
                        recovery_point: offset(&recovery_points),
                        log_start_offset: offset(&log_starts),
                        clean_shutdown,
                    };
                    self.partitions.insert((metadata.topic_id, partition.partition), found);
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Renames the directory of a deleted partition that had gone offline by itself, for its actor no longer can.
/// Gives the new path, to be removed.
pub fn set_offline_aside(handle: &PartitionHandle, directories: &[LogDirectory]) -> Option<PathBuf> {
    let shared = handle.shared();
    let directory = directories.get(shared.directory).filter(|directory| !directory.is_failed())?;
    if shared.view.status() != Status::Offline {
        return None;
    }
    let partition = TopicPartition::new(shared.id.topic.to_string(), shared.id.partition);
    let path = |kind, unique| directory.path.join(partition_dir_name(&partition, kind, unique));
    let from = path(DirKind::Current, [0; 16]);
    let to = path(DirKind::Delete, *shared.id.topic_id.as_bytes());
    match std::fs::rename(&from, &to) {
        Ok(()) => Some(to),
        Err(error) => {
            tracing::error!("rename {}: {error}", from.display());
            None
        }
    }
}

/// A checkpoint's offsets. A damaged one counts as absent: recovery then reads more than it must.
fn checkpointed(root: &Path, name: &str) -> BTreeMap<TopicPartition, i64> {
    read_offsets(&root.join(name)).unwrap_or_else(|error| {
        tracing::warn!("{error}; going on without it");
        BTreeMap::new()
    })
}

/// The offsets of one log directory, for its checkpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoints {
    pub recovery_points: BTreeMap<TopicPartition, i64>,
    pub log_starts: BTreeMap<TopicPartition, i64>,
    pub high_watermarks: BTreeMap<TopicPartition, i64>,
}

impl Checkpoints {
    /// Writes those files that differ from what was written last. It blocks.
    pub fn write(&self, root: &Path, last: &Self) -> Result<(), StorageError> {
        let write = |name: &str,
                     now: &BTreeMap<TopicPartition, i64>,
                     before: &BTreeMap<TopicPartition, i64>| {
            if now == before && root.join(name).exists() {
                return Ok(());
            }
            write_offsets(&root.join(name), now.iter().map(|(tp, offset)| (tp, *offset)), Durability::Synced)
        };
        write(RECOVERY_POINTS, &self.recovery_points, &last.recovery_points)?;
        write(LOG_START_OFFSETS, &self.log_starts, &last.log_starts)?;
        write(HIGH_WATERMARKS, &self.high_watermarks, &last.high_watermarks)
    }
}
