//! What time does: transactions that take too long, and ids that nobody uses.

use callboard_coordinator::transaction::{Decision, List, State};
use callboard_protocol::ErrorCode;

use crate::desk::{Desk, partition, producer};

#[test]
fn a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add("a", p, &[partition("t", 0)]).unwrap();
    desk.pass_ms(59_999);
    assert_eq!(desk.state("a"), State::Ongoing);
    desk.pass_ms(1);
    assert_eq!(desk.state("a"), State::PrepareAbort);
    let markers = desk.markers();
    assert_eq!(markers[0].producer, producer(p.id, 1));
    desk.marked(&markers[0]);
    assert_eq!(desk.end("a", p, Decision::Commit), Err(ErrorCode::ProducerFenced));
    assert_eq!(desk.end_by("a", p, Decision::Commit, 2), Err(ErrorCode::InvalidTxnState));
    assert_eq!(desk.add("a", p, &[partition("t", 0)]), Err(ErrorCode::ProducerFenced));
    assert_eq!(desk.init_as("a", Some(p)), Ok(producer(p.id, 1)), "it comes back by itself");
    assert_eq!(desk.init("a"), Ok(producer(p.id, 2)));
}

#[test]
fn overdue_transactions_are_looked_for_once_in_an_interval() {
    let mut desk = Desk::new();
    let (a, b) = (desk.init("a").unwrap(), desk.init("b").unwrap());
    desk.add("a", a, &[partition("t", 0)]).unwrap();
    desk.pass_ms(2_000);
    desk.add("b", b, &[partition("t", 0)]).unwrap();
    desk.pass_ms(58_000);
    assert_eq!((desk.state("a"), desk.state("b")), (State::PrepareAbort, State::Ongoing));
    desk.pass_ms(9_000);
    assert_eq!(desk.state("b"), State::Ongoing, "overdue, but it was looked for less than 10 s ago");
    desk.pass_ms(1_000);
    assert_eq!(desk.state("b"), State::PrepareAbort);
}

#[test]
fn a_new_coordinator_goes_by_the_time_the_transaction_began() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add("a", p, &[partition("t", 0)]).unwrap();
    desk.now_ms += 59_000;
    let mut early = desk.fail_over();
    assert_eq!(early.state("a"), State::Ongoing);
    early.pass_ms(1_000);
    assert_eq!(early.state("a"), State::PrepareAbort);
}

#[test]
fn ids_that_nobody_uses_go_away() {
    let mut desk = Desk::new();
    desk.init("unused").unwrap();
    let p = desk.init("open").unwrap();
    desk.pass_ms(1);
    desk.add("open", p, &[partition("t", 0)]).unwrap();
    let week_ms = 7 * 24 * 3_600_000;
    desk.pass_ms(week_ms - 2);
    assert_eq!(desk.runtime.machine().transactions().count(), 2);
    // They were looked through just now, and are again in an hour. What is being aborted is not unused.
    desk.pass_ms(3_600_000);
    let left: Vec<String> = desk.runtime.machine().transactions().map(|(id, _)| id.to_string()).collect();
    assert_eq!(left, ["open"]);
    let tombstones = desk.log.iter().filter(|(_, value)| value.is_none()).count();
    assert_eq!(tombstones, 1);
    assert_eq!(desk.fail_over().runtime.machine().transactions().count(), 1);
    assert_eq!(desk.init("unused"), Ok(producer(1_002, 0)), "it begins anew");
}

#[test]
fn a_list_has_filters() {
    let mut desk = Desk::new();
    let a = desk.init("a").unwrap();
    let b = desk.init("b").unwrap();
    desk.add("b", b, &[partition("t", 0)]).unwrap();
    desk.pass_ms(10);
    let any = || List { open_longer_than_ms: -1, ..List::default() };
    let mut ids = |request: List| -> Vec<String> {
        desk.list(request).into_iter().map(|listed| listed.transactional_id.to_string()).collect()
    };
    assert_eq!(ids(any()), ["a", "b"]);
    assert_eq!(ids(List { states: vec!["Ongoing".into()], ..any() }), ["b"]);
    assert_eq!(ids(List { states: vec!["ongoing".into()], ..any() }), [""; 0]);
    assert_eq!(ids(List { producer_ids: vec![a.id], ..any() }), ["a"]);
    assert_eq!(ids(List { producer_ids: vec![a.id], states: vec!["Ongoing".into()], ..any() }), [""; 0]);
    let open = |ms| List { states: vec!["Ongoing".into()], open_longer_than_ms: ms, ..List::default() };
    assert_eq!(ids(open(9)), ["b"]);
    assert_eq!(ids(open(10)), [""; 0]);
    assert!(State::is_name("CompleteAbort") && State::is_name("Dead") && !State::is_name("nonsense"));
}
