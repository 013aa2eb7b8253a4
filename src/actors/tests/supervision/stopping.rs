//! Clean shutdown: in reverse order, with a deadline.

use std::time::Duration;

use callboard_actors::supervision::{
    Actor, AskError, Context, Exit, Placement, Spec, State, Strategy, SupervisorSpec,
};

use super::common::{Add, Journal, Probe, info, simulate};

#[test]
fn in_reverse_order_children_before_parents() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let spec = |name: &'static str| {
            let journal = journal.clone();
            Spec::new(name, move || Probe::new(name, &journal))
        };
        let first = tree.root().spawn(spec("first"));
        let group = tree.root().supervisor(SupervisorSpec::new("group"));
        let (inner, innermost) = (group.spawn(spec("inner 1")), group.spawn(spec("inner 2")));
        let last = tree.root().spawn(spec("last"));
        for probe in [&first, &inner, &innermost, &last] {
            probe.ask(Add(1)).await.unwrap();
        }
        journal.take();
        assert_eq!(tree.shutdown(Duration::from_secs(1)).await, Exit::Clean);
        assert_eq!(journal.take(), ["stop last", "stop inner 2", "stop inner 1", "stop first"]);
        assert_eq!(first.ask(Add(1)).await, Err(AskError::Stopped));
    });
}

/// Takes its time to stop.
struct Slow {
    journal: Journal,
    delay: Duration,
}

impl Actor for Slow {
    fn stopping(&mut self, ctx: &mut Context<Self>) {
        ctx.effect("closing", tokio::time::sleep(self.delay), |slow: &mut Self, (), _| {
            slow.journal.note("closed")
        });
    }
}

#[test]
fn what_stopping_begins_is_waited_for() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        for _ in 0..3 {
            let journal = journal.clone();
            let build = move || Slow { journal: journal.clone(), delay: Duration::from_secs(2) };
            tree.root().spawn(Spec::new("slow", build));
        }
        tokio::task::yield_now().await;
        let start = tokio::time::Instant::now();
        assert_eq!(tree.shutdown(Duration::from_secs(60)).await, Exit::Clean);
        assert_eq!(journal.take().len(), 3);
        assert!(start.elapsed() >= Duration::from_secs(6), "one after the other");
    });
}

#[test]
fn together_where_the_order_does_not_matter() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let group = tree.root().supervisor(SupervisorSpec::new("group").stop_together());
        for _ in 0..3 {
            let journal = journal.clone();
            let build = move || Slow { journal: journal.clone(), delay: Duration::from_secs(2) };
            group.spawn(Spec::new("slow", build));
        }
        tokio::task::yield_now().await;
        let start = tokio::time::Instant::now();
        assert_eq!(tree.shutdown(Duration::from_secs(60)).await, Exit::Clean);
        assert_eq!(journal.take().len(), 3);
        assert!(start.elapsed() < Duration::from_secs(3), "all at once");
    });
}

#[test]
fn past_the_deadline_it_gives_up() {
    simulate(Strategy::OneForOne, |tree| async move {
        let build = || Slow { journal: Journal::default(), delay: Duration::from_secs(1000) };
        tree.root().spawn(Spec::new("slow", build));
        tokio::task::yield_now().await;
        let start = tokio::time::Instant::now();
        assert_eq!(tree.shutdown(Duration::from_secs(3)).await, Exit::ShutdownTimedOut);
        assert!(start.elapsed() < Duration::from_secs(4));
    });
}

#[test]
fn tasks_are_in_the_tree_and_their_panics_stay_theirs() {
    simulate(Strategy::OneForOne, |tree| async move {
        let group = tree.root().supervisor(SupervisorSpec::new("connections"));
        let bad = group.spawn_task("bad", Placement::WithParent, || async { panic!("in a task") });
        let ended = group.spawn_task("ended", Placement::WithParent, || async {});
        let good = group.spawn_task("good", Placement::WithParent, std::future::pending);
        super::common::until(|| bad.is_finished() && ended.is_finished()).await;
        assert_eq!(info(&tree, "node/connections/good").state, State::Running);
        assert_eq!(info(&tree, "node/connections").children.len(), 1);
        assert!(!good.is_finished());
        good.stop().await;
        assert!(good.is_finished());
        let last = group.spawn_task("last", Placement::WithParent, std::future::pending);
        assert_eq!(tree.shutdown(Duration::from_secs(1)).await, Exit::Clean);
        assert!(last.is_finished());
    });
}
