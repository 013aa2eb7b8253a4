//! Checks before a start: that the log directories belong to this node.

use std::path::PathBuf;

use callboard_metadata::config::BrokerConfig;
use callboard_storage::{MetaProperties, StorageError};

use crate::storage::format::all_directories;

/// Why a node does not start on its directories.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory of the metadata log is not formatted.
    #[error(
        "log directory {} is not formatted. Format it with: callboard storage format --config FILE \
         --cluster-id \"$(callboard storage random-uuid)\" --standalone",
        .0.display()
    )]
    NotFormatted(PathBuf),
    /// A directory is another node's.
    #[error("log directory {} belongs to node {found}, and node.id is {expected}", dir.display())]
    OtherNode {
        /// The directory.
        dir: PathBuf,
        /// Whose it is.
        found: i32,
        /// `node.id`.
        expected: i32,
    },
    /// A directory belongs to another cluster than the one of the metadata log.
    #[error("log directory {} belongs to cluster {found}, and the metadata log to cluster {expected}", dir.display())]
    OtherCluster {
        /// The directory.
        dir: PathBuf,
        /// Whose it is.
        found: String,
        /// The cluster of the metadata log.
        expected: String,
    },
    /// A file cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Whether the directory of the metadata log is formatted.
///
/// # Errors
/// Its `meta.properties` cannot be read.
pub fn is_formatted(config: &BrokerConfig) -> Result<bool, DirectoryError> {
    Ok(MetaProperties::read(&config.metadata_log_dir)?.is_some())
}

/// Checks that the directories are formatted for this node, and returns the cluster's id. Directories other than that
/// of the metadata log may be new.
///
/// # Errors
/// [`DirectoryError`].
pub fn check(config: &BrokerConfig) -> Result<String, DirectoryError> {
    let metadata = MetaProperties::read(&config.metadata_log_dir)?
        .ok_or_else(|| DirectoryError::NotFormatted(config.metadata_log_dir.clone()))?;
    for dir in all_directories(config) {
        let Some(meta) = MetaProperties::read(&dir)? else { continue };
        if meta.node_id != config.node_id {
            return Err(DirectoryError::OtherNode { dir, found: meta.node_id, expected: config.node_id });
        }
        if meta.cluster_id != metadata.cluster_id {
            let expected = metadata.cluster_id;
            return Err(DirectoryError::OtherCluster { dir, found: meta.cluster_id, expected });
        }
    }
    Ok(metadata.cluster_id)
}
