//! Administration: topics and configuration.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use callboard_protocol::messages::delete_topics_request::DeleteTopicState;
use callboard_protocol::messages::describe_configs_request::DescribeConfigsResource;
use callboard_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use callboard_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest,
};

use crate::{Client, ClientError, TopicMetadata};

/// A topic to create.
#[derive(Debug, Clone)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// Number of partitions; -1 for the broker's default.
    pub partitions: i32,
    /// Number of replicas; -1 for the broker's default.
    pub replication_factor: i16,
    /// Replicas of each partition, the leader first; instead of the two numbers if not empty.
    pub assignments: Vec<Vec<i32>>,
    /// Settings of its own.
    pub configs: Vec<(String, String)>,
}

impl NewTopic {
    /// A topic with this many partitions and the broker's default replication.
    pub fn new(name: impl Into<String>, partitions: i32) -> Self {
        let name = name.into();
        Self { name, partitions, replication_factor: -1, assignments: Vec::new(), configs: Vec::new() }
    }

    /// Adds a setting.
    pub fn config(mut self, name: &str, value: &str) -> Self {
        self.configs.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// What a setting belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceKind {
    /// A topic, by name.
    Topic,
    /// A broker, by id; the empty name for all.
    Broker,
    /// A group, by id.
    Group,
}

impl ResourceKind {
    fn wire(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::Group => 32,
        }
    }
}

/// A setting in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// Its name.
    pub name: String,
    /// Its value; none if secret.
    pub value: Option<String>,
    /// Whether it is the default.
    pub is_default: bool,
    /// Whether it can't be changed while running.
    pub read_only: bool,
}

/// Where a broker says that a value is the default.
const DEFAULT_SOURCE: i8 = 5;

/// Administers a cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Admin {
    client: Client,
}

