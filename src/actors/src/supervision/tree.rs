//! The tree as data: what every actor is, where it is, and how it does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;

use super::cell::{Command, Done};
use super::clock::coarse_ns;
use super::failure::Exit;
use super::mailbox::lock;
use super::restart::{History, Lifetime, RestartPolicy, Strategy};
use super::shards::Shards;
use super::supervisor::{Event, SupervisorRef, SupervisorShared};

/// What an actor is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Not built yet.
    Starting,
    /// Taking messages.
    Running,
    /// Failed; its supervisor has not decided yet.
    Failed,
    /// To be built again, after a delay. Messages are held.
    Restarting,
    /// Stopped for a restart of its group. Messages are held.
    Held,
    /// Asked to stop.
    Stopping,
    /// Stopped for good.
    Stopped,
    /// Failed for good; see [`FailureClass::Offline`](super::FailureClass::Offline).
    Offline,
}

const STATES: [State; 8] = [
    State::Starting,
    State::Running,
    State::Failed,
    State::Restarting,
    State::Held,
    State::Stopping,
    State::Stopped,
    State::Offline,
];

/// What kind of place in the tree this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An actor with a mailbox.
    Actor,
    /// A supervisor without a state of its own.
    Supervisor,
    /// A task without a mailbox (a connection).
    Task,
}

