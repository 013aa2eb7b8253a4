//! What differs between two images.

use std::sync::Arc;

use callboard_protocol::{ByteString, Uuid};
use imbl::ordmap::DiffItem;

use super::{ConfigResource, Image, PartitionRegistration, Topic};

/// What became of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicDelta {
    /// The topic's id.
    pub id: Uuid,
    /// The topic's name.
    pub name: ByteString,
    /// Partitions that are new or have changed, by number.
    pub changed: Vec<(i32, Arc<PartitionRegistration>)>,
    /// The topic is new.
    pub created: bool,
    /// The topic is gone: `changed` is empty, and the old image has its partitions.
    pub deleted: bool,
}

/// What differs between two images, in a stable order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    /// A feature's level changed.
    pub features_changed: bool,
    /// Brokers that came, went or changed.
    pub brokers: Vec<i32>,
    /// Controllers that came, went or changed.
    pub controllers: Vec<i32>,
    /// Topics that came, went or changed. Deletions come first: a name may come again under a new id.
    pub topics: Vec<TopicDelta>,
    /// Resources whose configurations changed.
    pub configs: Vec<ConfigResource>,
    /// A client quota changed.
    pub quotas_changed: bool,
    /// An ACL, credential or token changed.
    pub security_changed: bool,
}

impl Delta {
    /// Compares two images.
    pub fn between(old: &Image, new: &Image) -> Self {
        let mut topics: Vec<TopicDelta> =
            old.topics.ids().diff(new.topics.ids()).filter_map(topic_delta).collect();
        topics.sort_by_key(|topic| !topic.deleted);
        Self {
            features_changed: old.features != new.features,
            brokers: keys(&old.cluster.brokers, &new.cluster.brokers),
            controllers: keys(&old.cluster.controllers, &new.cluster.controllers),
            topics,
            configs: keys(old.configs.resources(), new.configs.resources()),
            quotas_changed: old.quotas != new.quotas,
            security_changed: old.security != new.security,
        }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn topic_delta(item: DiffItem<'_, '_, Uuid, Arc<Topic>>) -> Option<TopicDelta> {
    let all = |topic: &Topic| topic.partitions.iter().map(|(n, p)| (*n, Arc::clone(p))).collect();
    let (topic, changed, created, deleted) = match item {
        DiffItem::Add(_, topic) => (topic, all(topic), true, false),
        DiffItem::Remove(_, topic) => (topic, Vec::new(), false, true),
        DiffItem::Update { old, new } => {
            let changed: Vec<_> = old
                .1
                .partitions
                .diff(&new.1.partitions)
                .filter_map(|item| match item {
                    DiffItem::Add(n, p) | DiffItem::Update { new: (n, p), .. } => Some((*n, Arc::clone(p))),
                    // Partitions never go but with their topic.
                    DiffItem::Remove(..) => None,
                })
                .collect();
            if changed.is_empty() {
                return None;
            }
            (new.1, changed, false, false)
        }
    };
    Some(TopicDelta { id: topic.id, name: topic.name.clone(), changed, created, deleted })
}

fn keys<K: Ord + Clone, V: PartialEq + Clone>(old: &imbl::OrdMap<K, V>, new: &imbl::OrdMap<K, V>) -> Vec<K> {
    old.diff(new)
        .map(|item| match item {
            DiffItem::Add(key, _) | DiffItem::Remove(key, _) | DiffItem::Update { new: (key, _), .. } => {
                key.clone()
            }
        })
        .collect()
}
