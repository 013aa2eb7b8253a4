//! How transactions begin. The right answers are those that Kafka 4.4.0 gave.

use callboard_coordinator::runtime::Machine;
use callboard_coordinator::transaction::{Decision, InitProducer, Reply, Request, State};
use callboard_protocol::ErrorCode;

use crate::desk::{Desk, adding, nearly_used_up, partition, producer};

#[test]
fn an_id_has_one_producer_whose_epoch_grows_with_each_init() {
    let mut desk = Desk::new();
    assert_eq!(desk.init("a"), Ok(producer(1_000, 0)));
    assert_eq!(desk.init("a"), Ok(producer(1_000, 1)));
    assert_eq!(desk.init("b"), Ok(producer(1_001, 0)));
    assert_eq!(desk.state("a"), State::Empty);
    assert_eq!(desk.fail_over().init("a"), Ok(producer(1_000, 2)));
}

#[test]
fn a_timeout_has_bounds_and_an_id_has_a_name() {
    let mut desk = Desk::new();
    let mut ask = |id: &'static str, timeout_ms| {
        let request = InitProducer { transactional_id: id.into(), timeout_ms, present: None };
        desk.ask(Request::Init(request))
    };
    for timeout_ms in [900_001, 0, -1, i32::MAX, i32::MIN] {
        let refused = Reply::Producer(Err(ErrorCode::InvalidTransactionTimeout));
        assert_eq!(ask("a", timeout_ms), Some(refused));
    }
    assert_eq!(ask("", 1), Some(Reply::Producer(Err(ErrorCode::InvalidRequest))));
    assert_eq!(ask("a", 900_000), Some(Reply::Producer(Ok(producer(1_000, 0)))));
    assert_eq!(ask("a", 1), Some(Reply::Producer(Ok(producer(1_000, 1)))));
    assert_eq!(desk.transaction("a").timeout_ms, 1);
}

#[test]
fn a_producer_that_names_itself_is_bumped_once_even_if_it_missed_the_answer() {
    let mut desk = Desk::new();
    let first = desk.init("a").unwrap();
    assert_eq!(desk.init_as("a", Some(first)), Ok(producer(1_000, 1)));
    assert_eq!(desk.init_as("a", Some(first)), Ok(producer(1_000, 1)), "the same question again");
    assert_eq!(desk.init("a"), Ok(producer(1_000, 2)), "somebody else");
    assert_eq!(desk.init_as("a", Some(first)), Err(ErrorCode::ProducerFenced));
    assert_eq!(desk.init_as("a", Some(producer(1_000, 1))), Err(ErrorCode::ProducerFenced));
    assert_eq!(desk.init_as("a", Some(producer(7, 2))), Err(ErrorCode::ProducerFenced));
    assert_eq!(
        desk.init_as("new", Some(producer(7, 2))),
        Ok(producer(1_001, 0)),
        "the coordinator forgot it"
    );
}

#[test]
fn used_up_epochs_give_another_id() {
    let mut desk = Desk::with(&nearly_used_up());
    let last = desk.transaction("a").producer;
    assert_eq!(desk.init_as("a", Some(last)), Ok(producer(1_000, 0)));
    assert_eq!(desk.init_as("a", Some(last)), Ok(producer(1_000, 0)), "the same question again");
    assert_eq!(desk.init("a"), Ok(producer(1_000, 1)));
    assert_eq!(desk.init_as("a", Some(last)), Err(ErrorCode::ProducerFenced));
}

#[test]
fn without_an_id_from_the_controller_the_client_comes_again() {
    let mut desk = Desk::new();
    let request = InitProducer { transactional_id: "a".into(), timeout_ms: 1_000, present: None };
    let ticket = desk.begin(Request::Init(request));
    let error = ErrorCode::CoordinatorLoadInProgress;
    desk.input(|shard, cx| shard.producer_id(ticket, Err(error), cx));
    assert_eq!(desk.replies.remove(&ticket), Some(Reply::Producer(Err(error))));
    assert_eq!(desk.log.len(), 0);
    desk.input(|shard, cx| shard.producer_id(ticket, Ok(5), cx));
    assert_eq!(desk.log.len(), 0, "nobody waits for it any more");
}

#[test]
fn two_that_ask_at_once_get_one_id_and_different_epochs() {
    let mut desk = Desk::new();
    let request = InitProducer { transactional_id: "a".into(), timeout_ms: 1_000, present: None };
    let tickets = [desk.begin(Request::Init(request.clone())), desk.begin(Request::Init(request))];
    desk.give_ids();
    let answers = tickets.map(|ticket| desk.replies.remove(&ticket));
    assert_eq!(answers[0], Some(Reply::Producer(Ok(producer(1_000, 0)))));
    assert_eq!(answers[1], Some(Reply::Producer(Ok(producer(1_000, 1)))));
}

