//! The runtime that all coordinators share.
//!
//! A coordinator's shard is a [`Machine`]: a value in persistent maps, so that a snapshot is a clone of roots. It is
//! driven by a [`Runtime`], which knows nothing of groups or transactions:
//!
//! 1. A request is given a [`Ticket`] and run. The machine changes itself at once and gives back an [`Outcome`]: the
//!    records that say what changed, the answers (to this request or to earlier ones that waited), and work for others.
//! 2. Records are collected into batches and appended, one batch at a time. An answer is let go when the log's high
//!    watermark has passed the records it came with, or the last ones before it if it came with none: so nobody is told
//!    what might still be taken back. The same holds for work for others.
//! 3. If an append fails, the machine goes back to what it was before the batch's first record, and with it everything
//!    done since. All who asked since are told so.
//!
//! Timers are no callbacks: the machine keeps its deadlines itself, so that they go back with it. Whoever drives it asks
//! for the next one ([`Machine::next_deadline_ms`]) and calls when it is due.

mod pipeline;
#[cfg(test)]
mod tests;

use std::fmt;

use bytes::Bytes;
use callboard_protocol::ByteString;
use callboard_protocol::wire::{DecodeError, EncodeError};

pub use pipeline::{Batch, Runtime, Settled};

use crate::cluster::Circumstances;
use crate::error::ReplayError;

/// Stands for one request that waits for its answer. Later requests have higher ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A record's bytes, as the log keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedRecord {
    /// The key.
    pub key: Bytes,
    /// The value; `None` is a tombstone.
    pub value: Option<Bytes>,
}

/// Bytes a record takes in a batch beside its key and value, at most.
const RECORD_OVERHEAD_BYTES: usize = 32;

impl EncodedRecord {
    /// Bytes the record takes in a batch, at most.
    pub fn size_bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Bytes::len) + RECORD_OVERHEAD_BYTES
    }
}

/// The transactional producer on whose behalf records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Producer {
    /// Its id.
    pub id: i64,
    /// Its epoch.
    pub epoch: i16,
}

/// One thing read from a coordinator's log.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry<R> {
    /// A record; with a producer, it counts once that producer's transaction is committed.
    Record(R, Option<Producer>),
    /// The end of a producer's transaction in this partition.
    Marker {
        /// Whose.
        producer: Producer,
        /// Whether it is committed.
        committed: bool,
    },
}

/// The state of one coordinator's shard.
pub trait Machine: Clone {
    /// What it writes.
    type Record: fmt::Debug;
    /// What it answers.
    type Reply: fmt::Debug + Send + 'static;
    /// What it asks others to do for it; the result comes back as an input of its own.
    type Effect: fmt::Debug + Send + 'static;

    /// A record as the log keeps it.
    ///
    /// # Errors
    /// A field is too long for its type.
    fn encode(record: &Self::Record) -> Result<EncodedRecord, EncodeError>;

    /// A record read from the log.
    ///
    /// # Errors
    /// The bytes are not what their type says. [`DecodeError::UnknownRecord`] for a type of a later Kafka.
    fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Self::Record, DecodeError>;

    /// Takes in what the log says: at loading, and for records that the machine itself writes where it says so.
    ///
    /// # Errors
    /// The record can't be: the log is corrupt.
    fn replay(&mut self, entry: &Entry<Self::Record>) -> Result<(), ReplayError>;

    /// When it next wants to be called ([`Coordinator::on_time`]), in milliseconds of the monotonic clock.
    fn next_deadline_ms(&self) -> Option<i64>;
}

/// A machine that answers requests: what an actor drives.
pub trait Coordinator: Machine + Default + Send + 'static {
    /// What it is asked.
    type Request: Send + 'static;
    /// What comes back from an effect.
    type Done: Send + 'static;

    /// Handles one request. It is answered by this call or by a later one, under its ticket.
    fn handle(&mut self, ticket: Ticket, request: Self::Request, cx: &mut Circumstances<'_>)
    -> Outcome<Self>;

    /// Does all that is due.
    fn on_time(&mut self, cx: &mut Circumstances<'_>) -> Outcome<Self>;

    /// The log has been read to its end.
    fn loaded(&mut self, cx: &mut Circumstances<'_>) -> Outcome<Self>;

    /// The cluster's topics have changed; `deleted` are the names of those that are gone.
    fn metadata_changed(&mut self, deleted: &[ByteString], cx: &mut Circumstances<'_>) -> Outcome<Self>;

    /// Does the work of an effect that needs no one else. It runs apart from the shard, and may take long. A driver that
    /// has others do the work does not call it.
    fn perform(effect: Self::Effect) -> Self::Done;

    /// The work of an effect is done.
    fn performed(&mut self, done: Self::Done, cx: &mut Circumstances<'_>) -> Outcome<Self>;
}

/// What one call into a machine comes to. The machine has changed already: `records` say how.
#[derive(Debug)]
pub struct Outcome<M: Machine> {
    /// What to write. All of it goes into one batch, or nothing does.
    pub records: Vec<M::Record>,
    /// On whose behalf it is written, if in a transaction.
    pub producer: Option<Producer>,
    /// Answers to this request and to others that waited. They go out once `records` are committed.
    pub replies: Vec<(Ticket, M::Reply)>,
    /// Work for others. It leaves when the answers do: what may yet be taken back must not be seen elsewhere.
    pub effects: Vec<M::Effect>,
}

impl<M: Machine> Default for Outcome<M> {
    fn default() -> Self {
        Self { records: Vec::new(), producer: None, replies: Vec::new(), effects: Vec::new() }
    }
}

impl<M: Machine> Outcome<M> {
    /// An answer and nothing more.
    pub fn reply(ticket: Ticket, reply: M::Reply) -> Self {
        Self { replies: vec![(ticket, reply)], ..Self::default() }
    }

    /// Adds what another call came to.
    pub fn extend(&mut self, other: Self) {
        self.records.extend(other.records);
        self.producer = self.producer.or(other.producer);
        self.replies.extend(other.replies);
        self.effects.extend(other.effects);
    }
}
