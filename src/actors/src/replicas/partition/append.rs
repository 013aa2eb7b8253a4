//! Appending produced batches.

use callboard_protocol::ErrorCode;
use callboard_protocol::records::rebuild::{Ready, ready};
use callboard_protocol::records::validate::{Refusal, single_batch, validate};
use callboard_storage::{AppendError, Origin};

use super::{Holding, Partition};
use crate::replicas::messages::{Append, AppendRefusal, Appended};
use crate::replicas::purgatory::Kind;
use crate::supervision::{Context, Handler, ReplyTo};

impl Handler<Append> for Partition {
    fn handle(
        &mut self,
        message: Append,
        reply: ReplyTo<Result<Appended, AppendRefusal>>,
        ctx: &mut Context<Self>,
    ) {
        let outcome = self.append(message, ctx);
        reply.send(outcome);
    }
}

impl Partition {
    fn append(&mut self, message: Append, ctx: &mut Context<Self>) -> Result<Appended, AppendRefusal> {
        if let Some(error) = self.refuses() {
            return Err(AppendRefusal::of(error));
        }
        // More than there are replicas can't be asked for: the setting is capped to their number, as in Kafka.
        if message.all_replicas && self.in_sync < self.settings.min_insync_replicas.min(self.replicas) {
            return Err(AppendRefusal::of(ErrorCode::NotEnoughReplicas));
        }
        let now_ms = ctx.now_ms();
        let batch = self.prepare(&message, now_ms)?;
        self.check_membership(&batch, message.origin, message.membership).map_err(AppendRefusal::of)?;
        let directory = self.around.directories.get(self.shared.directory);
        if directory.is_some_and(|directory| !directory.take_room(batch.size_bytes())) {
            return Err(AppendRefusal::of(ErrorCode::KafkaStorageError));
        }
        let records = i64::from(batch.header.last_offset_delta) + 1;
        let Holding::Open(log) = &mut self.holding else {
            return Err(AppendRefusal::of(ErrorCode::NotLeaderOrFollower));
        };
        let log_start_offset = log.log_start_offset();
        let outcome = log.append_as_leader(&[batch], self.leader_epoch, message.origin, now_ms);
        let appended = match outcome {
            Ok(appended) => appended,
            Err(error) => {
                let refusal = AppendRefusal { log_start_offset, ..AppendRefusal::of(code_of(&error)) };
                if let AppendError::Storage(error) = error {
                    // A full disk is waited out: what was written of the batch has been cut off.
                    if !error.is_full() || log.is_failed() {
                        self.go_offline(&error, ctx);
                    }
                    return Err(AppendRefusal::of(ErrorCode::KafkaStorageError));
                }
                return Err(refusal);
            }
        };
        if !appended.duplicate {
            self.after_append(records, appended.rolled, ctx);
        }
        Ok(Appended {
            base_offset: appended.first_offset,
            log_append_time_ms: appended.log_append_time_ms,
            log_start_offset,
            leader_epoch: self.leader_epoch,
            required_high_watermark: appended.last_offset + 1,
        })
    }

    /// Checks a batch and makes it what the topic wants.
    fn prepare(&self, message: &Append, now_ms: i64) -> Result<Ready, AppendRefusal> {
        let rules = &self.settings.rules;
        let refuse = |refusal: Refusal| self.refusal(refusal);
        let batch = single_batch(&message.records, message.version).map_err(refuse)?;
        if message.origin == Origin::Coordinator && batch.header.has_producer_id() {
            // Offsets in a transaction have no sequence, which a client's batch must have.
            return Ok(Ready { header: batch.header, payload: batch.payload() });
        }
        let validated = validate(&batch, rules, now_ms).map_err(refuse)?;
        ready(&batch, &validated, rules, self.settings.levels).map_err(refuse)
    }

    fn refusal(&self, refusal: Refusal) -> AppendRefusal {
        let id = &self.shared.id;
        let log_start = || self.shared.view.reader().map_or(-1, |reader| reader.log_start_offset());
        AppendRefusal {
            error: ErrorCode::from(refusal.error_code()),
            log_start_offset: if refusal.names_log_start() { log_start() } else { -1 },
            records: refusal
                .refused_records()
                .iter()
                .map(|record| (record.index, record.message(&id.topic, id.partition)))
                .collect(),
            message: refusal.message(&id.topic, id.partition),
        }
    }

    pub(super) fn after_append(&mut self, records: i64, rolled: bool, ctx: &mut Context<Self>) {
        self.unflushed_records = self.unflushed_records.saturating_add(records);
        if self.settings.synced {
            // The high watermark moves, and those who wait are told, once it is on the device.
            return self.flush(ctx);
        }
        self.advance();
        self.changed(&[Kind::Fetch]);
        if rolled || self.unflushed_records >= self.settings.flush_messages {
            self.flush(ctx);
        } else {
            self.set_flush_timer(ctx);
        }
    }
}

/// What a client is told of a refused append.
pub(super) fn code_of(error: &AppendError) -> ErrorCode {
    match error {
        AppendError::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
        AppendError::InvalidProducerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
        AppendError::InvalidTxnState { .. } => ErrorCode::InvalidTxnState,
        AppendError::TransactionCoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
        AppendError::TooLarge { .. } => ErrorCode::RecordListTooLarge,
        // Replicas only; a leader gives the offsets itself.
        AppendError::UnexpectedOffset { .. } => ErrorCode::UnknownServerError,
        AppendError::InvalidBatch { .. } => ErrorCode::CorruptMessage,
        AppendError::Storage(_) => ErrorCode::KafkaStorageError,
    }
}
