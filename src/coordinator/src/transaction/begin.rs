//! How a transaction begins: a producer for an id, and the partitions that take part.

use std::sync::Arc;

use callboard_protocol::{ByteString, ErrorCode};

use super::request::{AddPartitions, InitProducer, Reply, Request, Verify};
use super::shard::{Parked, TransactionOutcome, TransactionShard};
use super::state::{Claim, NO_EPOCH, State, Transaction};
use crate::cluster::Circumstances;
use crate::runtime::{Outcome, Producer, Ticket};

/// What a producer may be given next.
enum Next {
    /// The epoch after the present one.
    Epoch,
    /// The present one once more: its holder missed the answer.
    Again,
    /// Another id, as the epochs of this one are used up.
    Id,
}

impl TransactionShard {
    /// Gives a transactional id a producer, or its producer another epoch. An open transaction is aborted first, and the
    /// caller asked to come again.
    pub(super) fn init(
        &mut self,
        ticket: Ticket,
        request: InitProducer,
        fresh_id: Option<i64>,
        cx: &Circumstances<'_>,
    ) -> TransactionOutcome {
        let refuse = |error| Outcome::reply(ticket, Reply::Producer(Err(error)));
        if request.transactional_id.is_empty() {
            return refuse(ErrorCode::InvalidRequest);
        }
        if request.timeout_ms <= 0 || request.timeout_ms > cx.settings.transactions.max_timeout_ms {
            return refuse(ErrorCode::InvalidTransactionTimeout);
        }
        let id = request.transactional_id.clone();
        let mut outcome = TransactionOutcome::default();
        let Some(present) = self.transactions.get(&id).cloned() else {
            // A producer that the coordinator has forgotten begins anew.
            let Some(fresh_id) = fresh_id else { return self.wait_for_id(ticket, Request::Init(request)) };
            let transaction = Transaction::new(fresh_id, request.timeout_ms, cx.now_ms);
            outcome.replies.push((ticket, Reply::Producer(Ok(transaction.producer))));
            self.write(&id, transaction, &mut outcome, cx);
            return outcome;
        };
        let next = match next(&present, request.present) {
            Ok(next) => next,
            Err(error) => return refuse(error),
        };
        match present.state {
            State::PrepareCommit | State::PrepareAbort => return refuse(ErrorCode::ConcurrentTransactions),
            State::Ongoing => {
                self.fence_and_abort(&id, &mut outcome, cx);
                outcome.replies.push((ticket, Reply::Producer(Err(ErrorCode::ConcurrentTransactions))));
                return outcome;
            }
            State::Empty | State::CompleteCommit | State::CompleteAbort => {}
        }
        let mut transaction = Transaction {
            state: State::Empty,
            timeout_ms: request.timeout_ms,
            started_ms: -1,
            updated_ms: cx.now_ms,
            ..Transaction::clone(&present)
        };
        let claimed = request.present.map_or(NO_EPOCH, |_| present.producer.epoch);
        match next {
            Next::Again => {}
            Next::Epoch => {
                transaction.raise_epoch();
                transaction.previous_producer_id = transaction.producer.id;
                transaction.last_epoch = claimed;
            }
            Next::Id => {
                let Some(fresh_id) = fresh_id else {
                    return self.wait_for_id(ticket, Request::Init(request));
                };
                transaction.previous_producer_id = present.producer.id;
                transaction.producer = Producer { id: fresh_id, epoch: 0 };
                transaction.last_epoch = claimed;
            }
        }
        outcome.replies.push((ticket, Reply::Producer(Ok(transaction.producer))));
        self.write(&id, transaction, &mut outcome, cx);
        outcome
    }

