//! Supervisors: who is restarted when a child fails, and what becomes of a failure nobody below could mend.
//!
//! A supervisor is a small loop on its own shard. Children tell it of failures; it answers with commands.
//! Waiting out a backoff is the child's own business, so one child's delay never holds up another's restart.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::actor::Actor;
use super::actor_ref::ActorRef;
use super::cell::{Cell, Command, Shared};
use super::failure::{Failure, FailureClass};
use super::mailbox::{Mailbox, lock};
use super::random::Random;
use super::restart::{Decision, Lifetime, Strategy};
use super::shards::{Placement, spawn_here};
use super::shell::launch;
use super::spec::{STOP_DEADLINE, Spec, SupervisorSpec};
use super::tree::{Children, Controlled, Kind, Node, NodeSeed, State, TreeShared};

/// What a supervisor hears.
pub(super) enum Event {
    Failed(Arc<Node>, Failure),
    Exited(Arc<Node>),
    Command(Command),
}

/// Whether new children are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    /// The supervisor itself is down: they are started when it comes back.
    Held,
    Closed,
}

struct Register {
    gate: Gate,
    children: Children,
}

pub(super) struct SupervisorShared {
    pub node: Arc<Node>,
    pub tree: Arc<TreeShared>,
    register: Mutex<Register>,
    inbox: mpsc::UnboundedSender<Event>,
}

impl SupervisorShared {
    /// Events are bounded by the number of children, each of which has at most one outstanding.
    pub fn send(&self, event: Event) {
        // A supervisor that has ended took its children with it.
        let _ = self.inbox.send(event);
    }

    pub fn list(&self) -> Vec<Arc<Node>> {
        lock(&self.register).children.values().cloned().collect()
    }

    pub fn remove(&self, id: u64) {
        lock(&self.register).children.remove(&id);
    }

    /// Enters a child, unless this supervisor is closed. Says whether it is to be started now.
    pub fn enter(&self, node: &Arc<Node>) -> Option<bool> {
        let mut register = lock(&self.register);
        if register.gate == Gate::Closed {
            return None;
        }
        register.children.insert(node.id, Arc::clone(node));
        Some(register.gate == Gate::Open)
    }

    fn is_open(&self) -> bool {
        lock(&self.register).gate == Gate::Open
    }

    fn set_gate(&self, gate: Gate) {
        let mut register = lock(&self.register);
        if register.gate != Gate::Closed {
            register.gate = gate;
        }
    }

    fn has(&self, id: u64) -> bool {
        lock(&self.register).children.contains_key(&id)
    }
}

impl Controlled for SupervisorShared {
    fn command(&self, command: Command) {
        self.send(Event::Command(command));
    }
}

/// Whom a failure goes to that this supervisor cannot mend.
enum Owner {
    Root,
    Parent,
    Actor(Arc<dyn Controlled>),
}

/// Starts children, from anywhere. They run until they stop, fail for good, or the supervisor stops.
#[derive(Clone)]
pub struct SupervisorRef {
    pub(super) shared: Arc<SupervisorShared>,
}

impl std::fmt::Debug for SupervisorRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SupervisorRef({})", self.shared.node.path)
    }
}

impl SupervisorRef {
    pub(super) fn root(name: &str, strategy: Strategy, tree: &Arc<TreeShared>) -> Self {
        let spec = SupervisorSpec::new(name).strategy(strategy);
        let node = Arc::new(Node::new(tree, seed_of(&spec, 0), None));
        Self::launch(node, tree, Owner::Root, strategy, false)
    }

    pub(super) fn owned_by<A: Actor>(me: &ActorRef<A>) -> Self {
        let owner = Owner::Actor(Arc::clone(&me.shared) as Arc<dyn Controlled>);
        let node = Arc::clone(&me.shared.node);
        let tree = Arc::clone(&node.tree);
        Self::launch(node, &tree, owner, Strategy::OneForOne, false)
    }

    fn launch(
        node: Arc<Node>,
        tree: &Arc<TreeShared>,
        owner: Owner,
        strategy: Strategy,
        together: bool,
    ) -> Self {
        let (inbox, events) = mpsc::unbounded_channel();
        let shared = Arc::new(SupervisorShared {
            node: Arc::clone(&node),
            tree: Arc::clone(tree),
            register: Mutex::new(Register { gate: Gate::Open, children: Children::new() }),
            inbox,
        });
        node.set_supervisor(Some(Arc::clone(&shared)));
        if !matches!(owner, Owner::Actor(_)) {
            node.set_control(Arc::clone(&shared) as Arc<dyn Controlled>);
            node.set_state(State::Running);
        }
        let random = Random::new(tree.seed ^ node.id);
        let supervisor =
            Supervisor { shared: Arc::clone(&shared), events, owner, strategy, together, random };
        tree.shards.run_on(node.shard, move || spawn_here(supervisor.run()));
        Self { shared }
    }

