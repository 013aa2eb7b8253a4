//! What a crashed actor had begun is none of its successor's business.

use std::sync::mpsc;
use std::time::Duration;

use callboard_actors::supervision::{Spec, Strategy};

use super::common::{Add, Do, Journal, Probe, simulate};

#[test]
fn late_effects_timers_and_deliveries_are_discarded() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let for_factory = journal.clone();
        let probe = tree.root().spawn(Spec::new("probe", move || Probe::new("probe", &for_factory)));
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let (sender, couriers) = mpsc::channel();
        let begin = Do::new(move |probe, ctx| {
            probe.journal.note("begin");
            let note = |what: &'static str| move |probe: &mut Probe| probe.journal.note(what);
            let late = note("late timer");
            ctx.after("timer", Duration::from_secs(1), move |probe, _| late(probe));
            let late = note("late period");
            ctx.every("period", Duration::from_secs(1), move |probe, _| late(probe));
            let late = note("late effect");
            ctx.effect("effect", released, move |probe, _, _| late(probe));
            sender.send((ctx.generation(), ctx.courier())).unwrap();
        });
        probe.ask(begin).await.unwrap();
        let (generation, courier) = couriers.recv().unwrap();
        assert_eq!(generation, 0);
        courier.deliver("in time", |probe, _| probe.journal.note("in time"));
        probe.ask(Add(1)).await.unwrap();
        let _ = probe.ask(Do::boom()).await;
        courier.deliver("late", |probe, _| probe.journal.note("late delivery"));
        let _ = release.send(());
        tokio::time::sleep(Duration::from_secs(5)).await;
        let (sender, generations) = mpsc::channel();
        probe.ask(Do::new(move |_, ctx| sender.send(ctx.generation()).unwrap())).await.unwrap();
        assert_eq!(generations.recv().unwrap(), 1);
        let expected = ["build probe", "start probe", "begin", "in time", "build probe", "start probe"];
        assert_eq!(journal.take(), expected);
    });
}

#[test]
fn timers_run_in_time_until_cancelled() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let for_factory = journal.clone();
        let probe = tree.root().spawn(Spec::new("probe", move || Probe::new("probe", &for_factory)));
        let set = Do::new(|_, ctx| {
            ctx.after("30", Duration::from_millis(30), |probe, _| probe.journal.note("30"));
            let never = ctx.after("never", Duration::from_millis(15), |probe, _| probe.journal.note("never"));
            ctx.after("10", Duration::from_millis(10), move |probe, ctx| {
                ctx.cancel(never);
                probe.journal.note("10");
            });
            let mut ticks = 0;
            let period = std::sync::Arc::new(std::sync::OnceLock::new());
            let own = std::sync::Arc::clone(&period);
            let handle = ctx.every("tick", Duration::from_millis(8), move |probe: &mut Probe, ctx| {
                ticks += 1;
                probe.journal.note(format!("tick {ticks}"));
                if ticks == 4 {
                    ctx.cancel(*own.get().unwrap());
                }
            });
            period.set(handle).unwrap();
        });
        probe.ask(set).await.unwrap();
        journal.take();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(journal.take(), ["tick 1", "10", "tick 2", "tick 3", "30", "tick 4"]);
    });
}
