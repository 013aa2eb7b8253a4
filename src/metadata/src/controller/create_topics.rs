//! CreateTopics.

use std::collections::{BTreeMap, BTreeSet};

use callboard_protocol::messages::create_topics_request::CreatableTopic;
use callboard_protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse, TopicRecord};
use callboard_protocol::{ByteString, ErrorCode, Uuid};

use super::{Context, Controller, MAX_PARTITIONS_PER_REQUEST, Outcome, Refusal, placement};
use crate::config::{self, Source};
use crate::image::{
    ConfigResource, ConfigValues, PartitionRegistration, UNASSIGNED_DIRECTORY, config_record,
};
use crate::record::{PARTITION_VERSION, VersionedRecord};
use crate::topic_name;

impl Controller {
    /// Creates topics, all that can be; each topic gets its own error.
    pub fn create_topics(
        &self,
        request: &CreateTopicsRequest,
        ctx: &mut Context<'_>,
    ) -> Outcome<CreateTopicsResponse> {
        let mut repeated = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for topic in &request.topics {
            if !seen.insert(&topic.name) {
                repeated.insert(&topic.name);
            }
        }
        let asked: Vec<&CreatableTopic> =
            request.topics.iter().filter(|topic| !repeated.contains(&topic.name)).collect();
        let excessive = self.total_partitions(&asked) > MAX_PARTITIONS_PER_REQUEST;
        let (mut records, mut topics) = (Vec::new(), Vec::new());
        for topic in asked {
            let created = if topic.name == topic_name::CLUSTER_METADATA_TOPIC {
                let message = format!("Creation of internal topic {} is prohibited.", topic.name);
                Err(Refusal::new(ErrorCode::InvalidRequest, message))
            } else if excessive {
                let message = "Excessively large number of partitions per request.";
                Err(Refusal::new(ErrorCode::PolicyViolation, message))
            } else {
                self.create_topic(topic, ctx)
            };
            topics.push(match created {
                Ok((more, result)) => {
                    records.extend(more);
                    result
                }
                Err(refusal) => refused(&topic.name, refusal),
            });
        }
        let duplicate = || Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
        topics.extend(repeated.into_iter().map(|name| refused(name, duplicate())));
        if request.validate_only {
            records.clear();
        }
        Outcome::atomic(records, CreateTopicsResponse { topics, ..Default::default() })
    }

    fn total_partitions(&self, topics: &[&CreatableTopic]) -> usize {
        let of = |topic: &&CreatableTopic| {
            if !topic.assignments.is_empty() {
                topic.assignments.len()
            } else if topic.num_partitions == -1 {
                usize::try_from(self.settings.int("num.partitions")).unwrap_or(0)
            } else {
                usize::try_from(topic.num_partitions).unwrap_or(0)
            }
        };
        topics.iter().map(of).fold(0, usize::saturating_add)
    }

