//! A file of fixed-size entries in memory, appended by one thread while others read.
//!
//! This is the only module with unsafe code.

#![allow(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::error::{IoContext, StorageError};
use crate::fs::{self, Dir};

/// Entries of `WORDS` 32-bit words each. The file is mapped at its first use, so that an idle index costs no
/// memory, and no page of it is touched before an entry is written there.
#[derive(Debug)]
pub(super) struct EntryFile<const WORDS: usize> {
    dir: Dir,
    name: String,
    /// Entries that the file has room for.
    capacity: usize,
    /// Entries written and published.
    count: AtomicUsize,
    /// Absent while not used; `None` within if the file has no room for an entry.
    map: OnceLock<Option<MmapRaw>>,
}

/// The smallest piece that a file system gives room to.
const PAGE_BYTES: usize = 4096;

impl<const WORDS: usize> EntryFile<WORDS> {
    const ENTRY_SIZE: usize = WORDS * 4;

    /// A file to append to: `count` entries are there, `max_bytes` is its size until it is trimmed.
    pub(super) fn writable(
        dir: &Dir,
        name: String,
        count: usize,
        max_bytes: u64,
    ) -> Result<Self, StorageError> {
        let room = usize::try_from(max_bytes).unwrap_or(usize::MAX) / Self::ENTRY_SIZE;
        let this = Self {
            dir: dir.clone(),
            name,
            capacity: room.max(count),
            count: count.into(),
            map: OnceLock::new(),
        };
        this.resize(this.capacity)?;
        Ok(this)
    }

    /// A file that gets no more entries, of this size in bytes.
    pub(super) fn read_only(dir: &Dir, name: String, size_bytes: u64) -> Self {
        let count = usize::try_from(size_bytes).unwrap_or(usize::MAX) / Self::ENTRY_SIZE;
        Self { dir: dir.clone(), name, capacity: count, count: count.into(), map: OnceLock::new() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.join(&self.name)
    }

    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    fn map(&self) -> Result<Option<&MmapRaw>, StorageError> {
        if let Some(map) = self.map.get() {
            return Ok(map.as_ref());
        }
        let size = self.capacity * Self::ENTRY_SIZE;
        let path = self.path();
        let map = if size == 0 {
            None
        } else {
            let file = fs::open(&path)?;
            // A file that someone cut would make a later access fault, so it is looked at first.
            if fs::size_of(&file, &path)? < size as u64 {
                return Err(StorageError::corrupt(&path, "shorter than when it was opened"));
            }
            let map = MmapOptions::new().len(size).map_raw(&file).at("map", &path)?;
            // Without this the first touch reads ahead: it clears megabytes of a file that holds a few entries.
            map.advise(Advice::Random).at("advise", &path)?;
            Some(map)
        };
        Ok(self.map.get_or_init(|| map).as_ref())
    }

    /// Has the file system give room to the page that the slot's end is the first to need: on a full disk a store through
    /// the mapping would end the process, while this write is refused.
    fn reserve(&self, index: usize) -> Result<(), StorageError> {
        let start = index * Self::ENTRY_SIZE;
        let page = (start + Self::ENTRY_SIZE - 1) / PAGE_BYTES;
        if index >= self.capacity || start.checked_sub(1).is_some_and(|last| last / PAGE_BYTES == page) {
            return Ok(());
        }
        let from = page * PAGE_BYTES;
        let size = PAGE_BYTES.min(self.capacity * Self::ENTRY_SIZE - from);
        let path = self.path();
        let zeros = [0; PAGE_BYTES];
        let zeros = zeros.get(..size).unwrap_or_default();
        std::os::unix::fs::FileExt::write_all_at(&fs::open(&path)?, zeros, from as u64).at("write", &path)
    }

    /// Maps the file now, so that a later file of the same name is not taken for it.
    pub(super) fn pin(&self) -> Result<(), StorageError> {
        // Without entries it is never read.
        if self.len() == 0 { Ok(()) } else { self.map().map(|_| ()) }
    }

    /// The words of a slot below `capacity`.
    fn slot(&self, index: usize) -> Result<Option<&[AtomicU32; WORDS]>, StorageError> {
        let Some(map) = self.map()? else { return Ok(None) };
        let start = index.checked_mul(Self::ENTRY_SIZE);
        let fits = |start: &usize| start.checked_add(Self::ENTRY_SIZE).is_some_and(|end| end <= map.len());
        let Some(start) = start.filter(fits) else { return Ok(None) };
        // SAFETY: `start..start + ENTRY_SIZE` lies within the mapping (checked above), which lives as long as
        // `self`, as `OnceLock` never gives up its value. A mapping is page-aligned and ENTRY_SIZE a multiple of
        // 4, so the words are aligned. `AtomicU32` has the layout of `u32`, valid for any bytes. All accesses to
        // the mapping go through this function, thus are atomic, so a writer and readers do not race. The file
        // stays long enough: the directory is locked against other processes, and `trim` cuts it only behind
        // `count`, below which readers stay and after which nothing is appended.
        Ok(Some(unsafe { &*map.as_mut_ptr().add(start).cast::<[AtomicU32; WORDS]>() }))
    }

    /// Entry `index`, if it is there.
    pub(super) fn get(&self, index: usize) -> Result<Option<[u32; WORDS]>, StorageError> {
        if index >= self.len() {
            return Ok(None);
        }
        let slot = self.slot(index)?;
        Ok(slot.map(|words| {
            std::array::from_fn(|i| words.get(i).map_or(0, |w| u32::from_be(w.load(Ordering::Relaxed))))
        }))
    }

    /// Appends an entry and publishes it. Only the segment's one writer calls this. False if there is no room.
    pub(super) fn push(&self, entry: [u32; WORDS]) -> Result<bool, StorageError> {
        let index = self.count.load(Ordering::Relaxed);
        self.reserve(index)?;
        let Some(slot) = self.slot(index)? else { return Ok(false) };
        for (word, value) in slot.iter().zip(entry) {
            word.store(value.to_be(), Ordering::Relaxed);
        }
        self.count.store(index + 1, Ordering::Release);
        Ok(true)
    }

    /// The number of leading entries for which `holds` is true; it must be true for a prefix only.
    pub(super) fn partition_point(
        &self,
        holds: impl Fn([u32; WORDS]) -> bool,
    ) -> Result<usize, StorageError> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.get(middle)? {
                Some(entry) if holds(entry) => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Cuts the file to its entries. Nothing may be appended afterwards.
    pub(super) fn trim(&self) -> Result<(), StorageError> {
        self.resize(self.len())
    }

    fn resize(&self, entries: usize) -> Result<(), StorageError> {
        let path = self.path();
        let file = fs::open_or_create(&path)?;
        file.set_len((entries * Self::ENTRY_SIZE) as u64).at("resize", &path)
    }

    /// Waits until the entries are on the device.
    pub(super) fn sync(&self) -> Result<(), StorageError> {
        // On Linux, pages changed through a shared mapping are part of the file's page cache.
        sync_file(&self.path())
    }
}

fn sync_file(path: &Path) -> Result<(), StorageError> {
    fs::open(path)?.sync_all().at("sync", path)
}
