//! Sequences, epochs and transactions, by the answers that Kafka 4.4.0 gives.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use callboard_protocol::records::rebuild::Ready;
use callboard_storage::{AppendError, Log, LogConfig, Origin};
use common::*;

/// What a producer is told: an offset, a repeated batch's offset, or an error.
#[derive(Debug, PartialEq)]
enum Answer {
    At(i64),
    Again(i64),
    OutOfOrder,
    OldEpoch,
}
use Answer::{Again, At, OldEpoch, OutOfOrder};

fn send(log: &mut Log, batch: Ready) -> Answer {
    match log.append_as_leader(&[batch], 0, Origin::Client, NOW) {
        Ok(appended) if appended.duplicate => Again(appended.first_offset),
        Ok(appended) => At(appended.first_offset),
        Err(AppendError::OutOfOrderSequence { .. }) => OutOfOrder,
        Err(AppendError::InvalidProducerEpoch { .. }) => OldEpoch,
        Err(error) => panic!("{error}"),
    }
}

fn run(steps: &[(i16, i32, usize, Answer)]) {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open_with(&temp.path().join("t-0"), LogConfig::default(), 0, false).0;
    for (index, (epoch, sequence, count, answer)) in steps.iter().enumerate() {
        assert_eq!(send(&mut log, sequenced(1, *epoch, *sequence, *count)), *answer, "step {index}");
    }
}

#[test]
fn around_the_wrap() {
    let max = i32::MAX;
    run(&[
        (0, max - 2, 3, At(0)),
        (0, 1, 1, OutOfOrder),
        (0, 0, 1, At(3)),
        (0, max - 2, 3, Again(0)),
        (0, 1, 1, At(4)),
    ]);
    run(&[(0, max, 1, At(0)), (0, 0, 1, At(1)), (0, max, 1, Again(0))]);
    run(&[(0, max - 1, 4, At(0)), (0, 2, 1, At(4)), (0, max - 1, 4, Again(0))]);
    run(&[(0, 1000, 1, At(0)), (0, 1001, 1, At(1)), (0, 999, 1, OutOfOrder), (0, 1000, 1, Again(0))]);
}

#[test]
fn epochs() {
    run(&[
        (0, 0, 1, At(0)),
        (0, 1, 1, At(1)),
        (1, 2, 1, OutOfOrder),
        (1, 0, 1, At(2)),
        (0, 2, 1, OldEpoch),
        (0, 1, 1, OldEpoch),
        (1, 0, 1, Again(2)),
        (3, 0, 1, At(3)),
        (2, 0, 1, OldEpoch),
        (3, 1, 1, At(4)),
    ]);
    run(&[(7, 5, 1, At(0)), (7, 6, 1, At(1)), (7, 8, 1, OutOfOrder), (6, 7, 1, OldEpoch)]);
}

#[test]
fn a_repeated_batch_has_the_same_sequences() {
    run(&[
        (0, 0, 2, At(0)),
        (0, 0, 2, Again(0)),
        (0, 0, 1, OutOfOrder),
        (0, 1, 1, OutOfOrder),
        (0, 1, 2, OutOfOrder),
    ]);
    // Five batches are remembered.
    run(&[
        (0, 0, 1, At(0)),
        (0, 1, 1, At(1)),
        (0, 2, 1, At(2)),
        (0, 3, 1, At(3)),
        (0, 4, 1, At(4)),
        (0, 5, 1, At(5)),
        (0, 1, 1, Again(1)),
        (0, 0, 1, OutOfOrder),
    ]);
}

#[test]
fn a_repeated_batch_tells_its_time() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open(&temp.path().join("t-0"));
    append(&mut log, sequenced(1, 0, 0, 2));
    let again = append(&mut log, sequenced(1, 0, 0, 2));
    assert_eq!((again.first_offset, again.last_offset, again.log_append_time_ms), (0, 1, NOW));
    assert_eq!((again.size_bytes, log.log_end_offset()), (0, 2));
}

#[test]
fn several_batches_of_one_append_are_all_or_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open(&temp.path().join("t-0"));
    let row = [sequenced(1, 0, 0, 2), sequenced(1, 0, 2, 1), sequenced(2, 0, 9, 1)];
    log.append_as_leader(&row, 0, Origin::Client, NOW).unwrap();
    assert_eq!(log.producer(1).unwrap().last_sequence(), 2);
    let gap = [sequenced(1, 0, 3, 1), sequenced(1, 0, 5, 1)];
    assert!(log.append_as_leader(&gap, 0, Origin::Client, NOW).is_err());
    assert_eq!((log.log_end_offset(), log.producer(1).unwrap().last_sequence()), (4, 2));
}

