//! The roles a replica plays, and what it keeps in each.

use std::collections::{BTreeMap, BTreeSet};

use crate::ReplicaKey;

/// What a replica is at the moment, with what only matters while it is.
#[derive(Debug)]
pub(crate) enum Role {
    /// Knows of no leader it can follow.
    Unattached(Unattached),
    /// Asks whether an election would succeed.
    Prospective(Campaign),
    /// Asks for votes in its own epoch.
    Candidate(Campaign),
    /// Leads.
    Leader(Leading),
    /// Follows a leader it knows.
    Follower(Following),
    /// Led, and leads no more; may not take part in its own epoch again.
    Resigned {
        /// When it forgets the epoch and looks for a new one.
        until_ms: i64,
    },
}

/// A role's name, as metrics and DescribeQuorum's readers know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleName {
    /// Knows of no leader.
    Unattached,
    /// Before an election.
    Prospective,
    /// In an election.
    Candidate,
    /// Leads the epoch.
    Leader,
    /// A voter that follows.
    Follower,
    /// Has led the epoch.
    Resigned,
    /// Not a voter, follows or looks for a leader.
    Observer,
}

/// State of an unattached replica.
#[derive(Debug)]
pub(crate) struct Unattached {
    /// When a voter starts an election; never, for an observer.
    pub election_at_ms: i64,
    /// When to ask some voter who leads.
    pub search_at_ms: i64,
}

/// State of a round of votes or pre-votes.
#[derive(Debug)]
pub(crate) struct Campaign {
    pub granted: BTreeSet<i32>,
    pub rejected: BTreeSet<i32>,
    /// When the round is over without a result.
    pub deadline_ms: i64,
    /// When voters that haven't answered are asked again.
    pub retry_at_ms: i64,
}

/// State of a follower, or of an observer with a leader.
#[derive(Debug)]
pub(crate) struct Following {
    pub leader_id: i32,
    /// When a voter gives the leader up.
    pub fetch_deadline_ms: i64,
    /// Whether the leader ever answered a fetch: then it lives, and pre-votes are refused.
    pub heard: bool,
    /// The fetch whose answer is awaited, and when it is given up.
    pub in_flight: Option<(u64, i64)>,
    /// When to fetch again if none is in flight.
    pub fetch_at_ms: i64,
    /// The leader's high watermark, as last told.
    pub leader_high_watermark: i64,
    /// A snapshot the leader wants us to load first. No fetch until then.
    pub needs_snapshot: bool,
}

/// State of the leader.
#[derive(Debug)]
pub(crate) struct Leading {
    /// Offset of this epoch's `LeaderChange`.
    pub epoch_start_offset: i64,
    /// When it was elected.
    pub elected_at_ms: i64,
    /// The other voters.
    pub voters: BTreeMap<i32, Progress>,
    /// Replicas that fetch without a vote.
    pub observers: BTreeMap<ReplicaKey, Progress>,
    /// Fetches held until there is something to tell.
    pub parked: BTreeMap<ReplicaKey, Parked>,
    /// When BeginQuorumEpoch is sent again to voters that don't fetch.
    pub announce_at_ms: i64,
}

/// How far a replica is, by its fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    pub key: ReplicaKey,
    /// End of its durable log; -1 before its first fetch.
    pub end_offset: i64,
    /// Time of its last fetch; -1 before the first.
    pub last_fetch_ms: i64,
    /// Last time it had everything the leader had; -1 if never.
    pub last_caught_up_ms: i64,
    /// End of the leader's log when it last fetched.
    pub leader_end_at_fetch: i64,
}

impl Progress {
    pub fn new(key: ReplicaKey) -> Self {
        Self { key, end_offset: -1, last_fetch_ms: -1, last_caught_up_ms: -1, leader_end_at_fetch: -1 }
    }

    /// Notes a valid fetch. A replica that has now what the leader had at its fetch before was
    /// caught up at that time.
    pub fn fetched(&mut self, key: ReplicaKey, offset: i64, leader_end: i64, now_ms: i64) {
        if offset >= leader_end {
            self.last_caught_up_ms = now_ms;
        } else if self.last_fetch_ms >= 0 && offset >= self.leader_end_at_fetch {
            self.last_caught_up_ms = self.last_caught_up_ms.max(self.last_fetch_ms);
        }
        self.key = key;
        self.end_offset = offset;
        self.last_fetch_ms = now_ms;
        self.leader_end_at_fetch = leader_end;
    }
}

/// A held fetch.
#[derive(Debug)]
pub(crate) struct Parked {
    pub request_id: u64,
    pub fetch_id: u64,
    pub fetch_offset: i64,
    /// High watermark the replica was last told.
    pub told_high_watermark: i64,
    pub deadline_ms: i64,
}
