//! One shard: a coordinator's machine over one partition's log.
//!
//! - Who sends: handlers of requests ([`Request`]); the manager ([`NewOrders`], [`TopicsChanged`]).
//! - Owns: the machine with everything done, and who waits for which answer.
//! - Runs: one for each partition of the coordinator's topic that this broker leads or led.
//! - Mailbox: bounded; orders go ahead of requests.
//! - Order: requests change the machine at once; records are appended one batch at a time, in order; an answer goes out
//!   when the high watermark has passed what it was decided on.
//! - Timers: the machine's next deadline; a pause before an append or a load is tried again.
//! - An append that is refused takes the machine back to before it. One whose outcome is unknown (the partition crashed
//!   over it) makes the shard load its log anew.
//! - Restart: it loads its log from the start. A log that can't be loaded leaves the shard without a machine, and other
//!   shards alone, until its leadership changes or the node starts again.
//! - To a client, its crash means COORDINATOR_LOAD_IN_PROGRESS: it tries again.

mod appending;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callboard_coordinator::runtime::{Coordinator, Outcome, Runtime, Settled, Ticket};
use callboard_coordinator::{Circumstances, Settings as CoordinatorSettings};
use callboard_metadata::config::Settings;
use callboard_protocol::ErrorCode;

use super::cluster::ClusterView;
use super::loading::{self, LoadError, Loaded};
use super::{Core, Deleted, Led, Orders};
use crate::replicas::PartitionHandle;
use crate::replicas::messages::AwaitOpen;
use crate::supervision::{Actor, Context, Failure, Handler, Message, ReplyTo, TimerHandle};

/// The pause before a load or an append is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// A request to the machine.
pub(super) struct Request<M: Coordinator>(pub(super) M::Request);

/// The shard's orders have changed.
pub(super) struct NewOrders;

/// The cluster's topics have changed; those named are gone.
pub(super) struct TopicsChanged(pub(super) Deleted);

type Answer<M> = Result<<M as callboard_coordinator::runtime::Machine>::Reply, ErrorCode>;

impl<M: Coordinator> Message for Request<M> {
    type Reply = Answer<M>;
    const NAME: &'static str = "Request";
}

impl Message for NewOrders {
    type Reply = ();
    const NAME: &'static str = "NewOrders";
    fn is_control(&self) -> bool {
        true
    }
}

impl Message for TopicsChanged {
    type Reply = ();
    const NAME: &'static str = "TopicsChanged";
    fn is_control(&self) -> bool {
        true
    }
}

/// What a shard is now.
enum State<M: Coordinator> {
    /// Another broker leads its partition.
    Idle,
    /// It reads its log.
    Loading { led: Led, load: u64, cancelled: Arc<AtomicBool> },
    /// Its log can't be read.
    Failed { led: Led },
    /// It answers.
    Active(Box<Active<M>>),
}

struct Active<M: Coordinator> {
    led: Led,
    /// Which loading it came from.
    load: u64,
    partition: PartitionHandle,
    runtime: Runtime<M>,
    waiting: HashMap<Ticket, ReplyTo<Answer<M>>>,
    /// Whether a wait for the high watermark is under way.
    awaits_replicas: bool,
    /// Set after a refused append until deadlines are looked at again.
    paused: bool,
}

/// The actor.
pub(super) struct Shard<M: Coordinator> {
    core: Arc<Core<M>>,
    orders: Arc<Orders>,
    state: State<M>,
    /// The timer of the next deadline.
    armed: Option<(i64, TimerHandle)>,
    /// The broker's settings, and what the machine goes by.
    settings: Option<(Arc<Settings>, Arc<CoordinatorSettings>)>,
}

type Ctx<M> = Context<Shard<M>>;

impl<M: Coordinator> Shard<M> {
    pub(super) const fn new(core: Arc<Core<M>>, orders: Arc<Orders>) -> Self {
        Self { core, orders, state: State::Idle, armed: None, settings: None }
    }

    /// Does what the orders say, if that is not what it does.
    fn follow_orders(&mut self, ctx: &mut Ctx<M>) {
        let led = self.orders.get();
        let present = match &self.state {
            State::Idle => None,
            State::Loading { led, .. } | State::Failed { led } => Some(led),
            State::Active(active) => Some(&active.led),
        };
        if present == led.as_ref() {
            return;
        }
        self.unload(ErrorCode::NotCoordinator, ctx);
        if let Some(led) = led {
            self.begin_load(led, ctx);
        }
    }

