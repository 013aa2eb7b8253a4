//! The cell: the shell around one supervised actor.
//!
//! A cell is what actix runs. It owns the factory, the present instance, its timers and effects; the mailbox
//! is outside, shared with every [`ActorRef`]. All entries run inside the barrier, so a panic ends the
//! instance and never the cell, and messages that were not yet begun are simply still there.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use futures_util::Stream;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep_until};

use super::actor::Actor;
use super::actor_ref::ActorRef;
use super::barrier::{self, Panic};
use super::context::{Context, Effects, Verdict};
use super::failure::{CrashReport, Failure};
use super::mailbox::{Envelope, Mailbox};
use super::recorder::Recorder;
use super::shards::Shards;
use super::spec::Behaviour;
use super::supervisor::Event;
use super::timers::Timers;
use super::tree::{Controlled, KindTimes, Load, Node, State};

/// Told when a command is done. Dropped, it says the same: there is nothing left to do.
pub(super) type Done = oneshot::Sender<()>;

/// What a supervisor tells a child.
pub(super) enum Command {
    /// Build the actor, after a delay.
    Start { delay: Duration, done: Done },
    /// Stop it. Held, its mailbox waits for the next start; otherwise it is closed for good.
    Stop { hold: bool, done: Done },
    /// The fault hook: panic in an entry.
    Crash,
    /// A child of this actor could not be helped.
    Escalated(Failure),
}

/// What an actor's references share with its cell.
pub(super) struct Shared<A: Actor> {
    pub node: Arc<Node>,
    pub mailbox: Mailbox<A>,
}

impl<A: Actor> Controlled for Shared<A> {
    fn command(&self, command: Command) {
        // A closed mailbox drops the command, which acknowledges it.
        drop(self.mailbox.push_command(command));
    }

    fn load(&self) -> Load {
        Load {
            depth: self.mailbox.depth(),
            size_bytes: self.mailbox.size_bytes(),
            waiting: self.mailbox.waiting(),
            oldest_ns: self.mailbox.oldest_ns(),
        }
    }
}

type Waiting = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
struct Ending {
    hold: bool,
    /// Whether the actor itself asked: then the supervisor decides what follows.
    own: bool,
    done: Vec<Done>,
}

enum AfterChildren {
    Build(Option<Done>),
    Stop(Ending),
}

enum Phase {
    /// Waits for a command; messages are held.
    Held,
    Delay(Pin<Box<Sleep>>, Option<Done>),
    Children(Waiting, AfterChildren),
    Running,
    /// `stopping` has run; its effects are awaited.
    Finishing(Ending),
    Gone,
}

pub(super) struct Cell<A: Actor> {
    shared: Arc<Shared<A>>,
    behaviour: Behaviour<A>,
    instance: Option<A>,
    ctx: Context<A>,
    batch: VecDeque<Envelope<A>>,
    phase: Phase,
    recorder: Recorder,
    kinds: KindTimes,
    alarm: Option<Pin<Box<Sleep>>>,
}

/// Why the loop over entries ended.
enum Step {
    /// Look at the phase and the commands again.
    Again,
    /// Nothing to do until something wakes the cell.
    Rest,
    /// There is more, but it is the neighbours' turn; the cell has woken itself.
    Yield,
    /// The actor is gone for good.
    Gone,
}

impl<A: Actor> Cell<A> {
    pub fn new(shared: Arc<Shared<A>>, behaviour: Behaviour<A>, shards: Shards, seed: u64) -> Self {
        let ctx = Context {
            me: ActorRef { shared: Arc::clone(&shared) },
            shards,
            timers: Timers::default(),
            repeating: None,
            effects: Effects::new(),
            effects_new: false,
            generation: 0,
            verdict: None,
            random: super::random::Random::new(seed),
            children: None,
        };
        let kinds = KindTimes::new(Arc::clone(&shared.node));
        Self {
            shared,
            behaviour,
            instance: None,
            ctx,
            batch: VecDeque::new(),
            phase: Phase::Held,
            recorder: Recorder::default(),
            kinds,
            alarm: None,
        }
    }

