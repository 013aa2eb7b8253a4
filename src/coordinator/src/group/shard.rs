//! The shard: all groups and offsets of one partition of `__consumer_offsets`.

use std::sync::Arc;

use bytes::Bytes;
use callboard_protocol::ByteString;
use callboard_protocol::messages::group_record::{GroupRecordKey, GroupRecordValue};
use callboard_protocol::wire::{DecodeError, EncodeError};
use imbl::OrdMap;

use super::classic::{self, ClassicGroup};
use super::record::GroupRecord;
use super::request::{Caller, Reply, Request};
use super::timers::{Deadline, TimerKind, Timers};
use super::{Group, admin, consumer};
use crate::cluster::Circumstances;
use crate::error::ReplayError;
use crate::offsets::{self, Offsets};
use crate::runtime::{Coordinator, EncodedRecord, Entry, Machine, Outcome, Producer, Ticket};

/// What a call into a shard comes to.
pub type GroupOutcome = Outcome<GroupShard>;

/// Work that a shard has others do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Looks for the topics of patterns.
    LookUp(consumer::LookUp),
}

/// What comes back from an [`Effect`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// The topics of patterns.
    Found(consumer::Found),
}

/// All groups and offsets of one partition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupShard {
    /// The groups by id.
    pub groups: OrdMap<ByteString, Group>,
    /// What they have committed.
    pub offsets: Offsets,
    /// When to look after what.
    pub timers: Timers,
}

impl GroupShard {
    fn on_deadline(&mut self, deadline: &Deadline, cx: &mut Circumstances<'_>) -> GroupOutcome {
        match &deadline.kind {
            TimerKind::ClassicSession(_) | TimerKind::ClassicJoin | TimerKind::ClassicSync => {
                classic::on_deadline(self, deadline, cx)
            }
            TimerKind::ConsumerSession(_)
            | TimerKind::ConsumerRebalance(_)
            | TimerKind::ConsumerJoin(_)
            | TimerKind::ConsumerSync(_) => consumer::on_deadline(self, deadline, cx),
            TimerKind::OffsetExpiry => offsets::expire(self, cx),
        }
    }

    /// Writes a record: it changes the state at once, and goes with the outcome. One that can't be replayed is a fault of
    /// the caller, and is neither applied nor written.
    pub fn write(&mut self, outcome: &mut GroupOutcome, record: GroupRecord) {
        let replayed = self.replay_record(&record);
        debug_assert!(replayed.is_ok(), "own record: {replayed:?}");
        if replayed.is_ok() {
            outcome.records.push(record);
        }
    }

    /// Writes a commit of a transaction: it counts once that is committed. All of an outcome is of one producer.
    pub fn write_pending(&mut self, outcome: &mut GroupOutcome, producer: Producer, record: GroupRecord) {
        let entry = Entry::Record(record, Some(producer));
        let replayed = self.replay(&entry);
        debug_assert!(replayed.is_ok(), "own record: {replayed:?}");
        if let (Ok(()), Entry::Record(record, _)) = (replayed, entry) {
            outcome.records.push(record);
            outcome.producer = Some(producer);
        }
    }

    /// A classic group by its id.
    pub fn classic(&self, group_id: &str) -> Option<&ClassicGroup> {
        match self.groups.get(group_id) {
            Some(Group::Classic(group)) => Some(group),
            _ => None,
        }
    }

    /// A classic group to change, and the shard's deadlines.
    pub(super) fn classic_mut(&mut self, group_id: &str) -> Option<(&mut ClassicGroup, &mut Timers)> {
        match self.groups.get_mut(group_id) {
            Some(Group::Classic(group)) => Some((Arc::make_mut(group), &mut self.timers)),
            _ => None,
        }
    }

    /// Offsets alone make a group: one without members.
    fn ensure_group(&mut self, group_id: &ByteString) {
        if !self.groups.contains_key(group_id) {
            let group = ClassicGroup::new(group_id.clone());
            self.groups.insert(group_id.clone(), Group::Classic(Arc::new(group)));
        }
    }

    fn replay_record(&mut self, record: &GroupRecord) -> Result<(), ReplayError> {
        match (&record.key, record.value.as_ref().map(|(value, _)| value)) {
            (GroupRecordKey::OffsetCommitKey(key), None) => self.offsets.remove(key),
            (GroupRecordKey::OffsetCommitKey(key), Some(GroupRecordValue::OffsetCommitValue(value))) => {
                self.ensure_group(&key.group);
                self.offsets.insert(key, value);
            }
            (GroupRecordKey::GroupMetadataKey(key), None) => {
                self.groups.remove(&key.group);
            }
            (GroupRecordKey::GroupMetadataKey(key), Some(GroupRecordValue::GroupMetadataValue(value))) => {
                let group = ClassicGroup::from_record(&key.group, value);
                self.groups.insert(key.group.clone(), Group::Classic(Arc::new(group)));
            }
            (GroupRecordKey::OffsetCommitKey(_) | GroupRecordKey::GroupMetadataKey(_), Some(_)) => {
                return Err(record.mismatch());
            }
            // Of groups of kinds that are not built yet: they stay in the log for whoever knows them.
            (key, _) if is_of_other_kind(key) => {}
            _ => consumer::replay(self, record)?,
        }
        Ok(())
    }
}

