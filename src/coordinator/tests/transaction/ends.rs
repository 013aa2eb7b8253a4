//! How transactions end. The right answers are those that Kafka 4.4.0 gave.

use callboard_coordinator::transaction::{Decision, NO_PRODUCER_ID, State};
use callboard_protocol::ErrorCode;

use crate::desk::{Desk, nearly_used_up, partition, producer};

use Decision::{Abort, Commit};

#[test]
fn the_former_protocol_keeps_the_epoch() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    assert_eq!(desk.end("a", p, Commit), Err(ErrorCode::InvalidTxnState), "nothing is in it");
    assert_eq!(desk.end("a", p, Abort), Err(ErrorCode::InvalidTxnState));
    desk.add("a", p, &[partition("t", 0), partition("t", 1)]).unwrap();
    assert_eq!(desk.end("a", p, Commit), Ok(()));
    assert_eq!(desk.state("a"), State::PrepareCommit);
    assert_eq!(desk.end("a", p, Commit), Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(desk.end("a", p, Abort), Err(ErrorCode::InvalidTxnState));
    assert_eq!(desk.add("a", p, &[partition("t", 2)]), Err(ErrorCode::ConcurrentTransactions));
    let markers = desk.markers();
    assert_eq!(markers.len(), 1);
    assert_eq!((markers[0].producer, markers[0].decision), (p, Commit));
    assert_eq!(markers[0].partitions, [partition("t", 0), partition("t", 1)]);
    desk.marked(&markers[0]);
    assert_eq!(desk.state("a"), State::CompleteCommit);
    assert_eq!(desk.end("a", p, Commit), Ok(()), "the same once more");
    assert_eq!(desk.end("a", p, Abort), Err(ErrorCode::InvalidTxnState));
    desk.add("a", p, &[partition("t", 0)]).unwrap();
    assert_eq!(desk.end("a", p, Abort), Ok(()));
    desk.mark();
    assert_eq!(desk.end("a", p, Abort), Ok(()));
    assert_eq!(desk.end("a", p, Commit), Err(ErrorCode::InvalidTxnState));
}

#[test]
fn others_are_refused() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add("a", p, &[partition("t", 0)]).unwrap();
    for version in [0, 2] {
        let mut end = |id, id_of, epoch| desk.end_by(id, producer(id_of, epoch), Commit, version);
        assert_eq!(end("nobody", p.id, 0), Err(ErrorCode::InvalidProducerIdMapping));
        assert_eq!(end("a", p.id + 1, 0), Err(ErrorCode::InvalidProducerIdMapping));
        assert_eq!(end("a", p.id, 5), Err(ErrorCode::ProducerFenced));
        assert_eq!(end("a", p.id, -1), Err(ErrorCode::ProducerFenced));
        assert_eq!(end("", p.id, 0), Err(ErrorCode::InvalidRequest));
    }
    assert_eq!(desk.state("a"), State::Ongoing);
}

#[test]
fn from_version_2_on_each_end_raises_the_epoch() {
    let mut desk = Desk::new();
    let mut p = desk.init("a").unwrap();
    for (round, decision) in [Commit, Abort, Commit].into_iter().enumerate() {
        desk.add_by("a", p, &[partition("t", 0)], 2).unwrap();
        let next = desk.end_by("a", p, decision, 2).unwrap();
        assert_eq!(next, producer(p.id, p.epoch + 1), "round {round}");
        assert_eq!(desk.end_by("a", p, decision, 2), Err(ErrorCode::ConcurrentTransactions));
        let other = if decision == Commit { Abort } else { Commit };
        assert_eq!(desk.end_by("a", p, other, 2), Err(ErrorCode::InvalidTxnState));
        assert_eq!(desk.end_by("a", next, decision, 2), Err(ErrorCode::ConcurrentTransactions));
        let markers = desk.markers();
        assert_eq!((markers[0].producer, markers[0].client_version), (next, 2), "above the records' epoch");
        desk.marked(&markers[0]);
        assert_eq!(desk.end_by("a", p, decision, 2), Ok(next), "asked again, answered alike");
        assert_eq!(desk.end_by("a", p, other, 2), Err(ErrorCode::InvalidTxnState));
        assert_eq!(desk.add_by("a", p, &[partition("t", 0)], 2), Err(ErrorCode::ProducerFenced));
        p = next;
    }
}