    /// The supervisor's path in the tree.
    pub fn path(&self) -> &str {
        &self.shared.node.path
    }

    /// Starts an actor. The reference can be used at once: messages wait until the actor has started.
    pub fn spawn<A: Actor>(&self, spec: Spec<A>) -> ActorRef<A> {
        let tree = &self.shared.tree;
        let shard = tree.shards.place(spec.placement, self.shared.node.shard);
        let seed = NodeSeed {
            name: spec.name,
            shard,
            kind: Kind::Actor,
            lifetime: spec.lifetime,
            policy: spec.policy,
            stop_deadline: spec.stop_deadline,
        };
        let node = Arc::new(Node::new(tree, seed, Some(Arc::clone(&self.shared))));
        let shared = Arc::new(Shared { node: Arc::clone(&node), mailbox: Mailbox::new(spec.bound) });
        let actor = ActorRef { shared: Arc::clone(&shared) };
        node.set_control(Arc::clone(&shared) as Arc<dyn Controlled>);
        let Some(start) = self.shared.enter(&node) else {
            node.set_state(State::Stopped);
            drop(shared.mailbox.close());
            node.release();
            return actor;
        };
        let (behaviour, shards, random) = (spec.behaviour, tree.shards.clone(), tree.seed ^ node.id);
        tree.shards.run_on(shard, move || launch(Cell::new(shared, behaviour, shards, random)));
        if start {
            drop(node.start(Duration::ZERO));
        }
        actor
    }

    /// Starts a supervisor below this one.
    pub fn supervisor(&self, spec: SupervisorSpec) -> Self {
        let tree = &self.shared.tree;
        let shard = tree.shards.place(spec.placement, self.shared.node.shard);
        let (strategy, together) = (spec.strategy, spec.together);
        let parent = Some(Arc::clone(&self.shared));
        let node = Arc::new(Node::new(tree, seed_of(&spec, shard), parent));
        let entered = self.shared.enter(&node);
        let child = Self::launch(node, tree, Owner::Parent, strategy, together);
        match entered {
            Some(true) => {}
            Some(false) => child.shared.set_gate(Gate::Held),
            None => child.shared.set_gate(Gate::Closed),
        }
        child
    }

    /// Stops all children, and takes no new ones.
    pub async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        self.shared.send(Event::Command(Command::Stop { hold: false, done }));
        let _ = stopped.await;
    }
}

fn seed_of(spec: &SupervisorSpec, shard: usize) -> NodeSeed {
    NodeSeed {
        name: spec.name.clone(),
        shard,
        kind: Kind::Supervisor,
        lifetime: Lifetime::Permanent,
        policy: spec.policy,
        stop_deadline: spec.stop_deadline,
    }
}

/// The loop of one supervisor.
struct Supervisor {
    shared: Arc<SupervisorShared>,
    events: mpsc::UnboundedReceiver<Event>,
    owner: Owner,
    strategy: Strategy,
    together: bool,
    random: Random,
}

impl Supervisor {
    async fn run(mut self) {
        while let Some(event) = self.events.recv().await {
            match event {
                Event::Failed(child, failure) => self.child_failed(&child, failure).await,
                Event::Exited(child) => self.child_exited(&child).await,
                Event::Command(Command::Start { delay, done }) => {
                    tokio::time::sleep(delay).await;
                    self.start_all().await;
                    drop(done);
                }
                Event::Command(Command::Stop { hold, done }) => {
                    self.stop_all(hold).await;
                    drop(done);
                    if !hold {
                        break;
                    }
                }
                Event::Command(Command::Crash) => {
                    self.give_up(Failure::restart("crashed by the fault hook")).await;
                }
                Event::Command(Command::Escalated(failure)) => self.give_up(failure).await,
            }
        }
    }

    /// Whether an event still says how things are: a child may have been stopped or restarted since.
    fn is_current(&self, child: &Node, state: State) -> bool {
        self.shared.is_open() && self.shared.has(child.id) && child.state() == state
    }

    async fn child_failed(&mut self, child: &Arc<Node>, failure: Failure) {
        if !self.is_current(child, State::Failed) {
            return;
        }
        if child.lifetime == Lifetime::Temporary {
            return self.dismiss(child);
        }
        match failure.class {
            FailureClass::Offline => {
                child.set_state(State::Offline);
                drop(child.stop(false));
            }
            FailureClass::Escalate => self.give_up(failure).await,
            FailureClass::Restart | FailureClass::Resign => self.restart_or_give_up(child, failure).await,
        }
    }

    async fn child_exited(&mut self, child: &Arc<Node>) {
        if !self.is_current(child, State::Held) {
            return;
        }
        if child.lifetime == Lifetime::Permanent {
            let failure = Failure::restart(format!("{} stopped of itself", child.path));
            self.restart_or_give_up(child, failure).await;
        } else {
            self.dismiss(child);
        }
    }

