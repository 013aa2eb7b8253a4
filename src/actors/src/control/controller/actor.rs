//! The event loop.

use std::sync::Arc;
use std::time::Duration;

use callboard_metadata::controller::{Context as Circumstances, Controller};
use callboard_metadata::image::{Image, METADATA_VERSION};
use callboard_metadata::{VersionedRecord, bootstrap};
use callboard_protocol::messages::AbortTransactionRecord;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::{ByteString, ErrorCode};
use tokio::sync::watch;

use super::in_flight::{InFlight, Pipeline, Settle};
use super::{ControllerOptions, ControllerRequest, Decide, Decided};
use crate::control::raft::{
    AppendFailed, CommittedBatch, Leadership, LogNews, Raft, ReadBootstrap, Snapshot, Subscribe,
};
use crate::supervision::{Actor, AskError, Context, Exit, Failure, Handler, ReplyTo};

/// How many records one batch gets at most, as Kafka's controller has it.
const MAX_BATCH_RECORDS: usize = 10_000;
/// How long brokers' sessions go unchecked at most.
const MAX_SESSION_CHECK: Duration = Duration::from_secs(3);

/// What this node is to the quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Another leads, or nobody.
    Standby,
    /// It leads, and has yet to read its log to here.
    Reading { epoch: i32, end_offset: i64 },
    /// It leads a new cluster, and has yet to write its first records.
    Bootstrapping { epoch: i32 },
    /// It decides.
    Active { epoch: i32 },
}

/// The actor. See the [module](super).
pub struct ControllerActor {
    options: ControllerOptions,
    raft: Raft,
    active_epoch: watch::Sender<Option<i32>>,
    role: Role,
    /// With all records replayed, committed or not.
    machine: Controller,
    /// Where the next record goes.
    next_offset: i64,
    pipeline: Pipeline,
}

type Ctx = Context<ControllerActor>;

impl ControllerActor {
    pub(super) fn new(
        options: ControllerOptions,
        raft: Raft,
        active_epoch: watch::Sender<Option<i32>>,
    ) -> Self {
        let machine = Controller::new(options.settings.clone(), Image::default(), 0);
        let pipeline = Pipeline::default();
        Self { options, raft, active_epoch, role: Role::Standby, machine, next_offset: 0, pipeline }
    }

    fn load(&mut self, snapshot: &Snapshot, ctx: &mut Ctx) {
        if snapshot.id.end_offset <= self.next_offset {
            return;
        }
        let mut image = Image::default();
        for versioned in &snapshot.records {
            if let Err(error) = image.apply(&versioned.record) {
                return ctx.fail(unreadable(&format!("the snapshot {:?}", snapshot.id), &error));
            }
        }
        self.machine = Controller::new(self.options.settings.clone(), image, ctx.now_ms());
        self.next_offset = snapshot.id.end_offset;
    }

    fn committed(&mut self, batch: &CommittedBatch, ctx: &mut Ctx) {
        // Another epoch's records mean that its own of the same offsets were never appended.
        if matches!(self.role, Role::Active { epoch } if epoch != batch.epoch) {
            self.step_down();
        }
        // Sent to this controller's former life, which had read what is before: the new subscription brings it all.
        if batch.base_offset > self.next_offset {
            return;
        }
        // What it wrote itself is replayed already.
        if batch.last_offset >= self.next_offset {
            if !self.pipeline.is_empty() {
                return ctx.fail(Failure::resign(format!(
                    "offset {} was committed by somebody else",
                    batch.base_offset
                )));
            }
            for record in &batch.records {
                if let Err(error) = self.machine.replay(record) {
                    return ctx.fail(unreadable(&format!("offset {}", batch.base_offset), &error));
                }
            }
            self.next_offset = batch.last_offset + 1;
        }
        self.pipeline.committed(batch.last_offset + 1);
        if let Role::Reading { epoch, end_offset } = self.role
            && self.next_offset >= end_offset
        {
            self.activate(epoch, ctx);
        }
    }

    fn leadership(&mut self, news: Leadership, ctx: &mut Ctx) {
        match (news.leader_id, news.end_offset) {
            (Some(id), Some(end_offset)) if id == self.options.settings.node_id => {
                self.step_down();
                match self.next_offset >= end_offset {
                    true => self.activate(news.epoch, ctx),
                    false => self.role = Role::Reading { epoch: news.epoch, end_offset },
                }
            }
            _ => self.step_down(),
        }
    }

    /// Goes back to what is committed and decides no more.
    fn step_down(&mut self) {
        self.role = Role::Standby;
        self.active_epoch.send_replace(None);
        if let Some((before, start_offset, waiting)) = self.pipeline.take_back_all() {
            self.machine.roll_back_to(before);
            self.next_offset = start_offset;
            for settle in waiting {
                settle(Err(ErrorCode::NotController));
            }
        }
    }

