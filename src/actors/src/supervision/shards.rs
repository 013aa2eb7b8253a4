//! Shards: the threads actors run on, and the only place that starts one.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use actix::{Arbiter, ArbiterHandle, System};

use super::barrier;
use super::clock::Clock;
use super::mailbox::lock;

thread_local! {
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Blocking threads a shard may use at once: fsync, recovery, cleaning, cold reads.
const BLOCKING_THREADS: usize = 32;

/// Where a new actor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// Spread evenly over the shards.
    #[default]
    Spread,
    /// On this shard (taken modulo their number).
    On(usize),
    /// Where its parent runs.
    WithParent,
}

#[derive(Default)]
struct Shard {
    handle: Option<ArbiterHandle>,
    /// The id of the actor that runs now; zero when none does.
    running: AtomicU64,
    /// The last of the watchdog's beats that came back.
    beat: Arc<AtomicU64>,
    stuck: AtomicBool,
}

struct Inner {
    shards: Vec<Shard>,
    arbiters: Mutex<Vec<Arbiter>>,
    next: AtomicUsize,
    clock: Clock,
}

/// A node's shards: one single-threaded loop per core, or, in a simulation, all on the caller's thread.
#[derive(Clone)]
pub struct Shards {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Shards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shards({})", self.count())
    }
}

/// Runs a future to its end on this thread, where shards may be started.
///
/// # Errors
/// When the thread's event loop cannot be made.
pub fn run<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = Arc::new(tokio::runtime::Builder::new_current_thread().enable_all().build()?);
    Ok(System::with_tokio_rt(move || runtime).block_on(future))
}

impl Shards {
    /// Starts `count` threads (at least one). Call it inside [`run`].
    ///
    /// # Errors
    /// When a thread or its event loop cannot be made.
    pub fn start(count: usize) -> io::Result<Self> {
        if System::try_current().is_none() {
            return Err(io::Error::other("shards can only be started inside supervision::run"));
        }
        let mut arbiters = Vec::new();
        let mut shards = Vec::new();
        for index in 0..count.max(1) {
            let arbiter = Arbiter::try_with_tokio_rt(|| {
                tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .max_blocking_threads(BLOCKING_THREADS)
                    .thread_name("blocking")
                    .build()
            })?;
            arbiter.spawn_fn(move || CURRENT.with(|current| current.set(Some(index))));
            shards.push(Shard { handle: Some(arbiter.handle()), ..Shard::default() });
            arbiters.push(arbiter);
        }
        Ok(Self::from(shards, arbiters, Clock::System))
    }

    /// One shard: the present thread, inside a `LocalSet`. Blocking work runs in place, so that a run
    /// repeats exactly.
    pub fn local(clock: Clock) -> Self {
        Self::from(vec![Shard::default()], Vec::new(), clock)
    }

    fn from(shards: Vec<Shard>, arbiters: Vec<Arbiter>, clock: Clock) -> Self {
        let inner = Inner { shards, arbiters: Mutex::new(arbiters), next: AtomicUsize::new(0), clock };
        Self { inner: Arc::new(inner) }
    }

    /// How many shards there are.
    pub fn count(&self) -> usize {
        self.inner.shards.len()
    }

    /// The node's clock.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// The shard this code runs on, if it runs on one with its own thread.
    pub fn current() -> Option<usize> {
        CURRENT.with(Cell::get)
    }

    /// Whether everything shares the caller's thread.
    pub fn is_local(&self) -> bool {
        self.inner.shards.iter().all(|shard| shard.handle.is_none())
    }

    pub(super) fn place(&self, placement: Placement, parent: usize) -> usize {
        match placement {
            Placement::Spread => self.inner.next.fetch_add(1, Ordering::Relaxed) % self.count(),
            Placement::On(shard) => shard % self.count(),
            Placement::WithParent => parent,
        }
    }

    /// Runs `start` on a shard: at once if this is its thread.
    pub(super) fn run_on(&self, shard: usize, start: impl FnOnce() + Send + 'static) {
        match self.inner.shards.get(shard).and_then(|shard| shard.handle.as_ref()) {
            Some(handle) if Self::current() != Some(shard) => {
                // A shard that has ended drops the closure, and with it everything it would have run.
                handle.spawn_fn(start);
            }
            _ => start(),
        }
    }

    /// Runs `work` where it may block. A panic in it continues in whoever awaits the result.
    pub fn blocking<T, W>(&self, work: W) -> impl Future<Output = T> + Send + 'static + use<T, W>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let work = move || barrier::run(work);
        let (there, here) = if self.is_local() {
            (None, Some(work()))
        } else {
            (Some(tokio::task::spawn_blocking(work)), None)
        };
        async move {
            let outcome = match there {
                Some(task) => task.await.ok(),
                None => here,
            };
            match outcome {
                Some(Ok(value)) => value,
                Some(Err(panic)) => {
                    let place = panic.location.map(|at| format!(" at {at}")).unwrap_or_default();
                    std::panic::resume_unwind(Box::new(format!("{}{place}", panic.message)))
                }
                None => std::panic::resume_unwind(Box::new("the blocking pool has ended".to_owned())),
            }
        }
    }

    pub(super) fn entered(&self, shard: usize, actor: u64) {
        if let Some(shard) = self.inner.shards.get(shard) {
            shard.running.store(actor, Ordering::Relaxed);
        }
    }

    pub(super) fn left(&self, shard: usize) {
        self.entered(shard, 0);
    }

    /// The actor that runs on a shard now; zero when none does.
    pub(super) fn running(&self, shard: usize) -> u64 {
        self.inner.shards.get(shard).map_or(0, |shard| shard.running.load(Ordering::Relaxed))
    }

    pub(super) fn send_beat(&self, shard: usize, beat: u64) {
        if let Some(shard) = self.inner.shards.get(shard)
            && let Some(handle) = &shard.handle
        {
            let answered = Arc::clone(&shard.beat);
            handle.spawn_fn(move || answered.store(beat, Ordering::Release));
        }
    }

    pub(super) fn last_beat(&self, shard: usize) -> u64 {
        self.inner.shards.get(shard).map_or(0, |shard| shard.beat.load(Ordering::Acquire))
    }

    pub(super) fn set_stuck(&self, shard: usize, stuck: bool) {
        if let Some(shard) = self.inner.shards.get(shard) {
            shard.stuck.store(stuck, Ordering::Relaxed);
        }
    }

    /// Whether the watchdog has found this shard stuck.
    pub fn is_stuck(&self, shard: usize) -> bool {
        self.inner.shards.get(shard).is_some_and(|shard| shard.stuck.load(Ordering::Relaxed))
    }

    /// Ends the threads, after everything on them was stopped.
    pub fn stop(&self) {
        for arbiter in lock(&self.inner.arbiters).drain(..) {
            arbiter.stop();
            if arbiter.join().is_err() {
                tracing::error!("a shard's thread ended in a panic");
            }
        }
    }
}

/// Starts a future on the present thread, outside the tree: for supervision's own loops.
pub(super) fn spawn_here(future: impl Future<Output = ()> + 'static) {
    drop(actix::spawn(future));
}
