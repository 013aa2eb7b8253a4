//! A member of a consumer group.

use std::collections::BTreeSet;

use bytes::Bytes;
use callboard_protocol::ByteString;

use super::partitions::AssignedPartitions;

/// The epoch of a member that joins.
pub const JOINING_EPOCH: i32 = 0;
/// The epoch of a heartbeat by which a member leaves.
pub const LEAVING_EPOCH: i32 = -1;
/// The epoch of a heartbeat by which a static member leaves for a while: its partitions are kept for it.
pub const AWAY_EPOCH: i32 = -2;

/// How far a member is on its way to its target assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemberState {
    /// It has what the assignment of its epoch gives it.
    #[default]
    Stable,
    /// It has yet to tell that it gave up partitions.
    UnrevokedPartitions,
    /// It waits for partitions that others have not given up yet.
    UnreleasedPartitions,
    /// A state that a later Kafka wrote.
    Unknown,
}

impl MemberState {
    /// The value in a record.
    pub fn value(self) -> i8 {
        match self {
            Self::Stable => 0,
            Self::UnrevokedPartitions => 1,
            Self::UnreleasedPartitions => 2,
            Self::Unknown => 127,
        }
    }

    /// From the value in a record.
    pub fn from_value(value: i8) -> Self {
        match value {
            0 => Self::Stable,
            1 => Self::UnrevokedPartitions,
            2 => Self::UnreleasedPartitions,
            _ => Self::Unknown,
        }
    }
}

/// What a member that speaks the classic protocol told when it joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicPart {
    /// Its session timeout; members of the consumer protocol have the group's.
    pub session_timeout_ms: i32,
    /// Its client-side assignors by preference, each with its subscription.
    pub protocols: Vec<(ByteString, Bytes)>,
}

/// A member: what it told of itself, and what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: ByteString,
    /// `group.instance.id`, of a static member.
    pub instance_id: Option<ByteString>,
    /// `client.rack`.
    pub rack_id: Option<ByteString>,
    /// The client's name.
    pub client_id: ByteString,
    /// Where it is: a slash and its address.
    pub client_host: ByteString,
    /// The topics it wants, by name.
    pub topics: BTreeSet<ByteString>,
    /// The pattern of the topics it wants; empty without one.
    pub regex: ByteString,
    /// How long it may take to give up partitions.
    pub rebalance_timeout_ms: i32,
    /// The assignor it asks for.
    pub server_assignor: Option<ByteString>,
    /// Set if it speaks the classic protocol.
    pub classic: Option<ClassicPart>,
    /// How far it is.
    pub state: MemberState,
    /// Its epoch: that of the assignment it is on the way to or has reached.
    pub epoch: i32,
    /// The epoch before: a heartbeat that was answered, but whose answer was lost, comes with it again.
    pub previous_epoch: i32,
    /// What it may consume.
    pub assigned: AssignedPartitions,
    /// What it must give up first.
    pub pending_revocation: AssignedPartitions,
}

impl Member {
    /// A member that has told nothing yet.
    pub fn new(id: ByteString) -> Self {
        Self { id, rebalance_timeout_ms: -1, ..Self::default() }
    }

    /// Whether it speaks the classic protocol.
    pub fn uses_classic_protocol(&self) -> bool {
        self.classic.is_some()
    }

    /// Whether it has its whole target, of the group's latest assignment.
    pub fn is_reconciled_to(&self, assignment_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == assignment_epoch
    }

    /// Whether the other wants other topics. What else it told does not move partitions.
    pub fn subscription_differs(&self, other: &Self) -> bool {
        self.topics != other.topics || self.regex != other.regex
    }

    /// What it told of itself, without what it has: two members with the same need no new record.
    pub fn same_description(&self, other: &Self) -> bool {
        self.instance_id == other.instance_id
            && self.rack_id == other.rack_id
            && self.client_id == other.client_id
            && self.client_host == other.client_host
            && !self.subscription_differs(other)
            && self.rebalance_timeout_ms == other.rebalance_timeout_ms
            && self.server_assignor == other.server_assignor
            && self.classic == other.classic
    }

    /// Whether it has the same, whatever it told of itself: its record need not be written again.
    pub fn same_position(&self, other: &Self) -> bool {
        self.state == other.state
            && self.epoch == other.epoch
            && self.previous_epoch == other.previous_epoch
            && self.assigned == other.assigned
            && self.pending_revocation == other.pending_revocation
    }
}
