//! A shard's records on their way into its partition's log, and past the high watermark.

use std::time::Duration;

use callboard_coordinator::runtime::{Batch, Coordinator};
use callboard_protocol::ErrorCode;
use callboard_protocol::records::{BatchBuilder, RecordError};
use callboard_storage::Origin;

use super::{Core, Ctx, RETRY_PAUSE, Shard, State};
use crate::replicas::messages::{Append, AppendRefusal, Appended, Membership};
use crate::replicas::{Goal, Kind, Wait};
use crate::supervision::AskError;

/// The pause before deadlines are looked at again after an append that was refused.
const REFUSED_PAUSE: Duration = Duration::from_millis(250);
/// How long one wait for the high watermark may take before it is begun anew.
const REPLICATION_WAIT: Duration = Duration::from_secs(30);
/// The version of Produce whose rules apply to the shard's own batches: all codecs.
const PRODUCE_VERSION: i16 = 12;
/// Bytes of a batch beside its records, at most.
const BATCH_OVERHEAD_BYTES: usize = 128;

impl<M: Coordinator> Shard<M> {
    /// Hands the next batch to the partition, unless one is on its way.
    pub(super) fn append_next(&mut self, ctx: &mut Ctx<M>) {
        let State::Active(active) = &mut self.state else { return };
        let load = active.load;
        let max_bytes = active.partition.max_batch_bytes();
        let Some(batch) = active.runtime.next_batch(max_bytes.saturating_sub(BATCH_OVERHEAD_BYTES)) else {
            return;
        };
        match self.core.encode(&batch, ctx.now_ms()) {
            Ok(records) => {
                let append = Append {
                    records,
                    version: PRODUCE_VERSION,
                    all_replicas: true,
                    origin: Origin::Coordinator,
                    membership: Membership::Unchecked,
                };
                let appending = active.partition.actor().ask(append);
                ctx.effect("append", appending, move |shard: &mut Self, outcome, ctx| {
                    shard.appended(load, outcome, ctx);
                });
            }
            Err(error) => {
                tracing::error!(partition = %active.led.id, "a batch can't be built: {error}");
                self.refused(ErrorCode::UnknownServerError, ctx);
            }
        }
    }

    fn appended(
        &mut self,
        load: u64,
        outcome: Result<Result<Appended, AppendRefusal>, AskError>,
        ctx: &mut Ctx<M>,
    ) {
        if !self.is_active(load) {
            return;
        }
        match outcome {
            Ok(Ok(appended)) => {
                let State::Active(active) = &mut self.state else { return };
                let mut settled = active.runtime.appended(appended.required_high_watermark);
                settled.extend(active.runtime.advance(active.partition.view().high_watermark()));
                self.settle(settled, ErrorCode::UnknownServerError, ctx);
                self.await_replicas(ctx);
                self.append_next(ctx);
                self.arm(ctx);
            }
            Ok(Err(refusal)) => self.refused(refusal.error, ctx),
            // It may be in the log or not.
            Err(AskError::Busy | AskError::Crashed | AskError::Stopped) => self.reload(ctx),
        }
    }

    /// The batch is not in the log: nothing of it has happened.
    fn refused(&mut self, error: ErrorCode, ctx: &mut Ctx<M>) {
        let State::Active(active) = &mut self.state else { return };
        tracing::warn!(partition = %active.led.id, error = error.name(), "an append was refused");
        let settled = active.runtime.append_failed();
        // What is due would be written at once again, and refused again.
        active.paused = true;
        let load = active.load;
        self.settle(settled, told(error), ctx);
        ctx.after("after a refusal", REFUSED_PAUSE, move |shard: &mut Self, ctx| {
            if let State::Active(active) = &mut shard.state
                && active.load == load
            {
                active.paused = false;
                shard.arm(ctx);
            }
        });
    }

    /// Has itself woken when the high watermark has passed what is appended.
    fn await_replicas(&mut self, ctx: &mut Ctx<M>) {
        let State::Active(active) = &mut self.state else { return };
        let Some(offset) = active.runtime.awaited_offset() else { return };
        if active.awaits_replicas {
            return;
        }
        active.awaits_replicas = true;
        let load = active.load;
        let goal = Goal::HighWatermark { offset, leader_epoch: active.led.leader_epoch };
        let wait =
            Wait { goals: vec![(active.partition.clone(), goal)], min_bytes: 0, timeout: REPLICATION_WAIT };
        let waiting = self.core.replicas.purgatories.wait(Kind::Produce, wait);
        let waiting = async move {
            match waiting {
                Some(waiting) => waiting.await.ok().and_then(|outcomes| outcomes.into_iter().next()),
                None => None,
            }
        };
        ctx.effect("await replicas", waiting, move |shard: &mut Self, outcome, ctx| {
            shard.replicated(load, outcome, ctx);
        });
    }

    fn replicated(&mut self, load: u64, outcome: Option<Result<(), ErrorCode>>, ctx: &mut Ctx<M>) {
        if !self.is_active(load) {
            return;
        }
        let State::Active(active) = &mut self.state else { return };
        active.awaits_replicas = false;
        let settled = active.runtime.advance(active.partition.view().high_watermark());
        self.settle(settled, ErrorCode::UnknownServerError, ctx);
        match outcome {
            Some(Ok(()) | Err(ErrorCode::RequestTimedOut)) => self.await_replicas(ctx),
            // It does not lead as it did: what the log says now is to be seen.
            Some(Err(_)) => self.reload(ctx),
            None => {
                ctx.after("await replicas again", RETRY_PAUSE, move |shard: &mut Self, ctx| {
                    if shard.is_active(load) {
                        shard.await_replicas(ctx);
                    }
                });
            }
        }
    }
}

impl<M: Coordinator> Core<M> {
    fn encode(&self, batch: &Batch, now_ms: i64) -> Result<bytes::Bytes, RecordError> {
        let mut builder = BatchBuilder::new(0).compression(self.setup.compression, self.levels);
        if let Some(producer) = batch.producer {
            builder = builder.producer(producer.id, producer.epoch, -1).transactional(true);
        }
        for record in &batch.records {
            builder.append(now_ms, Some(&record.key), record.value.as_deref(), &[]);
        }
        builder.build()
    }
}

/// What a client is told whose records the partition refused, as Kafka's coordinators do.
fn told(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
            ErrorCode::RecordListTooLarge
        }
        other => other,
    }
}
