//! Opening a log: what is in its directory, and putting it in order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, RwLock};

use arc_swap::ArcSwap;

use crate::clean::finish_swaps;
use crate::config::{OpenOptions, RecoveryReport};
use crate::epoch_cache::EpochCache;
use crate::error::{IoContext, StorageError};
use crate::fs::{self, Dir, Durability};
use crate::index::{OffsetIndex, TimeEntry, TimeIndex};
use crate::log::Log;
use crate::names;
use crate::producer::{ProducerState, Staged};
use crate::reader::Shared;
use crate::recovery::{self, Recovery};
use crate::segment::{Cursor, IndexCounts, Segment};

impl Log {
    /// Opens a partition's log, or makes a new one. After a clean shutdown nothing but the end of the last segment is
    /// read. Otherwise all from the recovery point on is checked: what is torn or corrupt at the end is cut off,
    /// indexes, transaction index, leader epochs and producers' state are built again.
    /// Tell the log its high watermark next: transactions that ended hold back the last stable offset until then.
    pub fn open(path: &Path, options: OpenOptions) -> Result<(Log, RecoveryReport), StorageError> {
        std::fs::create_dir_all(path).at("create", path)?;
        let dir = Dir::new(path);
        let bases = tidy(path)?;
        let mut recovery = Recovery::new(&dir, &options);
        let mut segments = Vec::with_capacity(bases.len().max(1));
        let first_scanned = match options.clean_shutdown {
            true => bases.len(),
            false => bases.partition_point(|base| *base <= options.recovery_point).saturating_sub(1),
        };
        for (index, base_offset) in bases.iter().enumerate() {
            if index >= first_scanned {
                break;
            }
            let is_last = index + 1 == bases.len();
            segments.push(Arc::new(open_trusted(
                &dir,
                *base_offset,
                is_last,
                &options,
                &mut recovery.report,
            )?));
        }
        recovery.mend_transaction_indexes(&segments)?;
        let scanned = bases.get(first_scanned..).unwrap_or_default();
        if let Some(first) = scanned.first() {
            recovery.load_producers(&segments, *first)?;
            recovery.scan_segments(&mut segments, scanned)?;
        }
        let mut log_end_offset = match segments.last() {
            Some(last) if scanned.is_empty() => last.next_offset(trusted_end(last)?)?,
            Some(_) => recovery.next_offset,
            None => options.log_start_offset,
        };
        if segments.is_empty() || log_end_offset < options.log_start_offset {
            // The records below the log's start are of no use, and there are no others.
            for segment in segments.drain(..) {
                segment.remove()?;
            }
            recovery.forget_producers();
            log_end_offset = options.log_start_offset.max(0);
            segments.push(Arc::new(Segment::create(&dir, log_end_offset, &options.config)?));
        } else if scanned.is_empty() {
            recovery.load_producers(&segments, log_end_offset)?;
        }
        recovery::remove_snapshots_above(path, log_end_offset)?;
        finish(dir, segments, log_end_offset, recovery, options)
    }
}

fn finish(
    dir: Dir,
    segments: Vec<Arc<Segment>>,
    log_end_offset: i64,
    mut recovery: Recovery,
    options: OpenOptions,
) -> Result<(Log, RecoveryReport), StorageError> {
    let first_base = segments.first().map_or(0, |segment| segment.base_offset);
    let log_start_offset = first_base.max(options.log_start_offset);
    recovery::remove_stray_snapshots(&dir.path(), &segments)?;
    let epochs = settle_epochs(&dir, &segments, &mut recovery, log_start_offset, log_end_offset)?;
    let mut cursor = Cursor::new(options.now_ms);
    if let Some(active) = segments.last() {
        cursor.rolling_timestamp_ms = active.first_batch()?.map(|batch| batch.max_timestamp_ms);
    }
    let recovery_point =
        if options.clean_shutdown { log_end_offset } else { options.recovery_point.min(log_end_offset) };
    let (producers, report) = (std::mem::take(&mut recovery.producers), std::mem::take(&mut recovery.report));
    let log = Log {
        latest_epoch: epochs.latest_epoch().unwrap_or(-1),
        shared: Arc::new(Shared {
            dir,
            segments: ArcSwap::from_pointee(segments),
            log_start_offset: log_start_offset.into(),
            log_end_offset: log_end_offset.into(),
            first_unstable_offset: i64::MAX.into(),
            epochs: RwLock::new(epochs),
        }),
        config: options.config,
        cursor,
        producers,
        staged: Staged::default(),
        recovery_point,
        failed: false,
    };
    log.publish_first_unstable();
    Ok((log, report))
}

/// The epochs of the file, mended by those found in the batches, within the log's bounds.
fn settle_epochs(
    dir: &Dir,
    segments: &[Arc<Segment>],
    recovery: &mut Recovery,
    log_start_offset: i64,
    log_end_offset: i64,
) -> Result<EpochCache, StorageError> {
    let mut changed = false;
    let mut epochs = match EpochCache::read(&dir.path()) {
        Ok(epochs) => epochs,
        Err(StorageError::Corrupt { .. }) => {
            recovery.report.rebuilt_epochs = true;
            changed = true;
            recovery::epochs_of(segments)?
        }
        Err(error) => return Err(error),
    };
    for entry in &recovery.epochs {
        changed |= epochs.latest_epoch().is_none_or(|latest| latest < entry.epoch)
            && epochs.assign(entry.epoch, entry.start_offset);
    }
    changed |= epochs.truncate_end(log_end_offset);
    changed |= epochs.truncate_start(log_start_offset);
    if changed {
        epochs.write(&dir.path(), Durability::Cached)?;
    }
    Ok(epochs)
}