    fn create_topic(
        &self,
        topic: &CreatableTopic,
        ctx: &mut Context<'_>,
    ) -> Result<(Vec<VersionedRecord>, CreatableTopicResult), Refusal> {
        self.check_new_name(&topic.name)?;
        let values = self.check_new_configs(topic)?;
        let replicas = if topic.assignments.is_empty() {
            self.place_new_topic(topic, ctx)?
        } else {
            self.assigned_replicas(topic)?
        };
        let partitions = replicas
            .into_iter()
            .map(|replicas| self.new_partition(replicas))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| {
                let message =
                    "Unable to replicate the partition: All brokers are currently fenced or in controlled shutdown.";
                Refusal::new(ErrorCode::InvalidReplicationFactor, message)
            })?;
        let topic_id = ctx.random_id();
        let replication_factor = partitions.first().map_or(0, |partition| partition.replicas.len());
        let result = CreatableTopicResult {
            name: topic.name.clone(),
            topic_id,
            error_message: None,
            num_partitions: i32::try_from(partitions.len()).unwrap_or(i32::MAX),
            replication_factor: i16::try_from(replication_factor).unwrap_or(i16::MAX),
            configs: Some(self.described_configs(&values)),
            ..Default::default()
        };
        Ok((new_topic_records(topic, topic_id, &partitions), result))
    }

    fn check_new_name(&self, name: &ByteString) -> Result<(), Refusal> {
        let invalid = |message: String| Refusal::new(ErrorCode::InvalidTopicException, message);
        topic_name::validate(name).map_err(invalid)?;
        let topics = &self.image().topics;
        if topics.id(name).is_some() {
            let message = format!("Topic '{name}' already exists.");
            return Err(Refusal::new(ErrorCode::TopicAlreadyExists, message));
        }
        let collision = topic_name::may_collide(name)
            .then(|| topics.iter_by_name().find(|other| topic_name::collide(name, &other.name)))
            .flatten();
        match collision {
            Some(other) => {
                Err(invalid(format!("Topic '{name}' collides with existing topic: {}", other.name)))
            }
            None => Ok(()),
        }
    }

    fn check_new_configs(&self, topic: &CreatableTopic) -> Result<ConfigValues, Refusal> {
        let invalid = |message: String| Refusal::new(ErrorCode::InvalidConfig, message);
        let without_value: Vec<&str> =
            topic.configs.iter().filter(|c| c.value.is_none()).map(|c| &*c.name).collect();
        if !without_value.is_empty() {
            return Err(invalid(format!(
                "Null value not supported for topic configs: {}",
                without_value.join(",")
            )));
        }
        let given = topic.configs.iter().filter_map(|c| Some((c.name.clone(), c.value.clone()?)));
        // A config given twice has its last value.
        let values: ConfigValues = given.collect();
        let settings = self.effective_settings(self.settings.node_id);
        config::validate_topic(&settings, super::pairs(&values)).map_err(|e| invalid(e.to_string()))?;
        Ok(values)
    }

    fn place_new_topic(
        &self,
        topic: &CreatableTopic,
        ctx: &mut Context<'_>,
    ) -> Result<Vec<Vec<i32>>, Refusal> {
        let factor = match topic.replication_factor {
            -1 => i16::try_from(self.settings.int("default.replication.factor")).unwrap_or(i16::MAX),
            given if given > 0 => given,
            _ => {
                let message = "Replication factor must be larger than 0, or -1 to use the default value.";
                return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message));
            }
        };
        let count = match topic.num_partitions {
            -1 => usize::try_from(self.settings.int("num.partitions")).unwrap_or(1),
            given if given > 0 => usize::try_from(given).unwrap_or(1),
            _ => {
                let message = "Number of partitions was set to an invalid non-positive value.";
                return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
            }
        };
        placement::place(&self.image().cluster, count, factor, ctx)
            .map_err(|reason| cannot_replicate(factor, &reason))
    }

    fn assigned_replicas(&self, topic: &CreatableTopic) -> Result<Vec<Vec<i32>>, Refusal> {
        let wrong = |message: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        for (set, what) in [
            (topic.replication_factor != -1, "replication factor"),
            (topic.num_partitions != -1, "numPartitions"),
        ] {
            if set {
                let message =
                    format!("A manual partition assignment was specified, but {what} was not set to -1.");
                return Err(Refusal::new(ErrorCode::InvalidRequest, message));
            }
        }
        let mut by_number: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        let mut factor = None;
        for assignment in &topic.assignments {
            let number = assignment.partition_index;
            if by_number.contains_key(&number) {
                return wrong(format!("Found multiple manual partition assignments for partition {number}"));
            }
            self.check_assignment(&assignment.broker_ids, factor)?;
            factor = Some(assignment.broker_ids.len());
            if !assignment.broker_ids.iter().any(|id| self.image().cluster.is_active(*id)) {
                return wrong(format!(
                    "All brokers specified in the manual partition assignment for partition {number} are fenced or \
                     in controlled shutdown."
                ));
            }
            by_number.insert(number, assignment.broker_ids.clone());
        }
        if by_number.keys().zip(0..).any(|(number, expected)| *number != expected) {
            return wrong("partitions should be a consecutive 0-based integer sequence".to_string());
        }
        Ok(by_number.into_values().collect())
    }

    /// Checks the replicas that a request assigns to a partition. `factor` is how many the other partitions have.
    pub(super) fn check_assignment(&self, replicas: &[i32], factor: Option<usize>) -> Result<(), Refusal> {
        let wrong = |message: String| Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        if replicas.is_empty() {
            return wrong("The manual partition assignment includes an empty replica list.".to_string());
        }
        let mut sorted = replicas.to_vec();
        sorted.sort_unstable();
        let mut previous = None;
        for id in sorted {
            if self.image().cluster.broker(id).is_none() {
                return wrong(format!(
                    "The manual partition assignment includes broker {id}, but no such broker is registered."
                ));
            }
            if previous == Some(id) {
                return wrong(format!(
                    "The manual partition assignment includes the broker {id} more than once."
                ));
            }
            previous = Some(id);
        }
        match factor {
            Some(factor) if factor != replicas.len() => wrong(format!(
                "The manual partition assignment includes a partition with {} replica(s), but this is not \
                 consistent with previous partitions, which have {factor} replica(s).",
                replicas.len()
            )),
            _ => Ok(()),
        }
    }

    /// A new partition, led by the first of its replicas that can. `None` when none can.
    pub(super) fn new_partition(&self, replicas: Vec<i32>) -> Option<PartitionRegistration> {
        let cluster = &self.image().cluster;
        let isr: Vec<i32> = replicas.iter().copied().filter(|id| cluster.is_active(*id)).collect();
        let leader = *isr.first()?;
        let directories = replicas
            .iter()
            .map(|id| {
                let mut usable = cluster.broker(*id).into_iter().flat_map(|broker| broker.usable_log_dirs());
                match (usable.next(), usable.next()) {
                    (Some(only), None) => only,
                    // With several the broker chooses and tells.
                    _ => UNASSIGNED_DIRECTORY,
                }
            })
            .collect();
        Some(PartitionRegistration { replicas, directories, isr, leader, ..Default::default() })
    }

    fn described_configs(&self, own: &ConfigValues) -> Vec<CreatableTopicConfigs> {
        let settings = self.effective_settings(self.settings.node_id);
        let entries = config::describe_topic(&settings, super::pairs(own));
        entries
            .into_iter()
            .map(|entry| CreatableTopicConfigs {
                // A value of the topic's own is told as it was given, not as it is understood.
                value: match (entry.source, own.get(entry.name.as_str())) {
                    (Source::Topic, Some(given)) => Some(given.clone()),
                    _ => entry.value.map(ByteString::from),
                },
                name: entry.name.into(),
                read_only: entry.read_only,
                config_source: entry.source.wire_code(),
                is_sensitive: entry.sensitive,
                ..Default::default()
            })
            .collect()
    }
}