    fn dismiss(&self, child: &Node) {
        drop(child.stop(false));
        self.shared.remove(child.id);
    }

    async fn restart_or_give_up(&mut self, child: &Arc<Node>, failure: Failure) {
        let decision = lock(&child.history).failed(&child.policy, Instant::now(), &mut self.random);
        match decision {
            Decision::GiveUp => {
                tracing::error!(actor = child.path, "failed more often than its supervisor allows");
                self.give_up(failure).await;
            }
            Decision::Restart(delay) => self.restart(child, delay).await,
        }
    }

    async fn restart(&self, failed: &Arc<Node>, delay: Duration) {
        let children = self.shared.list();
        let place = children.iter().position(|child| child.id == failed.id).unwrap_or(0);
        let group = children.get(self.strategy.affected(place, children.len())).unwrap_or_default();
        let alive: Vec<_> = group.iter().filter(|child| child.state() != State::Offline).collect();
        for child in alive.iter().rev().filter(|child| child.id != failed.id) {
            let hold = child.lifetime != Lifetime::Temporary;
            wait(child.stop(hold), child).await;
            if !hold {
                self.shared.remove(child.id);
            }
        }
        for child in alive.into_iter().filter(|child| self.shared.has(child.id)) {
            let delay = if child.id == failed.id { delay } else { Duration::ZERO };
            let started = restart_child(child, delay);
            // Alone, the child waits out its delay by itself; in a group the next one waits for it.
            if group.len() > 1 {
                wait(started, child).await;
            }
        }
    }

    /// Hands a failure up. This supervisor's children are stopped until its parent starts it again.
    async fn give_up(&mut self, failure: Failure) {
        let node = Arc::clone(&self.shared.node);
        match &self.owner {
            Owner::Root => {
                tracing::error!(code = failure.exit.code(), "a failure reached the root: {failure}");
                self.shared.tree.exit.send_if_modified(|exit| {
                    let first = exit.is_none();
                    exit.get_or_insert(failure.exit);
                    first
                });
            }
            Owner::Parent => {
                tracing::error!(supervisor = node.path, "escalates: {failure}");
                self.stop_all(true).await;
                node.note_failure(failure.to_string(), self.shared.tree.shards.clock().now_ms());
                node.set_state(State::Failed);
                let failure = failure.one_level_up();
                node.tell_parent(Event::Failed(Arc::clone(&node), failure));
            }
            Owner::Actor(actor) => actor.command(Command::Escalated(failure)),
        }
    }

    async fn start_all(&self) {
        self.shared.set_gate(Gate::Open);
        self.shared.node.set_state(State::Running);
        for child in self.shared.list() {
            lock(&child.history).clear();
            if child.state() != State::Offline {
                wait(restart_child(&child, Duration::ZERO), &child).await;
            }
        }
    }

    /// Stops the children, the last one started first (or all at once), and those it does not hold for good.
    async fn stop_all(&self, hold: bool) {
        self.shared.set_gate(if hold { Gate::Held } else { Gate::Closed });
        let children = self.shared.list();
        let held = |child: &Node| hold && child.lifetime != Lifetime::Temporary;
        if self.together {
            let asked: Vec<_> = children.iter().map(|child| (child, child.stop(held(child)))).collect();
            for (child, stopped) in asked {
                wait(stopped, child).await;
            }
        } else {
            for child in children.iter().rev() {
                wait(child.stop(held(child)), child).await;
            }
        }
        for child in children.iter().filter(|child| !held(child)) {
            self.shared.remove(child.id);
        }
        if matches!(self.owner, Owner::Actor(_)) {
            return;
        }
        self.shared.node.set_state(if hold { State::Held } else { State::Stopped });
        if !hold && matches!(self.owner, Owner::Parent) {
            self.shared.node.release();
        }
    }
}

fn restart_child(child: &Node, delay: Duration) -> oneshot::Receiver<()> {
    if child.state() != State::Starting {
        child.restarts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    child.set_state(State::Restarting);
    child.start(delay)
}

/// Waits for a child's acknowledgement, but not for ever.
async fn wait(acknowledged: oneshot::Receiver<()>, child: &Node) {
    let deadline = child.stop_deadline.min(STOP_DEADLINE);
    if timeout(deadline, acknowledged).await.is_err() {
        tracing::warn!(actor = child.path, deadline_ms = deadline.as_millis(), "did not answer in time");
    }
}

/// Where tasks are placed; see [`SupervisorRef::spawn_task`](super::SupervisorRef::spawn_task).
pub(super) fn place_task(shared: &SupervisorShared, placement: Placement) -> usize {
    shared.tree.shards.place(placement, shared.node.shard)
}
