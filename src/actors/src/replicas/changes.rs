//! From metadata images to what this broker holds.

use std::sync::Arc;

use callboard_metadata::config::{Settings, TopicConfig};
use callboard_metadata::image::{ConfigResource, Delta, Image, PartitionRegistration, ResourceType, Topic};
use callboard_protocol::{ByteString, Uuid};

use super::messages::{ApplyChanges, Assignment, Wanted};
use super::settings::PartitionSettings;
use super::view::PartitionId;

/// Whose partitions, by what settings.
#[derive(Debug, Clone, Copy)]
pub struct Viewpoint<'a> {
    /// `node.id`.
    pub node_id: i32,
    /// The broker's settings, dynamic ones included.
    pub broker: &'a Settings,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration_ms: i64,
}

impl Viewpoint<'_> {
    /// All that this broker is to hold: for the first image.
    pub fn everything(&self, image: &Image) -> ApplyChanges {
        let mut changes = ApplyChanges { complete: true, ..ApplyChanges::default() };
        for topic in image.topics.iter() {
            self.want_all(image, topic, &mut changes);
        }
        changes
    }

    /// What differs for this broker between two images. `None` if nothing does.
    pub fn difference(&self, old: &Image, new: &Image, delta: &Delta) -> Option<ApplyChanges> {
        let mut changes = ApplyChanges::default();
        for topic in &delta.topics {
            if topic.deleted {
                if old.topics.by_id(topic.id).is_some_and(|old| self.holds_any(old)) {
                    changes.unwanted_topics.push(topic.id);
                }
                continue;
            }
            let settings = self.settings(new, &topic.name);
            let before = old.topics.by_id(topic.id);
            for (number, registration) in &topic.changed {
                if self.holds(registration) {
                    changes.wanted.push(self.wanted(topic.id, &topic.name, *number, registration, &settings));
                } else if before.and_then(|topic| topic.partition(*number)).is_some_and(|old| self.holds(old))
                {
                    changes.unwanted.push((topic.id, *number));
                }
            }
        }
        self.follow_configs(new, delta, &mut changes);
        let nothing =
            changes.wanted.is_empty() && changes.unwanted.is_empty() && changes.unwanted_topics.is_empty();
        (!nothing).then_some(changes)
    }

    /// Partitions whose settings may have changed. One that is named twice is changed once.
    fn follow_configs(&self, image: &Image, delta: &Delta, changes: &mut ApplyChanges) {
        let ours = |resource: &ConfigResource| {
            resource.kind == ResourceType::Broker
                && (resource.name.is_empty() || resource.name.parse() == Ok(self.node_id))
        };
        if delta.configs.iter().any(ours) {
            for topic in image.topics.iter() {
                self.want_all(image, topic, changes);
            }
            return;
        }
        for resource in delta.configs.iter().filter(|resource| resource.kind == ResourceType::Topic) {
            if let Some(topic) = image.topics.by_name(&resource.name) {
                self.want_all(image, topic, changes);
            }
        }
    }

    fn want_all(&self, image: &Image, topic: &Topic, changes: &mut ApplyChanges) {
        let settings = self.settings(image, &topic.name);
        let ours = topic.partitions.iter().filter(|(_, registration)| self.holds(registration));
        let wanted =
            ours.map(|(number, partition)| self.wanted(topic.id, &topic.name, *number, partition, &settings));
        changes.wanted.extend(wanted);
    }

    fn holds(&self, registration: &PartitionRegistration) -> bool {
        registration.replicas.contains(&self.node_id)
    }

    fn holds_any(&self, topic: &Topic) -> bool {
        topic.partitions.values().any(|registration| self.holds(registration))
    }

    fn settings(&self, image: &Image, topic: &ByteString) -> Arc<PartitionSettings> {
        let values = image.configs.of(&ConfigResource::topic(topic.clone()));
        let overrides = values.iter().map(|(name, value)| (name.as_ref(), value.as_ref()));
        let effective = TopicConfig::effective(self.broker, overrides);
        Arc::new(PartitionSettings::new(&effective, self.producer_id_expiration_ms))
    }

    fn wanted(
        &self,
        topic_id: Uuid,
        topic: &ByteString,
        partition: i32,
        registration: &PartitionRegistration,
        settings: &Arc<PartitionSettings>,
    ) -> Wanted {
        Wanted {
            id: PartitionId { topic_id, topic: topic.clone(), partition },
            assignment: Assignment {
                leader: registration.leader,
                leader_epoch: registration.leader_epoch,
                partition_epoch: registration.partition_epoch,
                replicas: registration.replicas.clone(),
                isr: registration.isr.clone(),
            },
            settings: Arc::clone(settings),
            directory: registration.directory(self.node_id).unwrap_or(Uuid::ZERO),
        }
    }
}
