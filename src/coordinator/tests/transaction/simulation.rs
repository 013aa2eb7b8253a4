//! Clients, zombies, partitions and coordinators that fail, in a random order from a seed.
//!
//! After each run everything is brought to rest, and what readers with read_committed see is compared with what was
//! decided.

use std::collections::{BTreeMap, BTreeSet};

use callboard_coordinator::runtime::Producer;
use callboard_coordinator::transaction::{
    Decision, Effect, InitProducer, Markers, Reply, Request, State, TopicPartition, TransactionRecord,
};
use callboard_protocol::{ByteString, ErrorCode};

use crate::desk::{Desk, adding, ending, partition};

const PARTITIONS: i32 = 4;
const IDS: [&str; 3] = ["a", "b", "c"];
const STEPS: usize = 400;
const RUNS: u64 = 150;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// What one partition's log has: a record with its tag, or a marker.
#[derive(Debug, Clone, Copy)]
enum Entry {
    Record(i64, u64),
    Marker(i64, Decision),
}

/// What a partition knows of a producer.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    epoch: i16,
    coordinator: u32,
    open: bool,
}

/// A partition with the rules of a log.
#[derive(Debug, Default)]
struct Log {
    entries: Vec<Entry>,
    producers: BTreeMap<i64, Known>,
    has_leader: bool,
}

impl Log {
    fn write(&mut self, producer: Producer, tag: u64) -> bool {
        let known = self.producers.entry(producer.id).or_default();
        if producer.epoch < known.epoch {
            return false;
        }
        (known.epoch, known.open) = (producer.epoch, true);
        self.entries.push(Entry::Record(producer.id, tag));
        true
    }

    fn mark(&mut self, markers: &Markers, coordinator: u32) {
        let known = self.producers.entry(markers.producer.id).or_default();
        let (epoch, strict) = (markers.producer.epoch, markers.client_version >= 2);
        let repeated = strict && epoch == known.epoch && !known.open;
        let late = epoch < known.epoch || (strict && epoch == known.epoch && known.open);
        if coordinator < known.coordinator || late || repeated {
            return;
        }
        *known = Known { epoch, coordinator, open: false };
        self.entries.push(Entry::Marker(markers.producer.id, markers.decision));
    }

    /// What a reader with read_committed sees, and whether a transaction holds it back.
    fn read(&self) -> (BTreeSet<u64>, bool) {
        let (mut seen, mut open) = (BTreeSet::new(), BTreeMap::<i64, Vec<u64>>::new());
        for entry in &self.entries {
            match entry {
                Entry::Record(producer, tag) => open.entry(*producer).or_default().push(*tag),
                Entry::Marker(producer, Decision::Commit) => {
                    seen.extend(open.remove(producer).unwrap_or_default())
                }
                Entry::Marker(producer, Decision::Abort) => drop(open.remove(producer)),
            }
        }
        (seen, !open.is_empty())
    }
}

/// A client that holds a transactional id, or believes so.
#[derive(Debug, Clone)]
struct Client {
    id: &'static str,
    version: i16,
    producer: Option<Producer>,
    /// What it has written in its present transaction, acknowledged.
    written: Vec<u64>,
    /// What it wants, and does not know the outcome of.
    ending: Option<Decision>,
}

#[derive(Debug, Default)]
struct Outcomes {
    /// Records of transactions that a client was told are committed.
    committed: Vec<Vec<u64>>,
    /// Records of transactions that a client was told are aborted.
    aborted: Vec<Vec<u64>>,
}

