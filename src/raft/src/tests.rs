//! Conversations with one machine.

use callboard_protocol::Uuid;

use crate::*;

fn key(id: i32) -> ReplicaKey {
    ReplicaKey::new(id, Uuid::from_bytes([u8::try_from(id).unwrap(); 16]))
}

fn machine(
    ids: &[i32],
    origin: VotersOrigin,
    election: ElectionState,
    log: LogView,
    high_watermark: i64,
) -> Machine {
    let config = Config {
        local: key(1),
        election_timeout_ms: 1000,
        fetch_timeout_ms: 2000,
        election_backoff_max_ms: 1000,
        request_timeout_ms: 2000,
        retry_backoff_ms: 20,
        fetch_max_wait_ms: 500,
    };
    let endpoint = Endpoint { name: "CONTROLLER".into(), host: "localhost".into(), port: 9093 };
    let voter = |&id: &i32| Voter {
        key: key(id),
        endpoints: vec![endpoint.clone()],
        min_kraft_version: 0,
        max_kraft_version: 1,
    };
    let voters = VoterSet::new(ids.iter().map(voter)).unwrap();
    Machine::new(config, voters, origin, election, log, high_watermark)
}

fn fresh(ids: &[i32]) -> Machine {
    machine(ids, VotersOrigin::Bootstrap, ElectionState::default(), LogView::default(), 0)
}

fn feed(machine: &mut Machine, input: Input, now_ms: i64) -> (Writes, Vec<Effect>) {
    let (writes, sealed) = machine.handle(input, now_ms, 42).split();
    let copy = Writes {
        quorum_state: writes.quorum_state,
        truncate_to: writes.truncate_to,
        append: writes.append.clone(),
    };
    (copy, sealed.open(writes.done()))
}

fn ask(machine: &mut Machine, request: Request, now_ms: i64) -> (Writes, Vec<Effect>) {
    feed(machine, Input::Request { request_id: 9, request }, now_ms)
}

fn vote(epoch: i32, candidate: i32, last: (i32, i64), pre_vote: bool) -> Request {
    Request::Vote(Vote {
        epoch,
        candidate: key(candidate),
        voter: key(1),
        last_epoch: last.0,
        last_end_offset: last.1,
        pre_vote,
    })
}

fn granted(effects: &[Effect]) -> bool {
    effects.iter().any(|e| {
        matches!(e, Effect::Reply { response: Response::Vote(VoteResponse { granted: true, .. }), .. })
    })
}

fn fetch(replica: i32, epoch: i32, offset: i64, last_epoch: i32) -> Request {
    Request::Fetch(Fetch {
        replica: key(replica),
        epoch,
        fetch_offset: offset,
        last_fetched_epoch: last_epoch,
        fetch_id: 5,
    })
}

fn fetch_outcome(effects: &[Effect]) -> Option<&FetchOutcome<LogRange>> {
    effects.iter().find_map(|e| match e {
        Effect::Reply { response: Response::Fetch(fetch), .. } => Some(&fetch.outcome),
        _ => None,
    })
}

#[test]
fn a_single_voter_elects_itself_at_once() {
    let mut m = fresh(&[1]);
    let (writes, effects) = feed(&mut m, Input::Start, 0);
    let state = ElectionState { epoch: 1, leader_id: Some(1), voted: None };
    assert_eq!(writes.quorum_state, Some(state));
    let Some(AppendWrite::Control { base_offset: 0, epoch: 1, records }) = writes.append else {
        panic!("no control batch")
    };
    let leader = ControlRecord::LeaderChange { leader_id: 1, voters: vec![1], granting_voters: vec![1] };
    assert_eq!(records[..2], [leader, ControlRecord::KRaftVersion(1)]);
    assert!(matches!(&records[2], ControlRecord::Voters(v) if v.count() == 1));
    assert_eq!(effects, [Effect::Leader(LeaderHint { epoch: 1, leader_id: Some(1) })]);
    assert_eq!(m.high_watermark(), 0);
    assert_eq!(m.append_position(1), Ok(3));

    let generation = m.log().generation();
    let (_, effects) = feed(&mut m, Input::Durable { end_offset: 3, generation }, 5);
    assert_eq!(effects, [Effect::Committed { high_watermark: 3 }]);
    let (_, effects) = feed(&mut m, Input::Appended { end_offset: 8 }, 6);
    assert_eq!(effects, []);
    let (_, effects) = feed(&mut m, Input::Durable { end_offset: 8, generation }, 7);
    assert_eq!(effects, [Effect::Committed { high_watermark: 8 }]);
    assert_eq!(m.next_deadline_ms(), None, "a quorum of one waits for nothing");
}

