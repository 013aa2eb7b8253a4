//! Who follows the log, and how far each is.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_raft::LeaderHint;
use tokio::sync::watch;

use super::messages::{CommittedBatch, Leadership, LogNews, Subscribe};
use crate::supervision::Recipient;

/// Batches kept in memory for subscribers, beyond those that are not committed yet.
const KEPT_BATCHES: usize = 1024;

/// What outlives a crash of the raft actor: its subscriptions, and what it publishes.
#[derive(Debug)]
pub struct Shared {
    subscribers: Mutex<BTreeMap<&'static str, Subscriber>>,
    /// The epoch and its leader.
    pub leader: watch::Sender<LeaderHint>,
    /// The actor's generation that may write `quorum-state`; held while it is written.
    writer: Mutex<u64>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            subscribers: Mutex::default(),
            leader: watch::Sender::new(LeaderHint::default()),
            writer: Mutex::default(),
        }
    }
}

impl Shared {
    /// The subscriptions. Only the actor takes them.
    pub fn subscribers(&self) -> MutexGuard<'_, BTreeMap<&'static str, Subscriber>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on only this generation of the actor writes. Waits for a write of an earlier one to end.
    pub fn take_over(&self, generation: u64) {
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = generation;
    }

    /// Does a write of a generation of the actor, unless a later one has taken over.
    pub fn write_as<E>(&self, generation: u64, write: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if *writer == generation { write() } else { Ok(()) }
    }
}

/// One subscription.
#[derive(Debug)]
pub struct Subscriber {
    /// Where news go.
    pub to: Recipient<LogNews>,
    /// The next offset it is to be told of. All before is committed and was taken.
    pub next_offset: i64,
    /// What it was last told of the leader.
    pub told: Option<Leadership>,
    /// Told apart from former subscriptions of the same name.
    pub id: u64,
    /// Waits for an answer, or for a read of the log; or its actor is down and will subscribe again.
    pub busy: bool,
}

/// What a subscriber gets next.
pub enum Next {
    /// This.
    News(LogNews),
    /// The newest snapshot; the log starts behind its offset or much of it can be skipped.
    Snapshot,
    /// The log from its offset on.
    Read,
}

/// What the log is like now, as far as subscribers can tell.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    /// Everything before is committed.
    pub high_watermark: i64,
    /// End of the newest snapshot; 0 if there is none.
    pub snapshot_end: i64,
    /// Whether the log still has what is before.
    pub start_offset: i64,
    /// The leader, and if it is this node the log's end. `None` while that is not on disk yet.
    pub leadership: Option<Leadership>,
}

impl Subscriber {
    /// A new subscription.
    pub fn new(subscribe: Subscribe, id: u64) -> Self {
        Self { to: subscribe.to, next_offset: subscribe.from_offset, told: None, id, busy: false }
    }

    /// What it gets next, if anything.
    pub fn next(&self, at: &Position, recent: &Recent) -> Option<Next> {
        let untold = at.leadership.filter(|now| {
            self.told.is_none_or(|told| {
                (told.epoch, told.leader_id, told.end_offset.is_some())
                    != (now.epoch, now.leader_id, now.end_offset.is_some())
            })
        });
        if let Some(news) = untold.filter(|now| now.end_offset.is_none()) {
            return Some(Next::News(LogNews::Leadership(news)));
        }
        if self.next_offset < at.start_offset || (self.next_offset == 0 && at.snapshot_end > 0) {
            return Some(Next::Snapshot);
        }
        if self.next_offset < at.high_watermark {
            let batches = recent.committed_from(self.next_offset, at.high_watermark);
            return Some(match batches.is_empty() {
                true => Next::Read,
                false => Next::News(LogNews::Batches(batches)),
            });
        }
        // A controller that subscribes again must first see what its former life appended.
        untold
            .filter(|now| now.end_offset.is_some_and(|end| self.next_offset >= end))
            .map(|news| Next::News(LogNews::Leadership(news)))
    }

    /// Notes what it has taken.
    pub fn took(&mut self, news: &LogNews) {
        self.busy = false;
        match news {
            LogNews::Snapshot(snapshot) => {
                self.next_offset = self.next_offset.max(snapshot.id.end_offset);
            }
            LogNews::Batches(batches) => {
                if let Some(last) = batches.last() {
                    self.next_offset = self.next_offset.max(last.last_offset + 1);
                }
            }
            LogNews::Leadership(leadership) => self.told = Some(*leadership),
        }
    }
}

/// The newest batches this node appended as leader, so that they need not be read back.
#[derive(Debug, Default)]
pub struct Recent {
    batches: VecDeque<Arc<CommittedBatch>>,
}

impl Recent {
    /// Adds the batch at the log's end.
    pub fn push(&mut self, batch: CommittedBatch) {
        self.batches.push_back(Arc::new(batch));
    }

    /// Forgets all: the log was truncated.
    pub fn clear(&mut self) {
        self.batches.clear();
    }

    /// Forgets what all subscribers have, and what is too much.
    pub fn trim(&mut self, taken_by_all: i64, high_watermark: i64) {
        while let Some(first) = self.batches.front() {
            let committed = first.last_offset < high_watermark;
            let spare = first.last_offset < taken_by_all || self.batches.len() > KEPT_BATCHES;
            if !(committed && spare) {
                break;
            }
            self.batches.pop_front();
        }
    }

    /// The committed batches from `offset` on; none unless the first of them is here.
    fn committed_from(&self, offset: i64, high_watermark: i64) -> Vec<Arc<CommittedBatch>> {
        let first = self.batches.partition_point(|b| b.base_offset < offset);
        match self.batches.get(first) {
            Some(batch) if batch.base_offset == offset => {
                self.batches.range(first..).take_while(|b| b.last_offset < high_watermark).cloned().collect()
            }
            _ => Vec::new(),
        }
    }
}