struct World {
    random: Random,
    desk: Desk,
    coordinator: u32,
    logs: Vec<Log>,
    clients: Vec<Client>,
    /// Markers on their way, by the coordinator that sent them.
    flying: Vec<(u32, Markers)>,
    next_tag: u64,
    outcomes: Outcomes,
    failovers: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let logs = (0..PARTITIONS).map(|_| Log { has_leader: true, ..Log::default() }).collect();
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let client = |id, version| Client { id, version, producer: None, written: Vec::new(), ending: None };
        let clients = IDS.iter().map(|id| client(id, if random.one_in(2) { 0 } else { 2 })).collect();
        Self {
            random,
            desk: Desk::new(),
            coordinator: 0,
            logs,
            clients,
            flying: Vec::new(),
            next_tag: 0,
            outcomes: Outcomes::default(),
            failovers: 0,
        }
    }

    fn step(&mut self) {
        match self.random.below(80) {
            0 => self.fail_over(),
            1 => self.take_over(),
            2 => {
                let at = self.random.below(PARTITIONS as u64) as usize;
                self.logs[at].has_leader = false;
            }
            4..=6 => self.logs.iter_mut().for_each(|log| log.has_leader = true),
            3 => {
                let ms = 1 + self.random.below(40_000) as i64;
                self.desk.pass_ms(ms);
            }
            7..=40 => self.deliver(),
            _ => {
                let at = self.random.below(self.clients.len() as u64) as usize;
                self.act(at);
            }
        }
    }

    /// The coordinator is gone, and another reads its log. What it had not written is lost; what it was writing may be
    /// in the log or not.
    fn fail_over(&mut self) {
        self.collect_markers();
        self.failovers += 1;
        self.coordinator += 1;
        self.desk = self.desk.fail_over();
    }

    /// Another process takes the id over; the one before goes on as a zombie.
    fn take_over(&mut self) {
        let at = self.random.below(self.clients.len() as u64) as usize;
        let Client { id, version, .. } = self.clients[at];
        self.clients.push(Client { id, version, producer: None, written: Vec::new(), ending: None });
        if self.clients.len() > 8 {
            self.clients.remove(0);
        }
    }

    fn collect_markers(&mut self) {
        let coordinator = self.coordinator;
        self.flying.extend(self.desk.markers().into_iter().map(|markers| (coordinator, markers)));
    }

    /// One marker arrives at one partition; perhaps twice, and perhaps its news is lost with its coordinator.
    fn deliver(&mut self) {
        self.collect_markers();
        if self.flying.is_empty() {
            return;
        }
        let at = self.random.below(self.flying.len() as u64) as usize;
        let (coordinator, mut markers) = self.flying.swap_remove(at);
        let Some(place) = markers.partitions.pop() else { return };
        let log = &mut self.logs[place.partition as usize];
        if !log.has_leader {
            markers.partitions.insert(0, place);
            self.flying.push((coordinator, markers));
            return;
        }
        log.mark(&markers, coordinator);
        if self.random.one_in(4) {
            log.mark(&markers, coordinator);
        }
        if coordinator == self.coordinator {
            let mut done = markers.clone();
            done.partitions = vec![place];
            self.desk.marked(&done);
            // A marker of the newer protocol may come much later once more.
            if markers.client_version >= 2 && self.random.one_in(4) {
                self.flying.push((coordinator, done));
            }
        }
        if !markers.partitions.is_empty() {
            self.flying.push((coordinator, markers));
        }
    }

    /// A request whose answer may be lost, with the coordinator before or after it has done its work.
    fn ask(&mut self, request: Request) -> Option<Reply> {
        let fate = self.random.below(80);
        if fate == 0 {
            self.fail_over();
            return None;
        }
        if fate == 1 {
            self.desk.begin(request);
            // It is handled, and the log never has it.
            self.fail_over();
            return None;
        }
        let reply = self.desk.ask(request);
        if fate == 2 {
            self.fail_over();
            return None;
        }
        reply
    }

    fn act(&mut self, at: usize) {
        let Some(producer) = self.clients[at].producer else { return self.init(at) };
        if let Some(decision) = self.clients[at].ending {
            return self.end(at, producer, decision);
        }
        match self.random.below(4) {
            0 if !self.clients[at].written.is_empty() => {
                let decision = Decision::from_committed(!self.random.one_in(3));
                self.end(at, producer, decision);
            }
            _ => self.produce(at, producer),
        }
    }

    fn init(&mut self, at: usize) {
        let id = ByteString::from_static(self.clients[at].id);
        let request = InitProducer { transactional_id: id, timeout_ms: 60_000, present: None };
        if let Some(Reply::Producer(Ok(producer))) = self.ask(Request::Init(request)) {
            let client = &mut self.clients[at];
            (client.producer, client.ending) = (Some(producer), None);
            client.written.clear();
        }
    }

    fn produce(&mut self, at: usize, producer: Producer) {
        let Client { id, version, .. } = self.clients[at];
        let number = self.random.below(PARTITIONS as u64) as i32;
        let place: TopicPartition = partition("t", number);
        match self.ask(Request::Add(adding(id, producer, &[place], version, 0))) {
            Some(Reply::Added(Ok(()))) => {}
            Some(Reply::Added(Err(ErrorCode::ConcurrentTransactions))) | None => return,
            Some(Reply::Added(Err(_))) => return self.start_over(at),
            other => panic!("{other:?}"),
        }
        // Between the coordinator's word and the record, much can happen.
        if self.random.one_in(4) {
            match self.random.below(8) {
                0..=4 => self.deliver(),
                5 => self.desk.pass_ms(40_000),
                _ => self.fail_over(),
            }
        }
        let tag = self.next_tag;
        self.next_tag += 1;
        if self.logs[number as usize].has_leader && self.logs[number as usize].write(producer, tag) {
            self.clients[at].written.push(tag);
        }
    }

    fn end(&mut self, at: usize, producer: Producer, decision: Decision) {
        let Client { id, version, .. } = self.clients[at];
        match self.ask(ending(id, producer, decision, version)) {
            Some(Reply::Producer(Ok(next))) => {
                let client = &mut self.clients[at];
                let written = std::mem::take(&mut client.written);
                (client.producer, client.ending) = (Some(next), None);
                match decision {
                    Decision::Commit => self.outcomes.committed.push(written),
                    Decision::Abort => self.outcomes.aborted.push(written),
                }
            }
            // It asks until it knows.
            None | Some(Reply::Producer(Err(ErrorCode::ConcurrentTransactions))) => {
                self.clients[at].ending = Some(decision);
            }
            Some(Reply::Producer(Err(_))) => self.start_over(at),
            other => panic!("{other:?}"),
        }
    }

    fn start_over(&mut self, at: usize) {
        let client = &mut self.clients[at];
        (client.producer, client.ending) = (None, None);
        client.written.clear();
    }

    /// All is brought to rest: leaders are there, open transactions time out, and markers arrive.
    fn settle(&mut self) {
        self.logs.iter_mut().for_each(|log| log.has_leader = true);
        for _ in 0..3 {
            self.desk.pass_ms(70_000);
            self.collect_markers();
            while !self.flying.is_empty() {
                self.deliver();
            }
        }
    }

    /// Whether what readers see is what clients were told, and whether anything hangs.
    fn check(&self) -> Result<(), String> {
        for (id, transaction) in self.desk.runtime.machine().transactions() {
            if transaction.state == State::Ongoing || transaction.state.prepared().is_some() {
                return Err(format!("{id} is {:?}", transaction.state));
            }
        }
        let mut seen = BTreeSet::new();
        for (number, log) in self.logs.iter().enumerate() {
            let (of_log, held_back) = log.read();
            if held_back {
                return Err(format!("partition {number} has an open transaction for ever"));
            }
            seen.extend(of_log);
        }
        for transaction in &self.outcomes.committed {
            if !transaction.iter().all(|tag| seen.contains(tag)) {
                return Err(format!("{transaction:?} is committed, and not all of it is there"));
            }
        }
        for transaction in &self.outcomes.aborted {
            if transaction.iter().any(|tag| seen.contains(tag)) {
                return Err(format!("{transaction:?} is aborted, and some of it is there"));
            }
        }
        let fresh = self.desk.fail_over();
        for (id, transaction) in self.desk.runtime.machine().transactions() {
            let record = |of| TransactionRecord::of(id, of, 2);
            if record(&fresh.transaction(id)) != record(transaction) {
                return Err(format!("{id}: memory is not what the log says"));
            }
        }
        match self.desk.effects.iter().any(|effect| matches!(effect, Effect::NextProducerId(_))) {
            true => Err("somebody waits for a producer id for ever".to_owned()),
            false => Ok(()),
        }
    }

    fn run(seed: u64) -> Self {
        let mut world = Self::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.settle();
        world
    }
}

