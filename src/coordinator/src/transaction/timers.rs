//! A shard's deadlines, kept with its state so that they go back with it.

use callboard_protocol::{ByteString, ErrorCode};
use imbl::{OrdMap, OrdSet};

use super::shard::{TransactionOutcome, TransactionShard};
use super::state::{State, Transaction};
use super::{Reply, TransactionRecord};
use crate::cluster::Circumstances;
use crate::runtime::Ticket;

/// How many transactions are aborted, or ids removed, with one batch of records at most.
const AT_ONCE: usize = 500;

/// All deadlines of a shard, in milliseconds of the monotonic clock. Records have times of the wall clock, which a new
/// coordinator goes by once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Timers {
    /// When the time of each open transaction is up.
    open: OrdMap<ByteString, i64>,
    /// The same in order of time.
    overdue: OrdSet<(i64, ByteString)>,
    /// Not before this are overdue transactions looked for again.
    look_for_overdue_ms: Option<i64>,
    /// When ids that were long unused are looked for.
    look_for_expired_ms: Option<i64>,
    /// Requests that wait for markers, by how long they do.
    pub(super) parked: OrdSet<(i64, Ticket, ByteString)>,
}

impl Timers {
    /// Sets when the time of a transaction is up, if it is open; else it has no such time.
    pub(super) fn set_deadline(
        &mut self,
        id: &ByteString,
        transaction: &Transaction,
        cx: &Circumstances<'_>,
    ) {
        match (self.open.get(id).copied(), transaction.deadline_ms()) {
            (None, Some(deadline_ms)) => {
                // A wall clock that was wrong when the transaction began does not make it last longer.
                let longest_ms = i64::from(transaction.timeout_ms.max(0));
                let left_ms = deadline_ms.saturating_sub(cx.now_ms).clamp(0, longest_ms);
                let at_ms = cx.monotonic_ms.saturating_add(left_ms);
                self.open.insert(id.clone(), at_ms);
                self.overdue.insert((at_ms, id.clone()));
            }
            (Some(former_ms), None) => {
                self.open.remove(id);
                self.overdue.remove(&(former_ms, id.clone()));
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    pub(super) fn look_for_expired_at(&mut self, at_ms: i64) {
        self.look_for_expired_ms = Some(at_ms);
    }

    /// When the first of all is due.
    pub(super) fn next_ms(&self) -> Option<i64> {
        let overdue = self.overdue.get_min().map(|(at_ms, _)| (*at_ms).max(self.not_before_ms()));
        let parked = self.parked.get_min().map(|(at_ms, ..)| *at_ms);
        [overdue, parked, self.look_for_expired_ms].into_iter().flatten().min()
    }

    fn not_before_ms(&self) -> i64 {
        self.look_for_overdue_ms.unwrap_or(i64::MIN)
    }

    fn overdue(&self, monotonic_ms: i64) -> Vec<ByteString> {
        let due = self.overdue.iter().take_while(|(at_ms, _)| *at_ms <= monotonic_ms);
        due.take(AT_ONCE).map(|(_, id)| id.clone()).collect()
    }
}

impl TransactionShard {
    /// Does what is due; what is too much for one batch of records stays due.
    pub fn on_time(&mut self, cx: &Circumstances<'_>) -> TransactionOutcome {
        let mut outcome = TransactionOutcome::default();
        self.give_up_waiting(&mut outcome, cx);
        self.abort_overdue(&mut outcome, cx);
        self.remove_expired(&mut outcome, cx);
        outcome
    }

    /// Answers those who have waited long enough for a transaction's end.
    fn give_up_waiting(&mut self, outcome: &mut TransactionOutcome, cx: &Circumstances<'_>) {
        while let Some((until_ms, ticket, id)) = self.timers.parked.get_min().cloned() {
            if until_ms > cx.monotonic_ms {
                break;
            }
            self.timers.parked.remove_min();
            if let Some(parked) = self.parked.get_mut(&id) {
                parked.retain(|waiting| waiting.ticket != ticket);
                if parked.is_empty() {
                    self.parked.remove(&id);
                }
            }
            outcome.replies.push((ticket, Reply::Added(Err(ErrorCode::ConcurrentTransactions))));
        }
    }

    /// Aborts transactions whose time is up, at most every `abort_check_interval_ms`.
    fn abort_overdue(&mut self, outcome: &mut TransactionOutcome, cx: &Circumstances<'_>) {
        if self.timers.not_before_ms() > cx.monotonic_ms {
            return;
        }
        let overdue = self.timers.overdue(cx.monotonic_ms);
        if overdue.is_empty() {
            return;
        }
        for id in &overdue {
            self.fence_and_abort(id, outcome, cx);
        }
        if overdue.len() < AT_ONCE {
            let next_ms = cx.monotonic_ms.saturating_add(cx.settings.transactions.abort_check_interval_ms);
            self.timers.look_for_overdue_ms = Some(next_ms);
        }
    }

    /// Removes ids that have no open transaction and that nobody used for `expiration_ms`.
    fn remove_expired(&mut self, outcome: &mut TransactionOutcome, cx: &Circumstances<'_>) {
        if self.timers.look_for_expired_ms.is_none_or(|at_ms| at_ms > cx.monotonic_ms) {
            return;
        }
        let until_ms = cx.now_ms.saturating_sub(cx.settings.transactions.expiration_ms);
        let idle = |state| matches!(state, State::Empty | State::CompleteCommit | State::CompleteAbort);
        let expired: Vec<ByteString> = self
            .transactions()
            .filter(|(_, transaction)| idle(transaction.state) && transaction.updated_ms <= until_ms)
            .take(AT_ONCE)
            .map(|(id, _)| id.clone())
            .collect();
        for id in &expired {
            self.transactions.remove(id);
            outcome.records.push(TransactionRecord::tombstone(id.clone()));
        }
        if expired.len() < AT_ONCE {
            let next_ms = cx.monotonic_ms.saturating_add(cx.settings.transactions.expiry_check_interval_ms);
            self.timers.look_for_expired_at(next_ms);
        }
    }
}
