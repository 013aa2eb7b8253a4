//! Restarts: how often, how soon, whom, and what becomes of those that cannot be helped.

use std::time::Duration;

use callboard_actors::supervision::{
    ActorRef, AskError, Exit, Failure, FailureClass, Lifetime, RestartPolicy, Spec, State, Strategy,
    SupervisorRef, SupervisorSpec,
};
use tokio::time::Instant;

use super::common::{Add, Do, Journal, Keep, Probe, info, simulate, until};

const POLICY: RestartPolicy = RestartPolicy {
    max_restarts: 3,
    window: Duration::from_secs(10),
    first_delay: Duration::from_millis(100),
    max_delay: Duration::from_millis(400),
};

fn spec(name: &'static str, journal: &Journal) -> Spec<Probe> {
    let journal = journal.clone();
    Spec::new(name, move || Probe::new(name, &journal)).restart(POLICY)
}

async fn three(parent: &SupervisorRef, journal: &Journal) -> [ActorRef<Probe>; 3] {
    let all = ["a", "b", "c"].map(|name| parent.spawn(spec(name, journal)));
    for probe in &all {
        probe.ask(Add(1)).await.unwrap();
    }
    journal.take();
    all
}

#[test]
fn each_restart_waits_longer() {
    simulate(Strategy::OneForOne, |tree| async move {
        let probe = tree.root().spawn(spec("a", &Journal::default()));
        for full_ms in [100, 200, 400] {
            let full = Duration::from_millis(full_ms);
            let start = Instant::now();
            assert_eq!(probe.ask(Do::boom()).await, Err(AskError::Crashed));
            probe.ask(Add(1)).await.unwrap();
            let took = start.elapsed();
            assert!(took >= full / 2 && took <= full + Duration::from_millis(2), "{took:?} of {full:?}");
        }
    });
}

#[test]
fn past_the_intensity_the_parent_fails_and_all_below_it_is_built_anew() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let parent = tree.root().supervisor(SupervisorSpec::new("parent").restart(POLICY));
        let [a, b, _] = three(&parent, &journal).await;
        for _ in 0..4 {
            assert_eq!(a.ask(Do::boom()).await, Err(AskError::Crashed));
        }
        until(|| info(&tree, "node/parent").restarts == 1).await;
        assert_eq!(a.ask(Add(1)).await, Ok(1));
        assert_eq!(b.ask(Add(1)).await, Ok(1), "its sibling was built anew");
        assert_eq!(tree.snapshot().find("node/parent").unwrap().state, State::Running);
        let events = journal.take();
        let stops: Vec<_> = events.iter().filter(|event| event.starts_with("stop")).collect();
        assert_eq!(stops, ["stop c", "stop b"], "the last one started stops first");
    });
}

#[test]
fn at_the_root_it_ends_the_node_with_its_code() {
    simulate(Strategy::OneForOne, |tree| async move {
        let probe = tree.root().spawn(spec("a", &Journal::default()));
        let failing = probe.ask(Do::new(|_, ctx| {
            ctx.fail(Failure::escalate("a committed record").with_exit(Exit::MetadataFailed));
        }));
        let _ = failing.await;
        assert_eq!(tree.ended().await, Exit::MetadataFailed);
        assert_eq!(
            tree.shutdown(Duration::from_secs(1)).await,
            Exit::MetadataFailed,
            "the first cause counts"
        );
    });
}

#[test]
fn a_failure_with_an_exit_code_passes_every_supervisor() {
    simulate(Strategy::OneForOne, |tree| async move {
        let outer = tree.root().supervisor(SupervisorSpec::new("outer"));
        let inner = outer.supervisor(SupervisorSpec::new("inner"));
        let probe = inner.spawn(spec("a", &Journal::default()));
        let failing = probe.ask(Do::new(|_, ctx| {
            ctx.fail(Failure::escalate("no directory is left").with_exit(Exit::LogDirectoriesFailed));
        }));
        let _ = failing.await;
        assert_eq!(tree.ended().await, Exit::LogDirectoriesFailed);
    });
}

#[test]
fn one_for_one_touches_nobody_else() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let [_, b, _] = three(tree.root(), &journal).await;
        let _ = b.ask(Do::boom()).await;
        b.ask(Add(1)).await.unwrap();
        assert_eq!(journal.take(), ["build b", "start b"]);
    });
}

