//! How a transaction ends: by its producer, its timeout or its producer's successor; then by markers.

use callboard_protocol::{ByteString, ErrorCode};

use super::request::{End, Reply, Request};
use super::shard::{Effect, Markers, TransactionOutcome, TransactionShard};
use super::state::{Decision, NO_PRODUCER_ID, State, TopicPartition, Transaction};
use crate::cluster::Circumstances;
use crate::runtime::{Outcome, Producer, Ticket};

/// From this version of the protocol on each end raises the epoch (KIP-890).
const FIRST_WITH_RAISED_EPOCH: i16 = 2;

/// What to do about an EndTxn.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Decide,
    /// It was done before.
    Done,
    Refuse(ErrorCode),
}

impl TransactionShard {
    /// Decides on a transaction. It is answered once the decision is in the log; markers follow.
    pub(super) fn end(
        &mut self,
        ticket: Ticket,
        request: End,
        fresh_id: Option<i64>,
        cx: &Circumstances<'_>,
    ) -> TransactionOutcome {
        let answer = |answer| Outcome::reply(ticket, Reply::Producer(answer));
        let id = request.transactional_id.clone();
        if id.is_empty() {
            return answer(Err(ErrorCode::InvalidRequest));
        }
        let Some(present) = self.transactions.get(&id).cloned() else {
            return answer(Err(ErrorCode::InvalidProducerIdMapping));
        };
        let raises = request.client_version >= FIRST_WITH_RAISED_EPOCH;
        let step = if raises { step_raising(&present, &request) } else { step(&present, &request) };
        match step {
            Step::Refuse(error) => return answer(Err(error)),
            Step::Done => return answer(Ok(present.producer)),
            Step::Decide => {}
        }
        let mut transaction = Transaction::clone(&present);
        transaction.client_version = request.client_version;
        if raises {
            if present.is_exhausted() {
                let Some(fresh_id) = fresh_id else {
                    return self.wait_for_id(ticket, Request::End(request));
                };
                transaction.next_producer_id = fresh_id;
            }
            transaction.raise_epoch();
        }
        let mut outcome = answer(Ok(transaction.coming()));
        self.decide(&id, transaction, request.decision, &mut outcome, cx);
        outcome
    }

    /// Aborts an open transaction against its producer, whose epoch is no longer good.
    pub(super) fn fence_and_abort(
        &mut self,
        id: &ByteString,
        outcome: &mut TransactionOutcome,
        cx: &Circumstances<'_>,
    ) {
        let Some(present) = self.transactions.get(id).filter(|present| present.state == State::Ongoing)
        else {
            return;
        };
        let mut transaction = Transaction::clone(present);
        transaction.raise_epoch();
        self.decide(id, transaction, Decision::Abort, outcome, cx);
    }

    fn decide(
        &mut self,
        id: &ByteString,
        mut transaction: Transaction,
        decision: Decision,
        outcome: &mut TransactionOutcome,
        cx: &Circumstances<'_>,
    ) {
        if transaction.state != State::Ongoing {
            // The abort of a transaction in which nothing was done: it begins now.
            transaction.started_ms = cx.now_ms;
        }
        transaction.state = State::prepare(decision);
        transaction.updated_ms = cx.now_ms;
        self.write(id, transaction, outcome, cx);
        self.send_markers(id, outcome, cx);
    }

    /// Has markers written for what is prepared. Without partitions it is complete.
    pub(super) fn send_markers(
        &mut self,
        id: &ByteString,
        outcome: &mut TransactionOutcome,
        cx: &Circumstances<'_>,
    ) {
        let Some(present) = self.transactions.get(id).cloned() else { return };
        let Some(decision) = present.state.prepared() else { return };
        if present.partitions.is_empty() {
            return self.complete(id, decision, outcome, cx);
        }
        let marking = self.next_marking();
        outcome.effects.push(Effect::WriteMarkers(Markers {
            transactional_id: id.clone(),
            marking,
            producer: present.producer,
            decision,
            client_version: present.client_version,
            partitions: present.partitions.iter().cloned().collect(),
        }));
        self.put(id, Transaction { marking, ..Transaction::clone(&present) }, cx);
    }

