//! How an actor is to be run: its factory, its bounds, its place, and what its failures mean.

use std::time::Duration;

use super::actor::Actor;
use super::failure::{CrashReport, Failure, FailureClass};
use super::mailbox::MailboxBound;
use super::restart::{Lifetime, RestartPolicy, Strategy};
use super::shards::Placement;

/// Messages, timers and effects an actor runs before it lets its neighbours run.
pub const FAIRNESS: usize = 64;

/// How long a stop may take before the supervisor goes on without it.
pub const STOP_DEADLINE: Duration = Duration::from_secs(30);

type Factory<A> = Box<dyn FnMut() -> Result<A, Failure> + Send>;
type Observer = Box<dyn FnMut(&CrashReport) + Send>;

/// What the cell needs of a spec.
pub(super) struct Behaviour<A: Actor> {
    pub factory: Factory<A>,
    pub fairness: usize,
    pub panic_class: FailureClass,
    pub on_failure: Option<Observer>,
}

/// How one actor is to be run.
pub struct Spec<A: Actor> {
    pub(super) name: String,
    pub(super) behaviour: Behaviour<A>,
    pub(super) lifetime: Lifetime,
    pub(super) policy: RestartPolicy,
    pub(super) bound: MailboxBound,
    pub(super) placement: Placement,
    pub(super) stop_deadline: Duration,
}

impl<A: Actor> std::fmt::Debug for Spec<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spec").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<A: Actor> Spec<A> {
    /// An actor that `factory` builds from what is durable: now, and after each failure.
    pub fn new(name: impl Into<String>, mut factory: impl FnMut() -> A + Send + 'static) -> Self {
        Self::fallible(name, move || Ok(factory()))
    }

    /// Like [`new`](Self::new), for a factory that can fail.
    pub fn fallible(
        name: impl Into<String>,
        factory: impl FnMut() -> Result<A, Failure> + Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            behaviour: Behaviour {
                factory: Box::new(factory),
                fairness: FAIRNESS,
                panic_class: FailureClass::Restart,
                on_failure: None,
            },
            lifetime: Lifetime::default(),
            policy: RestartPolicy::default(),
            bound: MailboxBound::default(),
            placement: Placement::default(),
            stop_deadline: STOP_DEADLINE,
        }
    }

    /// Whether it comes back; permanent unless said otherwise.
    pub const fn lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }
    /// How often and how soon it is restarted.
    pub const fn restart(mut self, policy: RestartPolicy) -> Self {
        self.policy = policy;
        self
    }
    /// The mailbox's bounds.
    pub const fn mailbox(mut self, messages: usize, size_bytes: usize) -> Self {
        self.bound = MailboxBound { messages, size_bytes };
        self
    }
    /// Which shard it runs on; spread over all unless said otherwise.
    pub const fn place(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }
    /// Entries in a row before it yields; at least one.
    pub fn fairness(mut self, entries: usize) -> Self {
        self.behaviour.fairness = entries.max(1);
        self
    }
    /// What a panic in it means; a restart unless said otherwise.
    pub const fn panic_class(mut self, class: FailureClass) -> Self {
        self.behaviour.panic_class = class;
        self
    }
    /// Runs on the actor's shard right after each failure, before any restart: the place to unpublish what
    /// others read without asking.
    pub fn on_failure(mut self, observer: impl FnMut(&CrashReport) + Send + 'static) -> Self {
        self.behaviour.on_failure = Some(Box::new(observer));
        self
    }
    /// How long its stop may take.
    pub const fn stop_deadline(mut self, deadline: Duration) -> Self {
        self.stop_deadline = deadline;
        self
    }
}

/// How a supervisor without a state of its own is to be run.
#[derive(Debug, Clone)]
pub struct SupervisorSpec {
    pub(super) name: String,
    pub(super) strategy: Strategy,
    pub(super) policy: RestartPolicy,
    pub(super) placement: Placement,
    pub(super) together: bool,
    pub(super) stop_deadline: Duration,
}

impl SupervisorSpec {
    /// A one-for-one supervisor.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            strategy: Strategy::OneForOne,
            policy: RestartPolicy::default(),
            placement: Placement::default(),
            together: false,
            stop_deadline: STOP_DEADLINE,
        }
    }
    /// Who is restarted when a child fails.
    pub const fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }
    /// How often this supervisor itself is restarted by its parent.
    pub const fn restart(mut self, policy: RestartPolicy) -> Self {
        self.policy = policy;
        self
    }
    /// Which shard it decides on.
    pub const fn place(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }
    /// Stops its children all at once, not one by one in reverse order: for many that don't know each other.
    pub const fn stop_together(mut self) -> Self {
        self.together = true;
        self
    }
    /// How long its stop may take.
    pub const fn stop_deadline(mut self, deadline: Duration) -> Self {
        self.stop_deadline = deadline;
        self
    }
}
