//! Purgatories: where requests wait for a partition to get somewhere.
//!
//! - Who sends: request handlers (`Wait`), partitions (`Changed`, only while somebody waits for them).
//! - Owns: the waiting requests of one kind on one shard, and their deadlines.
//! - Runs: one actor for each kind and shard, so that a handler waits on its own shard.
//! - Mailbox: `Wait` is admitted up to the bound; of `Changed` at most one per partition is outstanding.
//! - Timers: one, at the next deadline of the wheel.
//! - Restart: empty. Those who waited are told `Crashed`.
//! - To a client, its crash means: a fetch is answered at once with what there is, a produce or delete-records
//!   request by what the partition has reached by then.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use callboard_protocol::ErrorCode;
use tokio::time::Instant;

use super::view::{PartitionHandle, Shared};
use super::wheel::Wheel;
use crate::supervision::{
    Actor, ActorRef, Ask, Context, Handler, Message, Placement, ReplyTo, Shards, Spec, SupervisorRef,
    TimerHandle,
};

/// What requests wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A high watermark (acks=all).
    Produce = 0,
    /// Bytes to read.
    Fetch = 1,
    /// A low watermark.
    DeleteRecords = 2,
}

impl Kind {
    pub(super) const COUNT: usize = 3;
    const ALL: [Self; Self::COUNT] = [Self::Produce, Self::Fetch, Self::DeleteRecords];

    const fn name(self) -> &'static str {
        match self {
            Self::Produce => "produce",
            Self::Fetch => "fetch",
            Self::DeleteRecords => "delete-records",
        }
    }
}

/// Which end of the log a reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// All that is replicated.
    HighWatermark,
    /// All that is replicated and of no open transaction.
    LastStable,
    /// All there is: a follower.
    LogEnd,
}

/// What one partition must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// Bytes to read from an offset on; they count toward the request's `min_bytes`.
    Bytes {
        /// Where the reader stands.
        fetch_offset: i64,
        /// The most it takes.
        max_bytes: u32,
        /// What it may see.
        isolation: Isolation,
        /// The leader epoch it knows; -1 if it doesn't say.
        current_leader_epoch: i32,
    },
    /// A high watermark, in the epoch in which the records were appended.
    HighWatermark {
        /// What it must reach.
        offset: i64,
        /// The epoch.
        leader_epoch: i32,
    },
    /// A low watermark on all replicas.
    LowWatermark {
        /// What it must reach.
        offset: i64,
    },
}

/// How far a partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// So many bytes can be read.
    Bytes(u64),
    /// There.
    Reached,
    NotYet,
    /// It will never get there: the client is to be told.
    Failed(ErrorCode),
}

impl Goal {
    fn progress(&self, shared: &Shared) -> Progress {
        match *self {
            Self::Bytes { fetch_offset, max_bytes, isolation, current_leader_epoch } => {
                readable(shared, fetch_offset, max_bytes, isolation, current_leader_epoch)
            }
            Self::HighWatermark { offset, leader_epoch } => match shared.view.as_leader(leader_epoch) {
                Err(ErrorCode::KafkaStorageError) => Progress::Failed(ErrorCode::KafkaStorageError),
                Err(_) => Progress::Failed(ErrorCode::NotLeaderOrFollower),
                Ok(_) if shared.view.high_watermark() >= offset => Progress::Reached,
                Ok(_) => Progress::NotYet,
            },
            Self::LowWatermark { offset } => match shared.view.as_leader(-1) {
                Err(error) => Progress::Failed(error),
                Ok(reader) if reader.log_start_offset() >= offset => Progress::Reached,
                Ok(_) => Progress::NotYet,
            },
        }
    }
}

fn readable(shared: &Shared, from: i64, max_bytes: u32, isolation: Isolation, epoch: i32) -> Progress {
    let reader = match shared.view.as_leader(epoch) {
        Ok(reader) => reader,
        Err(error) => return Progress::Failed(error),
    };
    let offsets = shared.view.offsets_of(&reader);
    let limit = match isolation {
        Isolation::HighWatermark => offsets.high_watermark,
        Isolation::LastStable => offsets.last_stable,
        Isolation::LogEnd => offsets.log_end,
    };
    if from >= limit && from <= offsets.log_end && from >= offsets.log_start {
        return Progress::Bytes(0);
    }
    match reader.read(from, max_bytes, limit, true) {
        Ok(region) => Progress::Bytes(u64::from(region.size_bytes.min(max_bytes))),
        // The handler reads again and answers with the error itself.
        Err(_) => Progress::Failed(ErrorCode::OffsetOutOfRange),
    }
}

