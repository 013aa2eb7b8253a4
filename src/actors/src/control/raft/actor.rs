//! The actor's inside: the machine's outputs carried out, and subscribers fed.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use callboard_raft::{AppendWrite, Effect, Input, Machine, Sealed, SnapshotId, Writes};
use callboard_storage::{Durability, Log, Origin, delete_files, write_atomically};

use super::feed::{Next, Position, Recent, Shared, Subscriber};
use super::messages::{Append, AppendFailed, AppendedRange, CommittedBatch, Leadership, LogNews};
use super::open::{self, Opened, QUORUM_STATE};
use super::options::RaftOptions;
use super::retention::{self, Kept, Limits};
use super::{LogError, READ_BYTES, batches, snapshot};
use crate::supervision::{Actor, AskError, Context, Failure, TimerHandle};

/// How often snapshots and log are held against their limits, as in Kafka.
const RETENTION_PERIOD: Duration = Duration::from_secs(60);

/// The quorum's log. See the [module](super).
pub struct RaftActor {
    pub(super) options: RaftOptions,
    pub(super) shared: Arc<Shared>,
    /// `None` while it is being opened, and after the end.
    pub(super) open: Option<Open>,
    pub(super) next_subscription: u64,
}

/// The log, open.
pub(super) struct Open {
    pub(super) dir: PathBuf,
    log: Log,
    pub(super) machine: Machine,
    pub(super) snapshots: Vec<SnapshotId>,
    recent: Recent,
    /// Inputs that wait for an election state to be on disk.
    inputs: VecDeque<Input>,
    pub(super) persisting: bool,
    syncing: bool,
    timer: Option<TimerHandle>,
    started: tokio::time::Instant,
}

pub(super) type Ctx = Context<RaftActor>;

impl RaftActor {
    pub(super) fn new(options: RaftOptions, shared: Arc<Shared>) -> Self {
        Self { options, shared, open: None, next_subscription: 0 }
    }

    fn opened(&mut self, opened: Result<Opened, LogError>, ctx: &mut Ctx) {
        let Opened { dir, log, machine, snapshots } = match opened {
            Ok(opened) => opened,
            Err(error) => return ctx.fail(error.failure()),
        };
        self.open = Some(Open {
            dir,
            log,
            machine,
            snapshots,
            recent: Recent::default(),
            inputs: VecDeque::new(),
            persisting: false,
            syncing: false,
            timer: None,
            started: ctx.now(),
        });
        self.input(Input::Start, ctx);
        ctx.every("retention", RETENTION_PERIOD, |actor, ctx| actor.apply_retention(ctx));
    }

    /// Gives the machine an input, once the inputs before it are done.
    pub(super) fn input(&mut self, input: Input, ctx: &mut Ctx) {
        if let Some(open) = &mut self.open {
            open.inputs.push_back(input);
            self.pump(ctx);
        }
    }

    fn pump(&mut self, ctx: &mut Ctx) {
        while let Some(open) = self.open.as_mut().filter(|open| !open.persisting) {
            let Some(input) = open.inputs.pop_front() else { break };
            let (now_ms, random) = (open.machine_time(ctx), ctx.random_u64());
            let (writes, sealed) = open.machine.handle(input, now_ms, random).split();
            match open.election_text(&writes) {
                Ok(None) => self.carry_out(writes, sealed, ctx),
                Ok(Some(text)) => self.persist(text, writes, sealed, ctx),
                Err(error) => return ctx.fail(error.failure()),
            }
        }
        self.arm_timer(ctx);
        self.sync(ctx);
        self.feed(ctx);
    }

    /// Puts an election state on the device. Nothing else happens until it is there.
    fn persist(&mut self, text: String, writes: Writes, sealed: Sealed, ctx: &mut Ctx) {
        let Some(open) = &mut self.open else { return };
        open.persisting = true;
        let path = open.dir.join(QUORUM_STATE);
        // A write begun before a crash must not come after those of the actor's next life.
        let (shared, generation) = (Arc::clone(&self.shared), ctx.generation());
        let write = move || {
            shared.write_as(generation, || write_atomically(&path, text.as_bytes(), Durability::Synced))
        };
        ctx.blocking("write quorum-state", write, move |actor: &mut Self, result, ctx| {
            if let Err(error) = result {
                return ctx.fail(LogError::from(error).failure());
            }
            if let Some(open) = &mut actor.open {
                open.persisting = false;
            }
            actor.carry_out(writes, sealed, ctx);
            actor.pump(ctx);
        });
    }