impl Admin {
    /// The admin of a client's cluster.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Creates a topic and waits until each of its partitions has a leader.
    ///
    /// # Errors
    /// The controller refuses it, or time is up.
    pub async fn create_topic(&self, topic: &NewTopic) -> Result<(), ClientError> {
        let assignments =
            (0..).zip(&topic.assignments).map(|(partition, brokers)| CreatableReplicaAssignment {
                partition_index: partition,
                broker_ids: brokers.clone(),
                ..CreatableReplicaAssignment::default()
            });
        let configs = topic.configs.iter().map(|(name, value)| CreatableTopicConfig {
            name: name.as_str().into(),
            value: Some(value.as_str().into()),
            ..CreatableTopicConfig::default()
        });
        let counted = topic.assignments.is_empty();
        let request = CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: topic.name.as_str().into(),
                num_partitions: if counted { topic.partitions } else { -1 },
                replication_factor: if counted { topic.replication_factor } else { -1 },
                assignments: assignments.collect(),
                configs: configs.collect(),
                ..CreatableTopic::default()
            }],
            timeout_ms: self.timeout_ms(),
            ..CreateTopicsRequest::default()
        };
        let mut tries = self.client.tries();
        while let Err(error) = self.create(&request).await {
            tries.again(error).await?;
        }
        while let Err(error) = self.check_leaders(&topic.name).await {
            tries.again(error).await?;
        }
        Ok(())
    }

    async fn create(&self, request: &CreateTopicsRequest) -> Result<(), ClientError> {
        let response = self.client.call_any(request).await?;
        let result = response.topics.first();
        result.map_or(Ok(()), |topic| ClientError::check(topic.error_code, topic.error_message.as_deref()))
    }

    /// Whether each partition of a topic has a leader, as brokers see it.
    async fn check_leaders(&self, name: &str) -> Result<(), ClientError> {
        let metadata = self.client.refresh(&[name]).await?;
        let led = metadata.topics.get(name).is_some_and(|found| {
            !found.partitions.is_empty() && found.partitions.values().all(|partition| partition.leader >= 0)
        });
        if led { Ok(()) } else { Err(ClientError::NoLeader { topic: name.to_owned(), partition: 0 }) }
    }

    /// Deletes a topic.
    ///
    /// # Errors
    /// The controller refuses, or there is no such topic.
    pub async fn delete_topic(&self, name: &str) -> Result<(), ClientError> {
        let request = DeleteTopicsRequest {
            // One list up to version 5, the other from 6 on.
            topics: vec![DeleteTopicState { name: Some(name.into()), ..DeleteTopicState::default() }],
            topic_names: vec![name.into()],
            timeout_ms: self.timeout_ms(),
            ..DeleteTopicsRequest::default()
        };
        let response = self.client.call_any(&request).await?;
        let result = response.responses.first();
        result.map_or(Ok(()), |topic| ClientError::check(topic.error_code, topic.error_message.as_deref()))
    }

    /// A topic as the cluster describes it now.
    ///
    /// # Errors
    /// There is none of this name, or it can't be seen.
    pub async fn describe_topic(&self, name: &str) -> Result<TopicMetadata, ClientError> {
        let metadata = self.client.refresh(&[name]).await?;
        match metadata.topics.get(name) {
            Some(topic) if topic.error == ErrorCode::None => Ok(topic.clone()),
            Some(topic) => Err(ClientError::Broker { code: topic.error, message: None }),
            None => Err(ClientError::Broker { code: ErrorCode::UnknownTopicOrPartition, message: None }),
        }
    }

    /// The settings of a topic, broker or group.
    ///
    /// # Errors
    /// The broker refuses or can't be reached.
    pub async fn describe_configs(
        &self,
        kind: ResourceKind,
        name: &str,
    ) -> Result<Vec<ConfigEntry>, ClientError> {
        let request = DescribeConfigsRequest {
            resources: vec![DescribeConfigsResource {
                resource_type: kind.wire(),
                resource_name: name.into(),
                configuration_keys: None,
                ..DescribeConfigsResource::default()
            }],
            ..DescribeConfigsRequest::default()
        };
        let response = match self.broker_of(kind, name) {
            Some(id) => self.client.broker(id).await?.call(&request).await?,
            None => self.client.call_any(&request).await?,
        };
        let Some(result) = response.results.first() else { return Ok(Vec::new()) };
        ClientError::check(result.error_code, result.error_message.as_deref())?;
        let entries = result.configs.iter().map(|config| ConfigEntry {
            name: config.name.to_string(),
            value: config.value.as_ref().map(ToString::to_string),
            is_default: config.config_source == DEFAULT_SOURCE,
            read_only: config.read_only,
        });
        Ok(entries.collect())
    }

    /// Sets settings of a topic, broker or group; a value of `None` takes one back to its default.
    ///
    /// # Errors
    /// A name or value is refused.
    pub async fn alter_configs(
        &self,
        kind: ResourceKind,
        name: &str,
        changes: &[(&str, Option<&str>)],
    ) -> Result<(), ClientError> {
        let configs = changes.iter().map(|(name, value)| AlterableConfig {
            name: (*name).into(),
            config_operation: i8::from(value.is_none()),
            value: value.map(Into::into),
            ..AlterableConfig::default()
        });
        let request = IncrementalAlterConfigsRequest {
            resources: vec![AlterConfigsResource {
                resource_type: kind.wire(),
                resource_name: name.into(),
                configs: configs.collect(),
                ..AlterConfigsResource::default()
            }],
            ..IncrementalAlterConfigsRequest::default()
        };
        let response = match self.broker_of(kind, name) {
            Some(id) => self.client.broker(id).await?.call(&request).await?,
            None => self.client.call_any(&request).await?,
        };
        let result = response.responses.first();
        result.map_or(Ok(()), |result| ClientError::check(result.error_code, result.error_message.as_deref()))
    }

    /// A broker's own settings are asked of that broker.
    fn broker_of(&self, kind: ResourceKind, name: &str) -> Option<i32> {
        (kind == ResourceKind::Broker).then(|| name.parse().ok()).flatten()
    }

    fn timeout_ms(&self) -> i32 {
        i32::try_from(self.client.options().request_timeout.as_millis()).unwrap_or(i32::MAX)
    }
}
