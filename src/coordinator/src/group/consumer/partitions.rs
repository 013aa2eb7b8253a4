//! Sets of partitions, by topic id.

use std::collections::{BTreeMap, BTreeSet};

use callboard_protocol::Uuid;

/// A partition of a topic.
pub type TopicPartition = (Uuid, i32);

/// A set of partitions, by topic. No topic is there without a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partitions {
    topics: BTreeMap<Uuid, BTreeSet<i32>>,
}

impl Partitions {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a partition.
    pub fn insert(&mut self, topic: Uuid, partition: i32) {
        self.topics.entry(topic).or_default().insert(partition);
    }

    /// Takes a partition out; whether it was there.
    pub fn remove(&mut self, topic: Uuid, partition: i32) -> bool {
        let Some(partitions) = self.topics.get_mut(&topic) else { return false };
        let was_there = partitions.remove(&partition);
        if partitions.is_empty() {
            self.topics.remove(&topic);
        }
        was_there
    }

    /// Whether the partition is in the set.
    pub fn contains(&self, topic: Uuid, partition: i32) -> bool {
        self.topics.get(&topic).is_some_and(|partitions| partitions.contains(&partition))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// How many partitions.
    pub fn len(&self) -> usize {
        self.topics.values().map(BTreeSet::len).sum()
    }

    /// The topics in their order, with their partitions in theirs.
    pub fn topics(&self) -> impl Iterator<Item = (Uuid, &BTreeSet<i32>)> {
        self.topics.iter().map(|(topic, partitions)| (*topic, partitions))
    }

    /// Every partition, in order.
    pub fn iter(&self) -> impl Iterator<Item = TopicPartition> + '_ {
        self.topics.iter().flat_map(|(topic, partitions)| partitions.iter().map(move |p| (*topic, *p)))
    }
}

impl FromIterator<TopicPartition> for Partitions {
    fn from_iter<I: IntoIterator<Item = TopicPartition>>(partitions: I) -> Self {
        let mut set = Self::new();
        for (topic, partition) in partitions {
            set.insert(topic, partition);
        }
        set
    }
}

/// Partitions that a member has, each with the epoch of the assignment that gave it (KIP-1251): a commit made at an
/// older member epoch is still good for what the member had then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssignedPartitions {
    topics: BTreeMap<Uuid, BTreeMap<i32, i32>>,
}

impl AssignedPartitions {
    /// Without a partition.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a partition that the assignment of `epoch` gave.
    pub fn insert(&mut self, topic: Uuid, partition: i32, epoch: i32) {
        self.topics.entry(topic).or_default().insert(partition, epoch);
    }

    /// The epoch of the assignment that gave the partition.
    pub fn epoch_of(&self, topic: Uuid, partition: i32) -> Option<i32> {
        self.topics.get(&topic)?.get(&partition).copied()
    }

    /// Whether the partition is there.
    pub fn contains(&self, topic: Uuid, partition: i32) -> bool {
        self.epoch_of(topic, partition).is_some()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// How many partitions.
    pub fn len(&self) -> usize {
        self.topics.values().map(BTreeMap::len).sum()
    }

    /// The topics in their order, with their partitions and epochs.
    pub fn topics(&self) -> impl Iterator<Item = (Uuid, &BTreeMap<i32, i32>)> {
        self.topics.iter().map(|(topic, partitions)| (*topic, partitions))
    }

    /// Every partition with its epoch, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, i32, i32)> + '_ {
        self.topics
            .iter()
            .flat_map(|(topic, partitions)| partitions.iter().map(move |(p, e)| (*topic, *p, *e)))
    }

    /// The same partitions without their epochs.
    pub fn partitions(&self) -> Partitions {
        self.iter().map(|(topic, partition, _)| (topic, partition)).collect()
    }

    /// Whether these are the same partitions, whatever their epochs.
    pub fn same_partitions(&self, other: &Self) -> bool {
        self.topics.len() == other.topics.len()
            && self.topics.iter().zip(&other.topics).all(|((topic, own), (other_topic, others))| {
                topic == other_topic && own.len() == others.len() && own.keys().eq(others.keys())
            })
    }

    /// The same partitions, all with one epoch.
    pub fn with_epoch(&self, epoch: i32) -> Self {
        self.iter().map(|(topic, partition, _)| (topic, partition, epoch)).collect()
    }
}

impl FromIterator<(Uuid, i32, i32)> for AssignedPartitions {
    fn from_iter<I: IntoIterator<Item = (Uuid, i32, i32)>>(partitions: I) -> Self {
        let mut set = Self::new();
        for (topic, partition, epoch) in partitions {
            set.insert(topic, partition, epoch);
        }
        set
    }
}