    fn activate(&mut self, epoch: i32, ctx: &mut Ctx) {
        self.machine.start_sessions(ctx.now_ms());
        if self.machine.in_transaction() {
            self.abort_transaction(epoch, ctx);
        }
        if self.machine.image().features.level(METADATA_VERSION) > 0 {
            return self.begin(epoch, ctx);
        }
        self.role = Role::Bootstrapping { epoch };
        let read = self.raft.actor().ask(ReadBootstrap);
        ctx.effect("read bootstrap", read, move |actor: &mut Self, read, ctx| {
            if actor.role == (Role::Bootstrapping { epoch }) {
                actor.bootstrap(epoch, read, ctx);
            }
        });
    }

    /// Ends what a former controller began and did not finish.
    fn abort_transaction(&mut self, epoch: i32, ctx: &mut Ctx) {
        let reason = Some(ByteString::from_static("the controller changed"));
        let record = AbortTransactionRecord { reason, ..Default::default() };
        let record = VersionedRecord::new(MetadataRecord::AbortTransactionRecord(record), 0);
        let before = self.machine.clone();
        self.write(epoch, before, vec![record], true, Box::new(|_| {}), ctx);
    }

    fn bootstrap(
        &mut self,
        epoch: i32,
        read: Result<Result<Vec<VersionedRecord>, String>, AskError>,
        ctx: &mut Ctx,
    ) {
        let records = match read {
            Ok(Ok(records)) if records.is_empty() => self.options.default_bootstrap.clone(),
            Ok(Ok(records)) => records,
            Ok(Err(reason)) => {
                let reason = format!("the records the cluster is to start with: {reason}");
                return ctx.fail(Failure::escalate(reason).with_exit(Exit::MetadataFailed));
            }
            // The log is being opened again: its leadership will be told anew.
            Err(_) => return,
        };
        let min_insync = self.options.settings.static_settings.value("min.insync.replicas");
        let min_insync = min_insync.and_then(|value| value.as_i64()).and_then(|n| i32::try_from(n).ok());
        let records = bootstrap::activation_records(records, min_insync.unwrap_or(1));
        tracing::info!(records = records.len(), "a new cluster begins");
        let before = self.machine.clone();
        self.begin(epoch, ctx);
        self.write(epoch, before, records, true, Box::new(|_| {}), ctx);
        self.register_self(epoch, ctx);
    }

    /// From now on it decides.
    fn begin(&mut self, epoch: i32, ctx: &mut Ctx) {
        tracing::info!(epoch, next_offset = self.next_offset, "the controller is active");
        self.role = Role::Active { epoch };
        self.check_sessions(ctx);
        if self.machine.image().features.level(METADATA_VERSION) > 0 {
            self.register_self(epoch, ctx);
        }
        self.active_epoch.send_replace(Some(epoch));
    }

    fn register_self(&mut self, epoch: i32, ctx: &mut Ctx) {
        let own = &self.options.registration;
        let known = self.machine.image().cluster.controllers.get(&own.controller_id);
        if known.is_some_and(|known| known.incarnation_id == own.incarnation_id) {
            return;
        }
        let before = self.machine.clone();
        let outcome = self.machine.register_controller(own);
        self.write(epoch, before, outcome.records, outcome.atomic, Box::new(|_| {}), ctx);
    }

    /// Fences brokers whose session is over, and looks again when the next one is due.
    fn check_sessions(&mut self, ctx: &mut Ctx) {
        let Role::Active { epoch } = self.role else { return };
        let now_ms = ctx.now_ms();
        let before = self.machine.clone();
        let outcome = self.machine.fence_silent_brokers(now_ms);
        if !outcome.records.is_empty() {
            tracing::warn!(records = outcome.records.len(), "brokers fell silent and are fenced");
            self.write(epoch, before, outcome.records, outcome.atomic, Box::new(|_| {}), ctx);
        }
        let due = self.machine.next_session_end_ms().unwrap_or(i64::MAX);
        let wait = Duration::from_millis(u64::try_from(due.saturating_sub(now_ms)).unwrap_or(0).max(1));
        ctx.after("session end", wait.min(MAX_SESSION_CHECK), move |actor, ctx| {
            // A later activation has a timer of its own.
            if actor.role == (Role::Active { epoch }) {
                actor.check_sessions(ctx);
            }
        });
    }

    fn decide<Q: ControllerRequest>(
        &mut self,
        message: &Decide<Q>,
        reply: ReplyTo<Result<Decided<Q::Response>, ErrorCode>>,
        ctx: &mut Ctx,
    ) {
        let Role::Active { epoch } = self.role else { return reply.send(Err(ErrorCode::NotController)) };
        let before = self.machine.clone();
        let mut circumstances = Circumstances {
            now_ms: ctx.now_ms(),
            next_offset: self.next_offset,
            random: &mut || ctx.random_u64(),
        };
        let kraft_version = self.options.kraft_version;
        let outcome =
            message.request.decide(&mut self.machine, &mut circumstances, message.version, kraft_version);
        let response = outcome.reply;
        let settle: Settle = Box::new(move |settled: Result<i64, ErrorCode>| {
            reply.send(settled.map(|last_offset| Decided { response, last_offset }));
        });
        self.write(epoch, before, outcome.records, outcome.atomic, settle, ctx);
    }

