//! The assignors that run on the broker: who gets which partition.

mod range;
#[cfg(test)]
mod tests;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};

use callboard_protocol::{ByteString, Uuid};

use super::partitions::Partitions;

/// A member as an assignor sees it.
#[derive(Clone, Debug, Default)]
pub struct MemberSpec {
    /// `group.instance.id`, of a static member.
    pub instance_id: Option<ByteString>,
    /// The topics it wants, those of its pattern included. Topics that do not exist are not in it.
    pub topics: BTreeSet<Uuid>,
    /// What the last assignment gave it.
    pub current: Partitions,
}

/// What an assignor works on.
#[derive(Clone, Debug, Default)]
pub struct GroupSpec {
    /// The members by id.
    pub members: BTreeMap<ByteString, MemberSpec>,
    /// The number of partitions of each topic that somebody wants.
    pub partition_counts: BTreeMap<Uuid, i32>,
}

/// An assignment: every member with what it gets.
pub type Assignment = BTreeMap<ByteString, Partitions>;

/// A server-side assignor (`group.consumer.assignors`). Neither looks at racks: nor do those of Kafka 4.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignor {
    /// As even as can be over all topics together, and nothing moves that need not.
    Uniform,
    /// Each topic cut into ranges in the order of the members, the same way for each topic.
    Range,
}

impl Assignor {
    /// The assignor of a name, as in `group.consumer.assignors` and in a heartbeat.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "uniform" => Some(Self::Uniform),
            "range" => Some(Self::Range),
            _ => None,
        }
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// Gives every partition of every wanted topic to one member that wants it.
    pub fn assign(self, spec: &GroupSpec) -> Assignment {
        match self {
            Self::Uniform => uniform::assign(spec),
            Self::Range => range::assign(spec),
        }
    }
}
