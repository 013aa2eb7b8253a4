//! A partition of this broker.
//!
//! - Who sends: produce and delete-records handlers (`MayWrite`, `Append`, `DeleteRecords`), coordinators (`Append`,
//!   `WriteMarker`), admin handlers
//!   (`DescribeProducers`), the replicas manager (`Reassigned`, `DeletePartition`, `GoOffline`), the keeper of logs
//!   (`RemoveDueSegments`, `ExpireProducers`).
//! - Owns: the partition's log. Reads go by the view it publishes, without a message.
//! - Runs: on one shard, partitions spread evenly. Opening, flushing and closing go to the blocking pool.
//! - Mailbox: bounded by count and by the bytes of the records in it; producers wait their turn.
//! - Timers: `flush.ms`, if the topic sets it.
//! - Restart: the log is opened again from what is on disk, recovering from the last flush on. A failed device
//!   takes the log directory offline, a damaged or missing file this partition alone; neither restarts.
//! - To a client, its crash means NOT_LEADER_OR_FOLLOWER until the log is open again; I/O errors mean
//!   KAFKA_STORAGE_ERROR.

mod append;
mod files;
mod opening;
mod transaction;
mod upkeep;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use callboard_protocol::ErrorCode;
use callboard_storage::{Log, StorageError};

use super::directories::LogDirectory;
use super::manager::{Manager, RemoveLater};
use super::messages::{AwaitOpen, DeletePartition, DirectoryFailed, GoOffline, PartitionFailed, Reassigned};
use super::purgatory::{Kind, Purgatories};
use super::settings::PartitionSettings;
use super::view::{Shared, Status};
use crate::supervision::{Actor, ActorRef, Context, Failure, Handler, ReplyTo, TimerHandle};

use files::Opened;
pub(super) use files::{OpenPlan, rename_if_there};
pub use opening::Opening;

/// What a partition needs besides its orders; the same for all of a node.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub node_id: i32,
    pub purgatories: Purgatories,
    pub manager: ActorRef<Manager>,
    pub directories: Arc<Vec<LogDirectory>>,
}

/// The log, while there is one to work with.
enum Holding {
    Opening,
    Open(Box<Log>),
    /// Closed, deleted or failed.
    Nothing,
}

/// One partition's actor.
pub struct Partition {
    shared: Arc<Shared>,
    around: Surroundings,
    plan: OpenPlan,
    settings: Arc<PartitionSettings>,
    leads: bool,
    leader_epoch: i32,
    replicas: usize,
    in_sync: usize,
    holding: Holding,
    flushing: bool,
    flush_again: bool,
    unflushed_records: i64,
    flush_timer: Option<TimerHandle>,
    delete_when_open: Option<ReplyTo<Result<(), ErrorCode>>>,
    await_open: Vec<ReplyTo<()>>,
    verifying: transaction::Verifying,
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Partition({})", self.shared.id)
    }
}

impl Partition {
    pub(super) fn new(shared: Arc<Shared>, around: Surroundings, plan: OpenPlan) -> Self {
        let settings = shared.orders().settings.clone();
        Self {
            shared,
            around,
            plan,
            settings,
            leads: false,
            leader_epoch: -1,
            replicas: 1,
            in_sync: 1,
            holding: Holding::Opening,
            flushing: false,
            flush_again: false,
            unflushed_records: 0,
            flush_timer: None,
            delete_when_open: None,
            await_open: Vec::new(),
            verifying: transaction::Verifying::default(),
        }
    }

    fn begin_open(&mut self, ctx: &mut Context<Self>) {
        self.shared.view.set_status(Status::Opening);
        let mut plan = self.plan.clone();
        // Opened before in this process's life: whatever the marker said then is no longer true.
        if self.shared.opened.load(Ordering::SeqCst) > 0 {
            plan.clean_shutdown = false;
            plan.recovery_point = self.shared.durable_offset.load(Ordering::SeqCst);
            plan.log_start_offset = self.shared.view.reader().map_or(0, |reader| reader.log_start_offset());
            plan.path = self.shared.view.reader().map_or(plan.path, |reader| reader.dir());
        }
        let (id, config, now_ms) = (self.shared.id.clone(), self.settings.log.clone(), ctx.now_ms());
        let (shared, generation) = (Arc::clone(&self.shared), ctx.generation());
        shared.opening.take_over(generation);
        let open = move || shared.opening.open_as(generation, || files::open(&id, &plan, config, now_ms));
        ctx.blocking("open", open, |partition: &mut Self, outcome, ctx| {
            if let Some(outcome) = outcome {
                partition.opened(outcome, ctx);
            }
        });
    }

