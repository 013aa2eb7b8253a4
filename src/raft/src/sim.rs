//! A small seeded simulation: three voters and an observer, a bad network, crashes that lose what
//! wasn't synced. After every step: one leader an epoch, nothing committed is ever lost.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use callboard_protocol::Uuid;

use crate::*;

const VOTERS: [i32; 3] = [1, 2, 3];
const OBSERVER: i32 = 4;

/// One record: the epoch it was written in, and its value.
type Entry = (i32, u64);

#[derive(Debug)]
enum Event {
    Deliver { to: i32, from: i32, request: Request },
    Answer { to: i32, from: i32, response: Response<Fetched> },
    Synced { node: i32, life: u64, end_offset: i64, generation: u64 },
    Wake { node: i32, life: u64 },
    Restart { node: i32 },
}

struct Node {
    machine: Option<Machine>,
    life: u64,
    /// When it is woken next, and whether a sync is under way.
    wake_at: i64,
    syncing: bool,
    /// The disk: what is written, how much of it is synced, and quorum-state.
    log: Vec<Entry>,
    synced: usize,
    state: ElectionState,
    /// Requests to answer: id to asker.
    asked: BTreeMap<u64, i32>,
}

struct Sim {
    random: u64,
    now_ms: i64,
    sequence: u64,
    events: BTreeMap<(i64, u64), Event>,
    nodes: BTreeMap<i32, Node>,
    leaders: BTreeMap<i32, i32>,
    committed: Vec<Entry>,
    next_value: u64,
    calm: bool,
    /// Nodes that can't be reached for now.
    cut_off: Option<i32>,
}

fn key(id: i32) -> ReplicaKey {
    ReplicaKey::new(id, Uuid::from_bytes([u8::try_from(id).unwrap(); 16]))
}

fn voter_set() -> VoterSet {
    let voter = |id| Voter { key: key(id), endpoints: vec![], min_kraft_version: 0, max_kraft_version: 1 };
    VoterSet::new(VOTERS.map(voter)).unwrap()
}

fn config(id: i32) -> Config {
    Config {
        local: key(id),
        election_timeout_ms: 1000,
        fetch_timeout_ms: 2000,
        election_backoff_max_ms: 1000,
        request_timeout_ms: 500,
        retry_backoff_ms: 20,
        fetch_max_wait_ms: 500,
    }
}

fn encode(entries: &[Entry]) -> Bytes {
    let mut out = BytesMut::new();
    for (epoch, value) in entries {
        out.put_i32(*epoch);
        out.put_u64(*value);
    }
    out.freeze()
}

fn decode(mut bytes: Bytes) -> Vec<Entry> {
    let mut entries = vec![];
    while bytes.has_remaining() {
        entries.push((bytes.get_i32(), bytes.get_u64()));
    }
    entries
}

