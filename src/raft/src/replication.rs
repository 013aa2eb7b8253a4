//! Replication: fetches on both sides, and the high watermark.

use crate::messages::{
    Fetch, FetchOutcome, FetchResponse, Fetched, LogRange, QuorumError, Request, Response,
};
use crate::output::{AppendWrite, Effect};
use crate::roles::{Parked, Progress, Role};
use crate::{Machine, SnapshotId};

impl Machine {
    // The leader's side.

    pub(crate) fn on_fetch(&mut self, request_id: u64, fetch: &Fetch) {
        let ours = self.election.epoch;
        let refusal = if fetch.epoch < ours {
            Some(QuorumError::FencedLeaderEpoch)
        } else if fetch.epoch > ours {
            Some(QuorumError::UnknownLeaderEpoch)
        } else if !matches!(self.role, Role::Leader(_)) {
            Some(QuorumError::NotLeader)
        } else if fetch.fetch_offset < 0 {
            Some(QuorumError::InvalidRequest)
        } else {
            None
        };
        if let Some(error) = refusal {
            return self.refuse_fetch(request_id, fetch.fetch_id, error);
        }
        if let Some(outcome) = self.check_position(fetch) {
            return self.reply_fetch(request_id, fetch.fetch_id, outcome);
        }
        self.note_progress(fetch);
        self.advance_high_watermark();
        let told_high_watermark = self.high_watermark;
        let deadline_ms = self.now_ms + self.config.fetch_max_wait_ms;
        let Role::Leader(leading) = &mut self.role else { return };
        let parked = Parked {
            request_id,
            fetch_id: fetch.fetch_id,
            fetch_offset: fetch.fetch_offset,
            told_high_watermark,
            deadline_ms,
        };
        // A replica has one fetch: a second means it gave the first up.
        if let Some(old) = leading.parked.insert(fetch.replica, parked) {
            self.answer_parked(&old);
        }
        self.release_parked();
    }

    /// What is wrong with a fetch's position, if anything.
    fn check_position(&self, fetch: &Fetch) -> Option<FetchOutcome<LogRange>> {
        let (offset, epoch) = (fetch.fetch_offset, fetch.last_fetched_epoch);
        let start = self.log.start();
        let from_nothing = offset == 0 && epoch == 0 && start.end_offset == 0;
        if from_nothing {
            return None;
        }
        let behind = offset < start.end_offset
            || epoch < start.epoch
            || (offset == start.end_offset && epoch != start.epoch);
        if behind && start.end_offset > 0 {
            return Some(FetchOutcome::Snapshot(start));
        }
        let end = self.log.end_of_epoch(epoch);
        (end.epoch != epoch || end.end_offset < offset).then_some(FetchOutcome::Diverging(end))
    }

    fn note_progress(&mut self, fetch: &Fetch) {
        let (key, now_ms, end) = (fetch.replica, self.now_ms, self.log.end_offset());
        let is_voter = self.voters.contains(&key);
        let Role::Leader(leading) = &mut self.role else { return };
        let progress = match leading.voters.get_mut(&key.id).filter(|_| is_voter) {
            Some(progress) => progress,
            None => {
                // Observers that stopped fetching long ago are forgotten, as Kafka does.
                leading.observers.retain(|_, p| now_ms - p.last_fetch_ms < OBSERVER_SESSION_MS);
                leading.observers.entry(key).or_insert_with(|| Progress::new(key))
            }
        };
        progress.fetched(key, fetch.fetch_offset, end, now_ms);
    }

    pub(crate) fn refuse_fetch(&mut self, request_id: u64, fetch_id: u64, error: QuorumError) {
        self.reply_fetch(request_id, fetch_id, FetchOutcome::Error(error));
    }

    fn reply_fetch(&mut self, request_id: u64, fetch_id: u64, outcome: FetchOutcome<LogRange>) {
        let high_watermark = match self.role {
            Role::Leader(_) => self.high_watermark,
            _ => -1,
        };
        let response = FetchResponse { hint: self.leader(), fetch_id, high_watermark, outcome };
        self.effect(Effect::Reply { request_id, response: Response::Fetch(response) });
    }

