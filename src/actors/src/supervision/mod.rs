//! Supervision: what actix leaves out.
//!
//! actix gives each actor a task on an Arbiter. This module gives it everything else: references that stay
//! valid ([`ActorRef`]), admission by count and bytes, a barrier that no panic passes, supervisors that
//! restart by a policy, fairness, a watchdog, a flight recorder, and the tree as data ([`Tree`]). No other
//! module names actix.
//!
//! The way of a message: `ActorRef::ask` puts it in the mailbox (`mailbox`) and wakes the cell (`cell`); the
//! cell takes it and runs the handler inside the barrier (`barrier`). If that panics, the cell drops the
//! instance, keeps the mailbox, and tells its supervisor (`supervisor`), which decides (`restart`) and tells
//! the cell to build the actor again.

mod actor;
mod actor_ref;
mod barrier;
mod bell;
mod cell;
mod clock;
mod context;
mod failure;
pub mod faults;
mod mailbox;
mod random;
mod recorder;
mod restart;
mod shards;
mod shell;
mod spec;
mod supervisor;
mod task;
mod timers;
mod tree;
mod watchdog;

pub use actor::{Actor, Handler, Message, ReplyTo};
pub use actor_ref::{ActorRef, Ask, AskError, Recipient};
pub use barrier::Panic;
pub use clock::Clock;
pub use context::{Context, Courier};
pub use failure::{CrashReport, Exit, Failure, FailureClass};
pub use mailbox::MailboxBound;
pub use random::Random;
pub use recorder::{REMEMBERED, Record};
pub use restart::{Lifetime, RestartPolicy, Strategy};
pub use shards::{Placement, Shards, run};
pub use spec::{FAIRNESS, STOP_DEADLINE, Spec, SupervisorSpec};
pub use supervisor::SupervisorRef;
pub use task::{TaskHandle, spawn_task};
pub use timers::TimerHandle;
pub use tree::{ActorInfo, Kind, KindInfo, State, Tree};
pub use watchdog::{Stuck, Watchdog, WatchdogOptions};
