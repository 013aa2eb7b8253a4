//! What DescribeQuorum tells.

use crate::messages::LeaderHint;
use crate::replication::OBSERVER_SESSION_MS;
use crate::roles::{Progress, Role};
use crate::{Machine, ReplicaKey, RoleName};

/// The quorum as its leader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuorumStatus {
    /// The epoch and its leader.
    pub leader: LeaderHint,
    /// What this replica is.
    pub role: RoleName,
    /// Everything before it is committed.
    pub high_watermark: i64,
    /// The voters, by id. Empty unless this replica leads.
    pub voters: Vec<ReplicaStatus>,
    /// Other replicas that fetched lately. Empty unless this replica leads.
    pub observers: Vec<ReplicaStatus>,
}

/// One replica as the leader sees it. Times are in the clock of the machine's inputs; -1 if never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// The replica.
    pub key: ReplicaKey,
    /// End of its log; -1 before its first fetch.
    pub log_end_offset: i64,
    /// Time of its last fetch.
    pub last_fetch_ms: i64,
    /// Last time it had all the leader had.
    pub last_caught_up_ms: i64,
}

impl Machine {
    /// The quorum at `now_ms`.
    pub fn status(&self, now_ms: i64) -> QuorumStatus {
        let (mut voters, mut observers) = (Vec::new(), Vec::new());
        if let Role::Leader(leading) = &self.role {
            let local = ReplicaStatus {
                key: self.config.local,
                log_end_offset: self.log.end_offset(),
                last_fetch_ms: now_ms,
                last_caught_up_ms: now_ms,
            };
            voters = leading.voters.values().map(describe).collect();
            if self.votes() { &mut voters } else { &mut observers }.push(local);
            voters.sort_unstable_by_key(|r| r.key);
            let recent =
                leading.observers.values().filter(|p| now_ms - p.last_fetch_ms < OBSERVER_SESSION_MS);
            observers.extend(recent.map(describe));
        }
        QuorumStatus {
            leader: self.leader(),
            role: self.role(),
            high_watermark: self.high_watermark,
            voters,
            observers,
        }
    }
}

fn describe(progress: &Progress) -> ReplicaStatus {
    ReplicaStatus {
        key: progress.key,
        log_end_offset: progress.end_offset,
        last_fetch_ms: progress.last_fetch_ms,
        last_caught_up_ms: progress.last_caught_up_ms,
    }
}