    fn opened(&mut self, outcome: Result<Opened, StorageError>, ctx: &mut Context<Self>) {
        let Opened { log, report } = match outcome {
            Ok(opened) => opened,
            Err(error) => return self.go_offline(&error, ctx),
        };
        if let Some(reason) = &report.truncation_reason {
            let (partition, bytes) = (self.shared.id.to_string(), report.truncated_bytes);
            tracing::warn!(partition, truncated_bytes = bytes, reason, "recovery cut the end of a log");
        }
        self.shared.opened.fetch_add(1, Ordering::SeqCst);
        self.shared.durable_offset.store(log.recovery_point(), Ordering::SeqCst);
        self.shared.view.set_reader(Some(log.reader()));
        self.holding = Holding::Open(Box::new(log));
        match self.delete_when_open.take() {
            Some(reply) => self.delete(reply, ctx),
            None => self.take_orders(ctx),
        }
        self.await_open.drain(..).for_each(|waiting| waiting.send(()));
    }

    /// Follows the orders of the manager as they are now.
    fn take_orders(&mut self, ctx: &mut Context<Self>) {
        let orders = self.shared.orders().clone();
        let assignment = orders.assignment;
        self.settings = orders.settings;
        self.replicas = assignment.replicas.len();
        self.in_sync = assignment.isr.len();
        let Holding::Open(log) = &mut self.holding else { return };
        log.set_config(self.settings.log.clone());
        let leads = assignment.leader == self.around.node_id;
        let is_new = leads && (!self.leads || assignment.leader_epoch != self.leader_epoch);
        if is_new && let Err(error) = log.begin_epoch(assignment.leader_epoch) {
            return self.go_offline(&error, ctx);
        }
        (self.leads, self.leader_epoch) = (leads, assignment.leader_epoch);
        self.shared.view.set_leader_epoch(assignment.leader_epoch);
        self.advance();
        self.shared.view.set_status(if leads { Status::Leader } else { Status::Follower });
        self.around.purgatories.changed_wholly(&self.shared);
    }

    /// Moves the high watermark as far as the in-sync replicas allow. With one replica that is the log's end,
    /// or, where the topic wants records synced, what is on the device.
    fn advance(&mut self) {
        let Holding::Open(log) = &mut self.holding else { return };
        let alone = self.leads && self.in_sync <= 1;
        let reached = if self.settings.synced { log.recovery_point() } else { log.log_end_offset() };
        let before = self.shared.view.high_watermark();
        let high_watermark = if alone { reached.max(log.log_start_offset()) } else { before };
        log.advance_high_watermark(high_watermark);
        self.shared.view.set_high_watermark(high_watermark);
    }

    fn changed(&self, kinds: &[Kind]) {
        self.around.purgatories.changed(&self.shared, kinds);
    }

    /// Lets go of the log without closing it, and stops for good. If the device failed, so do all partitions of the
    /// directory; a damaged or missing file is this partition's alone.
    fn go_offline(&mut self, error: &StorageError, ctx: &mut Context<Self>) {
        let directory = self.shared.directory;
        if error.takes_directory() {
            let reason = format!("{}: {error}", self.shared.id);
            self.around.manager.tell(DirectoryFailed { directory, reason });
        } else {
            let partition = self.shared.id.to_string();
            tracing::error!(partition, "goes offline, and only this partition: {error}");
            self.around.manager.tell(PartitionFailed { directory });
        }
        self.let_go(&error.to_string(), ctx);
    }

    fn let_go(&mut self, reason: &str, ctx: &mut Context<Self>) {
        self.holding = Holding::Nothing;
        self.shared.view.set_status(Status::Offline);
        self.shared.view.set_reader(None);
        self.around.purgatories.changed_wholly(&self.shared);
        self.await_open.drain(..).for_each(|waiting| waiting.send(()));
        ctx.fail(Failure::offline(reason));
    }

    /// Syncs what was appended, in the background; one sync for all that came meanwhile.
    fn flush(&mut self, ctx: &mut Context<Self>) {
        let Holding::Open(log) = &self.holding else { return };
        if self.flushing {
            self.flush_again = true;
            return;
        }
        let Some(handle) = log.flush_handle() else { return };
        self.flushing = true;
        self.unflushed_records = 0;
        ctx.blocking("flush", move || handle.run().map(|()| handle.up_to()), Self::flushed);
    }