    /// A partition's leader has written a marker, or the partition is gone for good. With the last one the transaction
    /// is complete. News of other markers than those on their way is passed over.
    pub fn marked(
        &mut self,
        transactional_id: &ByteString,
        marking: u64,
        partitions: &[TopicPartition],
        cx: &Circumstances<'_>,
    ) -> TransactionOutcome {
        let mut outcome = TransactionOutcome::default();
        let Some(present) = self.transactions.get(transactional_id) else { return outcome };
        let Some(decision) = present.state.prepared().filter(|_| present.marking == marking) else {
            return outcome;
        };
        let mut transaction = Transaction::clone(present);
        for partition in partitions {
            transaction.partitions.remove(partition);
        }
        let is_complete = transaction.partitions.is_empty();
        self.put(transactional_id, transaction, cx);
        if is_complete {
            self.complete(transactional_id, decision, &mut outcome, cx);
        }
        outcome
    }

    fn complete(
        &mut self,
        id: &ByteString,
        decision: Decision,
        outcome: &mut TransactionOutcome,
        cx: &Circumstances<'_>,
    ) {
        let Some(present) = self.transactions.get(id) else { return };
        let mut transaction = Transaction::clone(present);
        transaction.state = State::complete(decision);
        transaction.updated_ms = cx.now_ms;
        if transaction.next_producer_id != NO_PRODUCER_ID {
            transaction.previous_producer_id = transaction.producer.id;
            transaction.producer = Producer { id: transaction.next_producer_id, epoch: 0 };
            transaction.next_producer_id = NO_PRODUCER_ID;
        }
        self.write(id, transaction, outcome, cx);
        self.unpark(id, outcome, cx);
    }
}

/// EndTxn of the former protocol, which keeps the epoch: the same decision once more is fine.
fn step(present: &Transaction, request: &End) -> Step {
    if request.producer.id != present.producer.id {
        return Step::Refuse(ErrorCode::InvalidProducerIdMapping);
    }
    if request.producer.epoch != present.producer.epoch {
        return Step::Refuse(ErrorCode::ProducerFenced);
    }
    let same = |decision: Decision| decision == request.decision;
    match present.state {
        State::Ongoing => Step::Decide,
        State::CompleteCommit if same(Decision::Commit) => Step::Done,
        State::CompleteAbort if same(Decision::Abort) => Step::Done,
        State::PrepareCommit if same(Decision::Commit) => Step::Refuse(ErrorCode::ConcurrentTransactions),
        State::PrepareAbort if same(Decision::Abort) => Step::Refuse(ErrorCode::ConcurrentTransactions),
        State::Empty
        | State::PrepareCommit
        | State::PrepareAbort
        | State::CompleteCommit
        | State::CompleteAbort => Step::Refuse(ErrorCode::InvalidTxnState),
    }
}

/// EndTxn of transaction.version 2: a repeated one is told by its epoch, which is one behind. A transaction in which
/// nothing was done can be aborted, not committed.
fn step_raising(present: &Transaction, request: &End) -> Step {
    let repeated = present.may_have_ended(request.producer);
    let is_present = request.producer == present.producer;
    if request.producer.id != present.producer.id && !repeated {
        return Step::Refuse(ErrorCode::InvalidProducerIdMapping);
    }
    let known = match present.state {
        State::Empty | State::Ongoing => is_present,
        // With its new epoch it ends the next transaction while this one's markers are written. Kafka 4.4 calls it fenced,
        // which ends a healthy producer; here it is to ask again.
        State::PrepareCommit | State::PrepareAbort if is_present => {
            return Step::Refuse(ErrorCode::ConcurrentTransactions);
        }
        State::PrepareCommit | State::PrepareAbort => repeated,
        State::CompleteCommit | State::CompleteAbort => repeated || is_present,
    };
    if !known {
        return Step::Refuse(ErrorCode::ProducerFenced);
    }
    match (present.state, request.decision) {
        (State::Ongoing, _) => Step::Decide,
        (State::PrepareCommit, Decision::Commit) | (State::PrepareAbort, Decision::Abort) => {
            Step::Refuse(ErrorCode::ConcurrentTransactions)
        }
        (State::CompleteCommit, Decision::Commit) | (State::CompleteAbort, Decision::Abort) if repeated => {
            Step::Done
        }
        (State::Empty, Decision::Abort) => Step::Decide,
        (State::CompleteCommit | State::CompleteAbort, Decision::Abort) if !repeated => Step::Decide,
        _ => Step::Refuse(ErrorCode::InvalidTxnState),
    }
}
