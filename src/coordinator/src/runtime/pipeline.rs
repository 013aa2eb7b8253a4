//! Writes on their way: collected, being appended, and appended but not committed.

use std::collections::{BTreeSet, VecDeque};

use super::{EncodedRecord, Machine, Outcome, Producer, Ticket};

/// Answers, each with the ticket of its request.
type Replies<M> = Vec<(Ticket, <M as Machine>::Reply)>;

/// What goes out once the records it follows from are committed.
#[derive(Debug)]
struct Held<M: Machine> {
    replies: Replies<M>,
    effects: Vec<M::Effect>,
}

impl<M: Machine> Held<M> {
    const fn nothing() -> Self {
        Self { replies: Vec::new(), effects: Vec::new() }
    }

    fn extend(&mut self, other: Self) {
        self.replies.extend(other.replies);
        self.effects.extend(other.effects);
    }
}

/// What one call came to and is not appended yet.
#[derive(Debug)]
struct Write<M: Machine> {
    /// The machine before it.
    before: M,
    /// The first ticket that was given out at or after it.
    first_ticket: Ticket,
    records: Vec<EncodedRecord>,
    size_bytes: usize,
    producer: Option<Producer>,
    held: Held<M>,
}

/// Records to append in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// The records, in order.
    pub records: Vec<EncodedRecord>,
    /// On whose behalf, if in a transaction.
    pub producer: Option<Producer>,
}

/// What became final with a step.
#[derive(Debug)]
pub struct Settled<M: Machine> {
    /// Answers to send.
    pub replies: Replies<M>,
    /// Requests whose effects were taken back, or can't be written down.
    pub failed: Vec<Ticket>,
    /// Work for others.
    pub effects: Vec<M::Effect>,
}

impl<M: Machine> Settled<M> {
    /// Adds what became final with another step.
    pub fn extend(&mut self, other: Self) {
        self.replies.extend(other.replies);
        self.failed.extend(other.failed);
        self.effects.extend(other.effects);
    }
}

impl<M: Machine> Default for Settled<M> {
    fn default() -> Self {
        Self { replies: Vec::new(), failed: Vec::new(), effects: Vec::new() }
    }
}

/// A machine with its writes on their way. See the [module](super).
#[derive(Debug)]
pub struct Runtime<M: Machine> {
    machine: M,
    next_ticket: u64,
    /// Requests without an answer.
    open: BTreeSet<Ticket>,
    /// Not handed out yet.
    collected: VecDeque<Write<M>>,
    /// The batch being appended.
    in_flight: Vec<Write<M>>,
    /// Appended, with the high watermark that commits each.
    appended: VecDeque<(i64, Held<M>)>,
    high_watermark: i64,
}

impl<M: Machine> Runtime<M> {
    /// A machine that has read its log up to `end_offset`, of which all below `high_watermark` is committed.
    pub fn new(machine: M, end_offset: i64, high_watermark: i64) -> Self {
        let mut appended = VecDeque::new();
        if end_offset > high_watermark {
            appended.push_back((end_offset, Held::nothing()));
        }
        Self {
            machine,
            next_ticket: 0,
            open: BTreeSet::new(),
            collected: VecDeque::new(),
            in_flight: Vec::new(),
            appended,
            high_watermark,
        }
    }