    /// Gives up the machine; all who wait are told why.
    fn unload(&mut self, error: ErrorCode, ctx: &mut Ctx<M>) {
        if let Some((_, timer)) = self.armed.take() {
            ctx.cancel(timer);
        }
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Loading { cancelled, .. } => cancelled.store(true, Ordering::Relaxed),
            State::Active(active) => {
                tracing::info!(partition = %active.led.id, "a coordinator's shard is unloaded");
                active.waiting.into_values().for_each(|reply| reply.send(Err(error)));
            }
            State::Idle | State::Failed { .. } => {}
        }
    }

    /// Loads anew what it leads: what it has in memory may not be what is in the log.
    fn reload(&mut self, ctx: &mut Ctx<M>) {
        self.unload(ErrorCode::CoordinatorLoadInProgress, ctx);
        if let Some(led) = self.orders.get() {
            self.begin_load(led, ctx);
        }
    }

    fn begin_load(&mut self, led: Led, ctx: &mut Ctx<M>) {
        let load = self.core.next_load.fetch_add(1, Ordering::Relaxed);
        let cancelled = Arc::new(AtomicBool::new(false));
        self.state = State::Loading { led, load, cancelled };
        self.try_load(load, ctx);
    }

    fn is_loading(&self, wanted: u64) -> Option<(Led, Arc<AtomicBool>)> {
        match &self.state {
            State::Loading { led, load, cancelled } if *load == wanted => {
                Some((led.clone(), Arc::clone(cancelled)))
            }
            _ => None,
        }
    }

    /// Waits for the partition to be open, and for appends of an earlier life of this shard to be done, then reads.
    fn try_load(&mut self, load: u64, ctx: &mut Ctx<M>) {
        let Some((led, _)) = self.is_loading(load) else { return };
        match self.core.replicas.registry.partition(led.id.topic_id, led.id.partition) {
            Some(partition) => {
                let opening = partition.actor().ask(AwaitOpen);
                ctx.effect("await open", opening, move |shard: &mut Self, _, ctx| {
                    shard.read_log(load, partition, ctx);
                });
            }
            None => Self::try_load_later(load, ctx),
        }
    }

    fn try_load_later(load: u64, ctx: &mut Ctx<M>) {
        ctx.after("load again", RETRY_PAUSE, move |shard: &mut Self, ctx| shard.try_load(load, ctx));
    }

    fn read_log(&mut self, load: u64, partition: PartitionHandle, ctx: &mut Ctx<M>) {
        let Some((led, cancelled)) = self.is_loading(load) else { return };
        let Ok(reader) = partition.view().as_leader(led.leader_epoch) else {
            return Self::try_load_later(load, ctx);
        };
        ctx.blocking(
            "load",
            move || loading::load::<M>(&reader, &cancelled),
            move |shard: &mut Self, outcome, ctx| shard.loaded(load, partition, outcome, ctx),
        );
    }

    fn loaded(
        &mut self,
        load: u64,
        partition: PartitionHandle,
        outcome: Result<Loaded<M>, LoadError>,
        ctx: &mut Ctx<M>,
    ) {
        let Some((led, _)) = self.is_loading(load) else { return };
        let loaded = match outcome {
            Ok(loaded) => loaded,
            Err(error) => {
                tracing::error!(partition = %led.id, "a coordinator's shard can't be loaded: {error}");
                self.state = State::Failed { led };
                return;
            }
        };
        let Loaded { machine, end_offset, records, unknown } = loaded;
        tracing::info!(partition = %led.id, records, unknown, "a coordinator's shard is loaded");
        let runtime = Runtime::new(machine, end_offset, partition.view().high_watermark());
        let waiting = HashMap::new();
        let active = Active { led, load, partition, runtime, waiting, awaits_replicas: false, paused: false };
        self.state = State::Active(Box::new(active));
        self.input(ctx, |machine, cx| machine.loaded(cx));
    }

    /// Runs what is no request.
    fn input(&mut self, ctx: &mut Ctx<M>, work: impl FnOnce(&mut M, &mut Circumstances<'_>) -> Outcome<M>) {
        self.run(ctx, |active, cx| active.runtime.input(|machine| work(machine, cx)));
    }

    /// Runs something in the machine's circumstances, then does what follows from it.
    fn run(
        &mut self,
        ctx: &mut Ctx<M>,
        work: impl FnOnce(&mut Active<M>, &mut Circumstances<'_>) -> Settled<M>,
    ) {
        let applied = self.core.metadata.current();
        let settings = self.settings_of(&applied.settings);
        let State::Active(active) = &mut self.state else { return };
        let monotonic = ctx.now().saturating_duration_since(self.core.origin);
        let mut cx = Circumstances {
            now_ms: ctx.now_ms(),
            monotonic_ms: i64::try_from(monotonic.as_millis()).unwrap_or(i64::MAX),
            random: &mut || ctx.random_u64(),
            settings: &settings,
            cluster: &ClusterView(applied),
        };
        let settled = work(active, &mut cx);
        self.settle(settled, ErrorCode::UnknownServerError, ctx);
        self.append_next(ctx);
        self.arm(ctx);
    }

    fn settings_of(&mut self, settings: &Arc<Settings>) -> Arc<CoordinatorSettings> {
        match &self.settings {
            Some((known, read)) if Arc::ptr_eq(known, settings) => Arc::clone(read),
            _ => {
                let read = Arc::new((self.core.setup.settings)(settings));
                self.settings = Some((Arc::clone(settings), Arc::clone(&read)));
                read
            }
        }
    }

    /// Sends the answers that are final, and begins what the machine wants done.
    fn settle(&mut self, settled: Settled<M>, error: ErrorCode, ctx: &mut Ctx<M>) {
        let State::Active(active) = &mut self.state else { return };
        for (ticket, answer) in settled.replies {
            if let Some(reply) = active.waiting.remove(&ticket) {
                reply.send(Ok(answer));
            }
        }
        for ticket in settled.failed {
            if let Some(reply) = active.waiting.remove(&ticket) {
                reply.send(Err(error));
            }
        }
        let (load, leader_epoch) = (active.load, active.led.leader_epoch);
        for effect in settled.effects {
            let done = move |shard: &mut Self, done, ctx: &mut Ctx<M>| {
                if shard.is_active(load) {
                    shard.input(ctx, |machine, cx| machine.performed(done, cx));
                }
            };
            match &self.core.performer {
                Some(perform) => ctx.effect("perform", perform(effect, leader_epoch), done),
                None => ctx.blocking("perform", move || M::perform(effect), done),
            }
        }
    }

    fn is_active(&self, load: u64) -> bool {
        matches!(&self.state, State::Active(active) if active.load == load)
    }

    /// Sets the timer of the machine's next deadline. One that is set too early only wakes it in vain.
    fn arm(&mut self, ctx: &mut Ctx<M>) {
        let State::Active(active) = &self.state else { return };
        let Some(next) = callboard_coordinator::runtime::Machine::next_deadline_ms(active.runtime.machine())
        else {
            return;
        };
        if active.paused || self.armed.is_some_and(|(armed, _)| armed <= next) {
            return;
        }
        if let Some((_, timer)) = self.armed.take() {
            ctx.cancel(timer);
        }
        let at = self.core.origin + Duration::from_millis(u64::try_from(next).unwrap_or(0));
        let delay = at.saturating_duration_since(ctx.now());
        let timer = ctx.after("deadline", delay, |shard: &mut Self, ctx| {
            shard.armed = None;
            shard.input(ctx, |machine, cx| machine.on_time(cx));
        });
        self.armed = Some((next, timer));
    }
}

impl<M: Coordinator> Actor for Shard<M> {
    fn started(&mut self, ctx: &mut Ctx<M>) -> Result<(), Failure> {
        self.follow_orders(ctx);
        Ok(())
    }

    fn stopping(&mut self, ctx: &mut Ctx<M>) {
        self.unload(ErrorCode::NotCoordinator, ctx);
    }
}

impl<M: Coordinator> Handler<NewOrders> for Shard<M> {
    fn handle(&mut self, _: NewOrders, reply: ReplyTo<()>, ctx: &mut Ctx<M>) {
        self.follow_orders(ctx);
        reply.send(());
    }
}

impl<M: Coordinator> Handler<TopicsChanged> for Shard<M> {
    fn handle(&mut self, TopicsChanged(deleted): TopicsChanged, reply: ReplyTo<()>, ctx: &mut Ctx<M>) {
        self.input(ctx, |machine, cx| machine.metadata_changed(&deleted, cx));
        reply.send(());
    }
}

impl<M: Coordinator> Handler<Request<M>> for Shard<M> {
    fn handle(&mut self, Request(request): Request<M>, reply: ReplyTo<Answer<M>>, ctx: &mut Ctx<M>) {
        match &self.state {
            State::Idle | State::Failed { .. } => reply.send(Err(ErrorCode::NotCoordinator)),
            State::Loading { .. } => reply.send(Err(ErrorCode::CoordinatorLoadInProgress)),
            State::Active(_) => self.run(ctx, |active, cx| {
                let (ticket, settled) =
                    active.runtime.request(|machine, ticket| machine.handle(ticket, request, cx));
                active.waiting.insert(ticket, reply);
                settled
            }),
        }
    }
}