#[test]
fn whatever_fails_transactions_are_whole_and_nothing_hangs() {
    let (mut committed, mut aborted, mut failovers) = (0, 0, 0);
    for seed in 1..=RUNS {
        let world = World::run(seed);
        world.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        committed += world.outcomes.committed.len();
        aborted += world.outcomes.aborted.len();
        failovers += world.failovers;
    }
    // A run in which nothing happens would prove nothing.
    assert!(committed > 1_000 && aborted > 500 && failovers > 500, "{committed} {aborted} {failovers}");
}

#[test]
fn the_checker_finds_what_is_wrong() {
    let mut turned = World::run(3);
    assert_eq!(turned.check(), Ok(()));
    for entry in turned.logs.iter_mut().flat_map(|log| &mut log.entries) {
        if let Entry::Marker(_, decision) = entry {
            *decision = if decision.is_commit() { Decision::Abort } else { Decision::Commit };
        }
    }
    assert!(turned.check().is_err(), "aborted is there, committed is not");
    let mut without = World::run(3);
    let log = without.logs.iter_mut().find(|log| !log.entries.is_empty()).expect("something was written");
    log.entries.retain(|entry| matches!(entry, Entry::Record(..)));
    assert!(without.check().is_err_and(|error| error.contains("for ever")));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let world = World::run(7);
        (world.desk.log, world.outcomes.committed, world.next_tag)
    };
    assert_eq!(run(), run());
}
