//! A panic at every entry point: the caller learns of it, the actor is built again, nothing else is hurt.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callboard_actors::supervision::{
    Actor, ActorRef, AskError, Context, CrashReport, Failure, Handler, Message, ReplyTo, Spec, Strategy, Tree,
};

use super::common::{Add, Do, Journal, Keep, Probe, info, simulate, until};

fn start(tree: &Tree) -> (ActorRef<Probe>, Journal) {
    let journal = Journal::default();
    let for_factory = journal.clone();
    (tree.root().spawn(Spec::new("probe", move || Probe::new("probe", &for_factory))), journal)
}

/// Makes an actor crash by `how`, and expects it back once, without its state.
fn crashes_once(how: impl FnOnce(&mut Probe, &mut Context<Probe>) + Send + 'static) {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, _) = start(&tree);
        assert_eq!(probe.ask(Add(5)).await, Ok(5));
        let _ = probe.ask(Do::new(how)).await;
        until(|| info(&tree, "node/probe").restarts == 1).await;
        assert_eq!(probe.ask(Add(1)).await, Ok(1), "the state is gone, the reference still works");
        assert!(info(&tree, "node/probe").last_failure.is_some());
    });
}

#[test]
fn in_a_message() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, _) = start(&tree);
        assert_eq!(probe.ask(Do::boom()).await, Err(AskError::Crashed));
        assert_eq!(probe.ask(Add(1)).await, Ok(1));
    });
}

#[test]
fn in_a_timer() {
    crashes_once(|_, ctx| {
        ctx.after("bad timer", Duration::from_millis(5), |_, _| panic!("in a timer"));
    });
}

#[test]
fn in_a_repeating_timer() {
    crashes_once(|_, ctx| {
        let mut left = 3;
        ctx.every("bad timer", Duration::from_millis(5), move |_, _| {
            left -= 1;
            assert!(left > 0, "the third time");
        });
    });
}

#[test]
fn in_an_effect() {
    crashes_once(|_, ctx| ctx.effect("bad effect", async { panic!("in a future") }, |_, (), _| {}));
}

#[test]
fn in_a_finished_effect() {
    crashes_once(|_, ctx| ctx.effect("bad end", std::future::ready(7), |_, _, _| panic!("after a future")));
}

#[test]
fn in_blocking_work() {
    crashes_once(|_, ctx| ctx.blocking("bad work", || panic!("in the pool"), |_, (), _| {}));
}

#[test]
fn in_what_a_courier_delivers() {
    crashes_once(|_, ctx| ctx.courier().deliver("bad delivery", |_, _| panic!("delivered")));
}

#[test]
fn by_its_own_word() {
    crashes_once(|_, ctx| ctx.fail(Failure::restart("it says so")));
}

#[test]
fn replies_kept_for_later_are_answered_crashed() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, _) = start(&tree);
        let kept = probe.ask(Keep);
        assert_eq!(probe.ask(Do::boom()).await, Err(AskError::Crashed));
        assert_eq!(kept.await, Err(AskError::Crashed));
    });
}

/// Crashes as often as it is told to: in its factory, at its start, at its stop, or when it is dropped.
struct Fragile {
    at_start: bool,
    at_drop: Rc<Cell<bool>>,
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!self.at_drop.get(), "in a destructor");
    }
}

impl Actor for Fragile {
    fn started(&mut self, _: &mut Context<Self>) -> Result<(), Failure> {
        assert!(!self.at_start, "at the start");
        Ok(())
    }
    fn stopping(&mut self, _: &mut Context<Self>) {
        panic!("at the stop");
    }
}

struct Ping;

impl Message for Ping {
    type Reply = ();
    const NAME: &'static str = "Ping";
}

impl Handler<Ping> for Fragile {
    fn handle(&mut self, _: Ping, reply: ReplyTo<()>, ctx: &mut Context<Self>) {
        if self.at_drop.get() {
            ctx.fail(Failure::restart("to be dropped"));
        }
        reply.send(());
    }
}

#[test]
fn in_the_factory_and_at_the_start() {
    simulate(Strategy::OneForOne, |tree| async move {
        let builds = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&builds);
        let fragile = tree.root().spawn(Spec::new("fragile", move || {
            let build = counted.fetch_add(1, Ordering::SeqCst);
            assert!(build != 0, "in the factory");
            Fragile { at_start: build == 1, at_drop: Rc::default() }
        }));
        assert_eq!(fragile.ask(Ping).await, Ok(()), "the message waited for the third build");
        assert_eq!(builds.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn at_the_stop_and_in_a_destructor() {
    simulate(Strategy::OneForOne, |tree| async move {
        let build = || Fragile { at_start: false, at_drop: Rc::new(Cell::new(true)) };
        let fragile = tree.root().spawn(Spec::new("fragile", build));
        assert_eq!(fragile.ask(Ping).await, Ok(()));
        until(|| info(&tree, "node/fragile").restarts == 1).await;
        tree.shutdown(Duration::from_secs(5)).await;
        assert_eq!(fragile.ask(Ping).await, Err(AskError::Stopped));
    });
}

#[test]
fn a_crash_report_tells_the_place_and_the_last_entries() {
    simulate(Strategy::OneForOne, |tree| async move {
        let reports: Arc<std::sync::Mutex<Vec<CrashReport>>> = Arc::default();
        let (journal, sink) = (Journal::default(), Arc::clone(&reports));
        let spec = Spec::new("probe", move || Probe::new("probe", &journal)).on_failure(move |report| {
            sink.lock().unwrap().push(report.clone());
            panic!("observers may crash too");
        });
        let probe = tree.root().spawn(spec);
        probe.ask(Add(1)).await.unwrap();
        assert_eq!(probe.ask(Do::boom()).await, Err(AskError::Crashed));
        probe.ask(Add(1)).await.unwrap();
        let reports = reports.lock().unwrap();
        assert_eq!(reports.len(), 1);
        let report = &reports[0];
        assert_eq!((report.path.as_str(), report.entry), ("node/probe", "Do"));
        assert_eq!(report.failure.reason, "boom");
        assert!(report.location.as_ref().unwrap().contains("common.rs"));
        let names: Vec<_> = report.last_entries.iter().map(|record| record.name).collect();
        assert_eq!(names, ["started", "Add", "Do"]);
    });
}

#[test]
fn every_profile_unwinds() {
    let manifest = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")).unwrap();
    assert!(!manifest.contains("\"abort\""), "no profile may abort on a panic");
    for profile in ["[profile.dev]", "[profile.release]"] {
        let section = manifest.split(profile).nth(1).unwrap_or_else(|| panic!("no {profile}"));
        let section = section.split("\n[").next().unwrap();
        assert!(section.contains("panic = \"unwind\""), "{profile} must say that it unwinds");
    }
    assert!(std::panic::catch_unwind(|| panic!("caught")).is_err());
}