/// Removes what a crash left half done, and gives the base offsets of the segments.
fn tidy(path: &Path) -> Result<Vec<i64>, StorageError> {
    finish_swaps(path)?;
    let mut bases = BTreeSet::new();
    let mut others = BTreeMap::new();
    for entry in std::fs::read_dir(path).at("list", path)? {
        let entry = entry.at("list", path)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if let Some(base_offset) = names::offset_of(&name, names::LOG) {
            bases.insert(base_offset);
        } else if [".tmp", names::DELETED, names::CLEANED].iter().any(|ending| name.ends_with(ending)) {
            fs::remove_if_exists(&entry.path())?;
        } else {
            let endings = [names::OFFSET_INDEX, names::TIME_INDEX, names::TXN_INDEX];
            if let Some(base_offset) = endings.iter().find_map(|ending| names::offset_of(&name, ending)) {
                others.insert(entry.path(), base_offset);
            }
        }
    }
    for (path, _) in others.iter().filter(|(_, base_offset)| !bases.contains(base_offset)) {
        fs::remove_if_exists(path)?;
    }
    Ok(bases.into_iter().collect())
}

/// What the ends of a segment's index files say.
struct IndexEnds {
    index_bytes: u64,
    time_index_bytes: u64,
    last_time: Option<TimeEntry>,
}

/// Opens a segment that needs no recovery. Its indexes are looked at, and built again if they can't be right.
fn open_trusted(
    dir: &Dir,
    base_offset: i64,
    is_last: bool,
    options: &OpenOptions,
    report: &mut RecoveryReport,
) -> Result<Segment, StorageError> {
    let path = dir.join(&names::segment_file(base_offset, names::LOG));
    let file = Arc::new(fs::open(&path)?);
    let size = fs::size_of(&file, &path)?;
    let Some(ends) = index_ends(dir, base_offset, size)? else {
        report.rebuilt_indexes += 1;
        return recovery::rebuild_indexes(dir, base_offset, file, size, is_last, &options.config);
    };
    let segment = if is_last {
        let counts = IndexCounts {
            offsets: (ends.index_bytes / OffsetIndex::ENTRY_SIZE) as usize,
            times: (ends.time_index_bytes / TimeIndex::ENTRY_SIZE) as usize,
        };
        Segment::writable(dir, base_offset, file, size, counts, &options.config)?
    } else {
        Segment::read_only(dir, base_offset, file, size, ends.index_bytes, ends.time_index_bytes)
    };
    if let Some(last) = ends.last_time {
        segment.raise_max_timestamp(last);
    }
    Ok(segment)
}

/// Where the walk for a segment's end may begin: its last indexed batch.
fn trusted_end(segment: &Segment) -> Result<u64, StorageError> {
    if segment.offsets.len() == 0 {
        return Ok(0);
    }
    Ok(segment.offsets.last()?.map_or(0, |entry| u64::from(entry.position)))
}

/// Looks at the ends of the index files; `None` if one is missing or can't be right.
fn index_ends(dir: &Dir, base_offset: i64, size: u64) -> Result<Option<IndexEnds>, StorageError> {
    let Some(offsets) = FileEnds::<8>::read(dir, base_offset, names::OFFSET_INDEX)? else { return Ok(None) };
    let Some(times) = FileEnds::<12>::read(dir, base_offset, names::TIME_INDEX)? else { return Ok(None) };
    if offsets.size > 0 {
        // No entry ever points at a segment's first batch, so zeros are room that was not cut off.
        let position = offsets.last.last_chunk::<4>().map_or(0, |position| u32::from_be_bytes(*position));
        if position == 0 || u64::from(position) >= size {
            return Ok(None);
        }
    }
    let entry_of = |bytes: [u8; 12]| {
        let timestamp_ms = bytes.first_chunk::<8>().map_or(-1, |timestamp| i64::from_be_bytes(*timestamp));
        let relative = bytes.last_chunk::<4>().map_or(0, |offset| u32::from_be_bytes(*offset));
        TimeEntry { timestamp_ms, offset: base_offset + i64::from(relative) }
    };
    let (first, last) = (entry_of(times.first), entry_of(times.last));
    let rising = last.timestamp_ms > first.timestamp_ms && last.offset >= first.offset;
    if (times.size > TimeIndex::ENTRY_SIZE && !rising) || (times.size > 0 && size == 0) {
        return Ok(None);
    }
    let last_time = (times.size > 0).then_some(last);
    Ok(Some(IndexEnds { index_bytes: offsets.size, time_index_bytes: times.size, last_time }))
}

/// Size, first and last entry of an index file.
struct FileEnds<const N: usize> {
    size: u64,
    first: [u8; N],
    last: [u8; N],
}

impl<const N: usize> FileEnds<N> {
    /// `None` if the file is missing or holds no whole number of entries.
    fn read(dir: &Dir, base_offset: i64, ending: &str) -> Result<Option<FileEnds<N>>, StorageError> {
        let path = dir.join(&names::segment_file(base_offset, ending));
        let file = match fs::open(&path) {
            Err(error) if error.is_not_found() => return Ok(None),
            result => result?,
        };
        let size = fs::size_of(&file, &path)?;
        let (mut first, mut last) = ([0; N], [0; N]);
        if size % N as u64 != 0 {
            return Ok(None);
        }
        if size > 0 {
            fs::read_at_most(&file, &mut first, 0).at("read", &path)?;
            fs::read_at_most(&file, &mut last, size - N as u64).at("read", &path)?;
        }
        Ok(Some(FileEnds { size, first, last }))
    }
}

impl Recovery {
    pub(crate) fn forget_producers(&mut self) {
        self.producers = ProducerState::default();
        self.epochs.clear();
    }
}
