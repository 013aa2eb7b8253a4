//! Putting a compacted segment in the place of those it stands for, so that a crash at any step loses nothing.
//!
//! 1. Its files are complete and on the device, named `.cleaned`. A crash: they are removed.
//! 2. They are renamed to `.swap`, the `.log` last. From then on a crash means that the rest is done at start.
//! 3. The old files are renamed to `.deleted`.
//! 4. The `.swap` files get their final names, the `.log` last.
//!
//! It counts on renames in one directory reaching the device in their order, as they do on file systems with a journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::writer::{CleanedFiles, discard};
use crate::error::{IoContext, StorageError};
use crate::fs::{self, Dir};
use crate::log::Log;
use crate::names;
use crate::scan::{LOOKUP_CHUNK, Scanner};
use crate::segment::{Segment, scan_failure};

/// A segment's files in the order they are renamed: the log itself decides, so it comes last.
pub(super) const ENDINGS: [&str; 4] = [names::OFFSET_INDEX, names::TIME_INDEX, names::TXN_INDEX, names::LOG];

/// A compacted segment and those it stands for, ready to take their place: see [`Log::swap_in`].
#[derive(Debug)]
pub struct CleanedSegment {
    pub(super) files: CleanedFiles,
    pub(super) sources: Vec<Arc<Segment>>,
}

impl CleanedSegment {
    /// Segments that it stands for.
    pub fn replaces(&self) -> usize {
        self.sources.len()
    }

    /// Its size in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.files.size_bytes
    }
}

impl Log {
    /// Puts a compacted segment in the place of those it stands for. Gives the old files, renamed to `.deleted`, for
    /// [`crate::delete_files`]; `None` if the log has changed meanwhile and the compacted segment was thrown away.
    /// After an error the log takes no more writes; opening it again does the rest.
    pub fn swap_in(&mut self, cleaned: CleanedSegment) -> Result<Option<Vec<PathBuf>>, StorageError> {
        self.check_usable()?;
        let CleanedSegment { files, sources } = cleaned;
        let dir = self.shared.dir.clone();
        let segments = self.shared.segments.load_full();
        let Some(first) = find_run(&segments, &sources) else {
            discard(&dir, files.base_offset)?;
            return Ok(None);
        };
        for segment in &sources {
            // Who still reads the old segment must not open the new index by the old name.
            segment.pin()?;
        }
        let fresh = Segment::read_only(
            &dir,
            files.base_offset,
            Arc::clone(&files.file),
            files.size_bytes,
            files.index_bytes,
            files.time_index_bytes,
        );
        fresh.raise_max_timestamp(files.max_timestamp);
        let renamed = rename_all(&dir, files.base_offset, &sources);
        if renamed.is_err() {
            self.failed = true;
        }
        let deleted = renamed?;
        let mut list: Vec<_> = segments.iter().take(first).cloned().collect();
        list.push(Arc::new(fresh));
        list.extend(segments.iter().skip(first + sources.len()).cloned());
        self.shared.segments.store(Arc::new(list));
        Ok(Some(deleted))
    }
}

/// Where the sources stand in the log, one after the other and not the last: else it has changed since.
fn find_run(segments: &[Arc<Segment>], sources: &[Arc<Segment>]) -> Option<usize> {
    let head = sources.first()?;
    let first = segments.iter().position(|segment| Arc::ptr_eq(segment, head))?;
    let run = segments.get(first..first + sources.len())?;
    let same = run.iter().zip(sources).all(|(a, b)| Arc::ptr_eq(a, b));
    (same && first + sources.len() < segments.len()).then_some(first)
}

fn rename_all(dir: &Dir, base_offset: i64, sources: &[Arc<Segment>]) -> Result<Vec<PathBuf>, StorageError> {
    for ending in ENDINGS {
        let name = names::segment_file(base_offset, ending);
        rename(
            &dir.join(&format!("{name}{}", names::CLEANED)),
            &dir.join(&format!("{name}{}", names::SWAP)),
        )?;
    }
    let mut deleted = Vec::new();
    for source in sources {
        // The producers' snapshot at the first segment's start is still of use.
        deleted.extend(source.mark_deleted(source.base_offset != base_offset)?);
    }
    for ending in ENDINGS {
        let name = names::segment_file(base_offset, ending);
        rename(&dir.join(&format!("{name}{}", names::SWAP)), &dir.join(&name))?;
    }
    Ok(deleted)
}

fn rename(from: &Path, to: &Path) -> Result<(), StorageError> {
    std::fs::rename(from, to).at("rename", from)
}

/// Does the rest of a swap that a crash broke off, when a log is opened.
pub(crate) fn finish_swaps(path: &Path) -> Result<(), StorageError> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).at("list", path)? {
        files.extend(entry.at("list", path)?.file_name().into_string().ok());
    }
    let swap_of = |name: &String, ending: &str| {
        name.strip_suffix(names::SWAP).and_then(|name| names::offset_of(name, ending))
    };
    let mut changed = false;
    for base_offset in files.iter().filter_map(|name| swap_of(name, names::LOG)) {
        finish_swap(path, base_offset, &files)?;
        changed = true;
    }
    // Swaps of which the log never came that far: only indexes, and not needed.
    for name in files.iter().filter(|name| name.ends_with(names::SWAP)) {
        changed |= path.join(name).exists();
        fs::remove_if_exists(&path.join(name))?;
    }
    if changed { fs::sync_dir(path) } else { Ok(()) }
}

fn finish_swap(path: &Path, base_offset: i64, files: &[String]) -> Result<(), StorageError> {
    let swap = path.join(names::segment_file(base_offset, names::LOG) + names::SWAP);
    let end = end_of(&swap, base_offset)?;
    let replaced = files
        .iter()
        .filter_map(|name| names::offset_of(name, names::LOG))
        .filter(|base| (base_offset + 1..end).contains(base));
    for old in replaced {
        crate::files::remove_segment(&Dir::new(path), old)?;
    }
    for ending in ENDINGS {
        let name = names::segment_file(base_offset, ending);
        match std::fs::rename(path.join(format!("{name}{}", names::SWAP)), path.join(&name)) {
            // It had its final name already.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && ending != names::LOG => {}
            outcome => outcome.at("rename", &swap)?,
        }
    }
    Ok(())
}

/// The offset after the last record of a segment's file.
fn end_of(path: &Path, base_offset: i64) -> Result<i64, StorageError> {
    let file = fs::open(path)?;
    let mut scanner = Scanner::new(&file, 0, fs::size_of(&file, path)?, LOOKUP_CHUNK);
    let mut end = base_offset;
    while let Some(batch) = scanner.next().map_err(|error| scan_failure(path, error))? {
        end = batch.last_offset + 1;
    }
    Ok(end)
}
