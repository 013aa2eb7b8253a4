//! Logs that refuse, news that comes too early, and bytes that mean nothing.

use bytes::Bytes;
use callboard_coordinator::runtime::{Entry, Machine};
use callboard_coordinator::transaction::{Decision, Request, State, TransactionRecord, TransactionShard};
use callboard_protocol::ErrorCode;

use crate::desk::{Desk, adding, ending, partition, producer};

#[test]
fn markers_leave_when_the_decision_is_committed_and_not_before() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add("a", p, &[partition("t", 0)]).unwrap();
    let ticket = desk.begin(ending("a", p, Decision::Commit, 0));
    assert!(desk.effects.is_empty() && desk.replies.is_empty());
    let batch = desk.runtime.next_batch(1 << 20).unwrap();
    let settled = desk.runtime.appended(i64::try_from(desk.log.len() + batch.records.len()).unwrap());
    assert!(settled.effects.is_empty() && settled.replies.is_empty(), "other replicas do not have it yet");
    let settled = desk.runtime.advance(i64::MAX);
    assert_eq!(settled.effects.len(), 1);
    assert_eq!(settled.replies.len(), 1);
    assert_eq!(settled.replies[0].0, ticket);
}

#[test]
fn a_refused_append_takes_the_decision_back() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add("a", p, &[partition("t", 0)]).unwrap();
    let before = desk.transaction("a");
    let ticket = desk.begin(ending("a", p, Decision::Commit, 2));
    assert_eq!(desk.state("a"), State::PrepareCommit);
    let waits = desk.begin(Request::Add(adding("a", producer(p.id, 1), &[partition("t", 1)], 2, 100)));
    desk.refuse_append();
    assert_eq!(desk.failed, [ticket, waits]);
    assert_eq!(desk.transaction("a"), before);
    assert!(desk.effects.is_empty(), "no marker of a commit that never was");
    desk.pass_ms(200);
    assert!(desk.replies.is_empty(), "who waited has been told already");
    assert_eq!(desk.end_by("a", p, Decision::Abort, 2), Ok(producer(p.id, 1)));
}

#[test]
fn a_refused_completion_is_made_up_for_by_the_next_coordinator() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add("a", p, &[partition("t", 0)]).unwrap();
    desk.end("a", p, Decision::Commit).unwrap();
    let markers = desk.markers().remove(0);
    desk.begin_input(|shard, cx| {
        shard.marked(&markers.transactional_id, markers.marking, &markers.partitions, cx)
    });
    desk.refuse_append();
    assert_eq!(desk.state("a"), State::PrepareCommit);
    assert_eq!(desk.add("a", p, &[partition("t", 0)]), Err(ErrorCode::ConcurrentTransactions));
    // The shell tells it again, as the news of the markers went with the append.
    desk.marked(&markers);
    assert_eq!(desk.state("a"), State::CompleteCommit);
}

#[test]
fn an_overdue_transaction_whose_abort_is_refused_is_aborted_later() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add("a", p, &[partition("t", 0)]).unwrap();
    desk.now_ms += 60_000;
    desk.begin_input(|shard, cx| shard.on_time(cx));
    desk.refuse_append();
    assert_eq!((desk.state("a"), desk.transaction("a").producer), (State::Ongoing, p));
    desk.pass_ms(0);
    assert_eq!((desk.state("a"), desk.transaction("a").producer), (State::PrepareAbort, producer(p.id, 1)));
}

/// Numbers without end from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[test]
fn damaged_records_are_errors_or_other_records_and_never_panics() {
    let mut desk = Desk::new();
    let p = desk.init("a").unwrap();
    desk.add_by("a", p, &[partition("t", 0), partition("u", 3)], 2).unwrap();
    desk.end_by("a", p, Decision::Commit, 2).unwrap();
    desk.mark();
    let mut random = Random(1);
    for round in 0..20_000 {
        let (key, value) = desk.log[round % desk.log.len()].clone();
        let (mut key, mut value) = (key.to_vec(), value.unwrap_or_default().to_vec());
        for _ in 0..=random.next() % 3 {
            let bytes = if random.next().is_multiple_of(4) { &mut key } else { &mut value };
            let at = random.next() as usize % bytes.len().max(1);
            match random.next() % 3 {
                0 => bytes.truncate(at),
                1 => bytes.insert(at.min(bytes.len()), random.next() as u8),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= random.next() as u8),
            }
        }
        let (key, value) = (Bytes::from(key), Bytes::from(value));
        let Ok(record) = TransactionRecord::decode(&key, Some(&value)) else { continue };
        let mut shard = TransactionShard::default();
        if shard.replay(&Entry::Record(record, None)).is_err() {
            continue;
        }
        // Whatever was read, the coordinator works on.
        let mut desk = Desk::over(vec![(key, Some(value))]).load();
        let _ = desk.init("a");
        desk.mark();
        desk.pass_ms(10_000_000);
        desk.mark();
        let present = desk.runtime.machine().transactions().next().map(|(_, found)| found.producer);
        let _ = present.map(|present| desk.end_by("a", present, Decision::Abort, 2));
    }
}
