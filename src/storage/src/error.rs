//! What can go wrong in storage.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the files themselves. [`StorageError::takes_directory`] says how far it reaches.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The operating system refused an operation on a file.
    #[error("{action} {path}: {source}")]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
    /// A file holds what it should not, and nothing can rebuild it.
    #[error("{path} is damaged: {reason}")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Another process holds the directory's lock.
    #[error("{path} is locked by another process")]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// A name that can be no topic partition's directory.
    #[error("{name:?} is no partition directory")]
    BadDirectoryName {
        /// The directory's name.
        name: String,
    },
    /// An earlier write failed half-way and could not be undone: the log takes no more writes.
    #[error("the log in {path} failed earlier and takes no more writes")]
    Failed {
        /// The partition's directory.
        path: PathBuf,
    },
}

impl StorageError {
    /// Whether this is "no such file or directory".
    pub fn is_not_found(&self) -> bool {
        matches!(self, StorageError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the device or file system under the whole log directory is at fault. Any other failure (a file that is
    /// damaged, missing or not to be opened, a full disk) is the one log's, and the rest of the directory goes on.
    pub fn takes_directory(&self) -> bool {
        let StorageError::Io { action, source, .. } = self else { return false };
        // What a failed sync has lost nobody can say, whatever the reason.
        let lost = *action == "sync" && source.kind() != io::ErrorKind::NotFound;
        lost || source.raw_os_error().is_some_and(is_device_error)
    }

    /// Whether the disk, or the quota on it, is used up.
    pub fn is_full(&self) -> bool {
        let StorageError::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    pub(crate) fn corrupt(path: &Path, reason: impl Into<String>) -> StorageError {
        StorageError::Corrupt { path: path.to_owned(), reason: reason.into() }
    }
}

/// What the system answers when the device or the file system has failed, not one file of it.
fn is_device_error(code: i32) -> bool {
    use rustix::io::Errno;
    let errors = [
        Errno::IO,
        Errno::NXIO,
        Errno::NODEV,
        Errno::ROFS,
        Errno::STALE,
        Errno::UCLEAN,
        Errno::REMOTEIO,
        Errno::TIMEDOUT,
        Errno::NOTCONN,
        Errno::SHUTDOWN,
    ];
    errors.iter().any(|errno| errno.raw_os_error() == code)
}

/// Adds the file and the action to an `io::Error`.
pub(crate) trait IoContext<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, StorageError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, StorageError> {
        self.map_err(|source| StorageError::Io { action, path: path.to_owned(), source })
    }
}

impl<T> IoContext<T> for Result<T, rustix::io::Errno> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, StorageError> {
        self.map_err(|errno| StorageError::Io { action, path: path.to_owned(), source: errno.into() })
    }
}

/// Why an append was refused. Nothing was written unless it is `Storage`.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The batch's first sequence does not follow the producer's last (OUT_OF_ORDER_SEQUENCE_NUMBER).
    #[error(
        "producer {producer_id} sent sequence {sequence} at epoch {epoch}, after {last_sequence} at {current_epoch}"
    )]
    OutOfOrderSequence {
        /// The producer.
        producer_id: i64,
        /// The batch's epoch.
        epoch: i16,
        /// The batch's first sequence.
        sequence: i32,
        /// The last sequence known, -1 if none.
        last_sequence: i32,
        /// The producer's current epoch, -1 if none.
        current_epoch: i16,
    },
    /// The batch's producer epoch is older than the current one (INVALID_PRODUCER_EPOCH).
    #[error("producer {producer_id} sent epoch {epoch}, the current one is {current_epoch}")]
    InvalidProducerEpoch {
        /// The producer.
        producer_id: i64,
        /// The batch's epoch.
        epoch: i16,
        /// The producer's current epoch.
        current_epoch: i16,
    },
    /// A plain batch of a producer amid a transaction (INVALID_TXN_STATE).
    #[error("producer {producer_id} sent a batch outside its open transaction")]
    InvalidTxnState {
        /// The producer.
        producer_id: i64,
    },
    /// A transaction marker of a coordinator that was replaced (TRANSACTION_COORDINATOR_FENCED).
    #[error("marker of coordinator epoch {epoch}, the current one is {current_epoch}")]
    TransactionCoordinatorFenced {
        /// The marker's coordinator epoch.
        epoch: i32,
        /// The coordinator epoch known.
        current_epoch: i32,
    },
    /// The batches together are larger than a segment may be (RECORD_LIST_TOO_LARGE).
    #[error("{size_bytes} bytes do not fit a segment of {segment_bytes}")]
    TooLarge {
        /// Size of the append.
        size_bytes: u64,
        /// The topic's `segment.bytes`.
        segment_bytes: u64,
    },
    /// A replicated batch does not start at the log's end.
    #[error("batch at offset {offset}, expected {expected}")]
    UnexpectedOffset {
        /// The batch's base offset.
        offset: i64,
        /// The log end offset.
        expected: i64,
    },
    /// Bytes that are no whole, valid batches (CORRUPT_MESSAGE).
    #[error("invalid batch: {reason}")]
    InvalidBatch {
        /// What is wrong.
        reason: String,
    },
    /// The files failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a read or a lookup gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The offset is outside the log (OFFSET_OUT_OF_RANGE).
    #[error("offset {offset} is outside {log_start_offset}..={log_end_offset}")]
    OffsetOutOfRange {
        /// The offset asked for.
        offset: i64,
        /// The first offset there is.
        log_start_offset: i64,
        /// The offset after the last.
        log_end_offset: i64,
    },
    /// The files failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_device_takes_the_directory() {
        let io = |action, code| StorageError::Io {
            action,
            path: PathBuf::from("x"),
            source: io::Error::from_raw_os_error(code),
        };
        let errno = rustix::io::Errno::raw_os_error;
        for code in [rustix::io::Errno::IO, rustix::io::Errno::ROFS, rustix::io::Errno::STALE] {
            assert!(io("write", errno(code)).takes_directory(), "{code}");
        }
        for code in [rustix::io::Errno::NOENT, rustix::io::Errno::ACCESS, rustix::io::Errno::NOSPC] {
            assert!(!io("open", errno(code)).takes_directory(), "{code}");
        }
        assert!(io("sync", errno(rustix::io::Errno::NOSPC)).takes_directory(), "who knows what is lost");
        assert!(!io("sync", errno(rustix::io::Errno::NOENT)).takes_directory());
        assert!(!StorageError::corrupt(Path::new("x"), "bad").takes_directory());
        assert!(io("write", errno(rustix::io::Errno::NOSPC)).is_full());
    }
}
