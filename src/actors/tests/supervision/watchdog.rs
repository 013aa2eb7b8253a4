//! On real threads: the watchdog names what holds a shard, and actors work across shards.

use std::sync::mpsc;
use std::time::Duration;

use callboard_actors::supervision::{
    AskError, Exit, Placement, Shards, Spec, Strategy, Tree, Watchdog, WatchdogOptions, run,
};

use super::common::{Add, Do, Journal, Probe};

fn probe_on(tree: &Tree, name: &'static str, shard: usize) -> callboard_actors::supervision::ActorRef<Probe> {
    let journal = Journal::default();
    tree.root().spawn(Spec::new(name, move || Probe::new(name, &journal)).place(Placement::On(shard)))
}

#[test]
fn names_the_actor_that_holds_a_shard() {
    run(async {
        let shards = Shards::start(2).unwrap();
        let tree = Tree::new("node", Strategy::OneForOne, &shards, 1);
        let (stuck, mine) = (probe_on(&tree, "stuck", 1), probe_on(&tree, "fine", 0));
        let (reports, reported) = mpsc::channel();
        let options =
            WatchdogOptions { interval: Duration::from_millis(5), stuck_after: Duration::from_millis(50) };
        let watchdog =
            Watchdog::start(&tree, options, move |found| reports.send(found.clone()).unwrap()).unwrap();
        // The actor holds its shard until the watchdog has seen it: nothing here waits for a fixed time.
        let (sender, receiver) = mpsc::channel();
        let hold = stuck.ask(Do::new(move |_, _| {
            sender.send(reported.recv_timeout(Duration::from_secs(9))).unwrap();
        }));
        hold.await.unwrap();
        let found = receiver.recv().unwrap().expect("the watchdog saw it");
        assert_eq!((found.shard, found.actor.as_deref()), (1, Some("node/stuck")));
        assert_eq!(mine.ask(Add(1)).await, Ok(1));
        drop(watchdog);
        assert_eq!(tree.shutdown(Duration::from_secs(5)).await, Exit::Clean);
        shards.stop();
    })
    .unwrap();
}

#[test]
fn crashes_and_restarts_work_across_shards() {
    run(async {
        let shards = Shards::start(2).unwrap();
        let tree = Tree::new("node", Strategy::OneForOne, &shards, 1);
        let probes = [probe_on(&tree, "a", 0), probe_on(&tree, "b", 1)];
        for _ in 0..10 {
            for probe in &probes {
                let asked: Vec<_> = (0..100).map(|_| probe.ask(Add(1))).collect();
                let crashing = probe.ask(Do::boom());
                let held = probe.ask(Add(1));
                for (sum, asked) in (1..).zip(asked) {
                    assert_eq!(asked.await, Ok(sum));
                }
                assert_eq!(crashing.await, Err(AskError::Crashed));
                assert_eq!(held.await, Ok(1));
                assert_eq!(probe.ask(Do::new(|probe, _| probe.sum = 0)).await, Ok(()));
            }
        }
        let restarts: Vec<_> = tree.snapshot().children.iter().map(|info| info.restarts).collect();
        assert_eq!(restarts, [10, 10]);
        assert_eq!(tree.shutdown(Duration::from_secs(5)).await, Exit::Clean);
        shards.stop();
    })
    .unwrap();
}