#[test]
fn silent_producers_are_forgotten() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open(&temp.path().join("t-0"));
    append(&mut log, sequenced(1, 0, 0, 1));
    append(&mut log, transactional(2, 0, 0));
    let day = 24 * 3600 * 1000;
    assert_eq!(log.expire_producers(NOW + day - 1), 0);
    assert_eq!(log.expire_producers(NOW + day), 1, "an open transaction keeps its producer");
    assert_eq!(send(&mut log, sequenced(1, 0, 7, 1)), At(2), "it may begin anywhere now");
}

#[test]
fn sequences_survive_restarts_and_truncation() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("t-0");
    let mut log = open(&dir);
    for i in 0..40 {
        append(&mut log, sequenced(1, 0, 2 * i, 2));
        append(&mut log, sequenced(2, 4, i, 1));
    }
    drop(log);
    let mut log = open(&dir);
    assert_eq!(send(&mut log, sequenced(1, 0, 78, 2)), Again(117));
    assert_eq!(
        send(&mut log, sequenced(2, 4, 36, 1)),
        Again(110),
        "all five are known where the batches were read"
    );
    log.truncate_to(60, NOW).unwrap();
    assert_eq!(send(&mut log, sequenced(2, 4, 21, 1)), OutOfOrder);
    assert_eq!(send(&mut log, sequenced(2, 4, 19, 1)), Again(59));
    assert_eq!(send(&mut log, sequenced(1, 0, 40, 2)), At(60));
    std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).for_each(|path| {
        if path.extension().is_some_and(|ending| ending == "snapshot") {
            std::fs::write(path, b"damaged").unwrap();
        }
    });
    drop(log);
    let mut log = open_with(&dir, small(), 50, false).0;
    assert_eq!(send(&mut log, sequenced(1, 0, 40, 2)), Again(60), "a damaged snapshot is passed over");
}

#[test]
fn transactions_hold_back_the_last_stable_offset() {
    let temp = tempfile::tempdir().unwrap();
    let mut log = open(&temp.path().join("t-0"));
    let reader = log.reader();
    append(&mut log, values(&["plain"], NOW));
    append(&mut log, transactional(1, 0, 0));
    append(&mut log, transactional(2, 0, 0));
    append(&mut log, transactional(1, 0, 1));
    log.advance_high_watermark(4);
    assert_eq!(reader.last_stable_offset(4), 1);
    let end = |log: &mut Log, id, committed| {
        log.append_as_leader(&[marker(id, 0, committed, 3)], 0, Origin::Coordinator, NOW).unwrap();
        let end = log.log_end_offset();
        log.advance_high_watermark(end);
        log.reader().last_stable_offset(end)
    };
    assert_eq!(end(&mut log, 1, false), 2, "producer 2 is open since 2");
    assert_eq!(end(&mut log, 2, true), 6);
    let aborted = reader.aborted_transactions(0, 6).unwrap();
    assert_eq!(aborted.len(), 1);
    assert_eq!((aborted[0].first_offset, aborted[0].last_offset, aborted[0].last_stable_offset), (1, 4, 2));

    append(&mut log, transactional(1, 0, 2));
    let outside = log.append_as_leader(&[sequenced(1, 0, 3, 1)], 0, Origin::Client, NOW).unwrap_err();
    assert!(matches!(outside, AppendError::InvalidTxnState { producer_id: 1 }));
    let fenced = log.append_as_leader(&[marker(1, 0, true, 2)], 0, Origin::Coordinator, NOW).unwrap_err();
    assert!(matches!(fenced, AppendError::TransactionCoordinatorFenced { epoch: 2, current_epoch: 3 }));
    // A marker may bring the next epoch; the producer then begins again at 0.
    log.append_as_leader(&[marker(1, 1, true, 3)], 0, Origin::Coordinator, NOW).unwrap();
    assert_eq!(send(&mut log, transactional(1, 1, 3)), OutOfOrder);
    assert_eq!(send(&mut log, transactional(1, 0, 3)), OldEpoch);
    assert_eq!(send(&mut log, transactional(1, 1, 0)), At(8));
}
