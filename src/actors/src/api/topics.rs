//! Topics and partitions as requests name them.

use std::collections::BTreeMap;

use callboard_protocol::{ByteString, ErrorCode, Uuid};

use super::RequestContext;
use crate::replicas::PartitionHandle;

/// The name under which Kafka's own tools may write to internal topics.
pub(super) const ADMIN_CLIENT: &str = "__admin_client";
/// Topics that hold the coordinators' state, which clients may not write to.
const INTERNAL: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// What a request asks of partitions, each once, as Kafka answers it: a topic that is named twice is one topic, and one
/// without partitions is none.
pub(super) type ByPartition<T> = BTreeMap<ByteString, BTreeMap<i32, T>>;

/// Puts what is asked of one partition to the rest, and gives back what was asked of it before.
pub(super) fn ask_of<T>(all: &mut ByPartition<T>, topic: &ByteString, partition: i32, asked: T) -> Option<T> {
    match all.get_mut(topic) {
        Some(partitions) => partitions.insert(partition, asked),
        None => {
            all.insert(topic.clone(), BTreeMap::from([(partition, asked)]));
            None
        }
    }
}

/// A topic that the metadata has.
pub(super) struct Found<'a> {
    cx: &'a RequestContext,
    id: Uuid,
    internal: bool,
}

/// Finds a topic by its id.
pub(super) fn by_id(cx: &RequestContext, id: Uuid) -> Result<Found<'_>, ErrorCode> {
    let metadata = cx.services.metadata();
    match metadata.image.topics.name(id) {
        Some(name) => Ok(Found { cx, id, internal: is_internal(name) }),
        None => Err(ErrorCode::UnknownTopicId),
    }
}

/// Finds a topic by its name.
pub(super) fn by_name<'a>(cx: &'a RequestContext, name: &str) -> Result<Found<'a>, ErrorCode> {
    let metadata = cx.services.metadata();
    match metadata.image.topics.by_name(name) {
        Some(topic) => Ok(Found { cx, id: topic.id, internal: is_internal(&topic.name) }),
        None => Err(ErrorCode::UnknownTopicOrPartition),
    }
}

fn is_internal(name: &str) -> bool {
    INTERNAL.contains(&name)
}

impl Found<'_> {
    /// Whether only the broker itself writes to it.
    pub(super) fn is_internal(&self) -> bool {
        self.internal
    }

    /// Its id.
    pub(super) fn id(&self) -> Uuid {
        self.id
    }

    /// One of its partitions on this broker.
    ///
    /// # Errors
    /// UNKNOWN_TOPIC_OR_PARTITION if the topic has no such partition, NOT_LEADER_OR_FOLLOWER if this broker has no copy.
    pub(super) fn partition(&self, index: i32) -> Result<PartitionHandle, ErrorCode> {
        partition(self.cx, self.id, index)
    }
}

/// A partition on this broker, by its topic's id.
///
/// # Errors
/// As [`Found::partition`].
pub(super) fn partition(cx: &RequestContext, id: Uuid, index: i32) -> Result<PartitionHandle, ErrorCode> {
    if let Some(handle) = cx.services.replicas.registry.partition(id, index) {
        return Ok(handle);
    }
    let metadata = cx.services.metadata();
    match metadata.image.topics.by_id(id).and_then(|topic| topic.partition(index)) {
        Some(_) => Err(ErrorCode::NotLeaderOrFollower),
        None => Err(ErrorCode::UnknownTopicOrPartition),
    }
}