impl Sim {
    fn new(seed: u64) -> Self {
        let node = || Node {
            machine: None,
            life: 0,
            wake_at: i64::MAX,
            syncing: false,
            log: vec![],
            synced: 0,
            state: ElectionState::default(),
            asked: BTreeMap::new(),
        };
        let mut sim = Self {
            random: seed,
            now_ms: 0,
            sequence: 0,
            events: BTreeMap::new(),
            nodes: VOTERS.into_iter().chain([OBSERVER]).map(|id| (id, node())).collect(),
            leaders: BTreeMap::new(),
            committed: vec![],
            next_value: 1,
            calm: false,
            cut_off: None,
        };
        for id in VOTERS.into_iter().chain([OBSERVER]) {
            sim.restart(id);
        }
        sim
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn at(&mut self, delay_ms: i64, event: Event) {
        self.sequence += 1;
        self.events.insert((self.now_ms + delay_ms, self.sequence), event);
    }

    /// Sends over the bad network: lost, late or twice.
    fn post(&mut self, from: i32, to: i32, event: impl Fn() -> Event) {
        let cut = self.cut_off.is_some_and(|id| id == from || id == to);
        if !self.calm && (cut || self.draw(100) < 8) {
            return;
        }
        let copies = if !self.calm && self.draw(100) < 5 { 2 } else { 1 };
        for _ in 0..copies {
            let late = if !self.calm && self.draw(100) < 3 { 1500 } else { 15 };
            let delay = 1 + i64::try_from(self.draw(late)).unwrap();
            self.at(delay, event());
        }
    }

    fn restart(&mut self, id: i32) {
        let node = self.nodes.get_mut(&id).unwrap();
        node.life += 1;
        node.wake_at = i64::MAX;
        node.syncing = false;
        let mut epochs: Vec<(i32, i64)> = vec![];
        for (offset, entry) in node.log.iter().enumerate() {
            if epochs.last().is_none_or(|last| last.0 != entry.0) {
                epochs.push((entry.0, offset as i64));
            }
        }
        let log = LogView::new(SnapshotId::default(), epochs, node.log.len() as i64);
        let machine = Machine::new(config(id), voter_set(), VotersOrigin::Bootstrap, node.state, log, 0);
        node.machine = Some(machine);
        self.step(id, Input::Start);
    }

    /// Loses what isn't synced, down to a random point.
    fn crash(&mut self, id: i32) {
        let unsynced = {
            let node = &self.nodes[&id];
            node.log.len() - node.synced
        };
        let kept = self.draw(unsynced as u64 + 1) as usize;
        let node = self.nodes.get_mut(&id).unwrap();
        node.machine = None;
        node.log.truncate(node.synced + kept);
        node.synced = node.log.len();
        node.asked.clear();
        let pause = 50 + i64::try_from(self.draw(3000)).unwrap();
        self.at(pause, Event::Restart { node: id });
    }

    fn step(&mut self, id: i32, input: Input) {
        let (now, random) = (self.now_ms, self.draw(u64::MAX));
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(machine) = &mut node.machine else { return };
        let (writes, sealed) = machine.handle(input, now, random).split();
        let life = node.life;
        if let Some(state) = writes.quorum_state {
            node.state = state;
        }
        if let Some(to) = writes.truncate_to {
            node.log.truncate(to as usize);
            node.synced = node.synced.min(node.log.len());
        }
        match &writes.append {
            Some(AppendWrite::Control { base_offset, epoch, records }) => {
                assert_eq!(*base_offset, node.log.len() as i64);
                node.log.extend(records.iter().map(|_| (*epoch, 0)));
            }
            Some(AppendWrite::Fetched { base_offset, bytes }) => {
                assert_eq!(*base_offset, node.log.len() as i64);
                node.log.extend(decode(bytes.clone()));
            }
            None => {}
        }
        if !writes.is_empty() && !self.calm && self.draw(400) == 0 {
            // Written, and never said.
            return self.crash(id);
        }
        self.sync_and_wake(id, life);
        for effect in sealed.open(writes.done()) {
            self.carry_out(id, effect);
        }
        self.check(id);
    }

    fn sync_and_wake(&mut self, id: i32, life: u64) {
        let machine = self.nodes[&id].machine.as_ref().unwrap();
        let (log, deadline) = (machine.log(), machine.next_deadline_ms());
        assert_eq!(log.end_offset(), self.nodes[&id].log.len() as i64, "node {id} and its machine disagree");
        let (durable, end_offset, generation) =
            (log.durable_end_offset(), log.end_offset(), log.generation());
        let node = self.nodes.get_mut(&id).unwrap();
        let (sync, wake) = (durable < end_offset && !node.syncing, deadline.filter(|at| *at < node.wake_at));
        node.syncing |= sync;
        if let Some(at) = wake {
            node.wake_at = at;
            let delay = (at - self.now_ms).max(1);
            self.at(delay, Event::Wake { node: id, life });
        }
        if sync {
            // Some disks are slow at times.
            let slow = if !self.calm && self.draw(10) == 0 { 600 } else { 20 };
            let delay = 1 + i64::try_from(self.draw(slow)).unwrap();
            self.at(delay, Event::Synced { node: id, life, end_offset, generation });
        }
    }

    fn carry_out(&mut self, id: i32, effect: Effect) {
        match effect {
            Effect::Send { to, request } => {
                self.post(id, to, || Event::Deliver { to, from: id, request: request.clone() });
            }
            Effect::Reply { request_id, response } => {
                let Some(to) = self.nodes.get_mut(&id).unwrap().asked.remove(&request_id) else { return };
                let response = self.read(id, response);
                self.post(id, to, || Event::Answer { to, from: id, response: response.clone() });
            }
            Effect::Committed { high_watermark } => self.commit(id, high_watermark as usize),
            Effect::Leader(_) => {}
            Effect::SnapshotRequired { .. } => panic!("no log here starts behind a snapshot"),
        }
    }

    fn read(&self, id: i32, response: Response<LogRange>) -> Response<Fetched> {
        match response {
            Response::Vote(vote) => Response::Vote(vote),
            Response::BeginQuorumEpoch(hint, error) => Response::BeginQuorumEpoch(hint, error),
            Response::EndQuorumEpoch(hint, error) => Response::EndQuorumEpoch(hint, error),
            Response::Fetch(fetch) => {
                let FetchResponse { hint, fetch_id, high_watermark, outcome } = fetch;
                let outcome = match outcome {
                    FetchOutcome::Records(range) => {
                        let from = range.from_offset as usize;
                        let entries = &self.nodes[&id].log[from..range.to_offset as usize];
                        let batch = |(i, e): (usize, &Entry)| BatchInfo {
                            base_offset: (from + i) as i64,
                            next_offset: (from + i + 1) as i64,
                            epoch: e.0,
                        };
                        let batches = entries.iter().enumerate().map(batch).collect();
                        FetchOutcome::Records(Fetched { batches, bytes: encode(entries) })
                    }
                    FetchOutcome::Diverging(end) => FetchOutcome::Diverging(end),
                    FetchOutcome::Snapshot(snapshot) => FetchOutcome::Snapshot(snapshot),
                    FetchOutcome::Error(error) => FetchOutcome::Error(error),
                };
                Response::Fetch(FetchResponse { hint, fetch_id, high_watermark, outcome })
            }
        }
    }

    fn commit(&mut self, id: i32, high_watermark: usize) {
        let node = &self.nodes[&id];
        let leads = node.machine.as_ref().is_some_and(|m| m.role() == RoleName::Leader);
        assert!(leads || node.synced >= high_watermark, "node {id} commits what it hasn't synced");
        let both = high_watermark.min(self.committed.len());
        assert_eq!(node.log[..both], self.committed[..both], "node {id} commits something else");
        self.committed.extend_from_slice(&node.log[both..high_watermark]);
        // It must be synced on a majority of voters, or a crash could undo it.
        let holders = VOTERS
            .iter()
            .filter(|v| {
                let node = &self.nodes[v];
                node.synced >= high_watermark
                    && node.log[..high_watermark] == self.committed[..high_watermark]
            })
            .count();
        assert!(holders >= 2, "offset {high_watermark} committed on {holders} voters");
    }

    fn check(&mut self, id: i32) {
        let Some(machine) = &self.nodes[&id].machine else { return };
        if machine.role() == RoleName::Leader {
            let epoch = machine.leader().epoch;
            let first = *self.leaders.entry(epoch).or_insert(id);
            assert_eq!(first, id, "two leaders in epoch {epoch}");
            assert!(VOTERS.contains(&id), "an observer leads");
        }
        assert_eq!(self.nodes[&id].state, machine.election, "node {id}'s election isn't on disk");
    }

    fn propose(&mut self) {
        for id in VOTERS {
            let value = self.next_value;
            let node = self.nodes.get_mut(&id).unwrap();
            let Some(machine) = &node.machine else { continue };
            let epoch = machine.leader().epoch;
            if machine.append_position(epoch).is_ok() {
                node.log.push((epoch, value));
                let end_offset = node.log.len() as i64;
                self.next_value += 1;
                self.step(id, Input::Appended { end_offset });
            }
        }
    }

    fn dispatch(&mut self, event: Event) {
        let alive = |sim: &Self, node: i32, life: u64| {
            sim.nodes[&node].life == life && sim.nodes[&node].machine.is_some()
        };
        match event {
            Event::Deliver { to, from, request } => {
                self.sequence += 1;
                let request_id = self.sequence;
                let node = self.nodes.get_mut(&to).unwrap();
                if node.machine.is_some() {
                    node.asked.insert(request_id, from);
                    self.step(to, Input::Request { request_id, request });
                }
            }
            Event::Answer { to, from, response } => self.step(to, Input::Response { from, response }),
            Event::Synced { node, life, end_offset, generation } if alive(self, node, life) => {
                let target = self.nodes.get_mut(&node).unwrap();
                target.syncing = false;
                if target.machine.as_ref().unwrap().log().generation() == generation {
                    target.synced = target.synced.max(end_offset as usize);
                }
                self.step(node, Input::Durable { end_offset, generation });
            }
            Event::Wake { node, life } if alive(self, node, life) => {
                self.nodes.get_mut(&node).unwrap().wake_at = i64::MAX;
                self.step(node, Input::Tick);
            }
            Event::Restart { node } if self.nodes[&node].machine.is_none() => self.restart(node),
            _ => {}
        }
    }

    fn run(&mut self, until_ms: i64) {
        let mut next_fault = self.now_ms;
        let mut next_proposal = self.now_ms;
        while self.now_ms < until_ms {
            let Some(((at, _), event)) = self.events.pop_first() else { break };
            self.now_ms = at;
            self.dispatch(event);
            if self.now_ms >= next_proposal {
                next_proposal = self.now_ms + 25;
                self.propose();
            }
            if !self.calm && self.now_ms >= next_fault {
                next_fault = self.now_ms + 500;
                self.fault();
            }
        }
    }

    fn fault(&mut self) {
        let id = 1 + i32::try_from(self.draw(4)).unwrap();
        match self.draw(8) {
            0 if self.nodes[&id].machine.is_some() => self.crash(id),
            1 => self.cut_off = Some(id),
            2 => self.cut_off = None,
            3 => self.step(id, Input::Resign),
            _ => {}
        }
    }

    /// Heals everything: the cluster must agree again and go on.
    fn settle(&mut self) {
        self.calm = true;
        self.cut_off = None;
        let before = self.committed.len();
        self.run(self.now_ms + 15_000);
        assert!(self.committed.len() > before + 100, "no progress after healing: {before}");
        for (id, node) in &self.nodes {
            let high_watermark = node.machine.as_ref().unwrap().high_watermark() as usize;
            assert!(high_watermark + 200 > self.committed.len(), "node {id} lags at {high_watermark}");
        }
    }
}

fn run_seed(seed: u64) -> (usize, usize) {
    let mut sim = Sim::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    sim.run(60_000);
    sim.settle();
    (sim.committed.len(), sim.leaders.len())
}

#[test]
fn nothing_committed_is_lost_and_each_epoch_has_one_leader() {
    let (mut committed, mut leaders) = (0, 0);
    for seed in 0..30 {
        let outcome = std::panic::catch_unwind(|| run_seed(seed));
        let (c, l) = outcome.unwrap_or_else(|_| panic!("seed {seed} failed: run_seed({seed})"));
        committed += c;
        leaders += l;
    }
    // The faults must bite, and the cluster must work nevertheless.
    assert!(leaders > 150, "only {leaders} elections in 30 runs");
    assert!(committed > 30_000, "only {committed} records in 30 runs");
}

#[test]
fn one_seed_gives_one_trace() {
    assert_eq!(run_seed(7), run_seed(7));
}
