//! The log directories of a node: locked, and checked that they are its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use callboard_metadata::config::BrokerConfig;
use callboard_protocol::Uuid;
use callboard_storage::{CleanShutdown, DirectoryLock, MetaProperties, StorageError};

use crate::replicas::LogDirectory;
use crate::supervision::Random;

/// Why a log directory is not fit for the node.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory of the metadata log is not formatted.
    #[error("log directory {} is not formatted", .0.display())]
    NotFormatted(PathBuf),
    /// It belongs to another node.
    #[error("log directory {} belongs to node {found}, and node.id is {expected}", dir.display())]
    OtherNode {
        /// The directory.
        dir: PathBuf,
        /// Whose it is.
        found: i32,
        /// `node.id`.
        expected: i32,
    },
    /// It belongs to another cluster.
    #[error("log directory {} belongs to cluster {found}, and the metadata log to cluster {expected}", dir.display())]
    OtherCluster {
        /// The directory.
        dir: PathBuf,
        /// Whose it is.
        found: String,
        /// The metadata log's.
        expected: String,
    },
    /// Two directories have the same id.
    #[error("log directory {} has the id of another one, {id}", dir.display())]
    SameId {
        /// The directory.
        dir: PathBuf,
        /// The id.
        id: Uuid,
    },
    /// It cannot be made.
    #[error("log directory {} cannot be made: {source}", dir.display())]
    Make {
        /// The directory.
        dir: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its files cannot be read or written, or another process has it.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The directories of a node, its own for as long as this lives.
#[derive(Debug)]
pub(super) struct Directories {
    /// The cluster they belong to.
    pub cluster_id: String,
    /// The id of the metadata log's directory.
    pub metadata_directory_id: Uuid,
    /// `log.dirs`.
    pub data: Arc<Vec<LogDirectory>>,
    /// The broker's epoch when it last stopped in order; -1 if it did not.
    pub previous_broker_epoch: i64,
    _locks: Vec<DirectoryLock>,
}

impl Directories {
    /// Locks and checks the directories. A directory of `log.dirs` that is new becomes the node's; that of the
    /// metadata log must have been formatted.
    ///
    /// # Errors
    /// [`DirectoryError`].
    pub(super) fn open(config: &BrokerConfig, random: &mut Random) -> Result<Self, DirectoryError> {
        let mut paths = config.log_dirs.clone();
        if !paths.contains(&config.metadata_log_dir) {
            paths.push(config.metadata_log_dir.clone());
        }
        let metadata = MetaProperties::read(&config.metadata_log_dir)?
            .ok_or_else(|| DirectoryError::NotFormatted(config.metadata_log_dir.clone()))?;
        let mut locks = Vec::new();
        let mut data: Vec<LogDirectory> = Vec::new();
        let mut metadata_directory_id = Uuid::ZERO;
        for dir in paths {
            std::fs::create_dir_all(&dir)
                .map_err(|source| DirectoryError::Make { dir: dir.clone(), source })?;
            locks.push(DirectoryLock::acquire(&dir)?);
            let id = own(&dir, config.node_id, &metadata.cluster_id, random)?;
            if data.iter().any(|other| other.id == id) {
                return Err(DirectoryError::SameId { dir, id });
            }
            if dir == config.metadata_log_dir {
                metadata_directory_id = id;
            }
            if config.log_dirs.contains(&dir) {
                data.push(LogDirectory::new(dir, id));
            }
        }
        Ok(Self {
            cluster_id: metadata.cluster_id,
            metadata_directory_id,
            previous_broker_epoch: previous_broker_epoch(&data)?,
            data: Arc::new(data),
            _locks: locks,
        })
    }
}

/// Checks whose a directory is; a new one is marked as the node's. Gives its id.
fn own(dir: &Path, node_id: i32, cluster_id: &str, random: &mut Random) -> Result<Uuid, DirectoryError> {
    let found = MetaProperties::read(dir)?;
    if let Some(found) = &found {
        if found.node_id != node_id {
            let (dir, found) = (dir.to_owned(), found.node_id);
            return Err(DirectoryError::OtherNode { dir, found, expected: node_id });
        }
        if found.cluster_id != cluster_id {
            let (dir, found) = (dir.to_owned(), found.cluster_id.clone());
            return Err(DirectoryError::OtherCluster { dir, found, expected: cluster_id.to_owned() });
        }
        if let Some(id) = found.directory_id {
            return Ok(id);
        }
    }
    let id = random_id(random);
    MetaProperties { cluster_id: cluster_id.to_owned(), node_id, directory_id: Some(id) }.write(dir)?;
    Ok(id)
}

/// The epoch in the clean-shutdown markers, if all directories have the same.
fn previous_broker_epoch(data: &[LogDirectory]) -> Result<i64, DirectoryError> {
    let mut epoch = None;
    for directory in data {
        let found = CleanShutdown::read(&directory.path)?.map_or(-1, |marker| marker.broker_epoch);
        if *epoch.get_or_insert(found) != found {
            return Ok(-1);
        }
    }
    Ok(epoch.unwrap_or(-1))
}

/// A random id, of the kind that Kafka makes: version 4.
pub(super) fn random_id(random: &mut Random) -> Uuid {
    let high = (random.next_u64() & !0xF000) | 0x4000;
    let low = (random.next_u64() & !(0b11 << 62)) | (0b10 << 62);
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(high.to_be_bytes().into_iter().chain(low.to_be_bytes())) {
        *to = from;
    }
    Uuid::from_bytes(bytes)
}
