//! The files that describe a log directory: `meta.properties`, `.kafka_cleanshutdown`, `.lock`; and a
//! partition's `partition.metadata`.

use std::fs::File;
use std::path::Path;

use callboard_protocol::Uuid;

use crate::error::{IoContext, StorageError};
use crate::fs::{self, Durability};

/// `meta.properties`: whose directory it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    /// The cluster's id, as given to `storage format`.
    pub cluster_id: String,
    /// The node's id.
    pub node_id: i32,
    /// The directory's own id. Directories formatted by old versions have none.
    pub directory_id: Option<Uuid>,
}

impl MetaProperties {
    /// The file's name.
    pub const FILE: &'static str = "meta.properties";

    /// Reads the file in a log directory; `None` if the directory is not formatted.
    pub fn read(dir: &Path) -> Result<Option<MetaProperties>, StorageError> {
        let path = dir.join(Self::FILE);
        let Some(text) = read_text(&path)? else { return Ok(None) };
        let (mut version, mut cluster_id, mut node_id, mut directory_id) = (None, None, None, None);
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let Some((key, value)) = line.split_once('=') else { continue };
            match key.trim() {
                "version" => version = Some(value.trim().to_owned()),
                "cluster.id" => cluster_id = Some(value.trim().to_owned()),
                "node.id" | "broker.id" => node_id = Some(value.trim().to_owned()),
                "directory.id" => directory_id = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        if version.as_deref() != Some("1") {
            return Err(StorageError::corrupt(&path, format!("version {version:?}, only 1 is known")));
        }
        let missing = |name: &str| StorageError::corrupt(&path, format!("no {name}"));
        let node_id = node_id.ok_or_else(|| missing("node.id"))?;
        let node_id = node_id.parse().map_err(|_| StorageError::corrupt(&path, "node.id is no number"))?;
        let directory_id = directory_id
            .map(|id| id.parse().map_err(|_| StorageError::corrupt(&path, "directory.id is no id")))
            .transpose()?;
        Ok(Some(MetaProperties {
            cluster_id: cluster_id.ok_or_else(|| missing("cluster.id"))?,
            node_id,
            directory_id,
        }))
    }

    /// Writes the file into a log directory, synced.
    pub fn write(&self, dir: &Path) -> Result<(), StorageError> {
        let mut text = format!("version=1\ncluster.id={}\nnode.id={}\n", self.cluster_id, self.node_id);
        if let Some(id) = self.directory_id {
            text.push_str(&format!("directory.id={id}\n"));
        }
        fs::write_atomically(&dir.join(Self::FILE), text.as_bytes(), Durability::Synced)
    }
}

/// `.kafka_cleanshutdown`: the logs were closed in order, so nothing needs recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanShutdown {
    /// The broker's epoch when it stopped, -1 if it had none.
    pub broker_epoch: i64,
}

impl CleanShutdown {
    /// The file's name.
    pub const FILE: &'static str = ".kafka_cleanshutdown";

    /// Reads the marker; `None` if there is none. A marker whose content is unreadable still marks.
    pub fn read(dir: &Path) -> Result<Option<CleanShutdown>, StorageError> {
        let Some(text) = read_text(&dir.join(Self::FILE))? else { return Ok(None) };
        let epoch = text.split_once("\"brokerEpoch\"").and_then(|(_, rest)| {
            let number = rest.trim_start().strip_prefix(':')?.trim_start();
            let end = number.find(|c: char| c != '-' && !c.is_ascii_digit()).unwrap_or(number.len());
            number.get(..end)?.parse().ok()
        });
        Ok(Some(CleanShutdown { broker_epoch: epoch.unwrap_or(-1) }))
    }

    /// Writes the marker, the last thing before the node ends.
    pub fn write(&self, dir: &Path) -> Result<(), StorageError> {
        let text = format!("{{\"version\":0,\"brokerEpoch\":{}}}", self.broker_epoch);
        fs::write_atomically(&dir.join(Self::FILE), text.as_bytes(), Durability::Synced)
    }

    /// Removes the marker, durably: from now on a crash means recovery. Call it before the first write.
    pub fn remove(dir: &Path) -> Result<(), StorageError> {
        let path = dir.join(Self::FILE);
        if path.exists() {
            fs::remove_if_exists(&path)?;
            fs::sync_dir(dir)?;
        }
        Ok(())
    }
}

/// A lock on a log directory, held while this lives. Kafka takes the same one.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// The file's name.
    pub const FILE: &'static str = ".lock";

    /// Takes the lock, or fails with [`StorageError::Locked`] at once.
    pub fn acquire(dir: &Path) -> Result<DirectoryLock, StorageError> {
        let path = dir.join(Self::FILE);
        let file = fs::open_or_create(&path)?;
        let locked = |errno| match errno {
            rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS => {
                StorageError::Locked { path: path.clone() }
            }
            errno => StorageError::Io { action: "lock", path: path.clone(), source: errno.into() },
        };
        // Two locks: flock keeps out this process's other nodes, the record lock is the one Kafka takes.
        let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&file, operation).map_err(locked)?;
        rustix::fs::fcntl_lock(&file, operation).map_err(locked)?;
        Ok(DirectoryLock { _file: file })
    }
}

