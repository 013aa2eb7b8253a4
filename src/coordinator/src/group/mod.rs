//! Groups: the shard of one partition of `__consumer_offsets`, and the groups of both protocols in it.
//!
//! [`GroupShard`] is the [`Machine`](crate::runtime::Machine). A [`Request`] comes in with its [`Caller`] and its
//! ticket; the shard finds the group and hands it to the protocol's own module, which answers now or keeps the ticket
//! for later. [`classic`] and [`consumer`] know their members, generations or epochs; the shard knows which group is of
//! which kind, all deadlines ([`Timers`]), and what was committed ([`crate::offsets`]).

mod admin;
pub mod classic;
pub mod consumer;
mod record;
mod request;
mod shard;
mod timers;

use std::sync::Arc;

pub use record::GroupRecord;
pub use request::{
    Caller, DeleteGroup, DescribeConsumerGroup, DescribeGroup, EndTransaction, FetchOffsets, GroupRequest,
    ListGroups, Reply, Request,
};
pub use shard::{Done, Effect, GroupOutcome, GroupShard};
pub use timers::{Deadline, TimerKind, Timers};

use self::classic::ClassicGroup;
use self::consumer::ConsumerGroup;

/// One group. Cheap to clone: it is changed by `Arc::make_mut`.
#[derive(Debug, Clone, PartialEq)]
pub enum Group {
    /// Members agree on their assignment among themselves (JoinGroup, SyncGroup), or there are only offsets.
    Classic(Arc<ClassicGroup>),
    /// The coordinator assigns (KIP-848).
    Consumer(Arc<ConsumerGroup>),
}

impl Group {
    /// The state's name, as ListGroups has it.
    pub fn state_name(&self) -> &'static str {
        match self {
            Self::Classic(group) => group.state().name(),
            Self::Consumer(group) => group.state_name(),
        }
    }

    /// The type's name, as ListGroups has it.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Classic(_) => "classic",
            Self::Consumer(_) => "consumer",
        }
    }
}
