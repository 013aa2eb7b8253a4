//! What an actor may do besides answering: timers, effects, children, stopping and failing.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use super::actor::Actor;
use super::actor_ref::ActorRef;
use super::failure::Failure;
use super::mailbox::{Entry, Envelope};
use super::random::Random;
use super::shards::Shards;
use super::supervisor::SupervisorRef;
use super::timers::{TimerHandle, Timers};

/// What is left to run on the actor when an effect has finished.
type Continuation<A> = Box<dyn FnOnce(&mut A, &mut Context<A>)>;

/// What an effect brings back: an entry for the actor.
pub(super) struct Finished<A: Actor> {
    pub name: &'static str,
    pub run: Continuation<A>,
}

pub(super) type Effects<A> = FuturesUnordered<Pin<Box<dyn Future<Output = Finished<A>>>>>;

pub(super) enum Verdict {
    Stop,
    Fail(Failure),
}

/// An actor's surroundings. Everything begun here belongs to this generation of the actor: after a crash its
/// timers and effects are discarded.
pub struct Context<A: Actor> {
    pub(super) me: ActorRef<A>,
    pub(super) shards: Shards,
    pub(super) timers: Timers<A>,
    pub(super) repeating: Option<TimerHandle>,
    pub(super) effects: Effects<A>,
    pub(super) effects_new: bool,
    pub(super) generation: u64,
    pub(super) verdict: Option<Verdict>,
    pub(super) random: Random,
    pub(super) children: Option<SupervisorRef>,
}

impl<A: Actor> Context<A> {
    /// A reference to this actor.
    pub fn me(&self) -> ActorRef<A> {
        self.me.clone()
    }

    /// The actor's path in the tree.
    pub fn path(&self) -> &str {
        self.me.path()
    }

    /// The wall clock, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.shards.clock().now_ms()
    }

    /// The runtime's monotonic time.
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// A random number, from the tree's seed.
    pub fn random_u64(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// How many times the actor was built before this one.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The shards of this node.
    pub const fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Runs `action` once after `delay`.
    pub fn after(
        &mut self,
        name: &'static str,
        delay: Duration,
        action: impl FnOnce(&mut A, &mut Self) + 'static,
    ) -> TimerHandle {
        self.timers.after(name, Instant::now() + delay, Box::new(action))
    }

    /// Runs `action` each `period`, first after one period. Periods missed are skipped.
    pub fn every(
        &mut self,
        name: &'static str,
        period: Duration,
        action: impl FnMut(&mut A, &mut Self) + 'static,
    ) -> TimerHandle {
        self.timers.every(name, period, Box::new(action))
    }

    /// Cancels a timer. One that has run, or of an earlier generation, is no error.
    pub fn cancel(&mut self, timer: TimerHandle) {
        if self.repeating == Some(timer) {
            self.repeating = None;
        }
        self.timers.cancel(timer);
    }

    /// Starts a future on this shard and hands its result to `done` as an entry of its own. A panic in the
    /// future is a crash of the actor.
    pub fn effect<F>(
        &mut self,
        name: &'static str,
        future: F,
        done: impl FnOnce(&mut A, F::Output, &mut Self) + 'static,
    ) where
        F: Future + 'static,
    {
        self.effects_new = true;
        self.effects.push(Box::pin(async move {
            let result = future.await;
            Finished { name, run: Box::new(move |actor, ctx| done(actor, result, ctx)) }
        }));
    }

    /// Runs `work` in the blocking pool (in a simulation: here and now) and hands its result to `done`. A
    /// panic in the work is a crash of the actor.
    pub fn blocking<T: Send + 'static>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
        done: impl FnOnce(&mut A, T, &mut Self) + 'static,
    ) {
        let running = self.shards.blocking(work);
        self.effect(name, running, done);
    }

    /// A sender for threads and callbacks outside: what it delivers runs as an entry of this generation, or
    /// is dropped if the actor was restarted since.
    pub fn courier(&self) -> Courier<A> {
        Courier { to: self.me.clone(), generation: self.generation }
    }

    /// The supervisor of this actor's own children. They belong to this generation: before the actor is
    /// built again, and after it stops, they are stopped.
    pub fn children(&mut self) -> SupervisorRef {
        let me = &self.me;
        self.children.get_or_insert_with(|| SupervisorRef::owned_by(me)).clone()
    }

    /// Stops this actor after the present entry.
    pub fn stop(&mut self) {
        if self.verdict.is_none() {
            self.verdict = Some(Verdict::Stop);
        }
    }

    /// Fails this actor after the present entry: its state is dropped as after a panic.
    pub fn fail(&mut self, failure: Failure) {
        self.verdict = Some(Verdict::Fail(failure));
    }
}

/// Delivers closures to one generation of an actor from anywhere. See [`Context::courier`].
pub struct Courier<A: Actor> {
    to: ActorRef<A>,
    generation: u64,
}

impl<A: Actor> Clone for Courier<A> {
    fn clone(&self) -> Self {
        Self { to: self.to.clone(), generation: self.generation }
    }
}

impl<A: Actor> std::fmt::Debug for Courier<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Courier({}, {})", self.to.path(), self.generation)
    }
}

struct Delivery<F> {
    name: &'static str,
    generation: u64,
    run: F,
}

impl<A: Actor, F: FnOnce(&mut A, &mut Context<A>) + Send> Entry<A> for Delivery<F> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn run(self: Box<Self>, actor: &mut A, ctx: &mut Context<A>) {
        if self.generation == ctx.generation {
            (self.run)(actor, ctx);
        }
    }
    fn refuse(self: Box<Self>) {}
}

impl<A: Actor> Courier<A> {
    /// Queues `run` in the control lane: keep the number outstanding bounded.
    pub fn deliver(&self, name: &'static str, run: impl FnOnce(&mut A, &mut Context<A>) + Send + 'static) {
        let entry = Box::new(Delivery { name, generation: self.generation, run });
        self.to.shared.mailbox.push_control(Envelope::new(entry, 0));
    }
}
