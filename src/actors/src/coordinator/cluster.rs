//! The metadata as coordinators see it.

use std::sync::Arc;

use callboard_coordinator::{Cluster, TopicView};
use callboard_metadata::image::{ConfigResource, ResourceType, Topic};
use callboard_protocol::{ByteString, Uuid};

use crate::control::applied::AppliedMetadata;

/// One moment's metadata.
pub struct ClusterView(pub Arc<AppliedMetadata>);

fn view(topic: &Topic) -> TopicView {
    let partitions = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
    TopicView { id: topic.id, name: topic.name.clone(), partitions }
}

impl Cluster for ClusterView {
    fn metadata_offset(&self) -> i64 {
        self.0.offset
    }

    fn topic(&self, name: &str) -> Option<TopicView> {
        self.0.image.topics.by_name(name).map(view)
    }

    fn topic_by_id(&self, id: Uuid) -> Option<TopicView> {
        self.0.image.topics.by_id(id).map(view)
    }

    fn topics(&self) -> Vec<TopicView> {
        self.0.image.topics.iter_by_name().map(view).collect()
    }

    fn racks(&self, topic: Uuid, partition: i32) -> Vec<ByteString> {
        let topic = self.0.image.topics.by_id(topic);
        let replicas = topic.and_then(|topic| topic.partition(partition)).map(|found| &found.replicas);
        let brokers = replicas.into_iter().flatten().filter_map(|id| self.0.image.cluster.broker(*id));
        let mut racks: Vec<ByteString> = brokers.filter_map(|broker| broker.rack.clone()).collect();
        racks.sort();
        racks.dedup();
        racks
    }

    fn group_config(&self, group_id: &str, name: &str) -> Option<ByteString> {
        let resource = ConfigResource { kind: ResourceType::Group, name: group_id.into() };
        self.0.image.configs.value(&resource, name).cloned()
    }

    fn feature_level(&self, name: &str) -> i16 {
        self.0.image.features.level(name)
    }
}
