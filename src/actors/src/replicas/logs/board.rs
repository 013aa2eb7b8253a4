//! What the cleaners of a node share: which logs are compacted up to where, which are being worked on, and which can't
//! be compacted. It outlives their crashes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_protocol::Uuid;
use callboard_storage::checkpoint::{CLEANED_OFFSETS, read_offsets, write_offsets};
use callboard_storage::{Cleanable, Durability, StorageError, TopicPartition};

use crate::replicas::directories::LogDirectory;
use crate::replicas::registry::Registry;
use crate::replicas::view::{PartitionHandle, Status};

type Key = (Uuid, i32);

/// The cleaners' shared knowledge.
#[derive(Debug)]
pub struct Board {
    directories: Arc<Vec<LogDirectory>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// From the checkpoint files at start, until the partitions are known by id.
    found: Vec<BTreeMap<TopicPartition, i64>>,
    compacted_to: BTreeMap<Key, i64>,
    /// What each cleaner works on.
    at_work: BTreeMap<usize, Key>,
    uncleanable: BTreeMap<Key, String>,
    /// When the next bytes may be read or written, in milliseconds, under the limit.
    free_at_ms: f64,
}

/// A log to be compacted.
#[derive(Debug)]
pub struct Chosen {
    pub handle: PartitionHandle,
    pub cleanable: Cleanable,
}

impl Board {
    /// Reads the checkpoints. It blocks.
    pub fn new(directories: &Arc<Vec<LogDirectory>>) -> Self {
        let read = |directory: &LogDirectory| {
            read_offsets(&directory.path.join(CLEANED_OFFSETS)).unwrap_or_else(|error| {
                tracing::warn!("{error}; compaction begins anew");
                BTreeMap::new()
            })
        };
        let found = directories.iter().map(read).collect();
        let state = State { found, ..State::default() };
        Self { directories: Arc::clone(directories), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses the log with the largest part not compacted, of those that are due, and gives it to this cleaner. It may
    /// read the device.
    pub fn choose(&self, cleaner: usize, registry: &Registry, now_ms: i64) -> Option<Chosen> {
        let held = registry.held();
        let mut best: Option<Chosen> = None;
        for handle in held.partitions() {
            let key = key_of(handle);
            let compacted_to = {
                let mut state = self.state();
                state.adopt(handle);
                if state.uncleanable.contains_key(&key) || state.at_work.values().any(|at| *at == key) {
                    continue;
                }
                state.compacted_to.get(&key).copied()
            };
            let Some(cleanable) = look_at(handle, compacted_to, now_ms) else { continue };
            if best.as_ref().is_none_or(|best| cleanable.dirty_ratio() > best.cleanable.dirty_ratio()) {
                best = Some(Chosen { handle: handle.clone(), cleanable });
            }
        }
        let chosen = best?;
        let mut state = self.state();
        // Another cleaner may have come first.
        if state.at_work.values().any(|at| *at == key_of(&chosen.handle)) {
            return None;
        }
        state.at_work.insert(cleaner, key_of(&chosen.handle));
        Some(chosen)
    }

    /// The cleaner no longer works on anything.
    pub fn release(&self, cleaner: usize) {
        self.state().at_work.remove(&cleaner);
    }

    /// Notes that a log can't be compacted; it is left alone until the node is started again.
    pub fn mark_uncleanable(&self, handle: &PartitionHandle, reason: String) {
        self.state().uncleanable.insert(key_of(handle), reason);
    }

    /// Notes up to where a log is compacted, and writes its directory's checkpoint. It blocks.
    ///
    /// # Errors
    /// The file can't be written; the offset is noted all the same.
    pub fn done(
        &self,
        handle: &PartitionHandle,
        end_offset: i64,
        registry: &Registry,
    ) -> Result<(), StorageError> {
        let directory = handle.shared().directory;
        let Some(root) = self.directories.get(directory) else { return Ok(()) };
        let held = registry.held();
        let mut state = self.state();
        state.compacted_to.insert(key_of(handle), end_offset);
        // What was deleted since is forgotten.
        state.compacted_to.retain(|(topic_id, number), _| held.partition(*topic_id, *number).is_some());
        let mut offsets = BTreeMap::new();
        for ((topic_id, number), offset) in &state.compacted_to {
            let Some(handle) = held.partition(*topic_id, *number) else { continue };
            if handle.shared().directory == directory {
                offsets.insert(TopicPartition::new(handle.id().topic.to_string(), *number), *offset);
            }
        }
        // Under the lock, so that two cleaners don't write the file at once.
        let path = root.path.join(CLEANED_OFFSETS);
        write_offsets(&path, offsets.iter().map(|(tp, offset)| (tp, *offset)), Durability::Synced)
    }

    /// How long to wait after so many bytes, in milliseconds, for the cleaners together to stay below a limit.
    pub fn pause_ms(&self, bytes: u64, bytes_per_second: f64, now_ms: i64) -> u64 {
        let mut state = self.state();
        let begin = state.free_at_ms.max(now_ms as f64);
        state.free_at_ms = begin + bytes as f64 * 1000.0 / bytes_per_second.max(1.0);
        (state.free_at_ms - now_ms as f64) as u64
    }
}

impl State {
    /// Takes over what the checkpoints of an earlier life say of a partition.
    fn adopt(&mut self, handle: &PartitionHandle) {
        let Some(found) = self.found.get_mut(handle.shared().directory).filter(|found| !found.is_empty())
        else {
            return;
        };
        let partition = TopicPartition::new(handle.id().topic.to_string(), handle.id().partition);
        if let Some(offset) = found.remove(&partition) {
            self.compacted_to.insert(key_of(handle), offset);
        }
    }
}

fn key_of(handle: &PartitionHandle) -> Key {
    (handle.id().topic_id, handle.id().partition)
}

/// What there is to compact in a partition, if it is due.
fn look_at(handle: &PartitionHandle, compacted_to: Option<i64>, now_ms: i64) -> Option<Cleanable> {
    let view = handle.view();
    let (Status::Leader | Status::Follower, Some(reader)) = (view.status(), view.reader()) else {
        return None;
    };
    let settings = Arc::clone(&handle.shared().orders().settings);
    if !settings.log.compacts {
        return None;
    }
    let stable = reader.last_stable_offset(view.high_watermark());
    match reader.cleanable(&settings.log, compacted_to, stable, now_ms) {
        Ok(cleanable) => Some(cleanable).filter(|found| found.is_due(&settings.log)),
        Err(error) => {
            tracing::warn!(partition = handle.id().to_string(), "compaction: {error}");
            None
        }
    }
}