#[test]
fn a_restart_takes_a_new_epoch_and_writes_voters_once() {
    let log = LogView::new(SnapshotId::default(), [(1, 0)], 12);
    let election = ElectionState { epoch: 1, leader_id: Some(1), voted: None };
    let mut m = machine(&[1], VotersOrigin::Log, election, log, 0);
    let (writes, _) = feed(&mut m, Input::Start, 0);
    assert_eq!(writes.quorum_state.unwrap().epoch, 2);
    let Some(AppendWrite::Control { base_offset: 12, epoch: 2, records }) = writes.append else {
        panic!("no control batch")
    };
    assert_eq!(records.len(), 1);
}

#[test]
fn a_lost_quorum_state_does_not_take_the_epoch_back() {
    let log = LogView::new(SnapshotId::default(), [(1, 0), (6, 4)], 12);
    let mut m = machine(&[1], VotersOrigin::Static, ElectionState::default(), log, 0);
    let (writes, _) = feed(&mut m, Input::Start, 0);
    assert_eq!(writes.quorum_state.unwrap().epoch, 7);
}

#[test]
fn a_resigned_single_voter_comes_back_in_a_new_epoch() {
    let mut m = fresh(&[1]);
    let _ = feed(&mut m, Input::Start, 0);
    let _ = feed(&mut m, Input::Resign, 10);
    assert_eq!(m.role(), RoleName::Resigned);
    assert!(m.append_position(1).is_err());
    let at = m.next_deadline_ms().unwrap();
    let (writes, _) = feed(&mut m, Input::Tick, at);
    assert_eq!(m.role(), RoleName::Leader);
    assert_eq!(writes.quorum_state.unwrap().epoch, 2);
}

#[test]
fn a_vote_is_written_before_it_is_given_and_given_once() {
    let mut m = fresh(&[1, 2, 3]);
    let _ = feed(&mut m, Input::Start, 0);
    let (writes, effects) = ask(&mut m, vote(4, 2, (0, 0), false), 1);
    let state = ElectionState { epoch: 4, leader_id: None, voted: Some(key(2)) };
    assert_eq!(writes.quorum_state, Some(state));
    assert!(granted(&effects));
    assert!(!granted(&ask(&mut m, vote(4, 3, (0, 0), false), 2).1), "a second candidate");
    assert!(granted(&ask(&mut m, vote(4, 2, (0, 0), false), 3).1), "the same again");
    assert!(!granted(&ask(&mut m, vote(3, 2, (0, 0), false), 4).1), "an old epoch");
}

#[test]
fn a_vote_needs_a_log_as_long() {
    let log = LogView::new(SnapshotId::default(), [(1, 0), (2, 10)], 20);
    for (last, expected) in [((1, 99), false), ((2, 19), false), ((2, 20), true), ((3, 1), true)] {
        let election = ElectionState { epoch: 3, ..Default::default() };
        let mut m = machine(&[1, 2, 3], VotersOrigin::Log, election, log.clone(), 0);
        let _ = feed(&mut m, Input::Start, 0);
        assert_eq!(granted(&ask(&mut m, vote(4, 2, last, false), 1).1), expected, "{last:?}");
    }
}

#[test]
fn a_vote_for_another_directory_is_refused() {
    let mut m = fresh(&[1, 2, 3]);
    let _ = feed(&mut m, Input::Start, 0);
    let Request::Vote(mut asked) = vote(1, 2, (0, 0), false) else { unreachable!() };
    asked.voter.directory_id = Uuid::from_bytes([77; 16]);
    let (writes, effects) = ask(&mut m, Request::Vote(asked), 1);
    assert!(writes.is_empty());
    let Some(Effect::Reply { response: Response::Vote(answer), .. }) = effects.first() else {
        panic!("no answer")
    };
    assert_eq!(answer.error, Some(QuorumError::InvalidVoterKey));
}

