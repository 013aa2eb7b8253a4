//! Requests of elections: who gets this replica's vote, and which leader it accepts.

use crate::messages::{
    BeginQuorumEpoch, EndQuorumEpoch, LeaderHint, QuorumError, Request, Response, Vote, VoteResponse,
};
use crate::output::Effect;
use crate::roles::Role;
use crate::{ElectionState, Machine, ReplicaKey};

impl Machine {
    pub(crate) fn on_request(&mut self, request_id: u64, request: Request) {
        let response = match request {
            Request::Vote(vote) => Response::Vote(self.on_vote(&vote)),
            Request::BeginQuorumEpoch(begin) => {
                let error = self.on_begin_epoch(&begin);
                Response::BeginQuorumEpoch(self.leader(), error)
            }
            Request::EndQuorumEpoch(end) => {
                let error = self.on_end_epoch(&end);
                Response::EndQuorumEpoch(self.leader(), error)
            }
            Request::Fetch(fetch) => return self.on_fetch(request_id, &fetch),
        };
        self.effect(Effect::Reply { request_id, response });
    }

    fn on_vote(&mut self, vote: &Vote) -> VoteResponse {
        let outcome = self.decide_vote(vote);
        VoteResponse {
            hint: self.leader(),
            granted: outcome == Ok(true),
            pre_vote: vote.pre_vote,
            error: outcome.err(),
        }
    }

    fn decide_vote(&mut self, vote: &Vote) -> Result<bool, QuorumError> {
        if !vote.voter.matches(&self.config.local) {
            return Err(QuorumError::InvalidVoterKey);
        }
        if vote.epoch < self.election.epoch {
            return Err(QuorumError::FencedLeaderEpoch);
        }
        if vote.epoch > self.election.epoch {
            self.detach(vote.epoch, None);
        }
        let up_to_date =
            (vote.last_epoch, vote.last_end_offset) >= (self.log.last_epoch(), self.log.end_offset());
        let granted = self.would_vote(&vote.candidate, up_to_date, vote.pre_vote);
        if granted && !vote.pre_vote {
            self.give_vote(vote.candidate);
        }
        Ok(granted)
    }

    fn would_vote(&self, candidate: &ReplicaKey, up_to_date: bool, pre_vote: bool) -> bool {
        match &self.role {
            Role::Leader(_) => false,
            // A follower that has heard from its leader helps nobody to replace it.
            Role::Follower(following) => pre_vote && up_to_date && !following.heard,
            Role::Candidate(_) | Role::Resigned { .. } => pre_vote && up_to_date,
            Role::Unattached(_) | Role::Prospective(_) if pre_vote => up_to_date,
            Role::Unattached(_) | Role::Prospective(_) => {
                match (&self.election.voted, self.election.leader_id) {
                    (Some(voted), _) => voted.matches(candidate),
                    (None, Some(_)) => false,
                    (None, None) => up_to_date,
                }
            }
        }
    }

    /// Records the vote, and waits a whole timeout for its outcome.
    fn give_vote(&mut self, candidate: ReplicaKey) {
        if self.election.voted.is_none() {
            self.set_election(ElectionState { voted: Some(candidate), ..self.election });
            self.detach(self.election.epoch, self.election.leader_id);
        }
    }

    fn on_begin_epoch(&mut self, begin: &BeginQuorumEpoch) -> Option<QuorumError> {
        if begin.epoch < self.election.epoch {
            return Some(QuorumError::FencedLeaderEpoch);
        }
        if self.voters.get(begin.leader_id).is_none() {
            return Some(QuorumError::InconsistentVoterSet);
        }
        if begin.leader_id == self.config.local.id {
            return Some(QuorumError::InvalidRequest);
        }
        let hint = LeaderHint { epoch: begin.epoch, leader_id: Some(begin.leader_id) };
        if !self.learn(hint) {
            return Some(QuorumError::InvalidRequest);
        }
        // The leader is known but was given up: here it is again.
        if !matches!(self.role, Role::Follower(_)) {
            self.follow(begin.epoch, begin.leader_id);
        }
        None
    }

    fn on_end_epoch(&mut self, end: &EndQuorumEpoch) -> Option<QuorumError> {
        if end.epoch < self.election.epoch {
            return Some(QuorumError::FencedLeaderEpoch);
        }
        if end.leader_id == self.config.local.id {
            return Some(QuorumError::InvalidRequest);
        }
        if !self.learn(LeaderHint { epoch: end.epoch, leader_id: Some(end.leader_id) }) {
            return Some(QuorumError::InvalidRequest);
        }
        let place = end.preferred_successors.iter().position(|&id| id == self.config.local.id);
        let wait_ms = match place {
            Some(0) => 0,
            place => self.successor_backoff(place, end.preferred_successors.len()),
        };
        if let Role::Follower(following) = &mut self.role
            && following.leader_id == end.leader_id
        {
            following.fetch_deadline_ms = self.now_ms + wait_ms;
            // The resigned leader is no longer one to protect from a replacement.
            following.heard = false;
        }
        self.tick();
        None
    }

    /// A wait that leaves the voters with longer logs the first try.
    fn successor_backoff(&mut self, place: Option<usize>, count: usize) -> i64 {
        let max = self.config.election_backoff_max_ms;
        let place = i64::try_from(place.unwrap_or(count)).unwrap_or(1).max(1);
        let count = i64::try_from(count).unwrap_or(1).max(1);
        (max * place / count + self.draw(max / count)).min(max)
    }
}
