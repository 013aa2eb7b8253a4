//! What supervision costs: ask and tell through `ActorRef` beside bare actix, on one shard and across two.
//!
//! `cargo bench -p callboard-actors --bench supervision`. The two take turns in many short rounds, so that what
//! else the machine does falls on both or on neither. Figures are nanoseconds for a message: of the median round,
//! and of the fastest. The goal is at most 30 % above bare actix.

#![allow(missing_docs, clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::time::Instant;

use callboard_actors::supervision as ours;
use futures_util::stream::{FuturesUnordered, StreamExt};
use ours::{ActorRef, Placement, Shards, Spec, Strategy, Tree};

const ROUNDS: usize = 301;
const SEQUENTIAL: u32 = 1_000;
const BURST: u32 = 2_000;
const IN_FLIGHT: usize = 64;

/// The work: small, so that what is measured is the way there.
#[derive(Default)]
struct Counter(u64);

struct Add(u64);

impl ours::Message for Add {
    type Reply = u64;
    const NAME: &'static str = "Add";
}

impl ours::Actor for Counter {}

impl ours::Handler<Add> for Counter {
    fn handle(&mut self, Add(number): Add, reply: ours::ReplyTo<u64>, _: &mut ours::Context<Self>) {
        self.0 = self.0.wrapping_add(number);
        reply.send(self.0);
    }
}

impl actix::Message for Add {
    type Result = u64;
}

impl actix::Actor for Counter {
    type Context = actix::Context<Self>;
    fn started(&mut self, ctx: &mut Self::Context) {
        // As large as ours, so that neither waits for room.
        ctx.set_mailbox_capacity(1 << 20);
    }
}

impl actix::Handler<Add> for Counter {
    type Result = u64;
    fn handle(&mut self, Add(number): Add, _: &mut Self::Context) -> u64 {
        self.0 = self.0.wrapping_add(number);
        self.0
    }
}

/// Both kinds of target, and the same four measurements of each.
trait Target: Clone + 'static {
    async fn ask(&self, number: u64) -> u64;
    fn tell(&self, number: u64);
}

impl Target for ActorRef<Counter> {
    async fn ask(&self, number: u64) -> u64 {
        ActorRef::ask(self, Add(number)).await.unwrap()
    }
    fn tell(&self, number: u64) {
        ActorRef::tell(self, Add(number));
    }
}

impl Target for actix::Addr<Counter> {
    async fn ask(&self, number: u64) -> u64 {
        self.send(Add(number)).await.unwrap()
    }
    fn tell(&self, number: u64) {
        self.do_send(Add(number));
    }
}

fn per_message(start: Instant, messages: u32) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / f64::from(messages)
}

async fn one_by_one<T: Target>(target: &T) -> f64 {
    let start = Instant::now();
    for _ in 0..SEQUENTIAL {
        target.ask(1).await;
    }
    per_message(start, SEQUENTIAL)
}

async fn many_in_flight<T: Target>(target: &T) -> f64 {
    let start = Instant::now();
    let mut flying: FuturesUnordered<_> = (0..IN_FLIGHT).map(|_| target.ask(1)).collect();
    let mut left = BURST as usize - IN_FLIGHT;
    while flying.next().await.is_some() {
        if left > 0 {
            left -= 1;
            flying.push(target.ask(1));
        }
    }
    per_message(start, BURST)
}

async fn told<T: Target>(target: &T) -> f64 {
    let start = Instant::now();
    for _ in 0..BURST / 100 {
        for _ in 0..99 {
            target.tell(1);
        }
        target.ask(1).await;
    }
    per_message(start, BURST)
}

/// The median and the least.
fn summary(mut figures: Vec<f64>) -> (f64, f64) {
    figures.sort_by(f64::total_cmp);
    (figures[figures.len() / 2], figures[0])
}

fn above(ours: f64, bare: f64) -> f64 {
    (ours / bare - 1.0) * 100.0
}

async fn compare(place: &str, callboard: &ActorRef<Counter>, actix: &actix::Addr<Counter>) {
    let mut figures: [(&str, Vec<f64>, Vec<f64>); 3] = [
        ("ask, one by one", Vec::new(), Vec::new()),
        ("ask, 64 in flight", Vec::new(), Vec::new()),
        ("tell", Vec::new(), Vec::new()),
    ];
    for _ in 0..ROUNDS {
        figures[0].1.push(one_by_one(callboard).await);
        figures[0].2.push(one_by_one(actix).await);
        figures[1].1.push(many_in_flight(callboard).await);
        figures[1].2.push(many_in_flight(actix).await);
        figures[2].1.push(told(callboard).await);
        figures[2].2.push(told(actix).await);
    }
    for (what, callboard, actix) in figures {
        let ((ours, ours_best), (bare, bare_best)) = (summary(callboard), summary(actix));
        println!(
            "{place:<11} {what:<18} callboard {ours:>6.0} ns, actix {bare:>6.0} ns: {:>+6.1} %   \
             fastest {ours_best:>6.0}, {bare_best:>6.0}: {:>+6.1} %",
            above(ours, bare),
            above(ours_best, bare_best),
        );
    }
}

fn main() {
    ours::run(async {
        let shards = Shards::start(2).unwrap();
        let tree = Tree::new("bench", Strategy::OneForOne, &shards, 1);
        let spawn = |name: &str, shard| {
            let spec =
                Spec::new(name, Counter::default).place(Placement::On(shard)).mailbox(1 << 20, usize::MAX);
            tree.root().spawn(spec)
        };
        let (near, far) = (spawn("near", 0), spawn("far", 1));
        // Bare actix, on the same two threads: started from tasks there.
        let (sender, receiver) = std::sync::mpsc::channel();
        for shard in [0, 1] {
            let sender = sender.clone();
            tree.root().spawn_task("start", Placement::On(shard), move || async move {
                sender.send((shard, actix::Actor::start(Counter::default()))).unwrap();
            });
        }
        let mut bare: Vec<_> = (0..2).map(|_| receiver.recv().unwrap()).collect();
        bare.sort_by_key(|(shard, _)| *shard);
        let (done, finished) = tokio::sync::oneshot::channel();
        tree.root().spawn_task("asker", Placement::On(0), move || async move {
            compare("same shard", &near, &bare[0].1).await;
            compare("across", &far, &bare[1].1).await;
            let _ = done.send(());
        });
        finished.await.unwrap();
        shards.stop();
    })
    .unwrap();
}
