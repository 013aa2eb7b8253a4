//! The tree as data, and the fault hook.

use std::time::Duration;

use callboard_actors::supervision::faults::{self, Victims};
use callboard_actors::supervision::{
    AskError, Kind, Placement, Random, Spec, State, Strategy, SupervisorSpec, Tree,
};

use super::common::{Add, Do, Journal, Keep, Note, Probe, info, simulate, until};

fn populate(tree: &Tree) -> callboard_actors::supervision::ActorRef<Probe> {
    let group = tree.root().supervisor(SupervisorSpec::new("group"));
    group.spawn_task("task", Placement::WithParent, std::future::pending);
    for name in ["a", "b"] {
        group.spawn(Spec::new(name, move || Probe::new(name, &Journal::default())));
    }
    tree.root().spawn(Spec::new("probe", || Probe::new("probe", &Journal::default())))
}

#[test]
fn shows_every_actor_and_how_it_does() {
    simulate(Strategy::OneForOne, |tree| async move {
        let probe = populate(&tree);
        probe.ask(Add(1)).await.unwrap();
        probe.ask(Add(1)).await.unwrap();
        let _ = probe.ask(Do::boom()).await;
        probe.ask(Add(1)).await.unwrap();
        let snapshot = tree.snapshot();
        let paths: Vec<_> = snapshot.flatten().iter().map(|info| info.path.clone()).collect();
        assert_eq!(
            paths,
            ["node", "node/group", "node/group/task", "node/group/a", "node/group/b", "node/probe"]
        );
        let kind = |path| snapshot.find(path).unwrap().kind;
        assert_eq!(kind("node/group"), Kind::Supervisor);
        assert_eq!(kind("node/group/task"), Kind::Task);
        let data = snapshot.find("node/probe").unwrap();
        assert_eq!((data.kind, data.state, data.restarts), (Kind::Actor, State::Running, 1));
        let counts: Vec<_> = data.kinds.iter().map(|kind| (kind.name, kind.count)).collect();
        assert_eq!(counts, [("Add", 3), ("Do", 1)]);
        assert_eq!(data.handled, 4);
        assert!(data.kinds.iter().all(|kind| kind.longest <= kind.total));
        let (failure, at_ms) = data.last_failure.clone().unwrap();
        assert!(failure.contains("node/probe failed in Do: boom"), "{failure}");
        assert!(at_ms >= 1_000_000);
    });
}

#[test]
fn shows_how_long_the_oldest_message_waits() {
    simulate(Strategy::OneForOne, |tree| async move {
        let probe = populate(&tree);
        probe.ask(Add(1)).await.unwrap();
        assert_eq!(info(&tree, "node/probe").oldest_age, Duration::ZERO);
        let waiting = probe.ask(Note::sized("waiting", 10));
        // Ages are real time, on a clock that moves in steps of some milliseconds.
        std::thread::sleep(Duration::from_millis(30));
        let data = info(&tree, "node/probe");
        assert!(data.oldest_age >= Duration::from_millis(10), "{:?}", data.oldest_age);
        assert_eq!((data.mailbox_depth, data.mailbox_size_bytes), (1, 10));
        waiting.await.unwrap();
        assert_eq!(info(&tree, "node/probe").oldest_age, Duration::ZERO);
    });
}

#[test]
fn the_fault_hook_crashes_by_path() {
    simulate(Strategy::OneForOne, |tree| async move {
        let probe = populate(&tree);
        let kept = probe.ask(Keep);
        probe.ask(Add(1)).await.unwrap();
        assert!(!faults::crash(&tree, "node/nobody"));
        assert!(faults::crash(&tree, "node/probe"));
        assert!(kept.await.is_err());
        assert_eq!(probe.ask(Add(1)).await, Ok(1));
        assert!(faults::crash(&tree, "node/group/task"));
        until(|| tree.snapshot().find("node/group/task").is_none()).await;
    });
}

#[test]
fn the_same_seed_crashes_the_same_actors() {
    let victims = |seed| {
        simulate(Strategy::OneForOne, |tree| async move {
            populate(&tree);
            let (mut random, mut crashed) = (Random::new(seed), Vec::new());
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                crashed.extend(faults::crash_random(&tree, &mut random, Victims::Actors));
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            let all = tree.snapshot();
            let restarts: u64 = all.flatten().iter().map(|info| info.restarts).sum();
            assert_eq!(restarts, 20);
            crashed
        })
    };
    let first = victims(1);
    assert_eq!(first.len(), 20);
    assert_eq!(first, victims(1));
    assert_ne!(first, victims(2));
}

#[test]
fn a_minute_of_crashes_leaves_everybody_running_and_nobody_unanswered() {
    simulate(Strategy::OneForOne, |tree| async move {
        let probe = populate(&tree);
        for _ in 0..12 {
            tree.root().spawn(Spec::new("another", || Probe::new("another", &Journal::default())));
        }
        let storm = faults::crash_every(tree.clone(), Duration::from_millis(100), 3, Victims::Actors);
        let storm = tree.root().spawn_task("storm", Placement::WithParent, move || storm);
        let (mut answered, mut crashed) = (0, 0);
        for _ in 0..6000 {
            match probe.ask(Add(1)).await {
                Ok(_) => answered += 1,
                Err(AskError::Crashed) => crashed += 1,
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        storm.stop().await;
        assert!(answered > 5900, "{answered} answered, {crashed} crashed");
        until(|| tree.snapshot().flatten().iter().all(|info| info.state == State::Running)).await;
        let restarts: u64 = tree.snapshot().flatten().iter().map(|info| info.restarts).sum();
        assert!(restarts > 550, "{restarts} restarts");
    });
}
