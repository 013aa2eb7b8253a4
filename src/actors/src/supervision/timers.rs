//! One actor's timers: a heap of deadlines, run inside the barrier like any other entry.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::actor::Actor;
use super::context::Context;

/// Names one timer of one actor, to cancel it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerHandle(u64);

type Once<A> = Box<dyn FnOnce(&mut A, &mut Context<A>)>;
type Repeat<A> = Box<dyn FnMut(&mut A, &mut Context<A>)>;

enum Action<A: Actor> {
    Once(Once<A>),
    Every(Duration, Repeat<A>),
}

/// A timer that is due.
pub(super) struct Due<A: Actor> {
    pub name: &'static str,
    handle: TimerHandle,
    at: Instant,
    action: Action<A>,
}

pub(super) struct Timers<A: Actor> {
    next: u64,
    order: BinaryHeap<Reverse<(Instant, TimerHandle)>>,
    actions: HashMap<TimerHandle, (&'static str, Action<A>)>,
}

impl<A: Actor> Default for Timers<A> {
    fn default() -> Self {
        Self { next: 0, order: BinaryHeap::new(), actions: HashMap::new() }
    }
}

impl<A: Actor> Timers<A> {
    fn add(&mut self, name: &'static str, at: Instant, action: Action<A>) -> TimerHandle {
        self.next += 1;
        let handle = TimerHandle(self.next);
        self.order.push(Reverse((at, handle)));
        self.actions.insert(handle, (name, action));
        handle
    }

    pub fn after(&mut self, name: &'static str, at: Instant, action: Once<A>) -> TimerHandle {
        self.add(name, at, Action::Once(action))
    }

    pub fn every(&mut self, name: &'static str, period: Duration, action: Repeat<A>) -> TimerHandle {
        self.add(name, Instant::now() + period, Action::Every(period, action))
    }

    pub fn cancel(&mut self, handle: TimerHandle) {
        self.actions.remove(&handle);
        // Cancelled deadlines stay in the heap until they come up; sweep when they are the most of it.
        if self.order.len() > 64 && self.order.len() > self.actions.len().saturating_mul(4) {
            let actions = &self.actions;
            self.order.retain(|Reverse((_, handle))| actions.contains_key(handle));
        }
    }

    /// The earliest deadline.
    pub fn deadline(&mut self) -> Option<Instant> {
        while let Some(Reverse((at, handle))) = self.order.peek() {
            if self.actions.contains_key(handle) {
                return Some(*at);
            }
            self.order.pop();
        }
        None
    }

    /// Takes one timer that is due at `now`.
    pub fn take_due(&mut self, now: Instant) -> Option<Due<A>> {
        if self.order.is_empty() || self.deadline().is_none_or(|at| at > now) {
            return None;
        }
        let Reverse((at, handle)) = self.order.pop()?;
        let (name, action) = self.actions.remove(&handle)?;
        Some(Due { name, handle, at, action })
    }

    pub fn clear(&mut self) -> Self {
        // Handles stay unique over generations, so an old handle cancels nothing new.
        let next = self.next;
        std::mem::replace(self, Self { next, ..Self::default() })
    }
}

impl<A: Actor> Due<A> {
    /// Runs the timer and, if it repeats and was not cancelled meanwhile, sets it again.
    pub fn run(self, actor: &mut A, ctx: &mut Context<A>) {
        match self.action {
            Action::Once(action) => action(actor, ctx),
            Action::Every(period, mut action) => {
                let now = Instant::now();
                // Missed periods are skipped, not caught up with.
                let next = (self.at + period).max(now);
                ctx.repeating = Some(self.handle);
                action(actor, ctx);
                if ctx.repeating.take() == Some(self.handle) {
                    ctx.timers.order.push(Reverse((next, self.handle)));
                    ctx.timers.actions.insert(self.handle, (self.name, Action::Every(period, action)));
                }
            }
        }
    }
}
