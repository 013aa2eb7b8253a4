//! A shard with its runtime and a log in memory, to be talked to.

use std::collections::BTreeMap;

use bytes::Bytes;
use callboard_coordinator::runtime::{Batch, Entry, Machine, Outcome, Producer, Runtime, Settled, Ticket};
use callboard_coordinator::transaction::{
    AddPartitions, Decision, Effect, End, InitProducer, List, Listed, Markers, Reply, Request, State,
    TopicPartition, Transaction, TransactionRecord, TransactionShard, Verify,
};
use callboard_coordinator::{Circumstances, Cluster, Settings, TopicView};
use callboard_protocol::{ByteString, ErrorCode, Uuid};

/// A cluster with nothing in it but the level of transaction.version.
pub struct Level(pub i16);

impl Cluster for Level {
    fn metadata_offset(&self) -> i64 {
        0
    }
    fn topic(&self, _: &str) -> Option<TopicView> {
        None
    }
    fn topic_by_id(&self, _: Uuid) -> Option<TopicView> {
        None
    }
    fn topics(&self) -> Vec<TopicView> {
        Vec::new()
    }
    fn racks(&self, _: Uuid, _: i32) -> Vec<ByteString> {
        Vec::new()
    }
    fn group_config(&self, _: &str, _: &str) -> Option<ByteString> {
        None
    }
    fn feature_level(&self, name: &str) -> i16 {
        if name == "transaction.version" { self.0 } else { 0 }
    }
}

/// A record's key and value.
pub type Stored = (Bytes, Option<Bytes>);

/// The shard, its log, and everything that has come out of it.
pub struct Desk {
    pub runtime: Runtime<TransactionShard>,
    /// Committed records.
    pub log: Vec<Stored>,
    pub now_ms: i64,
    pub settings: Settings,
    pub level: i16,
    pub replies: BTreeMap<Ticket, Reply>,
    pub failed: Vec<Ticket>,
    pub effects: Vec<Effect>,
    pub next_producer_id: i64,
}

pub fn partition(topic: &'static str, partition: i32) -> TopicPartition {
    TopicPartition { topic: ByteString::from_static(topic), partition }
}

pub const fn producer(id: i64, epoch: i16) -> Producer {
    Producer { id, epoch }
}

impl Desk {
    pub fn new() -> Self {
        Self::over(Vec::new()).load()
    }

    /// A shard whose log has this transaction for id `a`.
    pub fn with(transaction: &Transaction) -> Self {
        let record = TransactionRecord::of(&ByteString::from_static("a"), transaction, 2);
        let record = record.encode().expect("it is short");
        Self::over(vec![(record.key, record.value)]).load()
    }

    /// A shard that has read a log, and has not begun its work.
    pub fn over(log: Vec<Stored>) -> Self {
        let mut machine = TransactionShard::default();
        for (key, value) in &log {
            let record = TransactionShard::decode(key, value.as_ref()).expect("a record");
            machine.replay(&Entry::Record(record, None)).expect("it can be");
        }
        let end = i64::try_from(log.len()).expect("small");
        Self {
            runtime: Runtime::new(machine, end, end),
            log,
            now_ms: 1_000_000,
            settings: Settings::default(),
            level: 2,
            replies: BTreeMap::new(),
            failed: Vec::new(),
            effects: Vec::new(),
            next_producer_id: 1_000,
        }
    }

    pub fn load(mut self) -> Self {
        self.input(TransactionShard::loaded);
        self
    }

    /// The same log, read by a new coordinator.
    pub fn fail_over(&self) -> Self {
        let mut next = Self::over(self.log.clone());
        (next.now_ms, next.level) = (self.now_ms, self.level);
        (next.settings, next.next_producer_id) = (self.settings.clone(), self.next_producer_id);
        next.load()
    }

    fn take(&mut self, settled: Settled<TransactionShard>) {
        self.replies.extend(settled.replies);
        self.failed.extend(settled.failed);
        self.effects.extend(settled.effects);
    }