    fn answer_parked(&mut self, parked: &Parked) {
        // A control batch of the leader is in the log before any effect is carried out.
        let range = LogRange { from_offset: parked.fetch_offset, to_offset: self.log.end_offset() };
        self.reply_fetch(parked.request_id, parked.fetch_id, FetchOutcome::Records(range));
    }

    /// Answers held fetches that have news, or have waited long enough.
    pub(crate) fn release_parked(&mut self) {
        let (now, end, watermark) = (self.now_ms, self.log.end_offset(), self.high_watermark);
        let Role::Leader(leading) = &mut self.role else { return };
        let due: Vec<_> = leading
            .parked
            .iter()
            .filter(|(_, p)| {
                p.fetch_offset < end || p.told_high_watermark < watermark || p.deadline_ms <= now
            })
            .map(|(&key, _)| key)
            .collect();
        let released: Vec<Parked> = due.iter().filter_map(|key| leading.parked.remove(key)).collect();
        for parked in released {
            self.answer_parked(&parked);
        }
    }

    pub(crate) fn on_appended(&mut self, end_offset: i64) {
        if matches!(self.role, Role::Leader(_)) {
            self.log.append(self.election.epoch, end_offset);
            self.release_parked();
        }
    }

    pub(crate) fn on_durable(&mut self, end_offset: i64, generation: u64) {
        if !self.log.durable(end_offset, generation) {
            return;
        }
        match &self.role {
            Role::Leader(_) => {
                self.advance_high_watermark();
                self.release_parked();
            }
            Role::Follower(following) => {
                let told = following.leader_high_watermark;
                self.commit(told.min(self.log.durable_end_offset()));
                if self.log.durable_end_offset() == self.log.end_offset() {
                    self.fetch_if_due();
                }
            }
            _ => {}
        }
    }

    /// The leader's high watermark: what a majority has durably, once that reaches into the
    /// leader's own epoch. Records of older epochs are committed by those after them.
    fn advance_high_watermark(&mut self) {
        let Role::Leader(leading) = &self.role else { return };
        let mut ends: Vec<i64> = leading.voters.values().map(|p| p.end_offset).collect();
        if self.votes() {
            ends.push(self.log.durable_end_offset());
        }
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let Some(&majority_end) = ends.get(self.voters.majority() - 1) else { return };
        if majority_end > leading.epoch_start_offset {
            self.commit(majority_end);
        }
    }

    fn commit(&mut self, high_watermark: i64) {
        if high_watermark > self.high_watermark {
            self.high_watermark = high_watermark;
            self.effect(Effect::Committed { high_watermark });
        }
    }

    // The follower's side.

    /// Fetches from the leader if nothing is in flight, the pause is over and all is durable.
    pub(crate) fn fetch_if_due(&mut self) {
        let (now_ms, fetch_id) = (self.now_ms, self.next_fetch_id);
        let all_durable = self.log.durable_end_offset() == self.log.end_offset();
        let until_ms = now_ms + self.config.request_timeout_ms;
        let Role::Follower(following) = &mut self.role else { return };
        if following.in_flight.is_some_and(|(_, until_ms)| until_ms <= now_ms) {
            following.in_flight = None;
        }
        let due = following.in_flight.is_none() && following.fetch_at_ms <= now_ms;
        if !due || following.needs_snapshot || !all_durable {
            // Woken by `Durable`; until then look again, not at once.
            if due && !all_durable {
                following.fetch_at_ms = now_ms + self.config.retry_backoff_ms;
            }
            return;
        }
        following.in_flight = Some((fetch_id, until_ms));
        let to = following.leader_id;
        self.send_fetch(to);
    }

    fn send_fetch(&mut self, to: i32) {
        let fetch = Fetch {
            replica: self.config.local,
            epoch: self.election.epoch,
            fetch_offset: self.log.end_offset(),
            last_fetched_epoch: self.log.last_epoch(),
            fetch_id: self.next_fetch_id,
        };
        self.next_fetch_id += 1;
        self.send(to, Request::Fetch(fetch));
    }

