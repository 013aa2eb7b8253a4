//! Recovery: walking batches to find the log's valid end, and to build again what is derived from them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use callboard_protocol::records::RecordBatch;

use crate::append::read_marker;
use crate::config::{LogConfig, OpenOptions, RecoveryReport};
use crate::epoch_cache::{EpochCache, EpochEntry};
use crate::error::{AppendError, IoContext, StorageError};
use crate::fs::{self, Dir};
use crate::index::{AbortedTxn, TimeEntry};
use crate::names;
use crate::producer::{self, Origin, ProducerState, Staged};
use crate::scan::{BatchInfo, FULL_CHUNK, ScanError, Scanner};
use crate::segment::{Cursor, IndexCounts, Segment, scan_failure};

/// A recovery under way.
pub(crate) struct Recovery {
    dir: Dir,
    config: LogConfig,
    now_ms: i64,
    clean_shutdown: bool,
    recovery_point: i64,
    staged: Staged,
    pub(crate) producers: ProducerState,
    /// Epochs found in the batches.
    pub(crate) epochs: Vec<EpochEntry>,
    pub(crate) next_offset: i64,
    pub(crate) report: RecoveryReport,
}

/// Where a segment stops being valid.
struct Cut {
    position: u64,
    reason: String,
}

impl Recovery {
    pub(crate) fn new(dir: &Dir, options: &OpenOptions) -> Recovery {
        Recovery {
            dir: dir.clone(),
            config: options.config.clone(),
            now_ms: options.now_ms,
            clean_shutdown: options.clean_shutdown,
            recovery_point: options.recovery_point,
            staged: Staged::default(),
            producers: ProducerState::default(),
            epochs: Vec::new(),
            next_offset: options.log_start_offset,
            report: RecoveryReport::default(),
        }
    }

    /// Sets the producers' state to what it was at `offset`, from the newest good snapshot and the batches after it.
    pub(crate) fn load_producers(
        &mut self,
        segments: &[Arc<Segment>],
        offset: i64,
    ) -> Result<(), StorageError> {
        self.producers = ProducerState::default();
        let snapshots = producer::list_snapshots(&self.dir.path())?;
        let mut from = None;
        for (at, path) in snapshots.iter().rev().filter(|(at, _)| *at <= offset) {
            match producer::read_snapshot(path) {
                Ok(entries) => {
                    self.producers = ProducerState::from_entries(entries);
                    from = Some(*at);
                    break;
                }
                Err(StorageError::Corrupt { .. }) => fs::remove_if_exists(path)?,
                Err(error) => return Err(error),
            }
        }
        // A log closed in order has a snapshot at its end, if there ever was anything to put into one.
        if from.is_some() || !(self.clean_shutdown && snapshots.is_empty()) {
            self.replay(segments, from.unwrap_or(0), offset)?;
        }
        self.producers.expire(self.now_ms, self.config.producer_id_expiration_ms);
        Ok(())
    }