#[test]
fn a_pre_vote_changes_nothing_and_a_live_leader_is_protected() {
    let mut m = fresh(&[1, 2, 3]);
    let _ = feed(&mut m, Input::Start, 0);
    let (writes, effects) = ask(&mut m, vote(0, 3, (0, 0), true), 1);
    assert!(granted(&effects) && writes.is_empty());
    let begin = Request::BeginQuorumEpoch(BeginQuorumEpoch { epoch: 1, leader_id: 2 });
    let (_, effects) = ask(&mut m, begin, 2);
    let sent = effects.iter().find_map(|e| match e {
        Effect::Send { to: 2, request: Request::Fetch(fetch) } => Some(fetch.fetch_id),
        _ => None,
    });
    assert!(granted(&ask(&mut m, vote(1, 3, (0, 0), true), 3).1), "not heard from yet");
    let response = Response::Fetch(FetchResponse {
        hint: LeaderHint { epoch: 1, leader_id: Some(2) },
        fetch_id: sent.unwrap(),
        high_watermark: 0,
        outcome: FetchOutcome::Records(Fetched::default()),
    });
    let _ = feed(&mut m, Input::Response { from: 2, response }, 4);
    assert!(!granted(&ask(&mut m, vote(1, 3, (0, 0), true), 5).1));
}

/// Node 1 leads epoch 3 of three voters, over a log [epoch 1: 0-9, epoch 2: 10-19].
fn leader(start: SnapshotId) -> Machine {
    let log = LogView::new(start, [(1, 0), (2, 10)], 20);
    let election = ElectionState { epoch: 2, ..Default::default() };
    let mut m = machine(&[1, 2, 3], VotersOrigin::Log, election, log, start.end_offset);
    let _ = feed(&mut m, Input::Start, 0);
    let at = m.next_deadline_ms().unwrap();
    let _ = feed(&mut m, Input::Tick, at);
    let mut now = at;
    while m.role() != RoleName::Prospective {
        now = m.next_deadline_ms().unwrap();
        let _ = feed(&mut m, Input::Tick, now);
    }
    for pre_vote in [true, false] {
        let hint = LeaderHint { epoch: m.leader().epoch, leader_id: None };
        let response = Response::Vote(VoteResponse { hint, granted: true, pre_vote, error: None });
        let _ = feed(&mut m, Input::Response { from: 2, response }, now);
    }
    assert_eq!((m.role(), m.leader().epoch), (RoleName::Leader, 3));
    let generation = m.log().generation();
    let _ = feed(&mut m, Input::Durable { end_offset: 21, generation }, now);
    m
}

#[test]
fn the_high_watermark_waits_for_the_leaders_own_epoch() {
    let mut m = leader(SnapshotId::default());
    let now = 5000;
    let (_, effects) = ask(&mut m, fetch(2, 3, 20, 2), now);
    assert_eq!(m.high_watermark(), 0, "a majority has all of epoch 2, that commits nothing");
    let range = LogRange { from_offset: 20, to_offset: 21 };
    assert_eq!(fetch_outcome(&effects), Some(&FetchOutcome::Records(range)));
    let (_, effects) = ask(&mut m, fetch(2, 3, 21, 3), now);
    assert!(effects.contains(&Effect::Committed { high_watermark: 21 }));
    let status = m.status(now);
    let ends: Vec<(i32, i64)> = status.voters.iter().map(|v| (v.key.id, v.log_end_offset)).collect();
    assert_eq!(ends, [(1, 21), (2, 21), (3, -1)]);
}

