//! Groups whose coordinator assigns partitions (KIP-848).
//!
//! How this module plugs into the shard:
//!
//! - Its state is [`ConsumerGroup`], held as `Group::Consumer(Arc<ConsumerGroup>)` in `GroupShard::groups`. Everything in
//!   it is persistent or small, since a snapshot is taken before each write.
//! - `GroupShard::handle` (shard.rs) passes requests on by kind: ConsumerGroupHeartbeat and ConsumerGroupDescribe come here; a classic
//!   JoinGroup, SyncGroup, Heartbeat or LeaveGroup comes here if the group is a consumer group. A handler has the shape
//!   `fn(&mut GroupShard, Ticket, &Caller, Request, &mut Circumstances) -> GroupOutcome`.
//! - What changes durably is written by `GroupShard::write(&mut outcome, record)`: it replays the record at once
//!   ([`replay`]) and adds it to the outcome. Change durable state in no other way, and memory is always what the log says.
//! - Deadlines are set (so much after now) and cancelled in `GroupShard::timers` under a `TimerKind` of this module's; when
//!   one is due the shard calls [`on_deadline`]. They roll back with the machine.
//! - [`loaded`] is called once for each group when its log has been read: the place to start sessions.
//! - [`metadata_changed`] is called when the cluster's topics have changed.
//! - Work that takes long (regular expressions over all topics) goes out as an `Effect`; the actor runs
//!   `Coordinator::perform` on it apart from the shard, and hands the `Done` back to `Coordinator::performed`.

use std::collections::BTreeSet;

use callboard_protocol::{ByteString, ErrorCode};

use crate::cluster::Circumstances;
use crate::error::ReplayError;

use super::record::GroupRecord;
use super::shard::{GroupOutcome, GroupShard};
use super::timers::Deadline;

/// A group of the consumer protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsumerGroup {}

impl ConsumerGroup {
    /// The state's name, as ListGroups has it.
    pub const fn state_name(&self) -> &'static str {
        "Empty"
    }

    /// Whether it has no members.
    pub const fn is_empty(&self) -> bool {
        true
    }

    /// Whether a member may commit: by its epoch, in a version of OffsetCommit.
    ///
    /// # Errors
    /// What the client is told.
    pub const fn check_commit(
        &self,
        _member_id: &str,
        _member_epoch: i32,
        _version: i16,
    ) -> Result<(), ErrorCode> {
        Err(ErrorCode::UnknownMemberId)
    }

    /// Whether a member may ask for offsets.
    ///
    /// # Errors
    /// What the client is told.
    pub const fn check_fetch(&self, _member_id: &str, _member_epoch: i32) -> Result<(), ErrorCode> {
        Err(ErrorCode::UnknownMemberId)
    }

    /// The topics that members subscribe to.
    pub const fn subscribed_topics(&self) -> BTreeSet<ByteString> {
        BTreeSet::new()
    }

    /// What takes a group without members off the log.
    pub const fn tombstones(&self, _group_id: &ByteString) -> Vec<GroupRecord> {
        Vec::new()
    }
}

/// Takes in a record of this protocol.
///
/// # Errors
/// The record speaks of a group of another kind.
pub fn replay(_: &mut GroupShard, _: &GroupRecord) -> Result<(), ReplayError> {
    Ok(())
}

/// A deadline of a group of this protocol is due.
pub fn on_deadline(_: &mut GroupShard, _: &Deadline, _: &mut Circumstances<'_>) -> GroupOutcome {
    GroupOutcome::default()
}

/// The shard has read its log: sessions begin.
pub fn loaded(_: &mut GroupShard, _: &str, _: &mut Circumstances<'_>) -> GroupOutcome {
    GroupOutcome::default()
}

/// Topics were created, deleted, or have more partitions.
pub fn metadata_changed(_: &mut GroupShard, _: &mut Circumstances<'_>) -> GroupOutcome {
    GroupOutcome::default()
}
