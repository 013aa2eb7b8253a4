//! Which partitions this broker holds: read by every handler, without a message.

use std::sync::Arc;

use arc_swap::ArcSwap;
use callboard_protocol::{ByteString, Uuid};
use imbl::OrdMap;

use super::view::PartitionHandle;

/// A topic's partitions on this broker.
#[derive(Debug, Clone)]
pub struct HeldTopic {
    /// The topic's id.
    pub id: Uuid,
    /// Its name.
    pub name: ByteString,
    /// Those of its partitions that this broker holds, by number.
    pub partitions: OrdMap<i32, PartitionHandle>,
}

/// All partitions of this broker at one moment. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Held {
    by_id: OrdMap<Uuid, Arc<HeldTopic>>,
    by_name: OrdMap<ByteString, Uuid>,
}

impl Held {
    /// A topic by its id.
    pub fn topic(&self, id: Uuid) -> Option<&HeldTopic> {
        self.by_id.get(&id).map(Arc::as_ref)
    }

    /// A topic by its name.
    pub fn topic_named(&self, name: &str) -> Option<&HeldTopic> {
        self.topic(*self.by_name.get(name)?)
    }

    /// A partition by its topic's id.
    pub fn partition(&self, topic_id: Uuid, partition: i32) -> Option<&PartitionHandle> {
        self.topic(topic_id)?.partitions.get(&partition)
    }

    /// A partition by its topic's name.
    pub fn partition_named(&self, topic: &str, partition: i32) -> Option<&PartitionHandle> {
        self.topic_named(topic)?.partitions.get(&partition)
    }

    /// All topics, by id.
    pub fn topics(&self) -> impl Iterator<Item = &HeldTopic> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// All partitions.
    pub fn partitions(&self) -> impl Iterator<Item = &PartitionHandle> {
        self.topics().flat_map(|topic| topic.partitions.values())
    }

    fn insert(&mut self, handle: PartitionHandle) {
        let id = handle.id().clone();
        let mut topic = self.topic(id.topic_id).cloned().unwrap_or_else(|| HeldTopic {
            id: id.topic_id,
            name: id.topic.clone(),
            partitions: OrdMap::new(),
        });
        topic.partitions.insert(id.partition, handle);
        self.by_id.insert(id.topic_id, Arc::new(topic));
        self.by_name.insert(id.topic, id.topic_id);
    }

    fn remove(&mut self, topic_id: Uuid, partition: i32) {
        let Some(mut topic) = self.topic(topic_id).cloned() else { return };
        topic.partitions.remove(&partition);
        if !topic.partitions.is_empty() {
            self.by_id.insert(topic_id, Arc::new(topic));
            return;
        }
        self.by_id.remove(&topic_id);
        // The name may belong to a new topic already.
        if self.by_name.get(&topic.name) == Some(&topic_id) {
            self.by_name.remove(&topic.name);
        }
    }
}

/// The partitions of this broker, for all to read. Only the replicas manager writes.
#[derive(Debug, Default)]
pub struct Registry {
    held: ArcSwap<Held>,
}

impl Registry {
    /// All partitions as they are now: take it once for a request.
    pub fn held(&self) -> Arc<Held> {
        self.held.load_full()
    }

    /// A partition by its topic's id.
    pub fn partition(&self, topic_id: Uuid, partition: i32) -> Option<PartitionHandle> {
        self.held.load().partition(topic_id, partition).cloned()
    }

    /// A partition by its topic's name.
    pub fn partition_named(&self, topic: &str, partition: i32) -> Option<PartitionHandle> {
        self.held.load().partition_named(topic, partition).cloned()
    }

    pub(super) fn insert_all(&self, handles: Vec<PartitionHandle>) {
        let mut held = Held::clone(&self.held.load());
        for handle in handles {
            held.insert(handle);
        }
        self.held.store(Arc::new(held));
    }

    pub(super) fn remove_all(&self, gone: &[(Uuid, i32)]) {
        let mut held = Held::clone(&self.held.load());
        for (topic_id, partition) in gone {
            held.remove(*topic_id, *partition);
        }
        self.held.store(Arc::new(held));
    }
}
