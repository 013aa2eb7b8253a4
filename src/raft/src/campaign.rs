//! A replica's own elections: asking for votes, counting them, and giving up.

use crate::messages::{EndQuorumEpoch, Request, Vote, VoteResponse};
use crate::roles::{Campaign, Role};
use crate::{Machine, ReplicaKey};

impl Machine {
    /// The round of votes or pre-votes under way, if any, and whether it is of pre-votes.
    fn round(&mut self) -> Option<(&mut Campaign, bool)> {
        match &mut self.role {
            Role::Prospective(campaign) => Some((campaign, true)),
            Role::Candidate(campaign) => Some((campaign, false)),
            _ => None,
        }
    }

    /// Asks every voter that hasn't answered in this round.
    pub(crate) fn ask_for_votes(&mut self) {
        let (now_ms, local) = (self.now_ms, self.config.local);
        let pause = self.config.request_timeout_ms.min(self.config.election_timeout_ms);
        let voters: Vec<ReplicaKey> = self.voters.iter().map(|v| v.key).collect();
        let Some((campaign, pre_vote)) = self.round() else { return };
        campaign.retry_at_ms = now_ms + pause;
        let silent: Vec<ReplicaKey> = voters
            .into_iter()
            .filter(|v| !campaign.granted.contains(&v.id) && !campaign.rejected.contains(&v.id))
            .collect();
        for voter in silent {
            let vote = Vote {
                epoch: self.election.epoch,
                candidate: local,
                voter,
                last_epoch: self.log.last_epoch(),
                last_end_offset: self.log.end_offset(),
                pre_vote,
            };
            self.send(voter.id, Request::Vote(vote));
        }
    }

    pub(crate) fn on_vote_response(&mut self, from: i32, response: &VoteResponse) {
        if response.hint.epoch != self.election.epoch || self.voters.get(from).is_none() {
            return;
        }
        let Some((campaign, pre_vote)) = self.round() else { return };
        if response.pre_vote != pre_vote {
            return;
        }
        if response.granted {
            campaign.rejected.remove(&from);
            campaign.granted.insert(from);
        } else {
            campaign.granted.remove(&from);
            campaign.rejected.insert(from);
        }
        self.count_votes();
    }

    /// Acts on the round's result, if it has one.
    pub(crate) fn count_votes(&mut self) {
        let (now_ms, majority, count) = (self.now_ms, self.voters.majority(), self.voters.count());
        let Some((campaign, pre_vote)) = self.round() else { return };
        let granted: Vec<i32> = campaign.granted.iter().copied().collect();
        let rejected = campaign.rejected.len();
        let deadline_ms = campaign.deadline_ms;
        if granted.len() >= majority {
            if pre_vote {
                self.campaign();
            } else {
                self.lead(granted);
            }
        } else if rejected > count - majority {
            // Lost. A candidate waits a little, so that two of them part.
            let backoff_ms = now_ms + self.draw(self.config.election_backoff_max_ms) + 1;
            if let Some((campaign, _)) = self.round() {
                campaign.deadline_ms = deadline_ms.min(backoff_ms);
            }
        }
    }

    /// The round is over without a majority.
    pub(crate) fn give_up_round(&mut self) {
        match self.role {
            Role::Candidate(_) => self.campaign_before(),
            // The leader may well live, only out of this replica's sight for a moment.
            Role::Prospective(_) => match self.election.leader_id {
                Some(leader) if leader != self.config.local.id && self.voters.get(leader).is_some() => {
                    self.follow(self.election.epoch, leader);
                }
                leader => self.detach(self.election.epoch, leader),
            },
            _ => {}
        }
    }

    /// A leader gives up its epoch and tells the others, longest log first.
    pub(crate) fn resign(&mut self) {
        let Role::Leader(leading) = &self.role else { return };
        let mut successors: Vec<(i64, i32)> =
            leading.voters.values().map(|p| (-p.end_offset, p.key.id)).collect();
        successors.sort_unstable();
        let preferred_successors: Vec<i32> = successors.into_iter().map(|(_, id)| id).collect();
        self.leave_role();
        self.role = Role::Resigned { until_ms: self.now_ms + self.election_timeout() };
        let (epoch, leader_id) = (self.election.epoch, self.config.local.id);
        for &to in &preferred_successors {
            let preferred_successors = preferred_successors.clone();
            let end = EndQuorumEpoch { epoch, leader_id, preferred_successors };
            self.send(to, Request::EndQuorumEpoch(end));
        }
    }
}
