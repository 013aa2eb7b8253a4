//! What the client knows of the cluster: an immutable picture, replaced when it is asked for anew.

use std::collections::BTreeMap;

use callboard_protocol::messages::MetadataResponse;
use callboard_protocol::{ErrorCode, Uuid};

/// Where a broker listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    /// The broker's id.
    pub id: i32,
    /// Host and port, as `host:port`.
    pub address: String,
}

/// One partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionMetadata {
    /// Its number.
    pub partition: i32,
    /// The leader's id, or -1.
    pub leader: i32,
    /// The leader's epoch, or -1 if the broker does not say.
    pub leader_epoch: i32,
    /// All replicas, the preferred leader first.
    pub replicas: Vec<i32>,
    /// The replicas in sync.
    pub in_sync: Vec<i32>,
}

/// One topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicMetadata {
    /// Its name.
    pub name: String,
    /// Its id; zero if the broker has none.
    pub id: Uuid,
    /// Why the broker can't tell more, or `None`.
    pub error: ErrorCode,
    /// Its partitions, by number.
    pub partitions: BTreeMap<i32, PartitionMetadata>,
}

/// The cluster as one broker described it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The cluster's id.
    pub cluster_id: Option<String>,
    /// A broker that passes controller requests on, or -1.
    pub controller: i32,
    /// Brokers by id.
    pub brokers: BTreeMap<i32, BrokerAddress>,
    /// Topics by name: those asked for.
    pub topics: BTreeMap<String, TopicMetadata>,
}

impl Metadata {
    pub(crate) fn from_response(response: MetadataResponse) -> Self {
        let brokers = response.brokers.iter().map(|broker| {
            let address = format!("{}:{}", broker.host, broker.port);
            (broker.node_id, BrokerAddress { id: broker.node_id, address })
        });
        let topics = response.topics.iter().filter_map(|topic| {
            let name = topic.name.as_ref()?.to_string();
            let partitions = topic.partitions.iter().map(|partition| {
                let metadata = PartitionMetadata {
                    partition: partition.partition_index,
                    leader: partition.leader_id,
                    leader_epoch: partition.leader_epoch,
                    replicas: partition.replica_nodes.clone(),
                    in_sync: partition.isr_nodes.clone(),
                };
                (partition.partition_index, metadata)
            });
            let topic = TopicMetadata {
                name: name.clone(),
                id: topic.topic_id,
                error: ErrorCode::from(topic.error_code),
                partitions: partitions.collect(),
            };
            Some((name, topic))
        });
        Self {
            cluster_id: response.cluster_id.as_ref().map(ToString::to_string),
            controller: response.controller_id,
            brokers: brokers.collect(),
            topics: topics.collect(),
        }
    }

    /// A partition's leader, if it is known and there is one.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<i32> {
        self.topics
            .get(topic)?
            .partitions
            .get(&partition)
            .map(|found| found.leader)
            .filter(|leader| *leader >= 0)
    }
}
