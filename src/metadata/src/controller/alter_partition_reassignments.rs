//! AlterPartitionReassignments.

use callboard_protocol::messages::alter_partition_reassignments_request::ReassignablePartition;
use callboard_protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, PartitionChangeRecord,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::{Controller, Outcome, Refusal};
use crate::image::{PartitionRegistration, Topic};
use crate::record::{PARTITION_VERSION, VersionedRecord};

impl Controller {
    /// Moves replicas; each partition gets its own error.
    ///
    /// A change of the order of the same replicas takes effect at once. Replicas on other brokers need those brokers
    /// to catch up, and the controller to finish the move: not before clusters of several brokers.
    pub fn alter_partition_reassignments(
        &self,
        request: &AlterPartitionReassignmentsRequest,
    ) -> Outcome<AlterPartitionReassignmentsResponse> {
        let mut records = Vec::new();
        let mut responses = Vec::new();
        for topic in &request.topics {
            let mut partitions = Vec::new();
            for asked in &topic.partitions {
                let allow_factor_change = request.allow_replication_factor_change;
                let refusal = match self.reassign(&topic.name, asked, allow_factor_change) {
                    Ok(record) => {
                        records.extend(record);
                        Refusal::bare(ErrorCode::None)
                    }
                    Err(refusal) => refusal,
                };
                partitions.push(ReassignablePartitionResponse {
                    partition_index: asked.partition_index,
                    error_code: refusal.code as i16,
                    error_message: refusal.message,
                    ..Default::default()
                });
            }
            responses.push(ReassignableTopicResponse {
                name: topic.name.clone(),
                partitions,
                ..Default::default()
            });
        }
        let reply = AlterPartitionReassignmentsResponse {
            allow_replication_factor_change: request.allow_replication_factor_change,
            responses,
            ..Default::default()
        };
        Outcome::atomic(records, reply)
    }

    fn reassign(
        &self,
        name: &ByteString,
        asked: &ReassignablePartition,
        allow_factor_change: bool,
    ) -> Result<Option<VersionedRecord>, Refusal> {
        let (topic, partition) = self.reassignable(name, asked.partition_index)?;
        let Some(replicas) = &asked.replicas else {
            // Nothing is ever under way here, so there is nothing to cancel.
            return Err(Refusal::bare(ErrorCode::NoReassignmentInProgress));
        };
        self.check_assignment(replicas, None)?;
        if !allow_factor_change && replicas.len() != partition.replicas.len() {
            let message = format!(
                "The replication factor is changed from {} to {}",
                partition.replicas.len(),
                replicas.len()
            );
            return Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message));
        }
        if *replicas == partition.replicas {
            return Ok(None);
        }
        if replicas.iter().any(|id| !partition.replicas.contains(id)) {
            let message = "Replicas cannot be moved to other brokers yet.";
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        }
        let isr: Vec<i32> = partition.isr.iter().copied().filter(|id| replicas.contains(id)).collect();
        if isr.is_empty() || !replicas.contains(&partition.leader) {
            let message = "The replicas that stay must include the leader.";
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        }
        let record = PartitionChangeRecord {
            topic_id: topic.id,
            partition_id: asked.partition_index,
            replicas: Some(replicas.clone()),
            isr: (isr != partition.isr).then_some(isr),
            directories: Some(replicas.iter().filter_map(|id| partition.directory(*id)).collect()),
            ..Default::default()
        };
        let record = MetadataRecord::PartitionChangeRecord(record);
        Ok(Some(VersionedRecord::new(record, PARTITION_VERSION)))
    }

    fn reassignable(
        &self,
        name: &ByteString,
        number: i32,
    ) -> Result<(&Topic, &PartitionRegistration), Refusal> {
        let unknown = |message: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, message);
        let topic = self
            .image()
            .topics
            .by_name(name)
            .ok_or_else(|| unknown(format!("Unable to find a topic named {name}.")))?;
        let partition = topic
            .partition(number)
            .ok_or_else(|| unknown(format!("Unable to find partition {name}:{number}.")))?;
        Ok((topic, partition))
    }
}
