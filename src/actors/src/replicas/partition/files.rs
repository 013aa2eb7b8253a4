//! A partition's directory: opening it, and what it is renamed to.

use std::path::{Path, PathBuf};

use callboard_storage::{
    DirKind, Durability, Log, LogConfig, OpenOptions, PartitionMetadata, RecoveryReport, StorageError,
    TopicPartition, partition_dir_name,
};

use crate::replicas::view::PartitionId;

/// Where a partition's log is, and what is known of it.
#[derive(Debug, Clone)]
pub struct OpenPlan {
    /// Its directory.
    pub path: PathBuf,
    /// The offset up to which it is on the device, by the checkpoint.
    pub recovery_point: i64,
    /// Its first offset, by the checkpoint.
    pub log_start_offset: i64,
    /// Whether its log directory was closed in order.
    pub clean_shutdown: bool,
}

/// An open log.
pub struct Opened {
    pub log: Log,
    pub report: RecoveryReport,
}

/// Opens a partition's log, or makes it. It blocks.
pub fn open(
    id: &PartitionId,
    plan: &OpenPlan,
    config: LogConfig,
    now_ms: i64,
) -> Result<Opened, StorageError> {
    let metadata = PartitionMetadata::read(&plan.path)?;
    if let Some(other) = metadata.filter(|metadata| metadata.topic_id != id.topic_id) {
        let reason = format!("it is of topic {}, not {}", other.topic_id, id.topic_id);
        return Err(StorageError::Corrupt { path: plan.path.join(PartitionMetadata::FILE), reason });
    }
    let options = OpenOptions {
        config,
        recovery_point: plan.recovery_point,
        log_start_offset: plan.log_start_offset,
        clean_shutdown: plan.clean_shutdown,
        now_ms,
    };
    let (log, report) = Log::open(&plan.path, options)?;
    match metadata {
        Some(_) => {}
        None => PartitionMetadata { topic_id: id.topic_id }.write(&plan.path, Durability::Cached)?,
    }
    Ok(Opened { log, report })
}

/// What a partition's directory is renamed to before it is removed.
pub fn deleted_dir(id: &PartitionId, path: &Path, random_high: u64, random_low: u64) -> PathBuf {
    let unique = (u128::from(random_high) << 64 | u128::from(random_low)).to_be_bytes();
    let partition = TopicPartition::new(id.topic.to_string(), id.partition);
    path.with_file_name(partition_dir_name(&partition, DirKind::Delete, unique))
}

/// Renames a directory, if there is one.
pub fn rename_if_there(from: &Path, to: &Path) -> Result<(), StorageError> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StorageError::Io { action: "rename", path: from.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}