#[test]
fn rest_for_one_restarts_those_started_after() {
    simulate(Strategy::RestForOne, |tree| async move {
        let journal = Journal::default();
        let [a, b, c] = three(tree.root(), &journal).await;
        let _ = b.ask(Do::boom()).await;
        assert_eq!(c.ask(Add(7)).await, Ok(7), "the message to it was held");
        assert_eq!(a.ask(Add(7)).await, Ok(8), "the one before goes on");
        assert_eq!(journal.take(), ["stop c", "build b", "start b", "build c", "start c"]);
    });
}

#[test]
fn one_for_all_restarts_all() {
    simulate(Strategy::OneForAll, |tree| async move {
        let journal = Journal::default();
        let [_, b, c] = three(tree.root(), &journal).await;
        let _ = b.ask(Do::boom()).await;
        c.ask(Add(1)).await.unwrap();
        let expected = ["stop c", "stop a", "build a", "start a", "build b", "start b", "build c", "start c"];
        assert_eq!(journal.take(), expected);
    });
}

#[test]
fn lifetimes_say_who_comes_back() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        for (lifetime, after_crash, after_stop) in [
            (Lifetime::Permanent, true, true),
            (Lifetime::Transient, true, false),
            (Lifetime::Temporary, false, false),
        ] {
            let crashing = tree.root().spawn(spec("a", &journal).lifetime(lifetime));
            assert!(crashing.ask(Do::boom()).await.is_err());
            assert_eq!(crashing.ask(Add(1)).await.is_ok(), after_crash, "{lifetime:?} after a crash");
            let stopping = tree.root().spawn(spec("b", &journal).lifetime(lifetime));
            assert_eq!(stopping.ask(Do::new(|_, ctx| ctx.stop())).await, Ok(()));
            assert_eq!(stopping.ask(Add(1)).await.is_ok(), after_stop, "{lifetime:?} after a stop");
        }
    });
}

#[test]
fn offline_never_comes_back_and_hurts_nobody() {
    simulate(Strategy::OneForAll, |tree| async move {
        let [a, b, _] = three(tree.root(), &Journal::default()).await;
        let kept = a.ask(Keep);
        a.ask(Do::fail(FailureClass::Offline)).await.unwrap();
        assert!(kept.await.is_err());
        assert_eq!(a.ask(Add(1)).await, Err(AskError::Stopped));
        assert_eq!(b.ask(Add(1)).await, Ok(2));
        assert_eq!(info(&tree, "node/a").state, State::Offline);
        let _ = b.ask(Do::boom()).await;
        assert_eq!(b.ask(Add(1)).await, Ok(1));
        assert_eq!(info(&tree, "node/a").state, State::Offline, "not even with its group");
    });
}

#[test]
fn what_a_panic_means_is_the_spec_s_to_say() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let (noted, for_factory) = (journal.clone(), journal.clone());
        let spec = Spec::new("office", move || Probe::new("office", &for_factory))
            .panic_class(FailureClass::Resign)
            .on_failure(move |report| noted.note(format!("{:?}", report.failure.class)));
        let office = tree.root().spawn(spec);
        let _ = office.ask(Do::boom()).await;
        office.ask(Add(1)).await.unwrap();
        assert_eq!(
            journal.take(),
            ["build office", "start office", "Resign", "build office", "start office"]
        );
    });
}

#[test]
fn an_actor_s_own_children_go_with_it_and_it_fails_when_they_cannot_be_helped() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let parent = tree.root().spawn(spec("a", &journal));
        let (sender, receiver) = std::sync::mpsc::channel();
        let for_child = journal.clone();
        let make = Do::new(move |_, ctx| {
            sender.send(ctx.children().spawn(spec("child", &for_child))).unwrap();
        });
        parent.ask(make).await.unwrap();
        let child = receiver.recv().unwrap();
        assert_eq!(child.path(), "node/a/child");
        child.ask(Add(1)).await.unwrap();
        child.ask(Do::fail(FailureClass::Escalate)).await.unwrap();
        until(|| info(&tree, "node/a").restarts == 1).await;
        assert_eq!(child.ask(Add(1)).await, Err(AskError::Stopped));
        assert_eq!(parent.ask(Add(1)).await, Ok(1));
        assert!(info(&tree, "node/a").children.is_empty());
    });
}