pub(super) fn cannot_replicate(factor: i16, reason: &str) -> Refusal {
    let message = format!("Unable to replicate the partition {factor} time(s): {reason}");
    Refusal::new(ErrorCode::InvalidReplicationFactor, message)
}

fn refused(name: &ByteString, refusal: Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name: name.clone(),
        error_code: refusal.code as i16,
        error_message: refusal.message,
        num_partitions: -1,
        replication_factor: -1,
        configs: Some(Vec::new()),
        ..Default::default()
    }
}

/// The topic, its configs in the order given, its partitions.
fn new_topic_records(
    topic: &CreatableTopic,
    topic_id: Uuid,
    partitions: &[PartitionRegistration],
) -> Vec<VersionedRecord> {
    let record = TopicRecord { name: topic.name.clone(), topic_id, ..Default::default() };
    let mut out = vec![VersionedRecord::new(MetadataRecord::TopicRecord(record), 0)];
    let resource = ConfigResource::topic(topic.name.clone());
    for config in &topic.configs {
        out.push(config_record(&resource, config.name.clone(), config.value.clone()));
    }
    for (number, partition) in (0..).zip(partitions) {
        let record = MetadataRecord::PartitionRecord(partition.to_record(topic_id, number));
        out.push(VersionedRecord::new(record, PARTITION_VERSION));
    }
    out
}