    /// Writes to the log, then lets the effects out. The election state is on disk already.
    fn carry_out(&mut self, writes: Writes, sealed: Sealed, ctx: &mut Ctx) {
        let Some(open) = &mut self.open else { return };
        if let Err(error) = open.write(&writes, ctx.now_ms()) {
            return ctx.fail(error.failure());
        }
        for effect in sealed.open(writes.done()) {
            match effect {
                Effect::Leader(hint) => {
                    tracing::info!(epoch = hint.epoch, leader = ?hint.leader_id, "the quorum's leader");
                    self.shared.leader.send_replace(hint);
                }
                Effect::Committed { high_watermark } => open.log.advance_high_watermark(high_watermark),
                // A quorum of one has nobody to talk to: opening refuses any other.
                Effect::Send { .. } | Effect::Reply { .. } | Effect::SnapshotRequired { .. } => {}
            }
        }
    }

    /// Begins a sync of all that was appended, unless one is under way: then the next takes it along.
    fn sync(&mut self, ctx: &mut Ctx) {
        let Some(open) = self.open.as_mut().filter(|open| !open.syncing) else { return };
        let Some(flush) = open.log.flush_handle() else { return };
        open.syncing = true;
        let generation = open.machine.log().generation();
        let run = move || (flush.run(), flush.up_to());
        ctx.blocking("sync", run, move |actor: &mut Self, (result, end_offset), ctx| {
            if let Err(error) = result {
                return ctx.fail(LogError::from(error).failure());
            }
            let Some(open) = &mut actor.open else { return };
            open.syncing = false;
            if open.machine.log().generation() == generation {
                open.log.mark_flushed(end_offset);
            }
            actor.input(Input::Durable { end_offset, generation }, ctx);
        });
    }

    fn arm_timer(&mut self, ctx: &mut Ctx) {
        let Some(open) = &mut self.open else { return };
        if let Some(timer) = open.timer.take() {
            ctx.cancel(timer);
        }
        if let Some(at) = open.machine.next_deadline_ms() {
            let wait_ms = u64::try_from(at - open.machine_time(ctx)).unwrap_or(0).max(1);
            let timer = ctx.after("election timer", Duration::from_millis(wait_ms), |actor, ctx| {
                if let Some(open) = &mut actor.open {
                    open.timer = None;
                }
                actor.input(Input::Tick, ctx);
            });
            open.timer = Some(timer);
        }
    }

    /// Gives each idle subscriber its next news.
    pub(super) fn feed(&mut self, ctx: &mut Ctx) {
        let Some(open) = &mut self.open else { return };
        let at = open.position();
        let shared = Arc::clone(&self.shared);
        let mut subscribers = shared.subscribers();
        for (&name, subscriber) in subscribers.iter_mut().filter(|(_, s)| !s.busy) {
            let Some(next) = subscriber.next(&at, &open.recent) else { continue };
            subscriber.busy = true;
            let id = subscriber.id;
            match next {
                Next::News(news) => deliver(name, subscriber, news, ctx),
                Next::Snapshot => {
                    let newest = open.snapshots.last().copied().unwrap_or_default();
                    let dir = open.dir.clone();
                    let read =
                        move || snapshot::read(&dir, newest).map(|(s, _)| LogNews::Snapshot(Arc::new(s)));
                    ctx.blocking("read snapshot", read, move |a: &mut Self, r, ctx| {
                        a.was_read(name, id, r, ctx)
                    });
                }
                Next::Read => {
                    let (reader, from, limit) =
                        (open.log.reader(), subscriber.next_offset, at.high_watermark);
                    let read = move || {
                        let region = reader.read(from, READ_BYTES, limit, true)?;
                        let found = batches::decode(reader.load(&region)?, from)?;
                        match found.is_empty() {
                            true => Err(LogError::Damaged(format!("no batch at offset {from}"))),
                            false => Ok(LogNews::Batches(found.into_iter().map(Arc::new).collect())),
                        }
                    };
                    ctx.blocking("read log", read, move |a: &mut Self, r, ctx| a.was_read(name, id, r, ctx));
                }
            }
        }
        let taken = subscribers.values().map(|s| s.next_offset).min().unwrap_or(i64::MAX);
        open.recent.trim(taken, at.high_watermark);
    }