/// What can be commanded from the tree.
pub(super) trait Controlled: Send + Sync {
    fn command(&self, command: Command);
    fn load(&self) -> Load {
        Load::default()
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Load {
    pub depth: usize,
    pub size_bytes: usize,
    pub waiting: usize,
    pub oldest_ns: u64,
}

struct KindStat {
    name: &'static str,
    count: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

/// One place in the tree.
pub(super) struct Node {
    pub id: u64,
    pub path: String,
    pub shard: usize,
    pub kind: Kind,
    pub lifetime: Lifetime,
    pub policy: RestartPolicy,
    pub stop_deadline: Duration,
    pub history: Mutex<History>,
    pub restarts: AtomicU64,
    pub tree: Arc<TreeShared>,
    parent: Option<Arc<SupervisorShared>>,
    state: AtomicU8,
    kinds: RwLock<Vec<Arc<KindStat>>>,
    last_failure: Mutex<Option<(String, i64)>>,
    control: Mutex<Option<Arc<dyn Controlled>>>,
    supervisor: Mutex<Option<Arc<SupervisorShared>>>,
}

/// What a new node needs to know.
pub(super) struct NodeSeed {
    pub name: String,
    pub shard: usize,
    pub kind: Kind,
    pub lifetime: Lifetime,
    pub policy: RestartPolicy,
    pub stop_deadline: Duration,
}

impl Node {
    pub fn new(tree: &Arc<TreeShared>, seed: NodeSeed, parent: Option<Arc<SupervisorShared>>) -> Self {
        let path = match &parent {
            Some(parent) => format!("{}/{}", parent.node.path, seed.name),
            None => seed.name,
        };
        Self {
            id: tree.next_id(),
            path,
            shard: seed.shard,
            kind: seed.kind,
            lifetime: seed.lifetime,
            policy: seed.policy,
            stop_deadline: seed.stop_deadline,
            history: Mutex::default(),
            restarts: AtomicU64::new(0),
            tree: Arc::clone(tree),
            parent,
            state: AtomicU8::new(State::Starting as u8),
            kinds: RwLock::default(),
            last_failure: Mutex::default(),
            control: Mutex::default(),
            supervisor: Mutex::default(),
        }
    }

    pub fn state(&self) -> State {
        let index = usize::from(self.state.load(Ordering::SeqCst));
        STATES.get(index).copied().unwrap_or(State::Stopped)
    }

    pub fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::SeqCst);
    }

    pub fn note_failure(&self, what: String, at_ms: i64) {
        *lock(&self.last_failure) = Some((what, at_ms));
    }

    pub fn tell_parent(&self, event: Event) {
        if let Some(parent) = &self.parent {
            parent.send(event);
        }
    }

    pub fn set_control(&self, control: Arc<dyn Controlled>) {
        *lock(&self.control) = Some(control);
    }

    pub fn set_supervisor(&self, supervisor: Option<Arc<SupervisorShared>>) {
        *lock(&self.supervisor) = supervisor;
    }

    /// Lets go of what holds the actor in memory, once it is gone.
    pub fn release(&self) {
        lock(&self.control).take();
        lock(&self.supervisor).take();
    }

    pub fn command(&self, command: Command) {
        let control = lock(&self.control).clone();
        if let Some(control) = control {
            control.command(command);
        }
    }

    /// Asks it to stop; the receiver ends when it has.
    pub fn stop(&self, hold: bool) -> tokio::sync::oneshot::Receiver<()> {
        let (done, stopped): (Done, _) = tokio::sync::oneshot::channel();
        self.command(Command::Stop { hold, done });
        stopped
    }

    /// Asks it to start; the receiver ends when it has, or could not.
    pub fn start(&self, delay: Duration) -> tokio::sync::oneshot::Receiver<()> {
        let (done, started): (Done, _) = tokio::sync::oneshot::channel();
        self.command(Command::Start { delay, done });
        started
    }

    pub fn children(&self) -> Vec<Arc<Self>> {
        let supervisor = lock(&self.supervisor).clone();
        supervisor.map(|supervisor| supervisor.list()).unwrap_or_default()
    }

    /// This node and all below it, parents first.
    pub fn walk(self: &Arc<Self>, found: &mut Vec<Arc<Self>>) {
        found.push(Arc::clone(self));
        for child in self.children() {
            child.walk(found);
        }
    }

    fn info(&self) -> ActorInfo {
        let control = lock(&self.control).clone();
        let load = control.map(|control| control.load()).unwrap_or_default();
        let age = match load.oldest_ns {
            0 => Duration::ZERO,
            sent => Duration::from_nanos(coarse_ns().saturating_sub(sent)),
        };
        let stats = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        let kinds: Vec<KindInfo> = stats.iter().map(|stat| stat.info()).collect();
        drop(stats);
        ActorInfo {
            path: self.path.clone(),
            kind: self.kind,
            state: self.state(),
            shard: self.shard,
            mailbox_depth: load.depth,
            mailbox_size_bytes: load.size_bytes,
            waiting_senders: load.waiting,
            oldest_age: age,
            handled: kinds.iter().map(|kind| kind.count).sum(),
            kinds,
            restarts: self.restarts.load(Ordering::Relaxed),
            last_failure: lock(&self.last_failure).clone(),
            children: self.children().iter().map(|child| child.info()).collect(),
        }
    }
}

impl KindStat {
    fn info(&self) -> KindInfo {
        KindInfo {
            name: self.name,
            count: self.count.load(Ordering::Relaxed),
            total: Duration::from_nanos(self.total_ns.load(Ordering::Relaxed)),
            longest: Duration::from_nanos(self.longest_ns.load(Ordering::Relaxed)),
        }
    }
}

/// Counts one actor's entries by kind. Only its cell writes; anybody may read.
pub(super) struct KindTimes {
    node: Arc<Node>,
    known: Vec<Arc<KindStat>>,
}

impl KindTimes {
    pub const fn new(node: Arc<Node>) -> Self {
        Self { node, known: Vec::new() }
    }

    pub fn note(&mut self, name: &'static str, took: Duration) {
        let stat = match self.known.iter().find(|stat| std::ptr::eq(stat.name, name) || stat.name == name) {
            Some(stat) => stat,
            None => self.add(name),
        };
        let took_ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        // One writer: a load and a store are enough, and cheaper than a locked addition.
        let bump = |cell: &AtomicU64, by: u64| {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        };
        bump(&stat.count, 1);
        bump(&stat.total_ns, took_ns);
        if took_ns > stat.longest_ns.load(Ordering::Relaxed) {
            stat.longest_ns.store(took_ns, Ordering::Relaxed);
        }
    }

    #[cold]
    fn add(&mut self, name: &'static str) -> &Arc<KindStat> {
        let stat = Arc::new(KindStat {
            name,
            count: AtomicU64::new(0),
            total_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
        });
        self.node.kinds.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&stat));
        let place = self.known.len();
        self.known.push(stat);
        &self.known[place]
    }
}

/// How many messages of one kind an actor has handled, and how long they took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindInfo {
    /// The message's kind, or the timer's or effect's name.
    pub name: &'static str,
    /// How many.
    pub count: u64,
    /// All their time.
    pub total: Duration,
    /// The longest one.
    pub longest: Duration,
}

