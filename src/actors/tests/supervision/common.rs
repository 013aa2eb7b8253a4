//! An actor that crashes wherever it is told to, and a runtime with a clock that only moves when all wait.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callboard_actors::supervision::{
    Actor, ActorInfo, Clock, Context, Failure, FailureClass, Handler, Message, ReplyTo, Shards, Strategy,
    Tree,
};

/// Runs a test on one thread, with paused time: a second of waiting takes none.
pub fn simulate<F: Future>(strategy: Strategy, test: impl FnOnce(Tree) -> F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let shards = Shards::local(Clock::simulated(1_000_000));
        test(Tree::new("node", strategy, &shards, 42)).await
    })
}

/// Waits, in simulated time, until something is so.
pub async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never came to be");
}

/// One actor of a tree as data.
pub fn info(tree: &Tree, path: &str) -> ActorInfo {
    tree.snapshot().find(path).cloned().unwrap_or_else(|| panic!("no {path} in the tree"))
}

/// What happened, in order.
#[derive(Clone, Default)]
pub struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Counts what it is told, and does what it is asked to, crashes included.
pub struct Probe {
    pub name: &'static str,
    pub journal: Journal,
    pub sum: u64,
    pub kept: Vec<ReplyTo<u64>>,
}

impl Probe {
    pub fn new(name: &'static str, journal: &Journal) -> Self {
        journal.note(format!("build {name}"));
        Self { name, journal: journal.clone(), sum: 0, kept: Vec::new() }
    }
}

impl Actor for Probe {
    fn started(&mut self, _: &mut Context<Self>) -> Result<(), Failure> {
        self.journal.note(format!("start {}", self.name));
        Ok(())
    }
    fn stopping(&mut self, _: &mut Context<Self>) {
        self.journal.note(format!("stop {}", self.name));
    }
}

/// Adds and gives the sum.
#[derive(Debug)]
pub struct Add(pub u64);

impl Message for Add {
    type Reply = u64;
    const NAME: &'static str = "Add";
}

impl Handler<Add> for Probe {
    fn handle(&mut self, Add(number): Add, reply: ReplyTo<u64>, _: &mut Context<Self>) {
        self.sum += number;
        reply.send(self.sum);
    }
}

type Deed = Box<dyn FnOnce(&mut Probe, &mut Context<Probe>) + Send>;
/// Runs a closure on the actor.
pub struct Do(pub Deed);

impl Do {
    pub fn new(what: impl FnOnce(&mut Probe, &mut Context<Probe>) + Send + 'static) -> Self {
        Self(Box::new(what))
    }
    pub fn boom() -> Self {
        Self::new(|_, _| panic!("boom"))
    }
    pub fn fail(class: FailureClass) -> Self {
        Self::new(move |_, ctx| ctx.fail(Failure::new(class, "told to fail")))
    }
}

impl Message for Do {
    type Reply = ();
    const NAME: &'static str = "Do";
}

impl Handler<Do> for Probe {
    fn handle(&mut self, Do(what): Do, reply: ReplyTo<()>, ctx: &mut Context<Self>) {
        what(self, ctx);
        reply.send(());
    }
}

/// Keeps the reply, so that the sender goes on waiting.
#[derive(Debug)]
pub struct Keep;

impl Message for Keep {
    type Reply = u64;
    const NAME: &'static str = "Keep";
}

impl Handler<Keep> for Probe {
    fn handle(&mut self, _: Keep, reply: ReplyTo<u64>, _: &mut Context<Self>) {
        self.kept.push(reply);
    }
}

/// A message with a size, and one that goes ahead.
#[derive(Debug)]
pub struct Note {
    pub text: &'static str,
    pub size_bytes: usize,
    pub control: bool,
}

impl Note {
    pub const fn data(text: &'static str) -> Self {
        Self { text, size_bytes: 0, control: false }
    }
    pub const fn sized(text: &'static str, size_bytes: usize) -> Self {
        Self { text, size_bytes, control: false }
    }
    pub const fn control(text: &'static str) -> Self {
        Self { text, size_bytes: 0, control: true }
    }
}

impl Message for Note {
    type Reply = ();
    const NAME: &'static str = "Note";
    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
    fn is_control(&self) -> bool {
        self.control
    }
}

impl Handler<Note> for Probe {
    fn handle(&mut self, note: Note, reply: ReplyTo<()>, _: &mut Context<Self>) {
        self.journal.note(note.text);
        reply.send(());
    }
}
