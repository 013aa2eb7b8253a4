//! The shard: all transactional ids of one partition of `__transaction_state`.

use std::sync::Arc;

use bytes::Bytes;
use callboard_protocol::wire::{DecodeError, EncodeError};
use callboard_protocol::{ByteString, ErrorCode};
use imbl::{OrdMap, Vector};

use super::admin;
use super::record::TransactionRecord;
use super::request::{AddPartitions, Reply, Request};
use super::state::{Decision, TopicPartition, Transaction};
use super::timers::Timers;
use crate::cluster::Circumstances;
use crate::error::ReplayError;
use crate::runtime::{Coordinator, EncodedRecord, Entry, Machine, Outcome, Producer, Ticket};

/// The feature whose level decides how records are written.
const FEATURE: &str = "transaction.version";

/// What a call into a shard comes to.
pub type TransactionOutcome = Outcome<TransactionShard>;

/// Markers to be written by the leaders of some partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markers {
    /// Whose transaction.
    pub transactional_id: ByteString,
    /// The number of these markers: to be given back.
    pub marking: u64,
    /// The producer as the markers name it.
    pub producer: Producer,
    /// What was decided.
    pub decision: Decision,
    /// The version of the protocol that the client goes by (transaction.version): from 2 on the markers' epoch is above
    /// that of the records.
    pub client_version: i16,
    /// The partitions.
    pub partitions: Vec<TopicPartition>,
}

/// Work that a shard has others do. It leaves once all that it follows from is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Get a producer id that nobody else has: see [`TransactionShard::producer_id`].
    NextProducerId(Ticket),
    /// Write markers, for as long as it takes: see [`TransactionShard::marked`].
    WriteMarkers(Markers),
}

/// What comes back from an [`Effect`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// A producer id for the request that waits for it, or why there is none.
    ProducerId(Ticket, Result<i64, ErrorCode>),
    /// All of these markers are written, or their partitions are gone.
    Marked(Markers),
}

/// A request that waits for the end of the transaction before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parked {
    pub(super) ticket: Ticket,
    pub(super) request: Arc<AddPartitions>,
    pub(super) until_ms: i64,
}

/// All transactional ids of one partition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TransactionShard {
    /// By id.
    pub(super) transactions: OrdMap<ByteString, Arc<Transaction>>,
    /// What to look after when.
    pub(super) timers: Timers,
    /// Requests that wait for a producer id.
    pub(super) without_id: OrdMap<Ticket, Arc<Request>>,
    /// Requests that wait for markers.
    pub(super) parked: OrdMap<ByteString, Vector<Parked>>,
    /// Markings so far.
    markings: u64,
}

impl TransactionShard {
    /// Handles one request. It is answered by this call or by a later one, under its ticket.
    pub fn handle(&mut self, ticket: Ticket, request: Request, cx: &Circumstances<'_>) -> TransactionOutcome {
        self.handle_with(ticket, request, None, cx)
    }

    /// A producer id has come, or there is none to be had for now.
    pub fn producer_id(
        &mut self,
        ticket: Ticket,
        id: Result<i64, ErrorCode>,
        cx: &Circumstances<'_>,
    ) -> TransactionOutcome {
        let Some(request) = self.without_id.remove(&ticket) else { return TransactionOutcome::default() };
        match id {
            Ok(id) => self.handle_with(ticket, Arc::unwrap_or_clone(request), Some(id), cx),
            Err(error) => Outcome::reply(ticket, Reply::Producer(Err(error))),
        }
    }

    fn handle_with(
        &mut self,
        ticket: Ticket,
        request: Request,
        fresh_id: Option<i64>,
        cx: &Circumstances<'_>,
    ) -> TransactionOutcome {
        match request {
            Request::Init(request) => self.init(ticket, request, fresh_id, cx),
            Request::End(request) => self.end(ticket, request, fresh_id, cx),
            Request::Add(request) => self.add(ticket, request, cx),
            Request::Verify(request) => Outcome::reply(ticket, Reply::Verified(self.verify(&request))),
            Request::Describe(id) => {
                Outcome::reply(ticket, Reply::Described(self.transactions.get(&id).cloned()))
            }
            Request::List(request) => Outcome::reply(ticket, Reply::Listed(admin::list(self, &request, cx))),
        }
    }

    /// Asks for a producer id; the request goes on when it comes.
    pub(super) fn wait_for_id(&mut self, ticket: Ticket, request: Request) -> TransactionOutcome {
        self.without_id.insert(ticket, Arc::new(request));
        Outcome { effects: vec![Effect::NextProducerId(ticket)], ..Outcome::default() }
    }

