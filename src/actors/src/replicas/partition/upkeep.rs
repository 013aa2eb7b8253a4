//! What takes records and producers out of a log: DeleteRecords, retention, expiry; and what it knows of producers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use callboard_protocol::ErrorCode;
use callboard_storage::{LastOfProducer, Removed};

use super::{Holding, Partition};
use crate::replicas::messages::{
    DeleteRecords, DescribeProducers, ExpireProducers, LastOfProducers, ProducerInfo, RemoveDueSegments,
    SwapIn, Swapped,
};
use crate::replicas::purgatory::Kind;
use crate::supervision::{Context, Handler, ReplyTo};

impl Handler<DeleteRecords> for Partition {
    fn handle(
        &mut self,
        message: DeleteRecords,
        reply: ReplyTo<Result<i64, ErrorCode>>,
        ctx: &mut Context<Self>,
    ) {
        if let Some(error) = self.refuses() {
            return reply.send(Err(error));
        }
        if !self.settings.deletable {
            return reply.send(Err(ErrorCode::PolicyViolation));
        }
        let high_watermark = self.shared.view.high_watermark();
        let Holding::Open(log) = &mut self.holding else { return };
        let before = if message.before_offset == -1 { high_watermark } else { message.before_offset };
        if before < 0 || before > high_watermark {
            return reply.send(Err(ErrorCode::OffsetOutOfRange));
        }
        let removed = log.set_log_start_offset(before).and_then(|_| log.remove_segments_below_start());
        match removed {
            Ok(paths) => {
                let low_watermark = log.log_start_offset();
                self.delete_later(paths, ctx);
                self.changed(&[Kind::DeleteRecords, Kind::Fetch]);
                reply.send(Ok(low_watermark));
            }
            Err(error) => {
                reply.send(Err(ErrorCode::KafkaStorageError));
                self.go_offline(&error, ctx);
            }
        }
    }
}

impl Partition {
    fn delete_later(&self, paths: Vec<PathBuf>, ctx: &mut Context<Self>) {
        if paths.is_empty() {
            return;
        }
        let delay = Duration::from_millis(self.settings.file_delete_delay_ms);
        ctx.after("file.delete.delay.ms", delay, move |_: &mut Self, ctx| {
            ctx.blocking(
                "delete files",
                move || callboard_storage::delete_files(&paths),
                |partition: &mut Self, outcome, _| {
                    if let Err(error) = outcome {
                        tracing::warn!(partition = partition.shared.id.to_string(), "deleting: {error}");
                    }
                },
            );
        });
    }
}

impl Handler<RemoveDueSegments> for Partition {
    fn handle(&mut self, _: RemoveDueSegments, reply: ReplyTo<usize>, ctx: &mut Context<Self>) {
        let high_watermark = self.shared.view.high_watermark();
        let now_ms = ctx.now_ms();
        let Holding::Open(log) = &mut self.holding else { return reply.send(0) };
        match log.remove_due_segments(high_watermark, now_ms) {
            Ok(Removed { due, files }) => {
                if due.segments() > 0 {
                    tracing::info!(
                        partition = self.shared.id.to_string(),
                        below_start = due.below_start,
                        by_size = due.by_size,
                        by_time = due.by_time,
                        log_start_offset = log.log_start_offset(),
                        "segments removed"
                    );
                    self.changed(&[Kind::DeleteRecords, Kind::Fetch]);
                }
                self.delete_later(files, ctx);
                reply.send(due.segments());
            }
            Err(error) => {
                reply.send(0);
                // With a full disk no new segment can be made; retention tries again.
                if error.is_full() && !log.is_failed() {
                    return tracing::warn!(partition = self.shared.id.to_string(), "retention: {error}");
                }
                self.go_offline(&error, ctx);
            }
        }
    }
}

impl Handler<LastOfProducers> for Partition {
    fn handle(
        &mut self,
        _: LastOfProducers,
        reply: ReplyTo<Option<BTreeMap<i64, LastOfProducer>>>,
        _: &mut Context<Self>,
    ) {
        let Holding::Open(log) = &self.holding else { return reply.send(None) };
        reply.send(Some(log.last_of_producers()));
    }
}

impl Handler<SwapIn> for Partition {
    fn handle(&mut self, SwapIn { cleaned }: SwapIn, reply: ReplyTo<Swapped>, ctx: &mut Context<Self>) {
        let Holding::Open(log) = &mut self.holding else { return reply.send(Swapped::NotNow) };
        match log.swap_in(cleaned) {
            Ok(Some(files)) => {
                self.delete_later(files, ctx);
                reply.send(Swapped::Done);
            }
            Ok(None) => reply.send(Swapped::NotNow),
            Err(error) => {
                reply.send(Swapped::NotNow);
                self.go_offline(&error, ctx);
            }
        }
    }
}

impl Handler<ExpireProducers> for Partition {
    fn handle(&mut self, _: ExpireProducers, reply: ReplyTo<usize>, ctx: &mut Context<Self>) {
        let now_ms = ctx.now_ms();
        self.verifying.forget_old();
        let Holding::Open(log) = &mut self.holding else { return reply.send(0) };
        reply.send(log.expire_producers(now_ms));
    }
}

impl Handler<DescribeProducers> for Partition {
    fn handle(
        &mut self,
        _: DescribeProducers,
        reply: ReplyTo<Result<Vec<ProducerInfo>, ErrorCode>>,
        _: &mut Context<Self>,
    ) {
        if let Some(error) = self.refuses() {
            return reply.send(Err(error));
        }
        let Holding::Open(log) = &self.holding else { return };
        let info = |entry: &callboard_storage::ProducerEntry| ProducerInfo {
            producer_id: entry.producer_id,
            producer_epoch: i32::from(entry.epoch),
            last_sequence: entry.last_sequence(),
            last_timestamp_ms: entry.last_timestamp_ms,
            coordinator_epoch: entry.coordinator_epoch,
            current_txn_start_offset: entry.txn_first_offset.unwrap_or(-1),
        };
        reply.send(Ok(log.producers().map(info).collect()));
    }
}