/// `partition.metadata`: the id of the topic a partition's directory belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// The topic's id.
    pub topic_id: Uuid,
}

impl PartitionMetadata {
    /// The file's name.
    pub const FILE: &'static str = "partition.metadata";

    /// Reads the file in a partition's directory; `None` if there is none.
    pub fn read(dir: &Path) -> Result<Option<PartitionMetadata>, StorageError> {
        let path = dir.join(Self::FILE);
        let Some(text) = read_text(&path)? else { return Ok(None) };
        let mut topic_id = None;
        for line in text.lines() {
            match line.split_once(": ") {
                Some(("version", "0")) => {}
                Some(("topic_id", id)) => topic_id = id.trim().parse().ok(),
                _ => return Err(StorageError::corrupt(&path, format!("bad line {line:?}"))),
            }
        }
        let topic_id = topic_id.filter(|id| *id != Uuid::ZERO);
        let topic_id = topic_id.ok_or_else(|| StorageError::corrupt(&path, "no topic id"))?;
        Ok(Some(PartitionMetadata { topic_id }))
    }

    /// Writes the file into a partition's directory.
    pub fn write(&self, dir: &Path, durability: Durability) -> Result<(), StorageError> {
        let text = format!("version: 0\ntopic_id: {}", self.topic_id);
        fs::write_atomically(&dir.join(Self::FILE), text.as_bytes(), durability)
    }
}

fn read_text(path: &Path) -> Result<Option<String>, StorageError> {
    match std::fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        result => Ok(Some(String::from_utf8_lossy(&result.at("read", path)?).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_properties_as_kafka_writes_them() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(MetaProperties::read(dir.path()).unwrap(), None);
        let path = dir.path().join(MetaProperties::FILE);
        let text = "#\n#Mon Nov 30 03:19:55 UTC 2026\nnode.id=1\ndirectory.id=13AKI2ZETiyochxsUB9fFQ\nversion=1\ncluster.id=ehSIuFxVyJgbN7nusQOcbQ\n";
        std::fs::write(&path, text).unwrap();
        let meta = MetaProperties::read(dir.path()).unwrap().unwrap();
        assert_eq!((meta.node_id, meta.cluster_id.as_str()), (1, "ehSIuFxVyJgbN7nusQOcbQ"));
        assert_eq!(meta.directory_id.unwrap().to_string(), "13AKI2ZETiyochxsUB9fFQ");
        meta.write(dir.path()).unwrap();
        assert_eq!(MetaProperties::read(dir.path()).unwrap(), Some(meta));
        std::fs::write(&path, "version=2\nnode.id=1\ncluster.id=x\n").unwrap();
        assert!(MetaProperties::read(dir.path()).is_err());
    }

    #[test]
    fn clean_shutdown_goes_round() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(CleanShutdown::read(dir.path()).unwrap(), None);
        CleanShutdown { broker_epoch: 70 }.write(dir.path()).unwrap();
        let text = std::fs::read_to_string(dir.path().join(CleanShutdown::FILE)).unwrap();
        assert_eq!(text, "{\"version\":0,\"brokerEpoch\":70}");
        assert_eq!(CleanShutdown::read(dir.path()).unwrap(), Some(CleanShutdown { broker_epoch: 70 }));
        std::fs::write(dir.path().join(CleanShutdown::FILE), "").unwrap();
        assert_eq!(CleanShutdown::read(dir.path()).unwrap(), Some(CleanShutdown { broker_epoch: -1 }));
        CleanShutdown::remove(dir.path()).unwrap();
        assert_eq!(CleanShutdown::read(dir.path()).unwrap(), None);
    }

    #[test]
    fn a_directory_has_one_holder() {
        let dir = tempfile::tempdir().unwrap();
        let lock = DirectoryLock::acquire(dir.path()).unwrap();
        assert!(matches!(DirectoryLock::acquire(dir.path()), Err(StorageError::Locked { .. })));
        drop(lock);
        DirectoryLock::acquire(dir.path()).unwrap();
    }

    #[test]
    fn partition_metadata_as_kafka_writes_it() {
        let dir = tempfile::tempdir().unwrap();
        let text = "version: 0\ntopic_id: VIYaLQ2XSlKK8APGPbn5Tg";
        std::fs::write(dir.path().join(PartitionMetadata::FILE), text).unwrap();
        let metadata = PartitionMetadata::read(dir.path()).unwrap().unwrap();
        metadata.write(dir.path(), Durability::Cached).unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(PartitionMetadata::FILE)).unwrap(), text);
        std::fs::write(dir.path().join(PartitionMetadata::FILE), "").unwrap();
        assert!(PartitionMetadata::read(dir.path()).is_err());
    }
}