/// Waits until all partitions have reached their goals: those of `Bytes` together `min_bytes`. An error of any
/// of a fetch's partitions ends the wait. Answers what became of each, in order.
#[derive(Debug)]
pub struct Wait {
    /// The partitions, and what each must reach.
    pub goals: Vec<(PartitionHandle, Goal)>,
    /// What a fetch wants at least.
    pub min_bytes: u64,
    /// How long to wait.
    pub timeout: Duration,
}

impl Message for Wait {
    type Reply = Vec<Result<(), ErrorCode>>;
    const NAME: &'static str = "Wait";
}

/// A partition that somebody waits for has changed.
#[derive(Debug)]
pub(super) struct Changed(pub Arc<Shared>);

impl Message for Changed {
    type Reply = ();
    const NAME: &'static str = "Changed";
    fn is_control(&self) -> bool {
        true
    }
}

struct Part {
    shared: Arc<Shared>,
    goal: Goal,
    bytes: u64,
    outcome: Option<Result<(), ErrorCode>>,
}

struct Waiting {
    parts: Vec<Part>,
    min_bytes: u64,
    bytes: u64,
    undecided: usize,
    reply: ReplyTo<Vec<Result<(), ErrorCode>>>,
}

/// The requests of one kind that wait on one shard.
pub struct Purgatory {
    kind: Kind,
    shard: usize,
    next_id: u64,
    waiting: HashMap<u64, Waiting>,
    /// Who waits for a partition, by its serial number, and as which of its parts.
    by_partition: HashMap<u64, Vec<(u64, usize)>>,
    wheel: Wheel,
    origin: Instant,
    alarm: Option<(u64, TimerHandle)>,
}

impl std::fmt::Debug for Purgatory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Purgatory").field("kind", &self.kind).field("waiting", &self.waiting.len()).finish()
    }
}

impl Actor for Purgatory {}

