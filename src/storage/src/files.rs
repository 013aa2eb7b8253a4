//! Removing files and directories.

use std::path::{Path, PathBuf};

use crate::error::{IoContext, StorageError};
use crate::fs::{self, Dir};
use crate::names;

/// The endings of all files of a segment.
const ENDINGS: [&str; 5] =
    [names::LOG, names::OFFSET_INDEX, names::TIME_INDEX, names::TXN_INDEX, names::SNAPSHOT];

/// Renames a segment's files to `.deleted` and gives their new paths.
pub(crate) fn mark_deleted(
    dir: &Dir,
    base_offset: i64,
    with_snapshot: bool,
) -> Result<Vec<PathBuf>, StorageError> {
    let mut renamed = Vec::new();
    for ending in ENDINGS.into_iter().filter(|ending| with_snapshot || *ending != names::SNAPSHOT) {
        let name = names::segment_file(base_offset, ending);
        let (from, to) = (dir.join(&name), dir.join(&(name + names::DELETED)));
        match std::fs::rename(&from, &to) {
            Ok(()) => renamed.push(to),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e).at("rename", &from),
        }
    }
    Ok(renamed)
}

/// Removes a segment's files at once.
pub(crate) fn remove_segment(dir: &Dir, base_offset: i64) -> Result<(), StorageError> {
    ENDINGS
        .iter()
        .try_for_each(|ending| fs::remove_if_exists(&dir.join(&names::segment_file(base_offset, ending))))
}

/// Removes files; those already gone are fine.
pub fn delete_files(paths: &[PathBuf]) -> Result<(), StorageError> {
    paths.iter().try_for_each(|path| fs::remove_if_exists(path))
}

/// Removes a directory renamed for deletion, with all in it: the second step.
pub fn delete_dir(path: &Path) -> Result<(), StorageError> {
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        result => result.at("remove", path),
    }
}