    fn was_read(&mut self, name: &'static str, id: u64, read: Result<LogNews, LogError>, ctx: &mut Ctx) {
        let news = match read {
            Ok(news) => news,
            Err(error) => return ctx.fail(error.failure()),
        };
        let shared = Arc::clone(&self.shared);
        if let Some(subscriber) = shared.subscribers().get(name).filter(|s| s.id == id) {
            deliver(name, subscriber, news, ctx);
        }
    }

    /// A subscriber took its news, or could not.
    fn was_told(
        &mut self,
        name: &'static str,
        id: u64,
        news: &LogNews,
        answer: Result<(), AskError>,
        ctx: &mut Ctx,
    ) {
        let mut subscribers = self.shared.subscribers();
        let Some(subscriber) = subscribers.get_mut(name).filter(|s| s.id == id) else { return };
        match answer {
            Ok(()) => subscriber.took(news),
            // It will subscribe again when it is back, and stays busy until then.
            Err(AskError::Crashed | AskError::Busy) => return,
            Err(AskError::Stopped) => drop(subscribers.remove(name)),
        }
        drop(subscribers);
        self.feed(ctx);
    }

    pub(super) fn append(&mut self, append: Append, ctx: &mut Ctx) -> Result<AppendedRange, AppendFailed> {
        let expected_epoch = append.expected_epoch;
        let not_leader = AppendFailed::NotLeader { expected_epoch };
        // While an election state is on its way to disk, its epoch has not begun yet.
        let open = self.open.as_mut().filter(|open| !open.persisting).ok_or(not_leader.clone())?;
        let end_offset = open.machine.append_position(expected_epoch).map_err(|_| not_leader)?;
        if let Some(expected_offset) = append.expected_offset.filter(|expected| *expected != end_offset) {
            return Err(AppendFailed::UnexpectedOffset { expected_offset, end_offset });
        }
        let now_ms = ctx.now_ms();
        let batch = batches::encode(&append.records, now_ms)?;
        let size_bytes = batch.size_bytes();
        let appended = match open.log.append_as_leader(&[batch], expected_epoch, Origin::Replication, now_ms)
        {
            Ok(appended) => appended,
            Err(callboard_storage::AppendError::TooLarge { .. }) => {
                return Err(AppendFailed::TooLarge { size_bytes });
            }
            Err(error) => {
                let failed = AppendFailed::Invalid(error.to_string());
                ctx.fail(LogError::from(error).failure());
                return Err(failed);
            }
        };
        let range = AppendedRange { base_offset: appended.first_offset, last_offset: appended.last_offset };
        open.recent.push(CommittedBatch {
            base_offset: range.base_offset,
            last_offset: range.last_offset,
            epoch: expected_epoch,
            append_time_ms: now_ms,
            size_bytes,
            records: append.records.into_iter().map(|r| r.record).collect(),
        });
        self.input(Input::Appended { end_offset: range.last_offset + 1 }, ctx);
        Ok(range)
    }

    /// Lets old snapshots and the log before them go.
    pub(super) fn apply_retention(&mut self, ctx: &mut Ctx) {
        let Some(open) = &mut self.open else { return };
        let limits = Limits {
            size_bytes: self.options.log.max_retention_bytes,
            age_ms: self.options.log.max_retention_ms,
        };
        match open.clean_up(limits, ctx.now_ms()) {
            Ok(Some((start, unused))) => {
                let delete = move || delete_files(&unused);
                ctx.blocking("delete segments", delete, |_: &mut Self, result, _| {
                    if let Err(error) = result {
                        tracing::warn!(%error, "could not delete old segments of the metadata log");
                    }
                });
                self.input(Input::LogStartsAt(start), ctx);
            }
            Ok(None) => {}
            Err(error) => ctx.fail(error.failure()),
        }
    }
}

/// Sends a subscriber its news; it is busy until it answers.
fn deliver(name: &'static str, subscriber: &Subscriber, news: LogNews, ctx: &mut Ctx) {
    let id = subscriber.id;
    let asking = subscriber.to.ask(news.clone());
    ctx.effect("tell", asking, move |actor: &mut RaftActor, answer, ctx| {
        actor.was_told(name, id, &news, answer, ctx);
    });
}

