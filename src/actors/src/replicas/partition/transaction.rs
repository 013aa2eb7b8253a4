//! Transactions in a partition: who may write in one, and the markers that end them.

use std::collections::BTreeMap;

use callboard_protocol::ErrorCode;
use callboard_protocol::records::RecordBatch;
use callboard_protocol::records::control::EndTransactionMarker;
use callboard_protocol::records::rebuild::Ready;
use callboard_storage::{AppendError, Log, Origin};

use super::append::code_of;
use super::{Holding, Partition};
use crate::replicas::messages::{Marked, MayWrite, Membership, WriteMarker};
use crate::supervision::{Context, Handler, ReplyTo};

/// From this version on a marker's epoch is above that of the records (KIP-890).
const FIRST_WITH_RAISED_EPOCH: i8 = 2;

/// Producers whose partition the coordinator is asked about. A marker ends the question: what the coordinator said
/// before it is no longer true.
#[derive(Debug, Default)]
pub(super) struct Verifying {
    numbers: BTreeMap<i64, u64>,
    last: u64,
    /// The last number when old ones were forgotten.
    last_forgotten: u64,
}

impl Verifying {
    fn begin(&mut self, producer_id: i64) -> u64 {
        *self.numbers.entry(producer_id).or_insert_with(|| {
            self.last += 1;
            self.last
        })
    }

    fn is_current(&self, producer_id: i64, number: u64) -> bool {
        self.numbers.get(&producer_id) == Some(&number)
    }

    fn end(&mut self, producer_id: i64) {
        self.numbers.remove(&producer_id);
    }

    /// Forgets questions from before the last time that this was called: nobody comes back with them.
    pub(super) fn forget_old(&mut self) {
        let until = std::mem::replace(&mut self.last_forgotten, self.last);
        self.numbers.retain(|_, number| *number > until);
    }
}

/// Whether a producer's transaction is open at this epoch.
fn is_open(log: &Log, producer_id: i64, epoch: i16) -> bool {
    let entry = log.producer(producer_id);
    entry.is_some_and(|entry| entry.epoch == epoch && entry.txn_first_offset.is_some())
}

impl Partition {
    /// Whether a client's batch may be written, as to its transaction.
    pub(super) fn check_membership(
        &mut self,
        batch: &Ready,
        origin: Origin,
        membership: Membership,
    ) -> Result<(), ErrorCode> {
        let Holding::Open(log) = &self.holding else { return Err(ErrorCode::NotLeaderOrFollower) };
        let header = &batch.header;
        if origin != Origin::Client || !header.is_transactional() || membership == Membership::Unchecked {
            return Ok(());
        }
        if is_open(log, header.producer_id, header.producer_epoch) {
            return Ok(());
        }
        match membership {
            Membership::Verified(number) if self.verifying.is_current(header.producer_id, number) => Ok(()),
            Membership::AsOpen | Membership::Verified(_) | Membership::Unchecked => {
                Err(ErrorCode::InvalidTxnState)
            }
        }
    }

    fn write_marker(&mut self, marker: &WriteMarker, ctx: &mut Context<Self>) -> Result<Marked, ErrorCode> {
        if let Some(error) = self.refuses() {
            return Err(error);
        }
        let Holding::Open(log) = &mut self.holding else { return Err(ErrorCode::NotLeaderOrFollower) };
        self.verifying.end(marker.producer_id);
        let leader_epoch = self.leader_epoch;
        if marker.transaction_version >= FIRST_WITH_RAISED_EPOCH
            && let Some(entry) = log.producer(marker.producer_id)
            && entry.epoch == marker.producer_epoch
        {
            // With a raised epoch each marker ends one transaction only: this one was written before, or is late and
            // not for the transaction that is open now (KAFKA-19999).
            return match entry.txn_first_offset {
                None => Ok(Marked { leader_epoch, required_high_watermark: log.log_end_offset() }),
                Some(_) => Err(ErrorCode::InvalidProducerEpoch),
            };
        }
        let now_ms = ctx.now_ms();
        let control =
            EndTransactionMarker { committed: marker.committed, coordinator_epoch: marker.coordinator_epoch };
        let batch = control
            .batch(0, leader_epoch, marker.producer_id, marker.producer_epoch, now_ms)
            .and_then(RecordBatch::parse)
            .map_err(|_| ErrorCode::UnknownServerError)?;
        let ready = Ready { header: batch.header, payload: batch.payload() };
        let appended = match log.append_as_leader(&[ready], leader_epoch, Origin::Coordinator, now_ms) {
            Ok(appended) => appended,
            Err(AppendError::Storage(error)) => {
                if !error.is_full() || log.is_failed() {
                    self.go_offline(&error, ctx);
                }
                return Err(ErrorCode::KafkaStorageError);
            }
            Err(error) => return Err(code_of(&error)),
        };
        self.after_append(1, appended.rolled, ctx);
        Ok(Marked { leader_epoch, required_high_watermark: appended.last_offset + 1 })
    }
}

impl Handler<MayWrite> for Partition {
    fn handle(
        &mut self,
        message: MayWrite,
        reply: ReplyTo<Result<Option<u64>, ErrorCode>>,
        _: &mut Context<Self>,
    ) {
        if let Some(error) = self.refuses() {
            return reply.send(Err(error));
        }
        let Holding::Open(log) = &self.holding else { return };
        let open = is_open(log, message.producer_id, message.producer_epoch);
        reply.send(Ok((!open).then(|| self.verifying.begin(message.producer_id))));
    }
}

impl Handler<WriteMarker> for Partition {
    fn handle(
        &mut self,
        message: WriteMarker,
        reply: ReplyTo<Result<Marked, ErrorCode>>,
        ctx: &mut Context<Self>,
    ) {
        let outcome = self.write_marker(&message, ctx);
        reply.send(outcome);
    }
}
