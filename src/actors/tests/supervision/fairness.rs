//! A busy actor does not starve its neighbours, its timers or its control messages.

use std::time::Duration;

use callboard_actors::supervision::{FAIRNESS, Spec, Strategy};

use super::common::{Do, Journal, Note, Probe, simulate};

fn position(events: &[String], what: &str) -> usize {
    events.iter().position(|event| event == what).unwrap_or_else(|| panic!("no {what} in {}", events.len()))
}

#[test]
fn a_flood_lets_the_neighbour_through() {
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let [busy, quiet] = ["busy", "quiet"].map(|name| {
            let journal = journal.clone();
            tree.root().spawn(Spec::new(name, move || Probe::new(name, &journal)))
        });
        busy.ask(Note::data("ready")).await.unwrap();
        quiet.ask(Note::data("ready")).await.unwrap();
        journal.take();
        for _ in 0..20 * FAIRNESS {
            busy.tell(Note::data("flood"));
        }
        quiet.ask(Note::data("quiet")).await.unwrap();
        let events = journal.all();
        assert!(position(&events, "quiet") <= FAIRNESS, "the neighbour waited for {}", events.len());
    });
}

#[test]
fn a_flood_of_its_own_making_lets_timers_and_control_through() {
    /// Sends itself another message with each one, for ever: its mailbox is never empty.
    fn more(probe: &mut Probe, ctx: &mut callboard_actors::supervision::Context<Probe>) {
        probe.journal.note("more");
        // Simulated time stands still while anything runs, so the turns are counted instead.
        if probe.journal.all().len() < 100 * FAIRNESS {
            ctx.me().tell(Do::new(more));
        }
    }
    simulate(Strategy::OneForOne, |tree| async move {
        let journal = Journal::default();
        let for_factory = journal.clone();
        let probe = tree.root().spawn(Spec::new("probe", move || Probe::new("probe", &for_factory)));
        let start = Do::new(|probe, ctx| {
            ctx.after("timer", Duration::ZERO, |probe, _| probe.journal.note("timer"));
            more(probe, ctx);
        });
        probe.ask(start).await.unwrap();
        let sent = journal.all().len();
        probe.ask(Note::control("control")).await.unwrap();
        let events = journal.all();
        assert!(position(&events, "timer") <= 2 * FAIRNESS + 4);
        assert_eq!(position(&events, "control"), sent, "the very next entry");
    });
}
