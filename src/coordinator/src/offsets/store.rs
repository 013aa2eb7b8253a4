//! The offsets in memory, committed and pending.

use callboard_protocol::messages::group_record::{GroupRecordKey, GroupRecordValue};
use callboard_protocol::messages::{OffsetCommitKey, OffsetCommitValue};
use callboard_protocol::{ByteString, Uuid};
use imbl::{OrdMap, OrdSet};

use crate::error::ReplayError;
use crate::group::GroupRecord;
use crate::runtime::Producer;

/// One committed offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the last record read; -1 if unknown.
    pub leader_epoch: i32,
    /// The committer's own text.
    pub metadata: ByteString,
    /// When it was committed, in milliseconds since 1970.
    pub commit_ms: i64,
    /// When it is to go, in milliseconds since 1970, if the committer said so.
    pub expire_ms: Option<i64>,
    /// The topic's id; zero if the committer did not say.
    pub topic_id: Uuid,
    /// Its place among all records of offsets: a pending one that is older than it does not replace it.
    order: u64,
}

/// A partition as a group sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionOfGroup {
    /// The group.
    pub group_id: ByteString,
    /// The topic's name.
    pub topic: ByteString,
    /// The partition's number.
    pub partition: i32,
}

/// A topic's offsets by partition.
pub type TopicOffsets = OrdMap<i32, Committed>;

/// All offsets of a shard.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Offsets {
    /// By group and topic; no map in it is empty.
    committed: OrdMap<ByteString, OrdMap<ByteString, TopicOffsets>>,
    /// By producer: what counts once its transaction is committed.
    pending: OrdMap<i64, OrdMap<PartitionOfGroup, Committed>>,
    /// The producers with something pending for a partition.
    pending_by: OrdMap<PartitionOfGroup, OrdSet<i64>>,
    replayed: u64,
}

impl From<&OffsetCommitKey> for PartitionOfGroup {
    fn from(key: &OffsetCommitKey) -> Self {
        Self { group_id: key.group.clone(), topic: key.topic.clone(), partition: key.partition }
    }
}

impl From<PartitionOfGroup> for OffsetCommitKey {
    fn from(of: PartitionOfGroup) -> Self {
        Self { group: of.group_id, topic: of.topic, partition: of.partition }
    }
}

impl Offsets {
    /// A group's offsets by topic.
    pub fn of_group(&self, group_id: &str) -> Option<&OrdMap<ByteString, TopicOffsets>> {
        self.committed.get(group_id)
    }

    /// What a group has committed for a partition.
    pub fn get(&self, group_id: &str, topic: &str, partition: i32) -> Option<&Committed> {
        self.committed.get(group_id)?.get(topic)?.get(&partition)
    }

    /// Whether an open transaction holds an offset for a partition.
    pub fn is_pending(&self, of: &PartitionOfGroup) -> bool {
        self.pending_by.contains_key(of)
    }

    /// The partitions for which an open transaction holds an offset of a group.
    pub fn pending_of(&self, group_id: &ByteString) -> impl Iterator<Item = &PartitionOfGroup> {
        let first =
            PartitionOfGroup { group_id: group_id.clone(), topic: ByteString::new(), partition: i32::MIN };
        let of_group = self.pending_by.range(first..).map(|(of, _)| of);
        of_group.take_while(move |of| of.group_id == *group_id)
    }

    /// The groups that have committed for a topic.
    pub(super) fn groups_with(&self, topic: &str) -> Vec<ByteString> {
        let with = self.committed.iter().filter(|(_, topics)| topics.contains_key(topic));
        with.map(|(group_id, _)| group_id.clone()).collect()
    }

    /// The records that take away all that a group has committed.
    pub(crate) fn tombstones(&self, group_id: &ByteString) -> Vec<GroupRecord> {
        let topics = self.committed.get(group_id).into_iter().flat_map(|topics| topics.iter());
        let keys = topics.flat_map(|(topic, partitions)| {
            partitions.keys().map(|partition| OffsetCommitKey {
                group: group_id.clone(),
                topic: topic.clone(),
                partition: *partition,
            })
        });
        keys.map(GroupRecord::tombstone).collect()
    }

    /// Takes in a commit.
    pub(crate) fn insert(&mut self, key: &OffsetCommitKey, value: &OffsetCommitValue) {
        let committed = self.next(value);
        self.put(PartitionOfGroup::from(key), committed);
    }

    fn next(&mut self, value: &OffsetCommitValue) -> Committed {
        self.replayed += 1;
        Committed {
            offset: value.offset,
            leader_epoch: value.leader_epoch,
            metadata: value.metadata.clone(),
            commit_ms: value.commit_timestamp,
            expire_ms: (value.expire_timestamp >= 0).then_some(value.expire_timestamp),
            topic_id: value.topic_id,
            order: self.replayed,
        }
    }

    fn put(&mut self, of: PartitionOfGroup, committed: Committed) {
        let topics = self.committed.entry(of.group_id).or_default();
        topics.entry(of.topic).or_default().insert(of.partition, committed);
    }

    /// Takes in a tombstone.
    pub(crate) fn remove(&mut self, key: &OffsetCommitKey) {
        let of = PartitionOfGroup::from(key);
        for producer_id in self.pending_by.remove(&of).into_iter().flatten() {
            self.forget_pending(producer_id, &of);
        }
        let Some(topics) = self.committed.get_mut(&key.group) else { return };
        let Some(partitions) = topics.get_mut(&key.topic) else { return };
        partitions.remove(&key.partition);
        if !partitions.is_empty() {
            return;
        }
        topics.remove(&key.topic);
        if topics.is_empty() {
            self.committed.remove(&key.group);
        }
    }

    fn forget_pending(&mut self, producer_id: i64, of: &PartitionOfGroup) {
        let Some(pending) = self.pending.get_mut(&producer_id) else { return };
        pending.remove(of);
        if pending.is_empty() {
            self.pending.remove(&producer_id);
        }
    }

    /// Takes in a commit of a transaction: it counts once that is committed. Gives the group.
    ///
    /// # Errors
    /// The record is no commit: nothing else is written in transactions.
    pub(crate) fn insert_pending(
        &mut self,
        producer: Producer,
        record: &GroupRecord,
    ) -> Result<ByteString, ReplayError> {
        let (GroupRecordKey::OffsetCommitKey(key), Some((GroupRecordValue::OffsetCommitValue(value), _))) =
            (&record.key, &record.value)
        else {
            return Err(record.mismatch());
        };
        let of = PartitionOfGroup::from(key);
        let committed = self.next(value);
        self.pending.entry(producer.id).or_default().insert(of.clone(), committed);
        self.pending_by.entry(of).or_default().insert(producer.id);
        Ok(key.group.clone())
    }

    /// Ends a producer's transaction: what it held counts, or is forgotten.
    pub(crate) fn end_transaction(&mut self, producer: Producer, committed: bool) {
        for (of, pending) in self.pending.remove(&producer.id).into_iter().flatten() {
            if let Some(producers) = self.pending_by.get_mut(&of) {
                producers.remove(&producer.id);
                if producers.is_empty() {
                    self.pending_by.remove(&of);
                }
            }
            let present = self.get(&of.group_id, &of.topic, of.partition);
            if committed && present.is_none_or(|present| present.order < pending.order) {
                self.put(of, pending);
            }
        }
    }
}
