//! The machine: its inputs, its state, and the changes from role to role.

use std::collections::{BTreeMap, BTreeSet};

use crate::messages::{Fetched, LeaderHint, QuorumError, Request, Response};
use crate::output::{AppendWrite, ControlRecord, Effect, Output};
use crate::roles::{Campaign, Following, Leading, Progress, Role, RoleName, Unattached};
use crate::{ElectionState, LogView, RaftError, ReplicaKey, SnapshotId, VoterSet};

/// Times of the quorum, all in milliseconds, named after Kafka's settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// This replica.
    pub local: ReplicaKey,
    /// `controller.quorum.election.timeout.ms`: a random part as long is added.
    pub election_timeout_ms: i64,
    /// `controller.quorum.fetch.timeout.ms`: a follower gives up a silent leader after this, a
    /// leader resigns when a majority was silent half as long again.
    pub fetch_timeout_ms: i64,
    /// `controller.quorum.election.backoff.max.ms`: bound of the random wait after a lost election.
    pub election_backoff_max_ms: i64,
    /// `controller.quorum.request.timeout.ms`: an answer is not waited for longer.
    pub request_timeout_ms: i64,
    /// `controller.quorum.retry.backoff.ms`: pause before asking again.
    pub retry_backoff_ms: i64,
    /// How long a leader holds a fetch that would return nothing.
    pub fetch_max_wait_ms: i64,
}

/// Where the voter set was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VotersOrigin {
    /// `controller.quorum.voters`: `kraft.version` 0, voters are not in the log.
    Static,
    /// The bootstrap snapshot `0-0`: the first leader copies it to the log.
    Bootstrap,
    /// The log, or a later snapshot.
    Log,
}