    /// The machine with everything done, committed or not.
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// Runs a request. Its ticket is the one that `work` is given.
    pub fn request(&mut self, work: impl FnOnce(&mut M, Ticket) -> Outcome<M>) -> (Ticket, Settled<M>) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.open.insert(ticket);
        let settled = self.run(ticket, |machine| work(machine, ticket));
        (ticket, settled)
    }

    /// Runs what is no request: a deadline that is due, news of the metadata, work that is done.
    pub fn input(&mut self, work: impl FnOnce(&mut M) -> Outcome<M>) -> Settled<M> {
        self.run(Ticket(self.next_ticket), work)
    }

    fn run(&mut self, first_ticket: Ticket, work: impl FnOnce(&mut M) -> Outcome<M>) -> Settled<M> {
        let before = self.machine.clone();
        let Outcome { records, producer, replies, effects } = work(&mut self.machine);
        if records.is_empty() {
            return self.hold(Held { replies, effects });
        }
        let encoded: Result<Vec<_>, _> = records.iter().map(M::encode).collect();
        let Ok(records) = encoded else {
            self.machine = before;
            return Settled { failed: self.close_from(first_ticket, replies), ..Settled::default() };
        };
        let size_bytes = records.iter().map(EncodedRecord::size_bytes).sum();
        let held = Held { replies, effects };
        self.collected.push_back(Write { before, first_ticket, records, size_bytes, producer, held });
        Settled::default()
    }

    /// Keeps answers and work for others until all that is on its way is committed. Gives back what need not wait.
    fn hold(&mut self, held: Held<M>) -> Settled<M> {
        let last = self.collected.back_mut().or(self.in_flight.last_mut()).map(|write| &mut write.held);
        match last.or(self.appended.back_mut().map(|(_, held)| held)) {
            Some(waiting) => {
                waiting.extend(held);
                Settled::default()
            }
            None => self.let_go(held),
        }
    }

    /// The next batch to append, of at most `max_bytes` unless one write alone is larger. `None` while another is being
    /// appended, and if there is nothing to append.
    pub fn next_batch(&mut self, max_bytes: usize) -> Option<Batch> {
        if !self.in_flight.is_empty() {
            return None;
        }
        let first = self.collected.pop_front()?;
        let (producer, mut size_bytes) = (first.producer, first.size_bytes);
        self.in_flight.push(first);
        while let Some(next) = self.collected.pop_front_if(|next| {
            next.producer == producer && size_bytes.saturating_add(next.size_bytes) <= max_bytes
        }) {
            size_bytes = size_bytes.saturating_add(next.size_bytes);
            self.in_flight.push(next);
        }
        let records = self.in_flight.iter().flat_map(|write| &write.records).cloned().collect();
        Some(Batch { records, producer })
    }

    /// The batch is in the log, and committed once the high watermark is at `end_offset`.
    pub fn appended(&mut self, end_offset: i64) -> Settled<M> {
        let mut held = Held::nothing();
        self.in_flight.drain(..).for_each(|write| held.extend(write.held));
        self.appended.push_back((end_offset, held));
        self.advance(self.high_watermark)
    }

    /// The log's high watermark is at least here.
    pub fn advance(&mut self, high_watermark: i64) -> Settled<M> {
        self.high_watermark = self.high_watermark.max(high_watermark);
        let mut held = Held::nothing();
        while let Some((_, committed)) = self.appended.pop_front_if(|(end, _)| *end <= self.high_watermark) {
            held.extend(committed);
        }
        self.let_go(held)
    }

    /// The offset that the high watermark must reach before all that is appended is committed; `None` if it is.
    pub fn awaited_offset(&self) -> Option<i64> {
        self.appended.back().map(|(end, _)| *end)
    }

    /// Whether everything done is appended.
    pub fn is_settled(&self) -> bool {
        self.collected.is_empty() && self.in_flight.is_empty()
    }

    /// The batch was refused: the machine goes back to before it, and with it everything done since.
    pub fn append_failed(&mut self) -> Settled<M> {
        let mut undone = std::mem::take(&mut self.in_flight).into_iter().chain(self.collected.drain(..));
        let Some(first) = undone.next() else { return Settled::default() };
        let replies: Vec<_> =
            first.held.replies.into_iter().chain(undone.flat_map(|write| write.held.replies)).collect();
        self.machine = first.before;
        Settled { failed: self.close_from(first.first_ticket, replies), ..Settled::default() }
    }

    /// Gives up everything: all requests that wait.
    pub fn unload(self) -> Vec<Ticket> {
        self.open.into_iter().collect()
    }

    fn let_go(&mut self, held: Held<M>) -> Settled<M> {
        Settled { replies: self.close(held.replies), effects: held.effects, failed: Vec::new() }
    }

    /// Closes the tickets of answers that go out now. One that was closed before has no one waiting.
    fn close(&mut self, replies: Replies<M>) -> Replies<M> {
        replies.into_iter().filter(|(ticket, _)| self.open.remove(ticket)).collect()
    }

    /// Closes the tickets of answers that are taken back, and all from `first` on: their requests have left no trace.
    fn close_from(&mut self, first: Ticket, replies: Replies<M>) -> Vec<Ticket> {
        let mut closed: BTreeSet<Ticket> = self.open.split_off(&first);
        closed
            .extend(replies.into_iter().map(|(ticket, _)| ticket).filter(|ticket| self.open.remove(ticket)));
        closed.into_iter().collect()
    }
}