    fn flushed(&mut self, outcome: Result<i64, StorageError>, ctx: &mut Context<Self>) {
        self.flushing = false;
        let Holding::Open(log) = &mut self.holding else { return };
        match outcome {
            Ok(up_to) => {
                log.mark_flushed(up_to);
                self.shared.durable_offset.store(log.recovery_point(), Ordering::SeqCst);
            }
            Err(error) => return self.go_offline(&error, ctx),
        }
        if self.settings.synced {
            self.advance();
            self.changed(&[Kind::Produce, Kind::Fetch]);
        }
        if std::mem::take(&mut self.flush_again) {
            self.flush(ctx);
        }
    }

    fn set_flush_timer(&mut self, ctx: &mut Context<Self>) {
        if self.settings.flush_ms == i64::MAX || self.flush_timer.is_some() {
            return;
        }
        let delay = Duration::from_millis(u64::try_from(self.settings.flush_ms).unwrap_or(0));
        self.flush_timer = Some(ctx.after("flush.ms", delay, |partition: &mut Self, ctx| {
            partition.flush_timer = None;
            partition.flush(ctx);
        }));
    }

    /// The error of a partition that has no log to work with, or does not lead.
    fn refuses(&self) -> Option<ErrorCode> {
        match self.holding {
            Holding::Open(_) if self.leads => None,
            Holding::Open(_) | Holding::Opening => Some(ErrorCode::NotLeaderOrFollower),
            Holding::Nothing if self.shared.view.status() == Status::Offline => {
                Some(ErrorCode::KafkaStorageError)
            }
            Holding::Nothing => Some(ErrorCode::NotLeaderOrFollower),
        }
    }
}

impl Actor for Partition {
    fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), Failure> {
        self.begin_open(ctx);
        Ok(())
    }

    fn stopping(&mut self, ctx: &mut Context<Self>) {
        let Holding::Open(log) = std::mem::replace(&mut self.holding, Holding::Nothing) else { return };
        self.shared.view.set_status(Status::Opening);
        self.around.purgatories.changed_wholly(&self.shared);
        let end = log.log_end_offset();
        ctx.blocking(
            "close",
            move || log.close(),
            move |partition: &mut Self, outcome, _| match outcome {
                Ok(()) => {
                    partition.shared.durable_offset.store(end, Ordering::SeqCst);
                    partition.shared.closed.store(true, Ordering::SeqCst);
                }
                Err(error) => {
                    tracing::error!(partition = partition.shared.id.to_string(), "closing: {error}")
                }
            },
        );
    }
}

impl Handler<Reassigned> for Partition {
    fn handle(&mut self, _: Reassigned, reply: ReplyTo<()>, ctx: &mut Context<Self>) {
        self.take_orders(ctx);
        reply.send(());
    }
}

impl Handler<AwaitOpen> for Partition {
    fn handle(&mut self, _: AwaitOpen, reply: ReplyTo<()>, _: &mut Context<Self>) {
        match self.holding {
            Holding::Opening => self.await_open.push(reply),
            Holding::Open(_) | Holding::Nothing => reply.send(()),
        }
    }
}

impl Handler<GoOffline> for Partition {
    fn handle(&mut self, _: GoOffline, reply: ReplyTo<()>, ctx: &mut Context<Self>) {
        reply.send(());
        self.let_go("its log directory has failed", ctx);
    }
}

impl Handler<DeletePartition> for Partition {
    fn handle(&mut self, _: DeletePartition, reply: ReplyTo<Result<(), ErrorCode>>, ctx: &mut Context<Self>) {
        self.shared.view.set_status(Status::Gone);
        if matches!(self.holding, Holding::Opening) {
            // Not while the blocking pool works in the directory.
            self.delete_when_open = Some(reply);
        } else {
            self.delete(reply, ctx);
        }
    }
}

impl Partition {
    fn delete(&mut self, reply: ReplyTo<Result<(), ErrorCode>>, ctx: &mut Context<Self>) {
        let holding = std::mem::replace(&mut self.holding, Holding::Nothing);
        self.shared.view.set_status(Status::Gone);
        self.shared.view.set_reader(None);
        self.around.purgatories.changed_wholly(&self.shared);
        let Holding::Open(mut log) = holding else {
            reply.send(Ok(()));
            return ctx.stop();
        };
        let path = files::deleted_dir(&self.shared.id, &log.dir(), ctx.random_u64(), ctx.random_u64());
        match log.rename_dir(&path) {
            Ok(()) => {
                let delay = Duration::from_millis(self.settings.file_delete_delay_ms);
                self.around.manager.tell(RemoveLater { path, delay });
                reply.send(Ok(()));
                ctx.stop();
            }
            Err(error) => {
                reply.send(Err(ErrorCode::KafkaStorageError));
                self.go_offline(&error, ctx);
            }
        }
    }
}