    /// The log has been read to its end: what was prepared gets its markers, and ids are looked through from now on.
    pub fn loaded(&mut self, cx: &Circumstances<'_>) -> TransactionOutcome {
        let mut outcome = TransactionOutcome::default();
        let prepared: Vec<ByteString> = self
            .transactions
            .iter()
            .filter(|(_, transaction)| transaction.state.prepared().is_some())
            .map(|(id, _)| id.clone())
            .collect();
        for id in prepared {
            self.send_markers(&id, &mut outcome, cx);
        }
        for (id, transaction) in &self.transactions {
            self.timers.set_deadline(id, transaction, cx);
        }
        self.timers.look_for_expired_at(
            cx.monotonic_ms.saturating_add(cx.settings.transactions.expiry_check_interval_ms),
        );
        outcome
    }

    /// The transaction of an id.
    pub fn transaction(&self, transactional_id: &str) -> Option<&Arc<Transaction>> {
        self.transactions.get(transactional_id)
    }

    /// All ids, in order.
    pub fn transactions(&self) -> impl Iterator<Item = (&ByteString, &Arc<Transaction>)> {
        self.transactions.iter()
    }

    /// Puts a transaction in its place, and writes it down.
    pub(super) fn write(
        &mut self,
        id: &ByteString,
        transaction: Transaction,
        outcome: &mut TransactionOutcome,
        cx: &Circumstances<'_>,
    ) {
        let level = cx.cluster.feature_level(FEATURE);
        outcome.records.push(TransactionRecord::of(id, &transaction, level));
        self.put(id, transaction, cx);
    }

    /// Puts a transaction in its place.
    pub(super) fn put(&mut self, id: &ByteString, transaction: Transaction, cx: &Circumstances<'_>) {
        self.timers.set_deadline(id, &transaction, cx);
        self.transactions.insert(id.clone(), Arc::new(transaction));
    }

    /// A number for markers that no others have.
    pub(super) fn next_marking(&mut self) -> u64 {
        self.markings += 1;
        self.markings
    }

    fn replay_record(&mut self, record: &TransactionRecord) -> Result<(), ReplayError> {
        match record.transaction()? {
            Some(transaction) => {
                self.transactions.insert(record.transactional_id.clone(), Arc::new(transaction));
            }
            None => {
                self.transactions.remove(&record.transactional_id);
            }
        }
        Ok(())
    }
}

impl Machine for TransactionShard {
    type Record = TransactionRecord;
    type Reply = Reply;
    type Effect = Effect;

    fn encode(record: &TransactionRecord) -> Result<EncodedRecord, EncodeError> {
        record.encode()
    }

    fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<TransactionRecord, DecodeError> {
        TransactionRecord::decode(key, value)
    }

    fn replay(&mut self, entry: &Entry<TransactionRecord>) -> Result<(), ReplayError> {
        match entry {
            Entry::Record(record, _) => self.replay_record(record),
            // Nothing in this log is written in transactions.
            Entry::Marker { .. } => Ok(()),
        }
    }

    fn next_deadline_ms(&self) -> Option<i64> {
        self.timers.next_ms()
    }
}

impl Coordinator for TransactionShard {
    type Request = Request;
    type Done = Done;

    fn handle(&mut self, ticket: Ticket, request: Request, cx: &mut Circumstances<'_>) -> TransactionOutcome {
        self.handle_with(ticket, request, None, cx)
    }

    fn on_time(&mut self, cx: &mut Circumstances<'_>) -> TransactionOutcome {
        Self::on_time(self, cx)
    }

    fn loaded(&mut self, cx: &mut Circumstances<'_>) -> TransactionOutcome {
        Self::loaded(self, cx)
    }

    /// A topic that is gone is noticed by those who write markers to it.
    fn metadata_changed(&mut self, _: &[ByteString], _: &mut Circumstances<'_>) -> TransactionOutcome {
        TransactionOutcome::default()
    }

    /// Without others to ask nothing comes of it: there is no id, and no marker is written.
    fn perform(effect: Effect) -> Done {
        match effect {
            Effect::NextProducerId(ticket) => {
                Done::ProducerId(ticket, Err(ErrorCode::CoordinatorNotAvailable))
            }
            Effect::WriteMarkers(markers) => Done::Marked(Markers { partitions: Vec::new(), ..markers }),
        }
    }

    fn performed(&mut self, done: Done, cx: &mut Circumstances<'_>) -> TransactionOutcome {
        match done {
            Done::ProducerId(ticket, id) => self.producer_id(ticket, id, cx),
            Done::Marked(markers) => {
                self.marked(&markers.transactional_id, markers.marking, &markers.partitions, cx)
            }
        }
    }
}
