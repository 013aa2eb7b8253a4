//! The few operations on files that the log is made of: the seam for another disk.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use crate::error::{IoContext, StorageError};

/// Whether to wait until the device has the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// fsync the file and its directory.
    Synced,
    /// Leave the bytes in the page cache.
    Cached,
}

/// A partition's directory, whose path changes when the directory is renamed.
#[derive(Debug, Clone)]
pub(crate) struct Dir(Arc<RwLock<PathBuf>>);

impl Dir {
    pub(crate) fn new(path: &Path) -> Dir {
        Dir(Arc::new(RwLock::new(path.to_owned())))
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.read().unwrap_or_else(PoisonError::into_inner).join(name)
    }

    pub(crate) fn rename(&self, to: &Path) -> Result<(), StorageError> {
        let mut path = self.0.write().unwrap_or_else(PoisonError::into_inner);
        std::fs::rename(&*path, to).at("rename", &path)?;
        *path = to.to_owned();
        Ok(())
    }
}

/// Opens for reading and writing, creating an empty file if there is none.
pub(crate) fn open_or_create(path: &Path) -> Result<File, StorageError> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).at("open", path)
}

/// Opens an existing file for reading and writing.
pub(crate) fn open(path: &Path) -> Result<File, StorageError> {
    OpenOptions::new().read(true).write(true).open(path).at("open", path)
}

pub(crate) fn size_of(file: &File, path: &Path) -> Result<u64, StorageError> {
    Ok(file.metadata().at("stat", path)?.len())
}

/// Removes a file; one that is not there is fine.
pub(crate) fn remove_if_exists(path: &Path) -> Result<(), StorageError> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result.at("remove", path),
    }
}

/// Makes creations, renames and removals in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> Result<(), StorageError> {
    File::open(path).and_then(|dir| dir.sync_all()).at("sync", path)
}

/// Replaces a small file as a whole: a temporary file, fsync, rename, fsync of the directory.
/// A reader sees the old content or the new, after a crash too.
pub fn write_atomically(path: &Path, content: &[u8], durability: Durability) -> Result<(), StorageError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let tmp = path.with_file_name(name);
    let mut file = File::create(&tmp).at("create", &tmp)?;
    file.write_all(content).at("write", &tmp)?;
    if durability == Durability::Synced {
        file.sync_all().at("sync", &tmp)?;
    }
    drop(file);
    std::fs::rename(&tmp, path).at("rename", &tmp)?;
    match (durability, path.parent()) {
        (Durability::Synced, Some(parent)) => sync_dir(parent),
        _ => Ok(()),
    }
}

/// Writes all slices one after the other from `position` on, in as few calls as the system allows.
pub(crate) fn write_all_vectored(
    file: &File,
    mut slices: &mut [IoSlice<'_>],
    mut position: u64,
) -> std::io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0);
    while !slices.is_empty() {
        match rustix::io::pwritev(file, slices, position) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                position += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Reads as much of `buffer` as the file has from `position` on.
pub(crate) fn read_at_most(file: &File, buffer: &mut [u8], position: u64) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, position + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}