    /// Runs what is no request, without appending what comes of it.
    pub fn begin_input(
        &mut self,
        work: impl FnOnce(&mut TransactionShard, &Circumstances<'_>) -> Outcome<TransactionShard>,
    ) {
        let (now_ms, settings, level) = (self.now_ms, self.settings.clone(), Level(self.level));
        let cx = Circumstances {
            now_ms,
            // The two clocks are not the same one.
            monotonic_ms: now_ms - 999_000,
            random: &mut || 0,
            settings: &settings,
            cluster: &level,
        };
        let settled = self.runtime.input(|machine| work(machine, &cx));
        self.take(settled);
    }

    pub fn input(
        &mut self,
        work: impl FnOnce(&mut TransactionShard, &Circumstances<'_>) -> Outcome<TransactionShard>,
    ) {
        self.begin_input(work);
        self.commit();
    }

    /// Runs a request without appending what comes of it.
    pub fn begin(&mut self, request: Request) -> Ticket {
        let (now_ms, settings, level) = (self.now_ms, self.settings.clone(), Level(self.level));
        let cx = Circumstances {
            now_ms,
            monotonic_ms: now_ms - 999_000,
            random: &mut || 0,
            settings: &settings,
            cluster: &level,
        };
        let (ticket, settled) = self.runtime.request(|machine, ticket| machine.handle(ticket, request, &cx));
        self.take(settled);
        ticket
    }

    /// Appends and commits all there is.
    pub fn commit(&mut self) {
        while let Some(batch) = self.runtime.next_batch(1 << 20) {
            self.append(batch);
        }
    }

    pub fn append(&mut self, batch: Batch) {
        self.log.extend(batch.records.into_iter().map(|record| (record.key, record.value)));
        let end = i64::try_from(self.log.len()).expect("small");
        let mut settled = self.runtime.appended(end);
        settled.extend(self.runtime.advance(end));
        self.take(settled);
    }

    pub fn refuse_append(&mut self) {
        assert!(self.runtime.next_batch(1 << 20).is_some(), "there is something to append");
        let settled = self.runtime.append_failed();
        self.take(settled);
    }

    /// Answers requests for producer ids.
    pub fn give_ids(&mut self) {
        let wanted: Vec<Ticket> = self
            .effects
            .extract_if(.., |effect| matches!(effect, Effect::NextProducerId(_)))
            .filter_map(|effect| match effect {
                Effect::NextProducerId(ticket) => Some(ticket),
                Effect::WriteMarkers(_) => None,
            })
            .collect();
        for ticket in wanted {
            let id = self.next_producer_id;
            self.next_producer_id += 1;
            self.input(|shard, cx| shard.producer_id(ticket, Ok(id), cx));
        }
    }

    /// Runs a request to its end; `None` if it still waits.
    pub fn ask(&mut self, request: Request) -> Option<Reply> {
        let ticket = self.begin(request);
        self.commit();
        self.give_ids();
        self.replies.remove(&ticket)
    }

    pub fn init_as(&mut self, id: &'static str, present: Option<Producer>) -> Result<Producer, ErrorCode> {
        let transactional_id = ByteString::from_static(id);
        let request = InitProducer { transactional_id, timeout_ms: 60_000, present };
        match self.ask(Request::Init(request)) {
            Some(Reply::Producer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub fn init(&mut self, id: &'static str) -> Result<Producer, ErrorCode> {
        self.init_as(id, None)
    }

    pub fn add(
        &mut self,
        id: &'static str,
        producer: Producer,
        partitions: &[TopicPartition],
    ) -> Result<(), ErrorCode> {
        self.add_by(id, producer, partitions, 0)
    }

    pub fn add_by(
        &mut self,
        id: &'static str,
        producer: Producer,
        partitions: &[TopicPartition],
        client_version: i16,
    ) -> Result<(), ErrorCode> {
        match self.ask(Request::Add(adding(id, producer, partitions, client_version, 0))) {
            Some(Reply::Added(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub fn verify(
        &mut self,
        id: &'static str,
        producer: Producer,
        partitions: &[TopicPartition],
    ) -> Result<Vec<bool>, ErrorCode> {
        let transactional_id = ByteString::from_static(id);
        match self.ask(Request::Verify(Verify {
            transactional_id,
            producer,
            partitions: partitions.to_vec(),
        })) {
            Some(Reply::Verified(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    pub fn end_by(
        &mut self,
        id: &'static str,
        producer: Producer,
        decision: Decision,
        client_version: i16,
    ) -> Result<Producer, ErrorCode> {
        match self.ask(ending(id, producer, decision, client_version)) {
            Some(Reply::Producer(answer)) => answer,
            other => panic!("{other:?}"),
        }
    }

    /// EndTxn of the former protocol.
    pub fn end(&mut self, id: &'static str, producer: Producer, decision: Decision) -> Result<(), ErrorCode> {
        self.end_by(id, producer, decision, 0).map(drop)
    }

    pub fn list(&mut self, request: List) -> Vec<Listed> {
        match self.ask(Request::List(request)) {
            Some(Reply::Listed(listed)) => listed,
            other => panic!("{other:?}"),
        }
    }

    /// Takes the markers that wait to be written.
    pub fn markers(&mut self) -> Vec<Markers> {
        let markers = self.effects.extract_if(.., |effect| matches!(effect, Effect::WriteMarkers(_)));
        markers
            .filter_map(|effect| match effect {
                Effect::WriteMarkers(markers) => Some(markers),
                Effect::NextProducerId(_) => None,
            })
            .collect()
    }

    pub fn marked(&mut self, markers: &Markers) {
        self.input(|shard, cx| {
            shard.marked(&markers.transactional_id, markers.marking, &markers.partitions, cx)
        });
    }

    /// Writes all markers that wait.
    pub fn mark(&mut self) {
        for markers in self.markers() {
            self.marked(&markers);
        }
    }

    /// Lets time pass, and does what is due at its end.
    pub fn pass_ms(&mut self, ms: i64) {
        self.now_ms += ms;
        let due = self.runtime.machine().next_deadline_ms();
        if due.is_some_and(|due| due <= self.now_ms - 999_000) {
            self.input(TransactionShard::on_time);
        }
    }

    pub fn transaction(&self, id: &str) -> Transaction {
        Transaction::clone(self.runtime.machine().transaction(id).expect("the id is known"))
    }

    pub fn state(&self, id: &str) -> State {
        self.transaction(id).state
    }

    /// What the last record says.
    pub fn last_record(&self) -> TransactionRecord {
        let (key, value) = self.log.last().expect("a record");
        TransactionRecord::decode(key, value.as_ref()).expect("a record")
    }
}

/// A producer with one epoch left.
pub fn nearly_used_up() -> Transaction {
    Transaction {
        producer: producer(900, i16::MAX - 1),
        previous_producer_id: 900,
        next_producer_id: -1,
        last_epoch: -1,
        timeout_ms: 60_000,
        state: State::Empty,
        partitions: Default::default(),
        started_ms: -1,
        updated_ms: 1_000_000,
        client_version: 0,
        marking: 0,
    }
}

pub fn adding(
    id: &'static str,
    producer: Producer,
    partitions: &[TopicPartition],
    client_version: i16,
    patience_ms: i64,
) -> AddPartitions {
    AddPartitions {
        transactional_id: ByteString::from_static(id),
        producer,
        partitions: partitions.to_vec(),
        client_version,
        patience_ms,
    }
}

pub fn ending(id: &'static str, producer: Producer, decision: Decision, client_version: i16) -> Request {
    Request::End(End { transactional_id: ByteString::from_static(id), producer, decision, client_version })
}