impl Purgatory {
    fn new(kind: Kind, shard: usize) -> Self {
        Self {
            kind,
            shard,
            next_id: 0,
            waiting: HashMap::new(),
            by_partition: HashMap::new(),
            wheel: Wheel::new(0),
            origin: Instant::now(),
            alarm: None,
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn set_interest(&self, shared: &Shared, wanted: bool) {
        if let Some(interest) = shared.interest(self.kind, self.shard) {
            interest.wanted.store(wanted, Ordering::SeqCst);
        }
    }

    /// Sees how far one part is; says whether the request can be answered.
    fn look(waiting: &mut Waiting, index: usize) -> bool {
        let Some(part) = waiting.parts.get_mut(index) else { return false };
        if part.outcome.is_some() {
            return false;
        }
        match part.goal.progress(&part.shared) {
            Progress::NotYet => false,
            Progress::Bytes(bytes) => {
                waiting.bytes = waiting.bytes - part.bytes + bytes;
                part.bytes = bytes;
                waiting.bytes >= waiting.min_bytes
            }
            Progress::Reached => {
                part.outcome = Some(Ok(()));
                waiting.undecided -= 1;
                waiting.undecided == 0
            }
            Progress::Failed(error) => {
                part.outcome = Some(Err(error));
                waiting.undecided -= 1;
                waiting.undecided == 0 || matches!(part.goal, Goal::Bytes { .. })
            }
        }
    }

    fn finish(&mut self, id: u64) {
        let Some(waiting) = self.waiting.remove(&id) else { return };
        for part in &waiting.parts {
            if let Some(list) = self.by_partition.get_mut(&part.shared.serial) {
                list.retain(|(waiting, _)| *waiting != id);
                if list.is_empty() {
                    self.by_partition.remove(&part.shared.serial);
                    self.set_interest(&part.shared, false);
                }
            }
        }
        answer(waiting);
    }

    fn set_alarm(&mut self, ctx: &mut Context<Self>) {
        let Some(next) = self.wheel.next_ms() else { return };
        if let Some((at, timer)) = self.alarm {
            if at <= next {
                return;
            }
            ctx.cancel(timer);
        }
        let delay = Duration::from_millis(next.saturating_sub(self.now_ms()));
        let timer = ctx.after("deadline", delay, Self::deadline);
        self.alarm = Some((next, timer));
    }

    fn deadline(&mut self, ctx: &mut Context<Self>) {
        self.alarm = None;
        let mut due = Vec::new();
        self.wheel.advance(self.now_ms(), &mut due);
        for id in due {
            self.finish(id);
        }
        self.set_alarm(ctx);
    }
}

fn answer(waiting: Waiting) {
    let outcome = |part: &Part| match (part.outcome, part.goal) {
        (Some(outcome), _) => outcome,
        (None, Goal::Bytes { .. }) => Ok(()),
        (None, Goal::HighWatermark { .. } | Goal::LowWatermark { .. }) => Err(ErrorCode::RequestTimedOut),
    };
    waiting.reply.send(waiting.parts.iter().map(outcome).collect());
}

impl Handler<Wait> for Purgatory {
    fn handle(&mut self, wait: Wait, reply: ReplyTo<Vec<Result<(), ErrorCode>>>, ctx: &mut Context<Self>) {
        let part = |(handle, goal): (PartitionHandle, Goal)| Part {
            shared: Arc::clone(handle.shared()),
            goal,
            bytes: 0,
            outcome: None,
        };
        let parts: Vec<Part> = wait.goals.into_iter().map(part).collect();
        let undecided = parts.len();
        let mut waiting = Waiting { parts, min_bytes: wait.min_bytes, bytes: 0, undecided, reply };
        // Interest first, then a look: whatever changes after the look is told.
        for part in &waiting.parts {
            self.set_interest(&part.shared, true);
        }
        fence(Ordering::SeqCst);
        let mut done = undecided == 0;
        for index in 0..undecided {
            done |= Self::look(&mut waiting, index);
        }
        if done || wait.timeout.is_zero() {
            for part in &waiting.parts {
                if !self.by_partition.contains_key(&part.shared.serial) {
                    self.set_interest(&part.shared, false);
                }
            }
            return answer(waiting);
        }
        let id = self.next_id;
        self.next_id += 1;
        for (index, part) in waiting.parts.iter().enumerate() {
            self.by_partition.entry(part.shared.serial).or_default().push((id, index));
        }
        self.waiting.insert(id, waiting);
        let timeout_ms = u64::try_from(wait.timeout.as_millis()).unwrap_or(u64::MAX);
        self.wheel.add(self.now_ms().saturating_add(timeout_ms), id);
        self.set_alarm(ctx);
    }
}

impl Handler<Changed> for Purgatory {
    fn handle(&mut self, Changed(shared): Changed, _: ReplyTo<()>, _: &mut Context<Self>) {
        if let Some(interest) = shared.interest(self.kind, self.shard) {
            interest.told.store(false, Ordering::SeqCst);
        }
        let Some(list) = self.by_partition.get(&shared.serial) else {
            // Left over from before a restart of this actor.
            return self.set_interest(&shared, false);
        };
        let mut done = Vec::new();
        for (id, index) in list {
            if self.waiting.get_mut(id).is_some_and(|waiting| Self::look(waiting, *index)) {
                done.push(*id);
            }
        }
        for id in done {
            self.finish(id);
        }
    }
}

/// All purgatories of a node.
#[derive(Debug, Clone)]
pub struct Purgatories {
    /// By kind, then shard.
    actors: Arc<Vec<ActorRef<Purgatory>>>,
    shards: usize,
}

impl Purgatories {
    /// Starts one purgatory for each kind and shard.
    pub fn start(parent: &SupervisorRef, shards: &Shards) -> Self {
        let mut actors = Vec::new();
        for kind in Kind::ALL {
            for shard in 0..shards.count() {
                let name = format!("purgatory-{}-{shard}", kind.name());
                let spec = Spec::new(name, move || Purgatory::new(kind, shard)).place(Placement::On(shard));
                actors.push(parent.spawn(spec));
            }
        }
        Self { actors: Arc::new(actors), shards: shards.count() }
    }

    fn get(&self, kind: Kind, shard: usize) -> Option<&ActorRef<Purgatory>> {
        self.actors.get(kind as usize * self.shards + shard)
    }

    /// Waits on the caller's shard; see [`Wait`]. `None` only if there are no purgatories at all.
    pub fn wait(&self, kind: Kind, wait: Wait) -> Option<Ask<Vec<Result<(), ErrorCode>>>> {
        let shard = Shards::current().unwrap_or(0);
        self.get(kind, shard).or_else(|| self.get(kind, 0)).map(|purgatory| purgatory.ask(wait))
    }

    /// Tells those who wait for a partition that it has changed.
    pub(super) fn changed(&self, shared: &Arc<Shared>, kinds: &[Kind]) {
        // What was published before is seen by whoever showed interest too late to be told.
        fence(Ordering::SeqCst);
        for kind in kinds {
            for shard in 0..self.shards {
                let Some(interest) = shared.interest(*kind, shard) else { continue };
                if interest.wanted.load(Ordering::SeqCst)
                    && !interest.told.swap(true, Ordering::SeqCst)
                    && let Some(purgatory) = self.get(*kind, shard)
                {
                    purgatory.tell(Changed(Arc::clone(shared)));
                }
            }
        }
    }

    /// Tells all who wait for a partition, whatever for.
    pub(super) fn changed_wholly(&self, shared: &Arc<Shared>) {
        self.changed(shared, &Kind::ALL);
    }
}
