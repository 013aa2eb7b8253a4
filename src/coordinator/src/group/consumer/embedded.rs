//! The consumer's part in the classic protocol: subscriptions and assignments as bytes within JoinGroup and SyncGroup.

use std::collections::BTreeSet;

use bytes::Bytes;
use callboard_protocol::ByteString;
use callboard_protocol::messages::consumer_protocol_assignment::TopicPartition;
use callboard_protocol::messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription, Message};
use callboard_protocol::wire::{Reader, Writer};

use super::partitions::{AssignedPartitions, Partitions};
use crate::cluster::Cluster;

/// The protocol type of consumers.
pub(super) const CONSUMER: &str = "consumer";

/// What a classic member says that it wants and has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Subscription {
    /// The version it is written in.
    pub version: i16,
    pub topics: BTreeSet<ByteString>,
    pub owned: Vec<(ByteString, Vec<i32>)>,
    pub rack_id: Option<ByteString>,
}

/// Reads a member's subscription; `None` if it is not one. Later versions only have more at their end.
pub(super) fn subscription(metadata: &Bytes) -> Option<Subscription> {
    let mut r = Reader::new(metadata);
    let version = r.i16().ok().filter(|version| *version >= 0)?;
    let known = version.min(ConsumerProtocolSubscription::MAX_VERSION);
    let read = ConsumerProtocolSubscription::decode(&mut r, known).ok()?;
    Some(Subscription {
        version: known,
        topics: read.topics.into_iter().collect(),
        owned: read.owned_partitions.into_iter().map(|owned| (owned.topic, owned.partitions)).collect(),
        rack_id: read.rack_id,
    })
}

impl Subscription {
    /// What it has, of topics that exist.
    pub fn owned_partitions(&self, cluster: &dyn Cluster) -> Partitions {
        by_id(self.owned.iter().map(|(topic, partitions)| (topic, partitions.as_slice())), cluster)
    }
}

/// Reads an assignment; `None` if it is not one, or if a client-side assignor put something of its own into it, which a
/// server-side assignor could not go on with. Nothing at all is an assignment of nothing.
pub(super) fn assignment(bytes: &Bytes, cluster: &dyn Cluster) -> Option<Partitions> {
    if bytes.is_empty() {
        return Some(Partitions::new());
    }
    let mut r = Reader::new(bytes);
    let version = r.i16().ok().filter(|version| *version >= 0)?;
    let known = version.min(ConsumerProtocolAssignment::MAX_VERSION);
    let read = ConsumerProtocolAssignment::decode(&mut r, known).ok()?;
    if read.user_data.is_some_and(|data| !data.is_empty()) {
        return None;
    }
    let topics = read.assigned_partitions.iter();
    Some(by_id(topics.map(|topic| (&topic.topic, topic.partitions.as_slice())), cluster))
}

fn by_id<'a>(topics: impl Iterator<Item = (&'a ByteString, &'a [i32])>, cluster: &dyn Cluster) -> Partitions {
    let existing = topics.filter_map(|(name, partitions)| Some((cluster.topic(name)?.id, partitions)));
    existing
        .flat_map(|(topic, partitions)| partitions.iter().map(move |partition| (topic, *partition)))
        .collect()
}

/// Writes an assignment in a version of the protocol. Deleted topics are left out.
pub(super) fn assignment_bytes(assigned: &AssignedPartitions, version: i16, cluster: &dyn Cluster) -> Bytes {
    let version = version.clamp(0, ConsumerProtocolAssignment::MAX_VERSION);
    let topics = assigned.topics().filter_map(|(topic, partitions)| {
        let topic = cluster.topic_by_id(topic)?.name;
        Some(TopicPartition { topic, partitions: partitions.keys().copied().collect() })
    });
    let message = ConsumerProtocolAssignment { assigned_partitions: topics.collect(), ..Default::default() };
    let mut w = Writer::contiguous();
    w.i16(version);
    // Names are of topics that exist, so none is too long.
    if message.encode(&mut w, version).is_err() {
        return Bytes::new();
    }
    w.finish().into_bytes().unwrap_or_default()
}