#[test]
fn an_answer_that_was_lost_can_be_had_from_the_next_coordinator() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add_by("a", p, &[partition("t", 0)], 2).unwrap();
    let next = desk.end_by("a", p, Commit, 2).unwrap();
    let mut desk = desk.fail_over();
    assert_eq!(desk.end_by("a", p, Commit, 2), Err(ErrorCode::ConcurrentTransactions));
    desk.mark();
    let mut desk = desk.fail_over();
    assert_eq!(desk.end_by("a", p, Commit, 2), Ok(next));
    assert_eq!(desk.init_as("a", Some(p)), Ok(next), "it has not seen the raised epoch yet");
}

#[test]
fn a_transaction_with_nothing_in_it_can_be_aborted_in_version_2_not_committed() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    assert_eq!(desk.end_by("a", p, Commit, 2), Err(ErrorCode::InvalidTxnState));
    let before = desk.log.len();
    let next = desk.end_by("a", p, Abort, 2).unwrap();
    assert_eq!(next, producer(p.id, 1));
    assert_eq!(desk.state("a"), State::CompleteAbort);
    assert_eq!(desk.log.len(), before + 2, "prepared and complete, with no markers between");
    assert!(desk.markers().is_empty());
    assert_eq!(desk.end_by("a", next, Commit, 2), Err(ErrorCode::InvalidTxnState));
    assert_eq!(desk.end_by("a", p, Abort, 2), Ok(next));
    assert_eq!(desk.end_by("a", next, Abort, 2), Ok(producer(p.id, 2)), "after a complete one as well");
}

#[test]
fn used_up_epochs_give_another_id_once_the_markers_are_written() {
    let mut desk = Desk::with(&nearly_used_up());
    let p = desk.transaction("a").producer;
    desk.add_by("a", p, &[partition("t", 0)], 2).unwrap();
    let next = desk.end_by("a", p, Commit, 2).unwrap();
    assert_eq!(next, producer(1_000, 0));
    assert_eq!(desk.end_by("a", p, Commit, 2), Err(ErrorCode::ConcurrentTransactions));
    // The client goes on at once with what it was told: it is early, not wrong.
    assert_eq!(desk.add_by("a", next, &[partition("t", 0)], 2), Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(desk.init_as("a", Some(next)), Err(ErrorCode::ConcurrentTransactions));
    let mut desk = desk.fail_over();
    let markers = desk.markers();
    assert_eq!(markers[0].producer, producer(900, i16::MAX));
    assert_eq!(desk.transaction("a").next_producer_id, 1_000);
    desk.marked(&markers[0]);
    let present = desk.transaction("a");
    assert_eq!((present.producer, present.previous_producer_id), (next, 900));
    assert_eq!(present.next_producer_id, NO_PRODUCER_ID);
    let mut desk = desk.fail_over();
    assert_eq!(desk.end_by("a", p, Commit, 2), Ok(next), "the old id asks again");
    assert_eq!(desk.end_by("a", p, Abort, 2), Err(ErrorCode::InvalidTxnState));
    assert_eq!(desk.add_by("a", p, &[partition("t", 0)], 2), Err(ErrorCode::InvalidProducerIdMapping));
    assert_eq!(desk.add_by("a", next, &[partition("t", 0)], 2), Ok(()));
}

#[test]
fn fencing_takes_the_last_epoch_and_the_next_producer_another_id() {
    let mut desk = Desk::with(&nearly_used_up());
    let p = desk.transaction("a").producer;
    desk.add("a", p, &[partition("t", 0)]).unwrap();
    assert_eq!(desk.init("a"), Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(desk.transaction("a").producer, producer(900, i16::MAX));
    desk.mark();
    assert_eq!(desk.init("a"), Ok(producer(1_000, 0)));
}

#[test]
fn markers_count_one_by_one_and_only_for_their_own_transaction() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    let both = [partition("t", 0), partition("t", 1)];
    desk.add("a", p, &both).unwrap();
    desk.end("a", p, Commit).unwrap();
    let first = desk.markers().remove(0);
    let one = |partition: usize| {
        let mut markers = first.clone();
        markers.partitions = vec![both[partition].clone()];
        markers
    };
    desk.marked(&one(1));
    desk.marked(&one(1));
    assert_eq!(desk.state("a"), State::PrepareCommit);
    assert_eq!(desk.transaction("a").partitions.iter().cloned().collect::<Vec<_>>(), [partition("t", 0)]);
    desk.marked(&one(0));
    assert_eq!(desk.state("a"), State::CompleteCommit);
    desk.add("a", p, &both).unwrap();
    desk.end("a", p, Abort).unwrap();
    desk.marked(&first);
    assert_eq!(desk.state("a"), State::PrepareAbort, "news of the transaction before comes too late");
    desk.mark();
    assert_eq!(desk.state("a"), State::CompleteAbort);
}
