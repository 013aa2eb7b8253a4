//! One round of compaction over one log, step by step.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use callboard_protocol::records::RecordBatch;

use super::filter::{Fate, LastOfProducer, Rules, marker, sift};
use super::map::OffsetMap;
use super::plan::Cleanable;
use super::swap::CleanedSegment;
use super::transactions::Transactions;
use super::writer::{CleanedWriter, discard};
use crate::config::LogConfig;
use crate::error::StorageError;
use crate::fs::Dir;
use crate::index::AbortedTxn;
use crate::log::Log;
use crate::reader::LogReader;
use crate::scan::{BatchInfo, FULL_CHUNK, ScanError, Scanner};
use crate::segment::{Segment, scan_failure};

/// Bytes read in one step.
const STEP_BYTES: u64 = 4 << 20;

/// How a round goes about it.
#[derive(Debug, Clone)]
pub struct CleaningOptions {
    /// The topic's settings.
    pub config: LogConfig,
    /// What [`LogReader::cleanable`] has found.
    pub cleanable: Cleanable,
    /// The last of each producer, from [`Log::last_of_producers`].
    pub producers: BTreeMap<i64, LastOfProducer>,
    /// Memory for the keys' offsets: `log.cleaner.dedupe.buffer.size` over `log.cleaner.threads`.
    pub map_bytes: u64,
    /// `log.cleaner.io.buffer.load.factor`.
    pub load_factor: f64,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// What a round has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// Bytes read to fill the map.
    pub map_bytes_read: u64,
    /// Keys in the map.
    pub keys: u64,
    /// Bytes read to be rewritten.
    pub bytes_read: u64,
    /// Bytes that stayed.
    pub bytes_written: u64,
    /// Records that stayed.
    pub records_kept: u64,
    /// Segments before and after.
    pub segments_before: usize,
    /// Segments after.
    pub segments_after: usize,
    /// Memory taken by the map, in bytes.
    pub map_memory_bytes: u64,
}

/// What a step has come to.
#[derive(Debug)]
pub enum Step {
    /// So many bytes were read and written: for throttling. There is more to do.
    More {
        /// Bytes of this step.
        bytes: u64,
    },
    /// A segment is ready for [`Log::swap_in`]; then go on.
    Swap(CleanedSegment),
    /// All is compacted up to this offset, for the checkpoint.
    Done {
        /// The next round's first dirty offset.
        end_offset: i64,
    },
}

#[derive(Debug)]
enum Phase {
    /// Filling the map from this place on.
    Reading { segment: usize, position: Option<u64> },
    /// Rewriting.
    Writing(Option<Group>),
}

/// Segments that become one.
#[derive(Debug)]
struct Group {
    writer: CleanedWriter,
    sources: Vec<Arc<Segment>>,
    at: usize,
    position: u64,
}

/// A round under way. It reads segments without asking the log's owner; only [`Log::swap_in`] is the owner's.
#[derive(Debug)]
pub struct Cleaning {
    dir: Dir,
    segments: Vec<Arc<Segment>>,
    options: CleaningOptions,
    map: OffsetMap,
    phase: Phase,
    groups: VecDeque<Vec<Arc<Segment>>>,
    transactions: Transactions,
    end_offset: i64,
    report: CleanReport,
}

impl Log {
    /// The last of each producer, which compaction must not lose.
    pub fn last_of_producers(&self) -> BTreeMap<i64, LastOfProducer> {
        let last = |entry: &crate::ProducerEntry| LastOfProducer {
            last_data_offset: entry.last_batch().map(|batch| batch.last_offset),
            epoch: entry.epoch,
        };
        self.producers().map(|entry| (entry.producer_id, last(entry))).collect()
    }
}

impl Cleaning {
    /// Begins a round over a log.
    pub fn new(reader: &LogReader, options: CleaningOptions) -> Cleaning {
        let segments = reader.shared.segments.load_full().to_vec();
        let map = OffsetMap::new(options.map_bytes, options.load_factor);
        let first = segments
            .partition_point(|s| s.base_offset <= options.cleanable.first_dirty_offset)
            .saturating_sub(1);
        Cleaning {
            dir: reader.shared.dir.clone(),
            segments,
            map,
            phase: Phase::Reading { segment: first, position: None },
            groups: VecDeque::new(),
            transactions: Transactions::default(),
            end_offset: options.cleanable.first_dirty_offset,
            options,
            report: CleanReport::default(),
        }
    }

    /// What was done so far.
    pub fn report(&self) -> CleanReport {
        CleanReport { keys: self.map.len() as u64, map_memory_bytes: self.map.memory_bytes(), ..self.report }
    }

    /// Does a part of the work: a few megabytes. It blocks.
    ///
    /// # Errors
    /// A batch is damaged, or the files fail: the round can't go on, the log is as it was.
    pub fn step(&mut self) -> Result<Step, StorageError> {
        match &self.phase {
            Phase::Reading { segment, position } => self.read(*segment, *position),
            Phase::Writing(_) => self.write(),
        }
    }

