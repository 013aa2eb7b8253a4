//! The coordinator, its log, the time, and all that goes wrong.

use std::collections::{BTreeMap, BTreeSet};

use callboard_coordinator::group::{Caller, Group, GroupRecord, GroupShard, Reply, classic};
use callboard_coordinator::runtime::{Coordinator, Entry, Machine, Outcome, Runtime, Settled, Ticket};
use callboard_coordinator::{Circumstances, Cluster, Settings, TopicView};
use callboard_protocol::{ByteString, ErrorCode, Uuid};

use super::member::{Member, Wants};

pub const GROUP: &str = "g";
pub const TOPIC: &str = "t";
pub const PARTITIONS: i32 = 6;
/// Members that a run has.
const MEMBERS: usize = 5;
const MAX_BATCH_BYTES: usize = 2_000;

/// splitmix64: small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct NoCluster;

impl Cluster for NoCluster {
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
}

pub struct World {
    random: Random,
    now_ms: i64,
    settings: Settings,
    /// What is appended, batch by batch; all of it is replicated up to `high_watermark`.
    log: Vec<GroupRecord>,
    high_watermark: usize,
    runtime: Runtime<GroupShard>,
    /// The batch that the log has not answered for.
    in_flight: Option<Vec<GroupRecord>>,
    members: Vec<Member>,
    asked: BTreeMap<Ticket, usize>,
    /// The highest offset that was acknowledged, by partition.
    acknowledged: BTreeMap<i32, i64>,
    /// Who was given a partition in a generation.
    owners: BTreeMap<(i32, i32), ByteString>,
    next_offset: i64,
    /// How many commits were acknowledged.
    commits: u64,
    trace: Vec<String>,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut settings = Settings::default();
        settings.classic.initial_rebalance_delay_ms = if random.one_in(2) { 0 } else { 3_000 };
        let members = (0..MEMBERS).map(|number| Member::new(number, random.one_in(3))).collect();
        Self {
            random,
            now_ms: 1_000_000,
            settings,
            log: Vec::new(),
            high_watermark: 0,
            runtime: Runtime::new(GroupShard::default(), 0, 0),
            in_flight: None,
            members,
            asked: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            owners: BTreeMap::new(),
            next_offset: 0,
            commits: 0,
            trace: Vec::new(),
        }
    }

    pub const fn commits(&self) -> u64 {
        self.commits
    }

    /// What happened, in order.
    pub fn trace(self) -> Vec<String> {
        self.trace
    }

    /// One random step.
    pub fn trouble(&mut self) {
        match self.random.below(40) {
            0..=19 => self.act(true),
            20..=26 => self.log_goes_on(),
            27..=34 => self.time_passes(2_000),
            35 => self.time_passes(20_000),
            36 => self.refuse(),
            37 => self.fail_over(),
            _ => {
                let at = self.random.below(MEMBERS as u64) as usize;
                let back = self.random.one_in(2);
                self.trace.push(format!("member {at} {}", if back { "runs" } else { "crashes" }));
                self.members[at].set_running(back);
            }
        }
    }

    /// No more trouble: everybody runs, and time passes until all is at rest.
    pub fn calm_down(&mut self) {
        self.members.iter_mut().for_each(|member| member.set_running(true));
        for _ in 0..100 {
            for _ in 0..MEMBERS * 2 {
                self.act(false);
                self.log_goes_on();
            }
            self.time_passes(1_500);
        }
    }

    /// One member does what it wants to.
    fn act(&mut self, may_leave: bool) {
        let at = self.random.below(MEMBERS as u64) as usize;
        let choice = self.random.next();
        let Some(wants) = self.members[at].wants(self.now_ms, choice, may_leave, &mut self.next_offset)
        else {
            return;
        };
        let Wants { version, request } = wants;
        let caller =
            Caller { client_id: format!("client-{at}").into(), client_host: "/127.0.0.1".into(), version };
        self.trace.push(format!("{at} asks {request:?}"));
        let Self { runtime, random, settings, now_ms, asked, .. } = self;
        let mut cx = circumstances(*now_ms, settings, random);
        let (ticket, settled) = runtime.request(|machine, ticket| {
            Coordinator::handle(machine, ticket, (caller, request), &mut cx.get())
        });
        drop(cx);
        asked.insert(ticket, at);
        self.settle(settled);
    }

    fn time_passes(&mut self, at_most_ms: u64) {
        self.now_ms += self.random.below(at_most_ms) as i64 + 1;
        let due = self.runtime.machine().next_deadline_ms().is_some_and(|at| at <= self.now_ms);
        if due {
            self.input(|machine, cx| machine.on_time(cx));
        }
    }

    fn input(&mut self, work: impl FnOnce(&mut GroupShard, &mut Circumstances<'_>) -> Outcome<GroupShard>) {
        let Self { runtime, random, settings, now_ms, .. } = self;
        let mut cx = circumstances(*now_ms, settings, random);
        let settled = runtime.input(|machine| work(machine, &mut cx.get()));
        drop(cx);
        self.settle(settled);
    }

    /// The log takes a batch, or tells that it has, or replicates.
    fn log_goes_on(&mut self) {
        match self.in_flight.take() {
            Some(batch) => {
                self.log.extend(batch);
                let settled = self.runtime.appended(self.log.len() as i64);
                self.settle(settled);
            }
            None => match self.runtime.next_batch(MAX_BATCH_BYTES) {
                Some(batch) => {
                    let decode = |record: &callboard_coordinator::runtime::EncodedRecord| {
                        GroupRecord::decode(&record.key, record.value.as_ref()).expect("own record")
                    };
                    self.in_flight = Some(batch.records.iter().map(decode).collect());
                }
                None => {
                    self.high_watermark = self.log.len();
                    let settled = self.runtime.advance(self.high_watermark as i64);
                    self.settle(settled);
                }
            },
        }
    }

    /// The log refuses the batch.
    fn refuse(&mut self) {
        if self.in_flight.take().is_some() {
            self.trace.push("refused".to_owned());
            let settled = self.runtime.append_failed();
            self.settle(settled);
        }
    }

    /// Another coordinator takes over, from what is in the log; a batch on its way may have arrived there.
    pub fn fail_over(&mut self) {
        if let Some(batch) = self.in_flight.take()
            && self.random.one_in(2)
        {
            self.log.extend(batch);
        }
        // What was appended but not replicated may be lost with the leader.
        if self.random.one_in(2) {
            self.log.truncate(self.high_watermark);
        }
        self.trace.push(format!("fails over at {}", self.log.len()));
        self.high_watermark = self.log.len();
        let machine = replayed(&self.log);
        let end = self.log.len() as i64;
        let former = std::mem::replace(&mut self.runtime, Runtime::new(machine, end, end));
        for ticket in former.unload() {
            self.failed(ticket, ErrorCode::NotCoordinator);
        }
        assert!(self.asked.is_empty(), "nobody waits for a coordinator that has gone: {:?}", self.asked);
        self.input(|machine, cx| machine.loaded(cx));
    }

    fn settle(&mut self, settled: Settled<GroupShard>) {
        for (ticket, reply) in settled.replies {
            let Some(at) = self.asked.remove(&ticket) else {
                panic!("{ticket:?} is answered twice: {reply:?}")
            };
            self.trace.push(format!("{at} is told {reply:?}"));
            self.note(at, &reply);
            self.members[at].told(self.now_ms, reply);
        }
        for ticket in settled.failed {
            self.failed(ticket, ErrorCode::CoordinatorNotAvailable);
        }
    }

    fn failed(&mut self, ticket: Ticket, error: ErrorCode) {
        let Some(at) = self.asked.remove(&ticket) else { panic!("{ticket:?} fails twice") };
        self.trace.push(format!("{at} fails with {error:?}"));
        self.members[at].failed();
    }

    /// Notes what must hold from now on.
    fn note(&mut self, at: usize, reply: &Reply) {
        match reply {
            Reply::OffsetCommit(response) => {
                for partition in response.topics.iter().flat_map(|topic| &topic.partitions) {
                    if partition.error_code == 0 {
                        self.commits += 1;
                        let offset = self.members[at].committing(partition.partition_index);
                        let best = self.acknowledged.entry(partition.partition_index).or_default();
                        *best = offset.max(*best);
                    }
                }
            }
            Reply::SyncGroup(response) if response.error_code == 0 => {
                let (id, generation) = self.members[at].identity();
                for partition in response.assignment.iter().map(|byte| i32::from(*byte)) {
                    let owner = self.owners.entry((generation, partition)).or_insert_with(|| id.clone());
                    // A static member that came back takes the place of its former self.
                    let same = *owner == id || self.members[at].is_static();
                    assert!(same, "partition {partition} of generation {generation}: {owner} and {id}");
                }
            }
            _ => {}
        }
    }

    /// What holds after each step.
    pub fn check(&self, when: &str) {
        let shard = self.runtime.machine();
        for (partition, offset) in &self.acknowledged {
            let kept = shard.offsets.get(GROUP, TOPIC, *partition).map_or(-1, |committed| committed.offset);
            assert!(
                kept >= *offset,
                "{when}: partition {partition} has {kept}, but {offset} was acknowledged"
            );
        }
        let waiting: BTreeSet<Ticket> = self.asked.keys().copied().collect();
        assert_eq!(
            waiting.len(),
            self.members.iter().filter(|m| m.is_waiting()).count(),
            "{when}: who waits"
        );
        let Some(group) = shard.classic(GROUP) else { return };
        let joining = group.members().filter(|member| member.joining.is_some()).count();
        assert!(joining <= group.members().len(), "{when}");
        for member in group.members() {
            let syncs = member.syncing.is_some();
            assert!(
                !syncs || group.state() == classic::State::CompletingRebalance,
                "{when}: {} syncs",
                member.id
            );
            let joins = member.joining.is_some();
            assert!(
                !joins || group.state() == classic::State::PreparingRebalance,
                "{when}: {} joins",
                member.id
            );
        }
        if let Some(leader) = group.leader() {
            assert!(group.member(leader).is_some(), "{when}: the leader {leader} is a member");
        }
        // At a moment when nothing is on its way, memory is what the log says.
        if self.in_flight.is_none() && self.runtime.is_settled() {
            self.check_against_log(when);
        }
    }

    fn check_against_log(&self, when: &str) {
        let (live, logged) = (self.runtime.machine(), replayed(&self.log));
        let committed = |shard: &GroupShard| -> Vec<(i32, i64)> {
            (0..PARTITIONS)
                .filter_map(|p| shard.offsets.get(GROUP, TOPIC, p).map(|c| (p, c.offset)))
                .collect()
        };
        assert_eq!(committed(live), committed(&logged), "{when}: offsets");
        assert_eq!(
            live.groups.keys().collect::<Vec<_>>(),
            logged.groups.keys().collect::<Vec<_>>(),
            "{when}: groups"
        );
        for (id, group) in &live.groups {
            let (Group::Classic(live), Some(Group::Classic(logged))) = (group, logged.groups.get(id)) else {
                continue;
            };
            if live.state() != classic::State::Stable {
                continue;
            }
            assert_eq!(live.generation(), logged.generation(), "{when}: generation of {id}");
            let parts = |group: &classic::ClassicGroup| -> Vec<_> {
                group.members().map(|m| (m.id.clone(), m.assignment.clone())).collect()
            };
            assert_eq!(parts(live), parts(logged), "{when}: assignment of {id}");
        }
    }

    /// What holds at rest: all members are in, with all partitions between them.
    pub fn check_settled(&self, when: &str) {
        let Some(group) = self.runtime.machine().classic(GROUP) else { panic!("{when}: there is no group") };
        assert_eq!(group.state(), classic::State::Stable, "{when}");
        assert_eq!(group.members().len(), MEMBERS, "{when}: {:?}", group.members().collect::<Vec<_>>());
        let mut owned: Vec<i32> = self.members.iter().flat_map(|member| member.owned()).collect();
        owned.sort_unstable();
        assert_eq!(owned, (0..PARTITIONS).collect::<Vec<_>>(), "{when}: {:?}", self.members);
    }
}

fn replayed(log: &[GroupRecord]) -> GroupShard {
    let mut shard = GroupShard::default();
    for record in log {
        shard.replay(&Entry::Record(record.clone(), None)).expect("own record");
    }
    shard
}

/// Circumstances that lend themselves.
struct Lent<'a> {
    now_ms: i64,
    settings: &'a Settings,
    random: Box<dyn FnMut() -> u64 + 'a>,
}

fn circumstances<'a>(now_ms: i64, settings: &'a Settings, random: &'a mut Random) -> Lent<'a> {
    Lent { now_ms, settings, random: Box::new(|| random.next()) }
}

impl Lent<'_> {
    fn get(&mut self) -> Circumstances<'_> {
        Circumstances {
            now_ms: self.now_ms,
            monotonic_ms: self.now_ms,
            random: &mut self.random,
            settings: self.settings,
            cluster: &NoCluster,
        }
    }
}