    /// Replays records and appends them. `before` is the machine to go back to.
    fn write(
        &mut self,
        epoch: i32,
        before: Controller,
        records: Vec<VersionedRecord>,
        atomic: bool,
        settle: Settle,
        ctx: &mut Ctx,
    ) {
        if records.is_empty() && self.pipeline.is_empty() {
            return settle(Ok(self.next_offset - 1));
        }
        for versioned in &records {
            if let Err(error) = self.machine.replay(&versioned.record) {
                self.machine.roll_back_to(before);
                settle(Err(ErrorCode::UnknownServerError));
                return ctx.fail(Failure::resign(format!("an own record can't be replayed: {error}")));
            }
        }
        let id = self.pipeline.next_id();
        let start_offset = self.next_offset;
        // Only all records together may be what an atomic decision writes; the log refuses too large a batch.
        let most = if atomic { records.len().max(1) } else { MAX_BATCH_RECORDS };
        let mut rest = records;
        while !rest.is_empty() {
            let later = rest.split_off(rest.len().min(most));
            let expected = self.next_offset;
            self.next_offset += i64::try_from(rest.len()).unwrap_or(i64::MAX);
            let appending = self.raft.append(rest, epoch, Some(expected));
            rest = later;
            ctx.effect("append", appending, move |actor: &mut Self, appended, ctx| match appended {
                Ok(Ok(_)) => {}
                Ok(Err(failed)) => actor.append_failed(id, Some(failed), ctx),
                Err(_) => actor.append_failed(id, None, ctx),
            });
        }
        let end_offset = self.next_offset;
        self.pipeline.push(InFlight { id, start_offset, end_offset, before, settle });
    }

    /// Goes back to before a decision; `failed` is `None` when the log's actor crashed over it.
    fn append_failed(&mut self, id: u64, failed: Option<AppendFailed>, ctx: &mut Ctx) {
        // Taken back already, with one before it.
        let Some((before, start_offset, waiting)) = self.pipeline.take_back(id) else { return };
        tracing::warn!(error = ?failed, "records were not appended; going back to offset {start_offset}");
        self.machine.roll_back_to(before);
        self.next_offset = start_offset;
        let own_fault = matches!(failed, Some(AppendFailed::TooLarge { .. } | AppendFailed::Invalid(_)));
        let mut error = match own_fault {
            true => ErrorCode::UnknownServerError,
            false => ErrorCode::NotController,
        };
        for settle in waiting {
            settle(Err(std::mem::replace(&mut error, ErrorCode::NotController)));
        }
        match failed {
            Some(AppendFailed::TooLarge { .. } | AppendFailed::Invalid(_)) => {}
            // The log's news tell when and in which epoch it leads again.
            Some(AppendFailed::NotLeader { .. }) | None => self.step_down(),
            Some(AppendFailed::UnexpectedOffset { .. }) => {
                ctx.fail(Failure::resign("somebody else wrote to the metadata log"));
            }
        }
    }
}

fn unreadable(what: &str, error: &callboard_metadata::ReplayError) -> Failure {
    Failure::escalate(format!("{what} of the metadata log can't be replayed: {error}"))
        .with_exit(Exit::MetadataFailed)
}

impl Actor for ControllerActor {
    fn started(&mut self, ctx: &mut Ctx) -> Result<(), Failure> {
        let subscribe =
            Subscribe { name: "controller", to: ctx.me().recipient(), from_offset: self.next_offset };
        let subscribing = self.raft.subscribe(subscribe);
        ctx.effect("subscribe", subscribing, |_: &mut Self, subscribed, ctx| {
            if subscribed.is_err() {
                ctx.fail(Failure::restart("the log's actor crashed over a subscription"));
            }
        });
        Ok(())
    }
}

impl Handler<LogNews> for ControllerActor {
    fn handle(&mut self, news: LogNews, reply: ReplyTo<()>, ctx: &mut Ctx) {
        match news {
            LogNews::Snapshot(snapshot) => self.load(&snapshot, ctx),
            LogNews::Batches(batches) => {
                batches.iter().for_each(|batch: &Arc<CommittedBatch>| self.committed(batch, ctx));
            }
            LogNews::Leadership(leadership) => self.leadership(leadership, ctx),
        }
        reply.send(());
    }
}

impl<Q: ControllerRequest> Handler<Decide<Q>> for ControllerActor {
    fn handle(
        &mut self,
        message: Decide<Q>,
        reply: ReplyTo<Result<Decided<Q::Response>, ErrorCode>>,
        ctx: &mut Ctx,
    ) {
        self.decide(&message, reply, ctx);
    }
}
