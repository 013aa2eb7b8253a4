//! What time does: deadlines of each role, and the next of them.

use crate::Machine;
use crate::messages::{BeginQuorumEpoch, Request};
use crate::roles::{Leading, Role};

impl Machine {
    /// When the machine wants its next [`crate::Input::Tick`], by the clock of its inputs.
    pub fn next_deadline_ms(&self) -> Option<i64> {
        let at = match &self.role {
            Role::Unattached(unattached) => unattached.election_at_ms.min(unattached.search_at_ms),
            Role::Prospective(campaign) | Role::Candidate(campaign) => {
                campaign.deadline_ms.min(campaign.retry_at_ms)
            }
            Role::Resigned { until_ms } => *until_ms,
            Role::Follower(following) => {
                let give_up = if self.votes() { following.fetch_deadline_ms } else { i64::MAX };
                let fetch = match following.in_flight {
                    _ if following.needs_snapshot => i64::MAX,
                    Some((_, until_ms)) => until_ms,
                    None => following.fetch_at_ms,
                };
                give_up.min(fetch)
            }
            Role::Leader(leading) => {
                let parked = leading.parked.values().map(|p| p.deadline_ms).min();
                let announce = if leading.voters.is_empty() { i64::MAX } else { leading.announce_at_ms };
                parked.unwrap_or(i64::MAX).min(announce).min(self.quorum_deadline_ms(leading))
            }
        };
        (at < i64::MAX).then_some(at)
    }

    pub(crate) fn tick(&mut self) {
        let now = self.now_ms;
        match &self.role {
            Role::Unattached(unattached) if unattached.election_at_ms <= now => self.campaign_before(),
            Role::Unattached(unattached) if unattached.search_at_ms <= now => self.search_leader(),
            Role::Prospective(campaign) | Role::Candidate(campaign) => {
                if campaign.deadline_ms <= now {
                    self.give_up_round();
                } else if campaign.retry_at_ms <= now {
                    self.ask_for_votes();
                }
            }
            Role::Resigned { until_ms } if *until_ms <= now => {
                if self.voters.is_only_voter(&self.config.local) {
                    self.campaign_before();
                } else {
                    self.detach(self.election.epoch.saturating_add(1), None);
                }
            }
            Role::Follower(following) => {
                if following.fetch_deadline_ms <= now && self.votes() {
                    self.campaign_before();
                } else {
                    self.fetch_if_due();
                }
            }
            Role::Leader(leading) => {
                if self.quorum_deadline_ms(leading) <= now {
                    return self.resign();
                }
                if leading.announce_at_ms <= now {
                    self.announce();
                }
                self.release_parked();
            }
            _ => {}
        }
    }

    /// When the leader resigns because a majority doesn't fetch: it may be cut off, and another
    /// may lead. [`i64::MAX`] if it is a majority alone.
    fn quorum_deadline_ms(&self, leading: &Leading) -> i64 {
        let mut heard: Vec<i64> =
            leading.voters.values().map(|p| p.last_fetch_ms.max(leading.elected_at_ms)).collect();
        heard.sort_unstable_by(|a, b| b.cmp(a));
        match self.voters.majority().checked_sub(2) {
            Some(last) => {
                heard.get(last).map_or(i64::MAX, |at| at.saturating_add(self.config.fetch_timeout_ms * 3 / 2))
            }
            None => i64::MAX,
        }
    }

    /// Tells voters that don't fetch who leads.
    pub(crate) fn announce(&mut self) {
        let (now, half) = (self.now_ms, (self.config.fetch_timeout_ms / 2).max(1));
        let (epoch, leader_id) = (self.election.epoch, self.config.local.id);
        let Role::Leader(leading) = &mut self.role else { return };
        leading.announce_at_ms = now + half;
        let silent: Vec<i32> = leading
            .voters
            .values()
            .filter(|p| p.last_fetch_ms < 0 || p.last_fetch_ms + half <= now)
            .map(|p| p.key.id)
            .collect();
        for to in silent {
            self.send(to, Request::BeginQuorumEpoch(BeginQuorumEpoch { epoch, leader_id }));
        }
    }
}
