//! A cluster for tests.

use std::collections::BTreeMap;

use callboard_protocol::{ByteString, Uuid};

use crate::cluster::{Cluster, TopicView};

/// Topics, racks and group settings that a test says.
#[derive(Clone, Debug, Default)]
pub(crate) struct TestCluster {
    topics: BTreeMap<ByteString, (TopicView, Vec<ByteString>)>,
    offset: i64,
    configs: BTreeMap<(String, String), ByteString>,
}

impl TestCluster {
    /// Adds a topic with an id that its name gives.
    pub fn add(&mut self, name: &str, partitions: i32) -> Uuid {
        let number = name.bytes().fold(1_u128, |number, byte| (number << 8) | u128::from(byte));
        let id = Uuid::from_u128(number);
        self.put(name, id, partitions, &[]);
        id
    }

    /// Adds a topic with an id in its text form, all of whose partitions are in these racks.
    pub fn add_as(&mut self, name: &str, id: &str, partitions: i32, racks: &[&str]) {
        self.put(name, id.parse().unwrap(), partitions, racks);
    }

    fn put(&mut self, name: &str, id: Uuid, partitions: i32, racks: &[&str]) {
        let view = TopicView { id, name: name.into(), partitions };
        let racks = racks.iter().map(|rack| ByteString::from(*rack)).collect();
        self.topics.insert(name.into(), (view, racks));
        self.offset += 1;
    }

    /// Deletes a topic.
    pub fn delete(&mut self, name: &str) {
        self.topics.remove(name);
        self.offset += 1;
    }

    /// Sets a group's own setting.
    pub fn configure(&mut self, group: &str, name: &str, value: &str) {
        self.configs.insert((group.to_owned(), name.to_owned()), value.into());
    }
}

impl Cluster for TestCluster {
    fn metadata_offset(&self) -> i64 {
        self.offset
    }

    fn topic(&self, name: &str) -> Option<TopicView> {
        self.topics.get(name).map(|(view, _)| view.clone())
    }

    fn topic_by_id(&self, id: Uuid) -> Option<TopicView> {
        self.topics.values().map(|(view, _)| view).find(|view| view.id == id).cloned()
    }

    fn topics(&self) -> Vec<TopicView> {
        self.topics.values().map(|(view, _)| view.clone()).collect()
    }

    fn racks(&self, topic: Uuid, _: i32) -> Vec<ByteString> {
        let of_topic = self.topics.values().find(|(view, _)| view.id == topic);
        of_topic.map(|(_, racks)| racks.clone()).unwrap_or_default()
    }

    fn group_config(&self, group_id: &str, name: &str) -> Option<ByteString> {
        self.configs.get(&(group_id.to_owned(), name.to_owned())).cloned()
    }
}