impl VotersOrigin {
    /// The `kraft.version` this means.
    pub fn kraft_version(self) -> i16 {
        match self {
            Self::Static => 0,
            Self::Bootstrap | Self::Log => 1,
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// The replica starts. First input, once.
    Start,
    /// Time passed; see [`Machine::next_deadline_ms`].
    Tick,
    /// A request came. Its answer is an [`Effect::Reply`] with the same id, now or later.
    Request {
        /// The caller's name for it.
        request_id: u64,
        /// The request.
        request: Request,
    },
    /// An answer to an [`Effect::Send`] came.
    Response {
        /// Who answered.
        from: i32,
        /// The answer.
        response: Response<Fetched>,
    },
    /// The leader's caller has appended records of [`Machine::append_position`]'s epoch.
    Appended {
        /// End of the log now.
        end_offset: i64,
    },
    /// A sync begun when the log ended at `end_offset` is done.
    Durable {
        /// Everything before it is durable.
        end_offset: i64,
        /// [`LogView::generation`] when the sync began.
        generation: u64,
    },
    /// The log now starts behind this snapshot.
    LogStartsAt(SnapshotId),
    /// Give up leadership: the node stops, or its controller failed.
    Resign,
}

/// One replica of the quorum's log.
#[derive(Debug)]
pub struct Machine {
    pub(crate) config: Config,
    pub(crate) voters: VoterSet,
    pub(crate) origin: VotersOrigin,
    pub(crate) election: ElectionState,
    pub(crate) role: Role,
    pub(crate) log: LogView,
    pub(crate) high_watermark: i64,
    pub(crate) next_fetch_id: u64,
    pub(crate) now_ms: i64,
    random: u64,
    pub(crate) out: Output,
}

impl Machine {
    /// A replica as it was left: its `quorum-state` and its log. `high_watermark` is what is
    /// known to be committed, such as the end of the newest snapshot; 0 if nothing is.
    pub fn new(
        config: Config,
        voters: VoterSet,
        origin: VotersOrigin,
        election: ElectionState,
        log: LogView,
        high_watermark: i64,
    ) -> Self {
        // A log of a newer epoch than the file means the file was lost: never go back.
        let election = if log.last_epoch() > election.epoch {
            ElectionState { epoch: log.last_epoch(), leader_id: None, voted: None }
        } else {
            election
        };
        Self {
            config,
            voters,
            origin,
            election,
            role: Role::Unattached(Unattached { election_at_ms: i64::MAX, search_at_ms: i64::MAX }),
            log,
            high_watermark,
            next_fetch_id: 1,
            now_ms: 0,
            random: 0,
            out: Output::default(),
        }
    }

    /// Takes one input at `now_ms` (any clock that doesn't go back), with a fresh random number.
    pub fn handle(&mut self, input: Input, now_ms: i64, random: u64) -> Output {
        self.now_ms = self.now_ms.max(now_ms);
        self.random = random;
        match input {
            Input::Start => self.start(),
            Input::Tick => self.tick(),
            Input::Request { request_id, request } => self.on_request(request_id, request),
            Input::Response { from, response } => self.on_response(from, response),
            Input::Appended { end_offset } => self.on_appended(end_offset),
            Input::Durable { end_offset, generation } => self.on_durable(end_offset, generation),
            Input::LogStartsAt(snapshot) => self.log.start_at(snapshot),
            Input::Resign => self.resign(),
        }
        std::mem::take(&mut self.out)
    }

    /// The log's shape.
    pub fn log(&self) -> &LogView {
        &self.log
    }

    /// The voters.
    pub fn voters(&self) -> &VoterSet {
        &self.voters
    }

    /// The `kraft.version` in force, which decides the version of `quorum-state`.
    pub fn kraft_version(&self) -> i16 {
        self.origin.kraft_version()
    }

    /// Everything before this offset is committed.
    pub fn high_watermark(&self) -> i64 {
        self.high_watermark
    }

    /// The epoch and its leader.
    pub fn leader(&self) -> LeaderHint {
        LeaderHint { epoch: self.election.epoch, leader_id: self.election.leader_id }
    }

    /// Where the leader of `expected_epoch` appends next. Errors: this replica doesn't lead it.
    pub fn append_position(&self, expected_epoch: i32) -> Result<i64, RaftError> {
        if matches!(self.role, Role::Leader(_)) && self.election.epoch == expected_epoch {
            Ok(self.log.end_offset())
        } else {
            Err(RaftError::NotLeader { expected_epoch, epoch: self.election.epoch })
        }
    }

    /// What this replica is.
    pub fn role(&self) -> RoleName {
        match &self.role {
            Role::Leader(_) => RoleName::Leader,
            Role::Resigned { .. } => RoleName::Resigned,
            Role::Prospective(_) => RoleName::Prospective,
            Role::Candidate(_) => RoleName::Candidate,
            Role::Unattached(_) | Role::Follower(_) if !self.votes() => RoleName::Observer,
            Role::Unattached(_) => RoleName::Unattached,
            Role::Follower(_) => RoleName::Follower,
        }
    }

    /// Whether this replica votes.
    pub(crate) fn votes(&self) -> bool {
        self.voters.contains(&self.config.local)
    }

    fn start(&mut self) {
        let local = self.config.local;
        if self.voters.is_only_voter(&local) {
            return self.campaign_before();
        }
        match self.election.leader_id {
            // Led before the restart: what it appended and didn't sync is lost, so it must not
            // act in this epoch again.
            Some(leader) if leader == local.id => {
                let until_ms = self.now_ms + self.election_timeout();
                self.role = Role::Resigned { until_ms };
            }
            Some(leader) if self.voters.get(leader).is_some() => self.follow(self.election.epoch, leader),
            _ => self.detach(self.election.epoch, self.election.leader_id),
        }
    }

    /// Fresh random numbers from the one given with the input (splitmix64).
    pub(crate) fn draw(&mut self, below: i64) -> i64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        i64::try_from(z >> 1).unwrap_or(0) % below.max(1)
    }

    /// A random election timeout.
    pub(crate) fn election_timeout(&mut self) -> i64 {
        self.config.election_timeout_ms + self.draw(self.config.election_timeout_ms)
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.out.effects.push(effect);
    }

    pub(crate) fn send(&mut self, to: i32, request: Request) {
        self.effect(Effect::Send { to, request });
    }

    /// Changes what must survive a crash, and writes it if it changed.
    pub(crate) fn set_election(&mut self, election: ElectionState) {
        let before = self.leader();
        if election != self.election {
            self.election = election;
            self.out.writes.quorum_state = Some(election);
        }
        if self.leader() != before {
            // Only the newest matters to whoever listens.
            self.out.effects.retain(|e| !matches!(e, Effect::Leader(_)));
            self.effect(Effect::Leader(self.leader()));
        }
    }

    /// The election state of an epoch: a vote outlives changes within its epoch only.
    fn election_of(&self, epoch: i32, leader_id: Option<i32>) -> ElectionState {
        let voted = self.election.voted.filter(|_| epoch == self.election.epoch);
        ElectionState { epoch, leader_id, voted }
    }

    /// To unattached, in `epoch`.
    pub(crate) fn detach(&mut self, epoch: i32, leader_id: Option<i32>) {
        self.set_election(self.election_of(epoch, leader_id));
        self.leave_role();
        let election_at_ms = if self.votes() { self.now_ms + self.election_timeout() } else { i64::MAX };
        let search_at_ms = self.now_ms + self.config.retry_backoff_ms;
        self.role = Role::Unattached(Unattached { election_at_ms, search_at_ms });
    }

    /// To follower of `leader_id`, in `epoch`.
    pub(crate) fn follow(&mut self, epoch: i32, leader_id: i32) {
        self.set_election(self.election_of(epoch, Some(leader_id)));
        self.leave_role();
        self.role = Role::Follower(Following {
            leader_id,
            fetch_deadline_ms: self.now_ms + self.config.fetch_timeout_ms,
            heard: false,
            in_flight: None,
            fetch_at_ms: self.now_ms,
            leader_high_watermark: -1,
            needs_snapshot: false,
        });
        self.fetch_if_due();
    }

    /// To prospective: pre-votes first. The epoch, its leader and the vote stay.
    pub(crate) fn campaign_before(&mut self) {
        self.leave_role();
        let campaign = self.new_campaign();
        self.role = Role::Prospective(campaign);
        self.ask_for_votes();
        self.count_votes();
    }

    /// To candidate, in a new epoch.
    pub(crate) fn campaign(&mut self) {
        let epoch = self.election.epoch.saturating_add(1);
        self.set_election(ElectionState { epoch, leader_id: None, voted: Some(self.config.local) });
        let campaign = self.new_campaign();
        self.role = Role::Candidate(campaign);
        self.ask_for_votes();
        self.count_votes();
    }

    fn new_campaign(&mut self) -> Campaign {
        Campaign {
            granted: BTreeSet::from([self.config.local.id]),
            rejected: BTreeSet::new(),
            deadline_ms: self.now_ms + self.election_timeout(),
            retry_at_ms: self.now_ms + self.config.request_timeout_ms.min(self.config.election_timeout_ms),
        }
    }

    /// To leader: its first batch says so.
    pub(crate) fn lead(&mut self, granting_voters: Vec<i32>) {
        let (epoch, local) = (self.election.epoch, self.config.local);
        self.set_election(ElectionState { epoch, leader_id: Some(local.id), voted: None });
        let epoch_start_offset = self.log.end_offset();
        let mut records = vec![ControlRecord::LeaderChange {
            leader_id: local.id,
            voters: self.voters.ids().collect(),
            granting_voters,
        }];
        if self.origin == VotersOrigin::Bootstrap {
            records.push(ControlRecord::KRaftVersion(self.kraft_version()));
            records.push(ControlRecord::Voters(self.voters.clone()));
            self.origin = VotersOrigin::Log;
        }
        let count = i64::try_from(records.len()).unwrap_or(0);
        self.log.append(epoch, epoch_start_offset + count);
        self.out.writes.append =
            Some(AppendWrite::Control { base_offset: epoch_start_offset, epoch, records });
        let others = self.voters.iter().filter(|v| v.key.id != local.id);
        self.role = Role::Leader(Leading {
            epoch_start_offset,
            elected_at_ms: self.now_ms,
            voters: others.map(|v| (v.key.id, Progress::new(v.key))).collect(),
            observers: BTreeMap::new(),
            parked: BTreeMap::new(),
            announce_at_ms: self.now_ms,
        });
        self.announce();
    }

    /// Answers whatever a leader still holds, before it is none.
    pub(crate) fn leave_role(&mut self) {
        if let Role::Leader(leading) = &mut self.role {
            for (_, parked) in std::mem::take(&mut leading.parked) {
                self.refuse_fetch(parked.request_id, parked.fetch_id, QuorumError::NotLeader);
            }
        }
    }

    /// Takes note of an epoch or leader another replica knows. False if it contradicts ours.
    pub(crate) fn learn(&mut self, hint: LeaderHint) -> bool {
        let leader = hint.leader_id.filter(|&id| id != self.config.local.id);
        if hint.epoch > self.election.epoch {
            match leader {
                Some(id) if self.voters.get(id).is_some() => self.follow(hint.epoch, id),
                _ => self.detach(hint.epoch, leader),
            }
            return true;
        }
        if hint.epoch < self.election.epoch {
            return true;
        }
        match (self.election.leader_id, leader) {
            (Some(known), Some(told)) => known == told,
            (None, Some(id)) if self.voters.get(id).is_some() => {
                self.follow(hint.epoch, id);
                true
            }
            _ => true,
        }
    }
}
