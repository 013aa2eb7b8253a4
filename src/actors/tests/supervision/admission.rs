//! Mailboxes: bounds by count and bytes, order, and what is held over a restart.

use callboard_actors::supervision::{ActorRef, AskError, Spec, Strategy, Tree};

use super::common::{Add, Do, Journal, Note, Probe, info, simulate};

fn bounded(tree: &Tree, messages: usize, size_bytes: usize) -> (ActorRef<Probe>, Journal) {
    let journal = Journal::default();
    let for_factory = journal.clone();
    let spec = Spec::new("probe", move || Probe::new("probe", &for_factory)).mailbox(messages, size_bytes);
    (tree.root().spawn(spec), journal)
}

fn notes(journal: &Journal) -> Vec<String> {
    let is_note = |event: &String| !event.starts_with("build") && !event.starts_with("start");
    journal.take().into_iter().filter(is_note).collect()
}

// Nothing is awaited between the sends below, so the actor cannot take a message meanwhile.

#[test]
fn by_count() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, journal) = bounded(&tree, 2, usize::MAX);
        let first = probe.try_ask(Note::data("1"));
        let second = probe.try_ask(Note::data("2"));
        assert_eq!(probe.try_ask(Note::data("refused")).await, Err(AskError::Busy));
        assert_eq!(probe.try_tell(Note::data("refused")), Err(AskError::Busy));
        let waiting = probe.ask(Note::data("3"));
        let data = info(&tree, "node/probe");
        assert_eq!((data.mailbox_depth, data.waiting_senders), (2, 1));
        assert_eq!((first.await, second.await, waiting.await), (Ok(()), Ok(()), Ok(())));
        assert_eq!(notes(&journal), ["1", "2", "3"]);
        assert_eq!(info(&tree, "node/probe").mailbox_depth, 0);
    });
}

#[test]
fn by_bytes() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, journal) = bounded(&tree, 100, 1000);
        let huge = probe.try_ask(Note::sized("huge", 5000));
        assert_eq!(probe.try_ask(Note::sized("refused", 1)).await, Err(AskError::Busy));
        let small = probe.try_ask(Note::data("small"));
        let waiting = probe.ask(Note::sized("waits", 600));
        assert_eq!(info(&tree, "node/probe").mailbox_size_bytes, 5000);
        assert_eq!((huge.await, small.await, waiting.await), (Ok(()), Ok(()), Ok(())));
        assert_eq!(notes(&journal), ["huge", "small", "waits"]);
        assert_eq!(info(&tree, "node/probe").mailbox_size_bytes, 0);
    });
}

#[test]
fn those_who_wait_keep_their_order_and_may_leave() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, journal) = bounded(&tree, 1, usize::MAX);
        let first = probe.ask(Note::data("1"));
        let second = probe.ask(Note::data("2"));
        let leaves = probe.ask(Note::data("left"));
        let third = probe.ask(Note::data("3"));
        drop(leaves);
        assert_eq!(probe.try_ask(Note::data("no overtaking")).await, Err(AskError::Busy));
        assert_eq!((third.await, second.await, first.await), (Ok(()), Ok(()), Ok(())));
        assert_eq!(notes(&journal), ["1", "2", "3"]);
    });
}

#[test]
fn control_goes_ahead_of_data_and_is_never_refused() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, journal) = bounded(&tree, 2, usize::MAX);
        let data = [probe.ask(Note::data("data 1")), probe.ask(Note::data("data 2"))];
        let control = [probe.try_ask(Note::control("control 1")), probe.try_ask(Note::control("control 2"))];
        for asked in data.into_iter().chain(control) {
            asked.await.unwrap();
        }
        assert_eq!(notes(&journal), ["control 1", "control 2", "data 1", "data 2"]);
    });
}

#[test]
fn a_crash_costs_one_message_and_holds_the_rest() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, journal) = bounded(&tree, 100, usize::MAX);
        let before = probe.ask(Add(1));
        let crashing = probe.ask(Do::boom());
        let after: Vec<_> = (0..5).map(|_| probe.ask(Add(1))).collect();
        assert_eq!(before.await, Ok(1));
        assert_eq!(crashing.await, Err(AskError::Crashed));
        let mut sums = Vec::new();
        for asked in after {
            sums.push(asked.await);
        }
        assert_eq!(sums, [Ok(1), Ok(2), Ok(3), Ok(4), Ok(5)], "in order, each once, on the new actor");
        let builds = journal.take().into_iter().filter(|event| event == "build probe").count();
        assert_eq!(builds, 2);
    });
}

#[test]
fn senders_that_wait_are_held_too() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, _) = bounded(&tree, 1, usize::MAX);
        let crashing = probe.ask(Do::boom());
        let waiting: Vec<_> = (0..3).map(|_| probe.ask(Add(1))).collect();
        assert_eq!(crashing.await, Err(AskError::Crashed));
        for (asked, sum) in waiting.into_iter().zip(1..) {
            assert_eq!(asked.await, Ok(sum));
        }
    });
}

#[test]
fn a_stopped_actor_says_so() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, _) = bounded(&tree, 1, usize::MAX);
        let first = probe.ask(Add(1));
        assert_eq!(first.await, Ok(1));
        let root = tree.root().clone();
        root.stop().await;
        assert!(probe.is_stopped());
        assert_eq!(probe.ask(Add(1)).await, Err(AskError::Stopped));
        assert_eq!(probe.try_tell(Add(1)), Err(AskError::Stopped));
        let late = root.spawn(Spec::new("late", || Probe::new("late", &Journal::default())));
        assert_eq!(late.ask(Add(1)).await, Err(AskError::Stopped));
    });
}

#[test]
fn a_recipient_is_the_actor() {
    simulate(Strategy::OneForOne, |tree| async move {
        let (probe, _) = bounded(&tree, 1, usize::MAX);
        let recipient = probe.recipient::<Add>();
        recipient.tell(Add(1));
        assert_eq!(recipient.ask(Add(1)).await, Ok(2));
    });
}