    /// Runs what there is to run. Ready when the actor is gone for good.
    pub fn poll(&mut self, task: &mut TaskContext<'_>) -> Poll<()> {
        self.shared.mailbox.watch(task.waker());
        let (shard, id) = (self.shared.node.shard, self.shared.node.id);
        self.ctx.shards.entered(shard, id);
        let mut step = self.advance(task);
        while matches!(step, Step::Rest) && self.shared.mailbox.has_come(matches!(self.phase, Phase::Running))
        {
            step = self.advance(task);
        }
        self.shared.mailbox.idle();
        self.ctx.shards.left(shard);
        match step {
            Step::Gone => Poll::Ready(()),
            Step::Rest | Step::Yield | Step::Again => Poll::Pending,
        }
    }

    fn advance(&mut self, task: &mut TaskContext<'_>) -> Step {
        loop {
            while let Some(command) = self.shared.mailbox.next_command() {
                self.obey(command);
            }
            match &mut self.phase {
                Phase::Held => return Step::Rest,
                Phase::Delay(sleep, _) => {
                    if sleep.as_mut().poll(task).is_pending() {
                        return Step::Rest;
                    }
                    self.after_delay();
                }
                Phase::Children(stopped, _) => {
                    if stopped.as_mut().poll(task).is_pending() {
                        return Step::Rest;
                    }
                    self.after_children();
                }
                Phase::Running => match self.run_entries(task) {
                    Step::Again => {}
                    step => return step,
                },
                Phase::Finishing(_) => {
                    if self.finish_effects(task).is_pending() {
                        return Step::Rest;
                    }
                    self.finish();
                }
                Phase::Gone => return Step::Gone,
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Start { delay, done } => {
                if matches!(self.phase, Phase::Held) {
                    let at = Instant::now() + delay;
                    self.phase = Phase::Delay(Box::pin(sleep_until(at)), Some(done));
                }
            }
            Command::Stop { hold, done } => self.obey_stop(hold, done),
            Command::Crash => {
                if matches!(self.phase, Phase::Running) {
                    let now = Instant::now();
                    self.enter("fault hook", 0, now, |_, _| {
                        barrier::crash_on_purpose();
                    });
                }
            }
            Command::Escalated(failure) => {
                if matches!(self.phase, Phase::Running) {
                    self.fail("child", failure.one_level_up(), None);
                }
            }
        }
    }

    fn obey_stop(&mut self, hold: bool, done: Done) {
        match &mut self.phase {
            Phase::Finishing(ending) | Phase::Children(_, AfterChildren::Stop(ending)) => {
                ending.hold &= hold;
                ending.own = false;
                ending.done.push(done);
            }
            Phase::Gone => {}
            Phase::Held | Phase::Delay(..) | Phase::Running | Phase::Children(..) => {
                self.end(Ending { hold, own: false, done: vec![done] });
            }
        }
    }

    /// Begins to stop: children first.
    fn end(&mut self, ending: Ending) {
        if self.instance.is_some() {
            self.shared.node.set_state(State::Stopping);
        }
        let before = std::mem::replace(&mut self.phase, Phase::Held);
        if let Phase::Children(stopped, _) = before {
            self.phase = Phase::Children(stopped, AfterChildren::Stop(ending));
            return;
        }
        self.stop_children_then(AfterChildren::Stop(ending));
    }

    fn stop_children_then(&mut self, then: AfterChildren) {
        if let Some(children) = self.ctx.children.take() {
            self.phase = Phase::Children(Box::pin(async move { children.stop().await }), then);
            return;
        }
        self.go_on(then);
    }

    fn after_delay(&mut self) {
        if let Phase::Delay(_, done) = std::mem::replace(&mut self.phase, Phase::Held) {
            self.stop_children_then(AfterChildren::Build(done));
        }
    }

    fn after_children(&mut self) {
        if let Phase::Children(_, then) = std::mem::replace(&mut self.phase, Phase::Held) {
            self.go_on(then);
        }
    }

    fn go_on(&mut self, then: AfterChildren) {
        match then {
            AfterChildren::Build(done) => {
                self.build();
                drop(done);
            }
            AfterChildren::Stop(ending) => {
                let earlier = std::mem::take(&mut self.ctx.effects);
                barrier::drop_quietly(earlier);
                self.phase = Phase::Finishing(ending);
                if self.instance.is_some() {
                    let now = Instant::now();
                    self.enter("stopping", 0, now, |actor, ctx| actor.stopping(ctx));
                }
            }
        }
    }

    /// Builds the actor from its factory and lets it start.
    fn build(&mut self) {
        self.recorder.note("started", 0, Instant::now());
        let factory = &mut self.behaviour.factory;
        match barrier::run(factory) {
            Ok(Ok(actor)) => self.instance = Some(actor),
            Ok(Err(failure)) => return self.fail("started", failure, None),
            Err(panic) => return self.fail_by_panic("started", panic),
        }
        self.phase = Phase::Running;
        self.shared.node.set_state(State::Running);
        let Some(actor) = &mut self.instance else { return };
        let ctx = &mut self.ctx;
        match barrier::run(|| actor.started(ctx)) {
            Ok(Ok(())) => self.after_entry("started"),
            Ok(Err(failure)) => self.fail("started", failure, None),
            Err(panic) => self.fail_by_panic("started", panic),
        }
    }

    /// Runs entries until there are none, or as many as fairness allows.
    fn run_entries(&mut self, task: &mut TaskContext<'_>) -> Step {
        let mut now = Instant::now();
        let mut budget = self.behaviour.fairness;
        self.ctx.effects_new = !self.ctx.effects.is_empty();
        loop {
            if budget == 0 {
                task.waker().wake_by_ref();
                return Step::Yield;
            }
            budget -= 1;
            if self.shared.mailbox.is_urgent() && self.shared.mailbox.has_command() {
                return Step::Again;
            }
            if let Some(envelope) = self.shared.mailbox.next_control() {
                now = self.deliver(envelope, now);
            } else if let Some(due) = self.ctx.timers.take_due(now) {
                let name = due.name;
                now = self.enter(name, 0, now, move |actor, ctx| due.run(actor, ctx));
            } else if self.ctx.effects_new {
                now = self.run_effect(task, now);
            } else if let Some(envelope) = self.batch.pop_front() {
                now = self.deliver(envelope, now);
            } else {
                self.shared.mailbox.take_batch(&mut self.batch);
                if self.batch.is_empty() {
                    match self.set_alarm(task) {
                        Poll::Ready(()) => now = Instant::now(),
                        Poll::Pending => return Step::Rest,
                    }
                }
            }
            if !matches!(self.phase, Phase::Running) {
                return Step::Again;
            }
        }
    }

    fn deliver(&mut self, envelope: Envelope<A>, began: Instant) -> Instant {
        self.shared.mailbox.begin(&envelope);
        let Envelope { entry, size_bytes, .. } = envelope;
        self.enter(entry.name(), size_bytes, began, move |actor, ctx| entry.run(actor, ctx))
    }

    /// Runs one effect that has finished, if there is one.
    fn run_effect(&mut self, task: &mut TaskContext<'_>, now: Instant) -> Instant {
        let effects = &mut self.ctx.effects;
        if effects.is_empty() {
            self.ctx.effects_new = false;
            return now;
        }
        match barrier::run(|| Pin::new(effects).poll_next(task)) {
            Ok(Poll::Ready(Some(finished))) => self.enter(finished.name, 0, now, finished.run),
            Ok(Poll::Ready(None) | Poll::Pending) => {
                self.ctx.effects_new = false;
                now
            }
            Err(panic) => {
                self.fail_by_panic("effect", panic);
                now
            }
        }
    }

    fn set_alarm(&mut self, task: &mut TaskContext<'_>) -> Poll<()> {
        let Some(at) = self.ctx.timers.deadline() else { return Poll::Pending };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if alarm.deadline() != at {
            alarm.as_mut().reset(at);
        }
        alarm.as_mut().poll(task)
    }

    /// One entry, inside the barrier. Returns when it ended.
    fn enter(
        &mut self,
        name: &'static str,
        size_bytes: usize,
        began: Instant,
        entry: impl FnOnce(&mut A, &mut Context<A>),
    ) -> Instant {
        let Some(actor) = &mut self.instance else { return began };
        self.recorder.note(name, size_bytes, began);
        let ctx = &mut self.ctx;
        let outcome = barrier::run(|| entry(actor, ctx));
        let ended = Instant::now();
        self.kinds.note(name, ended.saturating_duration_since(began));
        match outcome {
            Ok(()) if self.ctx.verdict.is_none() => {}
            Ok(()) => self.after_entry(name),
            Err(panic) => self.fail_by_panic(name, panic),
        }
        ended
    }

    fn after_entry(&mut self, name: &'static str) {
        match self.ctx.verdict.take() {
            Some(Verdict::Fail(failure)) => self.fail(name, failure, None),
            Some(Verdict::Stop) if matches!(self.phase, Phase::Running) => {
                self.end(Ending { hold: true, own: true, done: Vec::new() });
            }
            Some(Verdict::Stop) | None => {}
        }
    }

    fn fail_by_panic(&mut self, entry: &'static str, panic: Panic) {
        let failure = Failure::new(self.behaviour.panic_class, panic.message);
        self.fail(entry, failure, panic.location);
    }

    /// Drops the broken instance with all it began, reports, and waits for the supervisor.
    fn fail(&mut self, entry: &'static str, failure: Failure, location: Option<String>) {
        self.drop_instance();
        let last_entries = self.recorder.report(Instant::now());
        let path = self.shared.node.path.clone();
        let report = CrashReport { path, entry, failure, location, last_entries };
        let history: Vec<String> = report.last_entries.iter().map(ToString::to_string).collect();
        tracing::error!(actor = report.path, history = history.join(", "), "{report}");
        self.shared.node.note_failure(report.to_string(), self.ctx.now_ms());
        if let Some(observer) = &mut self.behaviour.on_failure
            && let Err(panic) = barrier::run(|| observer(&report))
        {
            tracing::warn!(actor = report.path, message = panic.message, "the failure's observer panicked");
        }
        // Failing while stopping is stopping.
        if !matches!(self.phase, Phase::Finishing(_)) {
            self.phase = Phase::Held;
            self.shared.node.set_state(State::Failed);
            self.shared.node.tell_parent(Event::Failed(Arc::clone(&self.shared.node), report.failure));
        }
    }

    fn drop_instance(&mut self) {
        self.ctx.generation += 1;
        self.ctx.verdict = None;
        self.ctx.repeating = None;
        self.alarm = None;
        barrier::drop_quietly(self.instance.take());
        barrier::drop_quietly(self.ctx.timers.clear());
        barrier::drop_quietly(std::mem::take(&mut self.ctx.effects));
    }

    /// Closes the mailbox; all whose message was not begun are told.
    fn refuse_what_is_left(&mut self) {
        let closed = self.shared.mailbox.close();
        for envelope in std::mem::take(&mut self.batch).into_iter().chain(closed) {
            barrier::drop_quietly(barrier::run(|| envelope.entry.refuse()));
        }
    }

    fn finish_effects(&mut self, task: &mut TaskContext<'_>) -> Poll<()> {
        let mut now = Instant::now();
        while self.instance.is_some() && !self.ctx.effects.is_empty() {
            self.ctx.effects_new = true;
            now = self.run_effect(task, now);
            if !self.ctx.effects_new {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    fn finish(&mut self) {
        let Phase::Finishing(ending) = std::mem::replace(&mut self.phase, Phase::Held) else { return };
        self.drop_instance();
        let node = Arc::clone(&self.shared.node);
        if ending.hold {
            node.set_state(State::Held);
            if ending.own {
                node.tell_parent(Event::Exited(Arc::clone(&node)));
            }
        } else {
            self.phase = Phase::Gone;
            if node.state() != State::Offline {
                node.set_state(State::Stopped);
            }
            self.refuse_what_is_left();
            node.release();
        }
        drop(ending.done);
    }
}

impl<A: Actor> Drop for Cell<A> {
    fn drop(&mut self) {
        // Also when the shard itself goes away: nobody may wait for an answer that cannot come.
        self.refuse_what_is_left();
        barrier::drop_quietly(self.instance.take());
    }
}