/// One actor as data.
#[derive(Debug, Clone)]
pub struct ActorInfo {
    /// Names from the root down, joined with `/`.
    pub path: String,
    /// An actor, a supervisor or a task.
    pub kind: Kind,
    /// What it is doing.
    pub state: State,
    /// The shard it runs on.
    pub shard: usize,
    /// Data messages in its mailbox.
    pub mailbox_depth: usize,
    /// Their bytes.
    pub mailbox_size_bytes: usize,
    /// Senders that wait for room in it.
    pub waiting_senders: usize,
    /// How long its oldest message is here; zero without one.
    pub oldest_age: Duration,
    /// Entries run: messages, timers, effects.
    pub handled: u64,
    /// The same by kind.
    pub kinds: Vec<KindInfo>,
    /// How many times it was restarted.
    pub restarts: u64,
    /// What failed last, and when (milliseconds since 1970).
    pub last_failure: Option<(String, i64)>,
    /// The actors below it, in the order they were started.
    pub children: Vec<ActorInfo>,
}

impl ActorInfo {
    /// This actor and all below it, parents first.
    pub fn flatten(&self) -> Vec<&Self> {
        let mut all = vec![self];
        for child in &self.children {
            all.extend(child.flatten());
        }
        all
    }

    /// The actor at `path`, this one or below it.
    pub fn find(&self, path: &str) -> Option<&Self> {
        self.flatten().into_iter().find(|info| info.path == path)
    }
}

/// What all of a tree shares.
pub(super) struct TreeShared {
    pub shards: Shards,
    pub seed: u64,
    pub exit: watch::Sender<Option<Exit>>,
    next_id: AtomicU64,
}

impl TreeShared {
    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

/// A node's actors, from the root down.
#[derive(Clone)]
pub struct Tree {
    shared: Arc<TreeShared>,
    root: SupervisorRef,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("shards", &self.shared.shards).finish_non_exhaustive()
    }
}

impl Tree {
    /// An empty tree. The seed drives jitter and the actors' own random numbers.
    pub fn new(name: &str, strategy: Strategy, shards: &Shards, seed: u64) -> Self {
        super::barrier::install_panic_hook();
        let shared = Arc::new(TreeShared {
            shards: shards.clone(),
            seed,
            exit: watch::Sender::new(None),
            next_id: AtomicU64::new(1),
        });
        let root = SupervisorRef::root(name, strategy, &shared);
        Self { shared, root }
    }

    /// The supervisor at the root. What it cannot mend ends the node.
    pub const fn root(&self) -> &SupervisorRef {
        &self.root
    }

    /// Where the actors run.
    pub fn shards(&self) -> &Shards {
        &self.shared.shards
    }

    /// All actors as data.
    pub fn snapshot(&self) -> ActorInfo {
        self.root.shared.node.info()
    }

    /// All nodes, parents first.
    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        let mut found = Vec::new();
        self.root.shared.node.walk(&mut found);
        found
    }

    /// The path of a node by its id.
    pub(super) fn path_of(&self, id: u64) -> Option<String> {
        self.nodes().into_iter().find(|node| node.id == id).map(|node| node.path.clone())
    }

    /// Waits until the node ends: a failure has reached the root, or it was shut down.
    pub async fn ended(&self) -> Exit {
        let mut exit = self.shared.exit.subscribe();
        let ended = exit.wait_for(Option::is_some).await;
        ended.ok().and_then(|exit| *exit).unwrap_or(Exit::ActorFailed)
    }

    /// Stops all actors in the reverse order of their start. Past the deadline the rest is left as it is.
    pub async fn shutdown(&self, deadline: Duration) -> Exit {
        let outcome = match tokio::time::timeout(deadline, self.root.stop()).await {
            Ok(()) => Exit::Clean,
            Err(_) => {
                let left: Vec<String> = self.nodes().iter().map(|node| node.path.clone()).collect();
                tracing::error!(actors = left.join(", "), "shutdown passed its deadline");
                Exit::ShutdownTimedOut
            }
        };
        self.shared.exit.send_if_modified(|exit| {
            let first = exit.is_none();
            exit.get_or_insert(outcome);
            first
        });
        self.ended().await
    }
}

/// A supervisor's children in start order, by id.
pub(super) type Children = BTreeMap<u64, Arc<Node>>;