#[test]
fn fetches_that_diverge_are_told_where() {
    let mut m = leader(SnapshotId::default());
    let id = |end_offset, epoch| SnapshotId { end_offset, epoch };
    for (offset, epoch, expected) in [(15, 1, id(10, 1)), (25, 2, id(20, 2)), (5, 0, id(0, 0))] {
        let (_, effects) = ask(&mut m, fetch(2, 3, offset, epoch), 5000);
        assert_eq!(fetch_outcome(&effects), Some(&FetchOutcome::Diverging(expected)));
    }
    let (_, effects) = ask(&mut m, fetch(2, 2, 5, 1), 5000);
    assert_eq!(fetch_outcome(&effects), Some(&FetchOutcome::Error(QuorumError::FencedLeaderEpoch)));
    let (_, effects) = ask(&mut m, fetch(2, 4, 5, 1), 5000);
    assert_eq!(fetch_outcome(&effects), Some(&FetchOutcome::Error(QuorumError::UnknownLeaderEpoch)));
}

#[test]
fn a_fetch_from_before_the_log_is_sent_to_the_snapshot() {
    let start = SnapshotId { end_offset: 12, epoch: 2 };
    let mut m = leader(start);
    for (offset, epoch) in [(0, 0), (5, 1), (12, 1)] {
        let (_, effects) = ask(&mut m, fetch(2, 3, offset, epoch), 5000);
        assert_eq!(fetch_outcome(&effects), Some(&FetchOutcome::Snapshot(start)), "{offset} {epoch}");
    }
    let (_, effects) = ask(&mut m, fetch(2, 3, 12, 2), 5000);
    assert!(matches!(fetch_outcome(&effects), Some(FetchOutcome::Records(_))));
}

#[test]
fn a_leader_nobody_hears_resigns() {
    let mut m = leader(SnapshotId::default());
    let mut now = 0;
    while m.role() == RoleName::Leader {
        let at = m.next_deadline_ms().unwrap();
        assert!(at > now || now == 0, "time must pass");
        now = at;
        let (_, effects) = feed(&mut m, Input::Tick, now);
        if m.role() == RoleName::Resigned {
            let told = effects
                .iter()
                .filter(|e| matches!(e, Effect::Send { request: Request::EndQuorumEpoch(_), .. }));
            assert_eq!(told.count(), 2);
        }
        assert!(now < 60_000, "never resigned");
    }
    assert!(!granted(&ask(&mut m, vote(3, 2, (9, 99), false), now).1), "it led epoch 3 itself");
}

#[test]
fn a_follower_never_truncates_what_is_committed() {
    let log = LogView::new(SnapshotId::default(), [(1, 0), (2, 10)], 20);
    let election = ElectionState { epoch: 3, leader_id: Some(2), voted: None };
    for (high_watermark, expected) in [(10, Some(12)), (15, None)] {
        let mut m = machine(&[1, 2, 3], VotersOrigin::Log, election, log.clone(), high_watermark);
        let (_, effects) = feed(&mut m, Input::Start, 0);
        let Some(Effect::Send { to: 2, request: Request::Fetch(sent) }) = effects.first() else {
            panic!("no fetch: {effects:?}")
        };
        let response = Response::Fetch(FetchResponse {
            hint: LeaderHint { epoch: 3, leader_id: Some(2) },
            fetch_id: sent.fetch_id,
            high_watermark,
            outcome: FetchOutcome::Diverging(SnapshotId { end_offset: 12, epoch: 2 }),
        });
        let late = response.clone();
        let (writes, _) = feed(&mut m, Input::Response { from: 2, response }, 1);
        assert_eq!(writes.truncate_to, expected);
        let (writes, _) = feed(&mut m, Input::Response { from: 2, response: late }, 2);
        assert_eq!(writes.truncate_to, None, "an answer counts once");
    }
}

#[test]
fn an_observer_never_stands_for_election() {
    let mut m = fresh(&[2, 3]);
    let _ = feed(&mut m, Input::Start, 0);
    for _ in 0..100 {
        let at = m.next_deadline_ms().unwrap();
        let (writes, effects) = feed(&mut m, Input::Tick, at);
        assert!(writes.is_empty());
        assert!(effects.iter().all(|e| matches!(e, Effect::Send { request: Request::Fetch(_), .. })));
    }
    assert_eq!(m.role(), RoleName::Observer);
}
