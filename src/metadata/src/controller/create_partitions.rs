//! CreatePartitions.

use std::collections::BTreeSet;

use callboard_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use callboard_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::create_topics::cannot_replicate;
use super::{Context, Controller, MAX_PARTITIONS_PER_REQUEST, Outcome, Refusal, placement};
use crate::image::Topic;
use crate::record::{PARTITION_VERSION, VersionedRecord};

impl Controller {
    /// Gives topics more partitions; each topic gets its own error.
    pub fn create_partitions(
        &self,
        request: &CreatePartitionsRequest,
        ctx: &mut Context<'_>,
    ) -> Outcome<CreatePartitionsResponse> {
        let (mut seen, mut repeated) = (BTreeSet::new(), BTreeSet::new());
        for topic in &request.topics {
            if !seen.insert(&topic.name) {
                repeated.insert(&topic.name);
            }
        }
        let mut results: Vec<_> = repeated
            .iter()
            .map(|name| result(name, Some(Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name."))))
            .collect();
        let asked: Vec<_> = request.topics.iter().filter(|topic| !repeated.contains(&topic.name)).collect();
        let excessive = self.total_additional(&asked) > MAX_PARTITIONS_PER_REQUEST;
        let mut records = Vec::new();
        for topic in asked {
            let grown = if excessive {
                let message = "Excessively large number of additional partitions per request.";
                Err(Refusal::new(ErrorCode::PolicyViolation, message))
            } else {
                self.grow(topic, ctx)
            };
            results.push(match grown {
                Ok(more) => {
                    records.extend(more);
                    result(&topic.name, None)
                }
                Err(refusal) => result(&topic.name, Some(refusal)),
            });
        }
        if request.validate_only {
            records.clear();
        }
        Outcome::atomic(records, CreatePartitionsResponse { results, ..Default::default() })
    }

    fn total_additional(&self, topics: &[&CreatePartitionsTopic]) -> usize {
        let of = |asked: &&CreatePartitionsTopic| {
            let now = self.image().topics.by_name(&asked.name).map_or(0, |topic| topic.partitions.len());
            usize::try_from(asked.count).unwrap_or(0).saturating_sub(now)
        };
        topics.iter().map(of).fold(0, usize::saturating_add)
    }

    fn grow(
        &self,
        asked: &CreatePartitionsTopic,
        ctx: &mut Context<'_>,
    ) -> Result<Vec<VersionedRecord>, Refusal> {
        let Some(topic) = self.image().topics.by_name(&asked.name) else {
            return Err(Refusal::bare(ErrorCode::UnknownTopicOrPartition));
        };
        let now = topic.partitions.len();
        let wanted = usize::try_from(asked.count).unwrap_or(0);
        if wanted == now {
            let message = format!("Topic already has {now} partition(s).");
            return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
        }
        if wanted < now {
            let message = format!(
                "The topic {} currently has {now} partition(s); {} would not be an increase.",
                asked.name, asked.count
            );
            return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
        }
        let replicas = self.additional_replicas(topic, asked, wanted - now, ctx)?;
        let mut out = Vec::with_capacity(replicas.len());
        for (number, replicas) in (now..).zip(replicas) {
            let number = i32::try_from(number).unwrap_or(i32::MAX);
            let Some(partition) = self.new_partition(replicas) else {
                let message = format!(
                    "All brokers specified in the manual partition assignment for partition {number} are fenced or \
                     in controlled shutdown."
                );
                return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
            };
            let record = MetadataRecord::PartitionRecord(partition.to_record(topic.id, number));
            out.push(VersionedRecord::new(record, PARTITION_VERSION));
        }
        Ok(out)
    }

    fn additional_replicas(
        &self,
        topic: &Topic,
        asked: &CreatePartitionsTopic,
        additional: usize,
        ctx: &mut Context<'_>,
    ) -> Result<Vec<Vec<i32>>, Refusal> {
        let factor = topic.partition(0).map_or(1, |first| first.replicas.len());
        let Some(assignments) = &asked.assignments else {
            let factor = i16::try_from(factor).unwrap_or(i16::MAX);
            return placement::place(&self.image().cluster, additional, factor, ctx)
                .map_err(|reason| cannot_replicate(factor, &reason));
        };
        if assignments.len() != additional {
            let message = format!(
                "Attempted to add {additional} additional partition(s), but only {} assignment(s) were specified.",
                assignments.len()
            );
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        }
        for assignment in assignments {
            self.check_assignment(&assignment.broker_ids, Some(factor))?;
        }
        Ok(assignments.iter().map(|assignment| assignment.broker_ids.clone()).collect())
    }
}

fn result(name: &ByteString, refusal: Option<Refusal>) -> CreatePartitionsTopicResult {
    let (code, message) = refusal.map_or((ErrorCode::None, None), |refusal| (refusal.code, refusal.message));
    CreatePartitionsTopicResult {
        name: name.clone(),
        error_code: code as i16,
        error_message: message,
        ..Default::default()
    }
}