    /// Asks some voter, whose refusal tells who leads.
    pub(crate) fn search_leader(&mut self) {
        let others: Vec<i32> = self.voters.ids().filter(|&id| id != self.config.local.id).collect();
        let pick = usize::try_from(self.draw(i64::try_from(others.len()).unwrap_or(1))).unwrap_or(0);
        let next = self.now_ms + self.config.request_timeout_ms.min(self.config.fetch_timeout_ms);
        if let Role::Unattached(unattached) = &mut self.role {
            unattached.search_at_ms = next;
        }
        if let Some(&to) = others.get(pick) {
            self.send_fetch(to);
        }
    }

    pub(crate) fn on_response(&mut self, from: i32, response: Response<Fetched>) {
        match response {
            Response::Vote(vote) => {
                if self.learn(vote.hint) {
                    self.on_vote_response(from, &vote);
                }
            }
            Response::BeginQuorumEpoch(hint, _) | Response::EndQuorumEpoch(hint, _) => {
                self.learn(hint);
            }
            Response::Fetch(fetch) => {
                if self.learn(fetch.hint) {
                    self.on_fetch_response(from, fetch);
                }
            }
        }
    }

    fn on_fetch_response(&mut self, from: i32, response: FetchResponse<Fetched>) {
        let (now_ms, epoch) = (self.now_ms, self.election.epoch);
        let Role::Follower(following) = &mut self.role else { return };
        let expected = following.in_flight.is_some_and(|(id, _)| id == response.fetch_id);
        if following.leader_id != from || !expected || response.hint.epoch != epoch {
            return;
        }
        following.in_flight = None;
        if let FetchOutcome::Error(_) = response.outcome {
            following.fetch_at_ms = now_ms + self.config.retry_backoff_ms;
            return;
        }
        following.heard = true;
        following.fetch_deadline_ms = now_ms + self.config.fetch_timeout_ms;
        following.fetch_at_ms = now_ms;
        following.leader_high_watermark = response.high_watermark;
        match response.outcome {
            FetchOutcome::Records(fetched) => self.take_records(fetched, response.high_watermark),
            FetchOutcome::Diverging(end) => self.truncate_to_divergence(end),
            FetchOutcome::Snapshot(snapshot) => {
                following.needs_snapshot = true;
                self.effect(Effect::SnapshotRequired { leader_id: from, snapshot });
            }
            FetchOutcome::Error(_) => {}
        }
        self.fetch_if_due();
    }

    fn take_records(&mut self, fetched: Fetched, leader_high_watermark: i64) {
        let base_offset = self.log.end_offset();
        let mut next = base_offset;
        let mut epoch = self.log.last_epoch();
        for batch in &fetched.batches {
            let fits = batch.base_offset == next && batch.next_offset > next;
            if !fits || batch.epoch < epoch || batch.epoch > self.election.epoch {
                return self.pause_fetching();
            }
            (next, epoch) = (batch.next_offset, batch.epoch);
        }
        for batch in &fetched.batches {
            self.log.append(batch.epoch, batch.next_offset);
        }
        if !fetched.batches.is_empty() {
            self.out.writes.append = Some(AppendWrite::Fetched { base_offset, bytes: fetched.bytes });
        }
        self.commit(leader_high_watermark.min(self.log.durable_end_offset()));
    }

    fn truncate_to_divergence(&mut self, leader: SnapshotId) {
        let ours = self.log.end_of_epoch(leader.epoch);
        let to = match ours.epoch == leader.epoch {
            true => ours.end_offset.min(leader.end_offset),
            false => ours.end_offset,
        };
        // What is committed never goes; a leader that says so is not one to follow.
        if to < self.high_watermark || to >= self.log.end_offset() {
            return self.pause_fetching();
        }
        self.log.truncate(to);
        self.out.writes.truncate_to = Some(to);
    }

    /// The leader's answer made no sense: ask again, but not at once.
    fn pause_fetching(&mut self) {
        if let Role::Follower(following) = &mut self.role {
            following.fetch_at_ms = self.now_ms + self.config.retry_backoff_ms;
        }
    }
}

/// How long a leader remembers an observer that doesn't fetch, as Kafka does.
pub(crate) const OBSERVER_SESSION_MS: i64 = 300_000;
