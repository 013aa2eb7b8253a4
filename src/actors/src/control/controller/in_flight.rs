//! Decisions whose records are on their way to be committed.

use std::collections::VecDeque;

use callboard_metadata::controller::Controller;
use callboard_protocol::ErrorCode;

/// Called once a decision is settled: with the offset up to which it is committed, or with why it is not.
pub type Settle = Box<dyn FnOnce(Result<i64, ErrorCode>)>;

/// One decision in flight.
pub struct InFlight {
    /// Tells it from others.
    pub id: u64,
    /// Where its records begin.
    pub start_offset: i64,
    /// The offset after its last record.
    pub end_offset: i64,
    /// The machine before it.
    pub before: Controller,
    /// Whoever waits.
    pub settle: Settle,
}

/// All decisions in flight, in the order decided.
#[derive(Default)]
pub struct Pipeline {
    entries: VecDeque<InFlight>,
    next_id: u64,
}

impl Pipeline {
    /// An id for the next decision.
    pub fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Whether everything decided is committed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds the newest decision.
    pub fn push(&mut self, entry: InFlight) {
        self.entries.push_back(entry);
    }

    /// Settles all that is committed: `end_offset` is the offset after the last committed record.
    pub fn committed(&mut self, end_offset: i64) {
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.end_offset <= end_offset) {
            (entry.settle)(Ok(entry.end_offset - 1));
        }
    }

    /// Takes back a decision and all that came after it. The first one's machine and start are what to return to.
    /// `None` if it is not in flight any more.
    pub fn take_back(&mut self, id: u64) -> Option<(Controller, i64, Vec<Settle>)> {
        let at = self.entries.iter().position(|entry| entry.id == id)?;
        self.take_back_from(at)
    }

    /// Takes back everything in flight.
    pub fn take_back_all(&mut self) -> Option<(Controller, i64, Vec<Settle>)> {
        self.take_back_from(0)
    }

    fn take_back_from(&mut self, at: usize) -> Option<(Controller, i64, Vec<Settle>)> {
        let mut taken = self.entries.split_off(at).into_iter();
        let first = taken.next()?;
        let mut waiting = vec![first.settle];
        waiting.extend(taken.map(|entry| entry.settle));
        Some((first.before, first.start_offset, waiting))
    }
}