    /// Builds damaged transaction indexes again, from the state of the producers before each segment and its batches.
    pub(crate) fn mend_transaction_indexes(&mut self, segments: &[Arc<Segment>]) -> Result<(), StorageError> {
        for (index, segment) in segments.iter().enumerate() {
            match segment.txns.load() {
                Ok(_) => continue,
                Err(StorageError::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
            self.load_producers(segments.get(..index).unwrap_or_default(), segment.base_offset)?;
            segment.txns.reset()?;
            let path = segment.path();
            let mut scanner = Scanner::new(&segment.file, 0, segment.size_bytes(), FULL_CHUNK);
            while let Some(batch) = scanner.next().map_err(|error| scan_failure(&path, error))? {
                self.take(&batch, &mut scanner, segment).map_err(|error| scan_failure(&path, error))?;
            }
            self.report.rebuilt_indexes += 1;
        }
        self.epochs.clear();
        Ok(())
    }

    /// Takes the batches of `from..until` into the producers' state.
    fn replay(&mut self, segments: &[Arc<Segment>], from: i64, until: i64) -> Result<(), StorageError> {
        let first = segments.partition_point(|segment| segment.base_offset <= from).saturating_sub(1);
        for segment in segments.iter().skip(first).filter(|segment| segment.base_offset < until) {
            let size = segment.size_bytes();
            let Some(start) = segment.locate(from, size)? else { continue };
            let mut scanner = Scanner::new(&segment.file, start.position, size, FULL_CHUNK);
            let path = segment.path();
            while let Some(batch) = scanner.next().map_err(|error| scan_failure(&path, error))? {
                if batch.base_offset >= until {
                    break;
                }
                self.report.replayed_batches += 1;
                self.stage(&batch, &mut scanner).map_err(|error| scan_failure(&path, error))?;
                self.producers.commit(&mut self.staged, |_, _| Ok::<(), StorageError>(()))?;
            }
        }
        Ok(())
    }

    /// Notes what a batch in the log changes of the producers' state.
    fn stage(&mut self, batch: &BatchInfo, scanner: &mut Scanner<'_>) -> Result<(), ScanError> {
        self.staged.clear();
        let Some(header) = batch.header.filter(|header| header.has_producer_id()) else { return Ok(()) };
        let invalid = |reason: String| ScanError::Invalid { position: batch.position, reason };
        let marker = if header.is_control() {
            let bytes = scanner.batch(batch)?;
            let batch = RecordBatch::parse(bytes).map_err(|error| invalid(error.to_string()))?;
            read_marker(&batch).map_err(|error| invalid(error.to_string()))?
        } else {
            None
        };
        let staged =
            self.staged.add(&self.producers, &header, batch.base_offset, marker, Origin::Replication);
        staged.map(|_| ()).map_err(|error: AppendError| invalid(error.to_string()))
    }

    /// Checks the segments with these base offsets and adds the valid ones. What comes after a cut is removed.
    pub(crate) fn scan_segments(
        &mut self,
        segments: &mut Vec<Arc<Segment>>,
        bases: &[i64],
    ) -> Result<(), StorageError> {
        let mut cut = false;
        for (index, base_offset) in bases.iter().enumerate() {
            let is_first = index == 0;
            if cut || !is_first && *base_offset < self.next_offset {
                cut = true;
                self.report.removed_segments += 1;
                crate::files::remove_segment(&self.dir, *base_offset)?;
                continue;
            }
            if !is_first {
                producer::write_snapshot(&self.dir.path(), *base_offset, &self.producers)?;
            }
            let (segment, was_cut) = self.scan_segment(*base_offset)?;
            if let Some(former) = segments.last().filter(|_| !is_first) {
                former.seal()?;
            }
            segments.push(Arc::new(segment));
            cut = was_cut;
        }
        Ok(())
    }

    fn scan_segment(&mut self, base_offset: i64) -> Result<(Segment, bool), StorageError> {
        let path = self.dir.join(&names::segment_file(base_offset, names::LOG));
        let file = Arc::new(fs::open(&path)?);
        let size = fs::size_of(&file, &path)?;
        let segment = fresh_indexes(&self.dir, base_offset, file, size, &self.config)?;
        segment.txns.reset()?;
        self.next_offset = base_offset;
        self.report.scanned_segments += 1;
        let recovery_point = self.recovery_point;
        let interval = self.config.index_interval_bytes;
        let cut = walk(&segment, size, interval, |batch, scanner| {
            if let Some(header) = batch.header.filter(|_| batch.last_offset >= recovery_point) {
                let invalid = |e| ScanError::Invalid { position: batch.position, reason: format!("{e}") };
                header.verify_crc(scanner.batch_bytes(batch)?).map_err(invalid)?;
            }
            self.take(batch, scanner, &segment)
        })?;
        let Some(Cut { position, reason }) = cut else { return Ok((segment, false)) };
        self.report.truncated_bytes += size - position;
        self.report.truncation_reason = Some(format!("{} at byte {position}: {reason}", path.display()));
        segment.file.set_len(position).at("truncate", &path)?;
        segment.publish_size(position);
        Ok((segment, true))
    }

    /// Takes over what a valid batch says of producers, transactions and epochs.
    fn take(
        &mut self,
        batch: &BatchInfo,
        scanner: &mut Scanner<'_>,
        segment: &Segment,
    ) -> Result<(), ScanError> {
        self.stage(batch, scanner)?;
        let committed = self.producers.commit(&mut self.staged, |txn, last_stable_offset| {
            let aborted = AbortedTxn {
                producer_id: txn.producer_id,
                first_offset: txn.first_offset,
                last_offset: txn.last_offset,
                last_stable_offset,
            };
            if txn.aborted { segment.txns.append(aborted) } else { Ok(()) }
        });
        committed.map_err(|error| ScanError::Io(std::io::Error::other(error)))?;
        if let Some(header) = batch.header {
            let epoch = header.partition_leader_epoch;
            if epoch >= 0 && self.epochs.last().is_none_or(|last| last.epoch < epoch) {
                self.epochs.push(EpochEntry { epoch, start_offset: batch.base_offset });
            }
        }
        self.next_offset = batch.last_offset + 1;
        Ok(())
    }
}

/// A segment whose index files are made anew, empty.
fn fresh_indexes(
    dir: &Dir,
    base_offset: i64,
    file: Arc<File>,
    size: u64,
    config: &LogConfig,
) -> Result<Segment, StorageError> {
    for ending in [names::OFFSET_INDEX, names::TIME_INDEX] {
        fs::remove_if_exists(&dir.join(&names::segment_file(base_offset, ending)))?;
    }
    Segment::writable(dir, base_offset, file, size, IndexCounts::default(), config)
}

/// Walks all batches of a segment, shows each to `check`, and indexes it if that finds no fault.
fn walk(
    segment: &Segment,
    size: u64,
    interval_bytes: u64,
    mut check: impl FnMut(&BatchInfo, &mut Scanner<'_>) -> Result<(), ScanError>,
) -> Result<Option<Cut>, StorageError> {
    let file = Arc::clone(&segment.file);
    let mut scanner = Scanner::new(&file, 0, size, FULL_CHUNK);
    let mut cursor = Cursor::new(0);
    let mut next_offset = segment.base_offset;
    loop {
        let outcome = scanner.next().and_then(|batch| {
            let Some(batch) = batch else { return Ok(None) };
            if batch.base_offset < next_offset {
                let reason = format!("offset {} where {next_offset} is due", batch.base_offset);
                return Err(ScanError::Invalid { position: batch.position, reason });
            }
            if batch.last_offset - segment.base_offset > i64::from(i32::MAX) {
                let reason = format!("offset {} is out of the segment's reach", batch.last_offset);
                return Err(ScanError::Invalid { position: batch.position, reason });
            }
            check(&batch, &mut scanner).map(|()| Some(batch))
        });
        let batch = match outcome {
            Ok(Some(batch)) => batch,
            Ok(None) => return Ok(None),
            Err(ScanError::Invalid { position, reason }) => return Ok(Some(Cut { position, reason })),
            Err(error) => return Err(scan_failure(&segment.path(), error)),
        };
        next_offset = batch.last_offset + 1;
        segment.raise_max_timestamp(TimeEntry {
            timestamp_ms: batch.max_timestamp_ms,
            offset: batch.last_offset,
        });
        segment.index_batch(&mut cursor, &batch, segment.max_timestamp(), interval_bytes)?;
    }
}

/// Builds the indexes of a segment that needs no recovery otherwise.
pub(crate) fn rebuild_indexes(
    dir: &Dir,
    base_offset: i64,
    file: Arc<File>,
    size: u64,
    is_last: bool,
    config: &LogConfig,
) -> Result<Segment, StorageError> {
    let segment = fresh_indexes(dir, base_offset, file, size, config)?;
    if let Some(Cut { position, reason }) = walk(&segment, size, config.index_interval_bytes, |_, _| Ok(()))?
    {
        return Err(scan_failure(&segment.path(), ScanError::Invalid { position, reason }));
    }
    if !is_last {
        segment.seal()?;
    }
    Ok(segment)
}

/// The epochs that the batches of these segments name.
pub(crate) fn epochs_of(segments: &[Arc<Segment>]) -> Result<EpochCache, StorageError> {
    let mut epochs = EpochCache::default();
    for segment in segments {
        let mut scanner = Scanner::new(&segment.file, 0, segment.size_bytes(), FULL_CHUNK);
        while let Some(batch) = scanner.next().map_err(|error| scan_failure(&segment.path(), error))? {
            let epoch = batch.header.map_or(-1, |header| header.partition_leader_epoch);
            if epochs.latest_epoch().is_none_or(|latest| latest < epoch) {
                epochs.assign(epoch, batch.base_offset);
            }
        }
    }
    Ok(epochs)
}

/// Removes producers' snapshots from beyond the log's end.
pub(crate) fn remove_snapshots_above(path: &Path, log_end_offset: i64) -> Result<(), StorageError> {
    for (offset, path) in producer::list_snapshots(path)? {
        if offset > log_end_offset {
            fs::remove_if_exists(&path)?;
        }
    }
    Ok(())
}

/// Removes producers' snapshots that no segment begins at, but for the newest: a log closed in order has one at its end.
pub(crate) fn remove_stray_snapshots(path: &Path, segments: &[Arc<Segment>]) -> Result<(), StorageError> {
    let mut strays = producer::list_snapshots(path)?;
    strays.retain(|(offset, _)| !segments.iter().any(|segment| segment.base_offset == *offset));
    strays.pop();
    strays.iter().try_for_each(|(_, path)| fs::remove_if_exists(path))
}