#[test]
fn partitions_are_added_by_the_present_producer_alone() {
    let mut desk = Desk::new();
    let old = desk.init("a").unwrap();
    let now = desk.init("a").unwrap();
    let wanted = [partition("t", 0)];
    assert_eq!(desk.add("a", old, &wanted), Err(ErrorCode::ProducerFenced));
    assert_eq!(desk.add("a", producer(9, 1), &wanted), Err(ErrorCode::InvalidProducerIdMapping));
    assert_eq!(desk.add("nobody", now, &wanted), Err(ErrorCode::InvalidProducerIdMapping));
    assert_eq!(desk.add("", now, &wanted), Err(ErrorCode::InvalidRequest));
    assert_eq!(desk.add("a", now, &wanted), Ok(()));
    let written = desk.log.len();
    assert_eq!(desk.add("a", now, &wanted), Ok(()));
    assert_eq!(desk.log.len(), written, "nothing new, nothing written");
    assert_eq!(desk.add("a", now, &[partition("t", 1), partition("t", 0)]), Ok(()));
    assert_eq!(desk.transaction("a").partitions.len(), 2);
    assert_eq!(desk.state("a"), State::Ongoing);
}

#[test]
fn verification_tells_what_is_in_and_adds_nothing() {
    let mut desk = Desk::new();
    let old = desk.init("a").unwrap();
    let now = desk.init("a").unwrap();
    let (inside, outside) = (partition("t", 0), partition("t", 1));
    assert_eq!(desk.verify("a", now, std::slice::from_ref(&inside)), Ok(vec![false]), "no transaction yet");
    desk.add("a", now, std::slice::from_ref(&inside)).unwrap();
    assert_eq!(desk.verify("a", now, &[outside, inside.clone()]), Ok(vec![false, true]));
    assert_eq!(desk.verify("a", old, std::slice::from_ref(&inside)), Err(ErrorCode::ProducerFenced));
    assert_eq!(
        desk.verify("b", now, std::slice::from_ref(&inside)),
        Err(ErrorCode::InvalidProducerIdMapping)
    );
    desk.end("a", now, Decision::Commit).unwrap();
    assert_eq!(desk.verify("a", now, std::slice::from_ref(&inside)), Err(ErrorCode::ConcurrentTransactions));
    desk.mark();
    assert_eq!(desk.verify("a", now, &[inside]), Ok(vec![false]));
}

#[test]
fn an_init_amid_a_transaction_aborts_it_and_is_to_come_again() {
    for client_version in [0, 2] {
        let mut desk = Desk::new();
        let old = desk.init("a").unwrap();
        desk.add_by("a", old, &[partition("t", 0)], client_version).unwrap();
        assert_eq!(desk.init("a"), Err(ErrorCode::ConcurrentTransactions));
        assert_eq!(desk.init("a"), Err(ErrorCode::ConcurrentTransactions), "markers are on their way");
        let markers = desk.markers();
        assert_eq!(markers[0].producer, producer(1_000, 1), "an epoch that no client ever has");
        assert_eq!(markers[0].decision, Decision::Abort);
        desk.marked(&markers[0]);
        assert_eq!(desk.state("a"), State::CompleteAbort);
        assert_eq!(desk.init("a"), Ok(producer(1_000, 2)));
        assert_eq!(desk.end("a", old, Decision::Commit), Err(ErrorCode::ProducerFenced));
        assert_eq!(desk.init("a"), Ok(producer(1_000, 3)));
    }
}

#[test]
fn a_zombie_does_not_abort_the_transaction_of_its_successor() {
    let mut desk = Desk::new();
    let zombie = desk.init("a").unwrap();
    let now = desk.init("a").unwrap();
    desk.add("a", now, &[partition("t", 0)]).unwrap();
    assert_eq!(desk.init_as("a", Some(zombie)), Err(ErrorCode::ProducerFenced));
    assert_eq!(desk.state("a"), State::Ongoing);
    assert_eq!(desk.end("a", now, Decision::Commit), Ok(()));
}

#[test]
fn one_who_is_patient_is_let_in_when_the_transaction_before_is_done() {
    let mut desk = Desk::new();
    let now = desk.init("a").unwrap();
    desk.add("a", now, &[partition("t", 0)]).unwrap();
    desk.end("a", now, Decision::Commit).unwrap();
    let wait = |patience_ms| Request::Add(adding("a", now, &[partition("t", 1)], 0, patience_ms));
    assert_eq!(desk.ask(wait(0)), Some(Reply::Added(Err(ErrorCode::ConcurrentTransactions))));
    let (short, long) = (desk.begin(wait(50)), desk.begin(wait(100)));
    assert!(desk.runtime.machine().next_deadline_ms().is_some());
    desk.pass_ms(60);
    assert_eq!(desk.replies.remove(&short), Some(Reply::Added(Err(ErrorCode::ConcurrentTransactions))));
    assert_eq!(desk.replies.get(&long), None);
    desk.mark();
    assert_eq!(desk.replies.remove(&long), Some(Reply::Added(Ok(()))));
    assert_eq!(desk.state("a"), State::Ongoing);
    assert_eq!(desk.transaction("a").partitions.iter().cloned().collect::<Vec<_>>(), [partition("t", 1)]);
    desk.pass_ms(1_000);
    assert!(desk.replies.is_empty(), "nobody is answered twice");
}