    /// Adds partitions to a transaction, which begins with the first of them.
    pub(super) fn add(
        &mut self,
        ticket: Ticket,
        request: AddPartitions,
        cx: &Circumstances<'_>,
    ) -> TransactionOutcome {
        let answer = |answer| Outcome::reply(ticket, Reply::Added(answer));
        let id = request.transactional_id.clone();
        let present = match self.open_to(&id, request.producer) {
            Ok(present) => present,
            Err(ErrorCode::ConcurrentTransactions) if request.patience_ms > 0 => {
                let until_ms = cx.monotonic_ms.saturating_add(request.patience_ms);
                self.park(ticket, request, until_ms);
                return TransactionOutcome::default();
            }
            Err(error) => return answer(Err(error)),
        };
        let began = present.state != State::Ongoing;
        if !began && request.partitions.iter().all(|partition| present.partitions.contains(partition)) {
            return answer(Ok(()));
        }
        let mut transaction = Transaction::clone(&present);
        if began {
            transaction.state = State::Ongoing;
            transaction.started_ms = cx.now_ms;
        }
        transaction.partitions.extend(request.partitions);
        transaction.updated_ms = cx.now_ms;
        transaction.client_version = request.client_version;
        let mut outcome = answer(Ok(()));
        self.write(&id, transaction, &mut outcome, cx);
        outcome
    }

    /// Whether each partition is in a transaction.
    pub(super) fn verify(&self, request: &Verify) -> Result<Vec<bool>, ErrorCode> {
        let present = self.open_to(&request.transactional_id, request.producer)?;
        Ok(request.partitions.iter().map(|partition| present.partitions.contains(partition)).collect())
    }

    /// The transaction of an id, if this producer may go on with it now.
    fn open_to(&self, id: &ByteString, producer: Producer) -> Result<Arc<Transaction>, ErrorCode> {
        if id.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        let present = self.transactions.get(id).ok_or(ErrorCode::InvalidProducerIdMapping)?;
        match present.claim(producer) {
            Claim::Unknown => Err(ErrorCode::InvalidProducerIdMapping),
            // The former epoch is good only to ask for another.
            Claim::Former if producer.id != present.producer.id => Err(ErrorCode::InvalidProducerIdMapping),
            Claim::Former | Claim::Fenced => Err(ErrorCode::ProducerFenced),
            Claim::Coming => Err(ErrorCode::ConcurrentTransactions),
            Claim::Present if present.state.prepared().is_some() => Err(ErrorCode::ConcurrentTransactions),
            Claim::Present => Ok(present.clone()),
        }
    }

    fn park(&mut self, ticket: Ticket, request: AddPartitions, until_ms: i64) {
        let id = request.transactional_id.clone();
        self.timers.parked.insert((until_ms, ticket, id.clone()));
        self.parked.entry(id).or_default().push_back(Parked { ticket, request: Arc::new(request), until_ms });
    }

    /// Goes on with the requests that waited for the end of an id's transaction.
    pub(super) fn unpark(
        &mut self,
        id: &ByteString,
        outcome: &mut TransactionOutcome,
        cx: &Circumstances<'_>,
    ) {
        for Parked { ticket, request, until_ms } in self.parked.remove(id).into_iter().flatten() {
            self.timers.parked.remove(&(until_ms, ticket, id.clone()));
            let request = AddPartitions { patience_ms: 0, ..Arc::unwrap_or_clone(request) };
            outcome.extend(self.add(ticket, request, cx));
        }
    }
}

/// What a producer is given next. One that names itself must be the present one, or have missed the last answer: this
/// too keeps it from ending the transaction of its successor.
fn next(present: &Transaction, named: Option<Producer>) -> Result<Next, ErrorCode> {
    let claim = named.map_or(Claim::Present, |producer| present.claim(producer));
    match claim {
        Claim::Present if present.is_exhausted() => Ok(Next::Id),
        Claim::Present => Ok(Next::Epoch),
        Claim::Former => Ok(Next::Again),
        Claim::Coming => Err(ErrorCode::ConcurrentTransactions),
        Claim::Fenced | Claim::Unknown => Err(ErrorCode::ProducerFenced),
    }
}