/// Whether a record belongs to a share group or a streams group.
const fn is_of_other_kind(key: &GroupRecordKey) -> bool {
    use GroupRecordKey as Key;
    matches!(
        key,
        Key::ShareGroupMemberMetadataKey(_)
            | Key::ShareGroupMetadataKey(_)
            | Key::ShareGroupTargetAssignmentMetadataKey(_)
            | Key::ShareGroupTargetAssignmentMemberKey(_)
            | Key::ShareGroupCurrentMemberAssignmentKey(_)
            | Key::ShareGroupStatePartitionMetadataKey(_)
            | Key::StreamsGroupMetadataKey(_)
            | Key::StreamsGroupMemberMetadataKey(_)
            | Key::StreamsGroupTargetAssignmentMetadataKey(_)
            | Key::StreamsGroupTargetAssignmentMemberKey(_)
            | Key::StreamsGroupCurrentMemberAssignmentKey(_)
            | Key::StreamsGroupTopologyKey(_)
    )
}

impl Machine for GroupShard {
    type Record = GroupRecord;
    type Reply = Reply;
    type Effect = Effect;

    fn encode(record: &GroupRecord) -> Result<EncodedRecord, EncodeError> {
        record.encode()
    }

    fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<GroupRecord, DecodeError> {
        GroupRecord::decode(key, value)
    }

    fn replay(&mut self, entry: &Entry<GroupRecord>) -> Result<(), ReplayError> {
        match entry {
            Entry::Record(record, None) => self.replay_record(record),
            Entry::Record(record, Some(producer)) => {
                let group_id = self.offsets.insert_pending(*producer, record)?;
                self.ensure_group(&group_id);
                Ok(())
            }
            Entry::Marker { producer, committed } => {
                self.offsets.end_transaction(*producer, *committed);
                Ok(())
            }
        }
    }

    fn next_deadline_ms(&self) -> Option<i64> {
        self.timers.next_ms()
    }
}

impl Coordinator for GroupShard {
    type Request = (Caller, Request);
    type Done = Done;

    fn handle(
        &mut self,
        ticket: Ticket,
        (caller, request): (Caller, Request),
        cx: &mut Circumstances<'_>,
    ) -> GroupOutcome {
        let reply = match request {
            Request::JoinGroup(request) => match self.groups.get(&request.group_id) {
                Some(Group::Consumer(_)) => return consumer::join(self, ticket, &caller, request, cx),
                _ => return classic::join(self, ticket, &caller, request, cx),
            },
            Request::SyncGroup(request) => match self.groups.get(&request.group_id) {
                Some(Group::Consumer(_)) => Reply::SyncGroup(consumer::sync(self, &request, cx)),
                _ => return classic::sync(self, ticket, request, cx),
            },
            Request::Heartbeat(request) => match self.groups.get(&request.group_id) {
                Some(Group::Consumer(_)) => Reply::Heartbeat(consumer::classic_heartbeat(self, &request, cx)),
                _ => Reply::Heartbeat(classic::heartbeat(self, &request, cx)),
            },
            Request::LeaveGroup(request) => match self.groups.get(&request.group_id) {
                Some(Group::Consumer(_)) => return consumer::classic_leave(self, ticket, request, cx),
                _ => return classic::leave(self, ticket, request, cx),
            },
            Request::OffsetCommit(request) => return offsets::commit(self, ticket, &caller, request, cx),
            Request::TxnOffsetCommit(request) => return offsets::txn_commit(self, ticket, request, cx),
            Request::EndTransaction(request) => {
                self.offsets.end_transaction(request.producer, request.committed);
                Reply::EndTransaction(())
            }
            Request::FetchOffsets(request) => Reply::FetchOffsets(offsets::fetch(self, &request)),
            Request::OffsetDelete(request) => return offsets::delete(self, ticket, request),
            Request::DescribeGroup(request) => {
                Reply::DescribeGroup(admin::describe(self, request.group_id, caller.version))
            }
            Request::DeleteGroup(request) => return admin::delete(self, ticket, request.group_id),
            Request::ListGroups(request) => Reply::ListGroups(admin::list(self, &request)),
            Request::ConsumerGroupHeartbeat(request) => {
                return consumer::heartbeat(self, ticket, &caller, request, cx);
            }
            Request::DescribeConsumerGroup(request) => {
                Reply::DescribeConsumerGroup(consumer::describe(self, request.group_id, cx))
            }
        };
        GroupOutcome::reply(ticket, reply)
    }

    fn on_time(&mut self, cx: &mut Circumstances<'_>) -> GroupOutcome {
        let mut outcome = GroupOutcome::default();
        while let Some(deadline) = self.timers.take_due(cx.monotonic_ms) {
            outcome.extend(self.on_deadline(&deadline, cx));
        }
        outcome
    }

    fn loaded(&mut self, cx: &mut Circumstances<'_>) -> GroupOutcome {
        let mut outcome = GroupOutcome::default();
        let ids: Vec<ByteString> = self.groups.keys().cloned().collect();
        for id in &ids {
            outcome.extend(match self.groups.get(id) {
                Some(Group::Classic(_)) => classic::loaded(self, id, cx),
                Some(Group::Consumer(_)) => consumer::loaded(self, id, cx),
                None => GroupOutcome::default(),
            });
        }
        offsets::schedule_expiry(self, cx);
        outcome
    }

    fn metadata_changed(&mut self, deleted: &[ByteString], _: &mut Circumstances<'_>) -> GroupOutcome {
        // Consumer groups compare their topics with the metadata at each heartbeat.
        offsets::topics_deleted(self, deleted)
    }

    fn perform(effect: Effect) -> Done {
        match effect {
            Effect::LookUp(look_up) => Done::Found(look_up.run()),
        }
    }

    fn performed(&mut self, done: Done, cx: &mut Circumstances<'_>) -> GroupOutcome {
        match done {
            Done::Found(found) => consumer::found(self, &found, cx),
        }
    }
}