impl Open {
    /// The machine's clock: it doesn't go back, and doesn't jump when the wall clock is set.
    pub(super) fn machine_time(&self, ctx: &Ctx) -> i64 {
        i64::try_from(ctx.now().duration_since(self.started).as_millis()).unwrap_or(i64::MAX)
    }

    fn election_text(&self, writes: &Writes) -> Result<Option<String>, LogError> {
        let Some(state) = writes.quorum_state else { return Ok(None) };
        Ok(Some(state.to_json(self.machine.kraft_version(), self.machine.voters().ids())?))
    }

    fn write(&mut self, writes: &Writes, now_ms: i64) -> Result<(), LogError> {
        if let Some(offset) = writes.truncate_to {
            self.log.truncate_to(offset, now_ms)?;
            self.recent.clear();
        }
        match &writes.append {
            Some(AppendWrite::Control { epoch, records, .. }) => {
                let batch = batches::encode_control(records, now_ms)?;
                let size_bytes = batch.size_bytes();
                let at = self.log.append_as_leader(&[batch], *epoch, Origin::Replication, now_ms)?;
                self.recent.push(CommittedBatch {
                    base_offset: at.first_offset,
                    last_offset: at.last_offset,
                    epoch: *epoch,
                    append_time_ms: now_ms,
                    size_bytes,
                    records: Vec::new(),
                });
            }
            Some(AppendWrite::Fetched { bytes, .. }) => {
                self.log.append_as_follower(bytes.clone(), now_ms)?;
            }
            None => {}
        }
        Ok(())
    }

    fn position(&self) -> Position {
        let hint = self.machine.leader();
        let leads = self.machine.append_position(hint.epoch).is_ok();
        Position {
            high_watermark: self.machine.high_watermark(),
            snapshot_end: self.snapshots.last().map_or(0, |id| id.end_offset),
            start_offset: self.log.log_start_offset(),
            leadership: (!self.persisting).then(|| Leadership {
                epoch: hint.epoch,
                leader_id: hint.leader_id,
                end_offset: leads.then(|| self.log.log_end_offset()),
            }),
        }
    }

    /// Removes what is past the limits. Gives the new start and the segment files to delete.
    fn clean_up(
        &mut self,
        limits: Limits,
        now_ms: i64,
    ) -> Result<Option<(SnapshotId, Vec<PathBuf>)>, LogError> {
        let mut kept = Vec::new();
        for &id in &self.snapshots {
            let file = std::fs::metadata(snapshot::path(&self.dir, id))?;
            let written = file.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let written_ms = i64::try_from(written.as_millis()).unwrap_or(i64::MAX);
            kept.push(Kept { id, size_bytes: file.len(), written_ms });
        }
        let log_size = self.log.reader().size_bytes();
        let Some(start) = retention::start_behind(&kept, log_size, limits, now_ms) else { return Ok(None) };
        self.log.set_log_start_offset(start.end_offset)?;
        let unused = self.log.remove_segments_below_start()?;
        for &old in self.snapshots.iter().filter(|id| **id < start) {
            snapshot::remove(&self.dir, old)?;
        }
        self.snapshots.retain(|id| *id >= start);
        tracing::info!(start_offset = start.end_offset, "the metadata log starts behind a newer snapshot");
        Ok(Some((start, unused)))
    }
}

impl Actor for RaftActor {
    fn started(&mut self, ctx: &mut Ctx) -> Result<(), Failure> {
        for subscriber in self.shared.subscribers().values_mut() {
            subscriber.busy = false;
            subscriber.told = None;
        }
        let (options, now_ms) = (self.options.clone(), ctx.now_ms());
        let (shared, generation) = (Arc::clone(&self.shared), ctx.generation());
        let run = move || {
            shared.take_over(generation);
            open::open(&options, now_ms)
        };
        ctx.blocking("open", run, |actor: &mut Self, opened, ctx| actor.opened(opened, ctx));
        Ok(())
    }

    fn stopping(&mut self, ctx: &mut Ctx) {
        let Some(open) = self.open.take() else { return };
        ctx.blocking(
            "close",
            move || open.log.close(),
            |_: &mut Self, result, _| {
                if let Err(error) = result {
                    tracing::warn!(%error, "could not close the metadata log in order");
                }
            },
        );
    }
}