    /// Removes what is written and not yet swapped in.
    pub fn abandon(self) -> Result<(), StorageError> {
        match self.phase {
            Phase::Writing(Some(group)) => match group.sources.first() {
                Some(first) => discard(&self.dir, first.base_offset),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// The offset after a segment: where the next one begins.
    fn end_of(&self, index: usize) -> i64 {
        self.segments.get(index + 1).map_or(i64::MAX, |next| next.base_offset)
    }

    /// Aborted transactions that a reader of `from..until` would skip.
    fn aborted(&self, from: i64, until: i64) -> Result<Vec<AbortedTxn>, StorageError> {
        let mut found = Vec::new();
        let first = self.segments.partition_point(|segment| segment.base_offset <= from).saturating_sub(1);
        for segment in self.segments.iter().skip(first) {
            if segment.txns.collect(from, until, &mut found)? {
                break;
            }
        }
        Ok(found)
    }

    fn read(&mut self, index: usize, position: Option<u64>) -> Result<Step, StorageError> {
        let Cleanable { first_dirty_offset: start, first_uncleanable_offset: limit, .. } =
            self.options.cleanable;
        let segment = match self.segments.get(index) {
            Some(segment) if segment.base_offset < limit => Arc::clone(segment),
            _ => return self.begin_writing(),
        };
        let until = self.end_of(index).min(limit);
        let from = match position {
            Some(position) => position,
            None => {
                let aborted = self.aborted(segment.base_offset.max(start), until)?;
                self.transactions.expect(aborted);
                segment
                    .locate(start.max(segment.base_offset), segment.size_bytes())?
                    .map_or(0, |b| b.position)
            }
        };
        let mut scanner = Scanner::new(&segment.file, from, segment.size_bytes(), FULL_CHUNK);
        let mut bytes = 0;
        while bytes < STEP_BYTES {
            let Some(info) = scanner.next().map_err(|error| scan_failure(&segment.path(), error))? else {
                // The segment may end before the next one begins: all between is known not to exist.
                self.map.reach(until - 1);
                self.phase = Phase::Reading { segment: index + 1, position: None };
                return Ok(Step::More { bytes });
            };
            bytes += info.size_bytes;
            self.report.map_bytes_read += info.size_bytes;
            let full = self
                .note(&info, &mut scanner, start)
                .map_err(|error| scan_failure(&segment.path(), error))?;
            if full {
                return self.begin_writing();
            }
            self.phase = Phase::Reading { segment: index, position: Some(info.end()) };
        }
        Ok(Step::More { bytes })
    }

    /// Notes the keys of a batch; says whether the map is full before its end.
    fn note(&mut self, info: &BatchInfo, scanner: &mut Scanner<'_>, start: i64) -> Result<bool, ScanError> {
        let Some(batch) = read_batch(info, scanner)? else {
            // Old formats are kept as they are.
            self.map.reach(info.last_offset);
            return Ok(false);
        };
        let invalid = |error: callboard_protocol::records::RecordError| ScanError::Invalid {
            position: info.position,
            reason: error.to_string(),
        };
        let counts = if batch.header.is_control() {
            self.transactions.control(&batch.header, marker(&batch).map_err(invalid)?);
            false
        } else {
            !self.transactions.data(&batch.header)
        };
        if counts {
            for record in batch.records().map_err(invalid)? {
                let record = record.map_err(invalid)?;
                let Some(key) = record.key.filter(|_| record.offset >= start) else { continue };
                if self.map.is_full() {
                    return Ok(true);
                }
                self.map.put(&key, record.offset);
            }
        }
        if info.last_offset >= start {
            self.map.reach(info.last_offset);
        }
        Ok(false)
    }

    fn begin_writing(&mut self) -> Result<Step, StorageError> {
        self.end_offset = (self.map.latest_offset() + 1).max(self.options.cleanable.first_dirty_offset);
        self.transactions = Transactions::default();
        // Without anything new there is nothing to rewrite; the first dirty offset may even be in the segment written to.
        if self.map.latest_offset() >= self.options.cleanable.first_dirty_offset {
            self.groups = self.grouped();
        }
        self.report.segments_before = self.groups.iter().map(Vec::len).sum();
        self.phase = Phase::Writing(None);
        Ok(Step::More { bytes: 0 })
    }

    /// The segments up to the end of the round, small ones together, as far as one segment and its indexes can hold.
    fn grouped(&self) -> VecDeque<Vec<Arc<Segment>>> {
        let config = &self.options.config;
        let limit = self.options.cleanable.first_uncleanable_offset;
        let part = self.segments.iter().take_while(|segment| segment.base_offset < self.end_offset);
        let mut groups: VecDeque<Vec<Arc<Segment>>> = VecDeque::new();
        let (mut size, mut index_bytes, mut time_index_bytes) = (0_u64, 0_u64, 0_u64);
        for (index, segment) in part.enumerate() {
            let (own, own_index, own_times) =
                (segment.size_bytes(), segment.offsets.size_bytes(), segment.times.size_bytes());
            let last_offset = self.end_of(index).min(limit.max(segment.base_offset + 1)) - 1;
            let fits = groups.back().and_then(|group| group.first()).is_some_and(|first| {
                size + own <= config.segment_bytes
                    && index_bytes + own_index <= config.segment_index_bytes
                    && time_index_bytes + own_times <= config.segment_index_bytes
                    && (own == 0 || last_offset - first.base_offset <= i64::from(i32::MAX))
            });
            match groups.back_mut() {
                Some(group) if fits => {
                    group.push(Arc::clone(segment));
                    (size, index_bytes, time_index_bytes) =
                        (size + own, index_bytes + own_index, time_index_bytes + own_times);
                }
                _ => {
                    groups.push_back(vec![Arc::clone(segment)]);
                    (size, index_bytes, time_index_bytes) = (own, own_index, own_times);
                }
            }
        }
        groups
    }

    fn write(&mut self) -> Result<Step, StorageError> {
        let taken = match &mut self.phase {
            Phase::Writing(group) => group.take(),
            Phase::Reading { .. } => None,
        };
        let mut group = match taken {
            Some(group) => group,
            None => {
                let Some(sources) = self.groups.pop_front() else {
                    return Ok(Step::Done { end_offset: self.end_offset });
                };
                let base_offset = sources.first().map_or(0, |first| first.base_offset);
                let writer = CleanedWriter::create(&self.dir, base_offset, &self.options.config)?;
                Group { writer, sources, at: 0, position: 0 }
            }
        };
        let Some(segment) = group.sources.get(group.at).cloned() else {
            return self.finish_group(group).map(Step::Swap);
        };
        if group.position == 0 {
            let index = self.segments.partition_point(|s| s.base_offset <= segment.base_offset);
            let until = self.segments.get(index).map_or(i64::MAX, |next| next.base_offset);
            let aborted = self.aborted(segment.base_offset, until)?;
            self.transactions.expect(aborted);
        }
        let before = group.writer.size_bytes();
        let read = self.copy(&mut group, &segment)?;
        let bytes = read + group.writer.size_bytes().saturating_sub(before);
        self.phase = Phase::Writing(Some(group));
        Ok(Step::More { bytes })
    }

    /// Copies what stays of a part of a segment; gives the bytes read.
    fn copy(&mut self, group: &mut Group, segment: &Segment) -> Result<u64, StorageError> {
        let failed = |error| scan_failure(&segment.path(), error);
        let mut scanner = Scanner::new(&segment.file, group.position, segment.size_bytes(), FULL_CHUNK);
        let mut bytes = 0;
        while bytes < STEP_BYTES {
            let Some(info) = scanner.next().map_err(failed)? else {
                (group.at, group.position) = (group.at + 1, 0);
                break;
            };
            bytes += info.size_bytes;
            self.report.bytes_read += info.size_bytes;
            group.position = info.end();
            let Some(batch) = read_batch(&info, &mut scanner).map_err(failed)? else {
                let bytes = scanner.batch_bytes(&info).map_err(failed)?;
                group.writer.add(&info, bytes)?;
                continue;
            };
            let rules = Rules {
                map: &self.map,
                producers: &self.options.producers,
                now_ms: self.options.now_ms,
                delete_retention_ms: self.options.config.delete_retention_ms,
                end_offset: self.end_offset,
            };
            let (fate, kept) = sift(&batch, &mut self.transactions, &rules).map_err(|error| {
                failed(ScanError::Invalid { position: info.position, reason: error.to_string() })
            })?;
            self.report.records_kept += kept;
            let bytes = match fate {
                Fate::Goes => continue,
                Fate::Stays => batch.bytes,
                Fate::Becomes(bytes) => bytes,
            };
            let stored = RecordBatch::parse(bytes).map_err(|error| {
                failed(ScanError::Invalid { position: info.position, reason: error.to_string() })
            })?;
            group.writer.add(&BatchInfo::of(&stored.header, 0), &stored.bytes)?;
        }
        Ok(bytes)
    }

    fn finish_group(&mut self, group: Group) -> Result<CleanedSegment, StorageError> {
        let modified = group.sources.last().and_then(|last| last.file.metadata().ok()?.modified().ok());
        let aborted = std::mem::take(&mut self.transactions.kept);
        let files = group.writer.finish(&aborted, modified)?;
        self.report.bytes_written += files.size_bytes;
        self.report.segments_after += 1;
        Ok(CleanedSegment { files, sources: group.sources })
    }
}

/// A batch with its checksum checked; `None` in formats before 2.
fn read_batch(info: &BatchInfo, scanner: &mut Scanner<'_>) -> Result<Option<RecordBatch>, ScanError> {
    if info.header.is_none() {
        return Ok(None);
    }
    let invalid = |error: callboard_protocol::records::RecordError| ScanError::Invalid {
        position: info.position,
        reason: error.to_string(),
    };
    let batch = RecordBatch::parse(scanner.batch(info)?).map_err(invalid)?;
    batch.verify_crc().map_err(invalid)?;
    Ok(Some(batch))
}
