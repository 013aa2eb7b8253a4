//! Supervised tasks: futures in the tree, without a mailbox, never restarted. Connections and acceptors.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll};

use futures_util::task::AtomicWaker;

use super::barrier;
use super::cell::{Command, Done};
use super::failure::Failure;
use super::mailbox::lock;
use super::restart::{Lifetime, RestartPolicy};
use super::shards::{Placement, spawn_here};
use super::spec::STOP_DEADLINE;
use super::supervisor::{SupervisorRef, SupervisorShared, place_task};
use super::tree::{Controlled, Kind, Node, NodeSeed, State};

#[derive(Default)]
struct Orders {
    crash: bool,
    stop: bool,
    ended: bool,
    done: Vec<Done>,
}

#[derive(Default)]
struct Control {
    orders: Mutex<Orders>,
    waker: AtomicWaker,
}

impl Controlled for Control {
    fn command(&self, command: Command) {
        let mut orders = lock(&self.orders);
        if orders.ended {
            return;
        }
        match command {
            Command::Stop { done, .. } => {
                orders.stop = true;
                orders.done.push(done);
            }
            Command::Crash => orders.crash = true,
            Command::Start { .. } | Command::Escalated(_) => return,
        }
        drop(orders);
        self.waker.wake();
    }
}

/// A running task.
#[derive(Clone)]
pub struct TaskHandle {
    node: Arc<Node>,
}

impl std::fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TaskHandle({})", self.node.path)
    }
}

impl TaskHandle {
    /// The task's path in the tree.
    pub fn path(&self) -> &str {
        &self.node.path
    }
    /// Whether it has ended, one way or another.
    pub fn is_finished(&self) -> bool {
        self.node.state() == State::Stopped
    }
    /// Drops the task's future where it runs, and waits until that is done.
    pub async fn stop(&self) {
        let _ = self.node.stop(false).await;
    }
}

struct Supervised<F> {
    future: Option<Pin<Box<F>>>,
    node: Arc<Node>,
    parent: Arc<SupervisorShared>,
    control: Arc<Control>,
}

impl<F: Future<Output = ()>> Future for Supervised<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<()> {
        let this = &mut *self;
        this.control.waker.register(task.waker());
        let (stop, crash) = {
            let orders = lock(&this.control.orders);
            (orders.stop, orders.crash)
        };
        let Some(future) = &mut this.future else { return Poll::Ready(()) };
        if stop {
            this.end();
            return Poll::Ready(());
        }
        let shards = &this.parent.tree.shards;
        shards.entered(this.node.shard, this.node.id);
        let outcome = barrier::run(|| {
            if crash {
                barrier::crash_on_purpose();
            }
            future.as_mut().poll(task)
        });
        shards.left(this.node.shard);
        match outcome {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => {}
            Err(panic) => {
                let failure = Failure::restart(panic.message);
                tracing::error!(task = this.node.path, location = panic.location, "failed: {failure}");
            }
        }
        this.end();
        Poll::Ready(())
    }
}

impl<F> Supervised<F> {
    fn end(&mut self) {
        if let Some(future) = self.future.take() {
            barrier::drop_quietly(future);
            self.node.set_state(State::Stopped);
            self.parent.remove(self.node.id);
            self.node.release();
            let mut orders = lock(&self.control.orders);
            orders.ended = true;
            let done = std::mem::take(&mut orders.done);
            drop(orders);
            drop(done);
        }
    }
}

impl<F> Drop for Supervised<F> {
    fn drop(&mut self) {
        self.end();
    }
}

impl SupervisorRef {
    /// Starts a temporary task below this supervisor. `make` runs on the task's shard, so the future need not
    /// be `Send`. A panic ends the task alone; stopping drops its future.
    pub fn spawn_task<F, M>(&self, name: impl Into<String>, placement: Placement, make: M) -> TaskHandle
    where
        F: Future<Output = ()> + 'static,
        M: FnOnce() -> F + Send + 'static,
    {
        let parent = Arc::clone(&self.shared);
        let shard = place_task(&parent, placement);
        let seed = NodeSeed {
            name: name.into(),
            shard,
            kind: Kind::Task,
            lifetime: Lifetime::Temporary,
            policy: RestartPolicy::default(),
            stop_deadline: STOP_DEADLINE,
        };
        let node = Arc::new(Node::new(&parent.tree, seed, Some(Arc::clone(&parent))));
        let control = Arc::new(Control::default());
        node.set_control(Arc::clone(&control) as Arc<dyn Controlled>);
        let handle = TaskHandle { node: Arc::clone(&node) };
        if parent.enter(&node).is_none() {
            node.set_state(State::Stopped);
            node.release();
            return handle;
        }
        node.set_state(State::Running);
        let shards = parent.tree.shards.clone();
        shards.run_on(shard, move || {
            let future = Some(Box::pin(async move { make().await }));
            spawn_here(Supervised { future, node, parent, control });
        });
        handle
    }
}

/// Starts a temporary task: see [`SupervisorRef::spawn_task`].
pub fn spawn_task<F, M>(
    parent: &SupervisorRef,
    name: impl Into<String>,
    placement: Placement,
    make: M,
) -> TaskHandle
where
    F: Future<Output = ()> + 'static,
    M: FnOnce() -> F + Send + 'static,
{
    parent.spawn_task(name, placement, make)
}
