//! ElectLeaders.

use callboard_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use callboard_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse};

use super::{RequestContext, controlled};

/// Has the controller elect leaders.
pub async fn handle(cx: &RequestContext, request: ElectLeadersRequest, version: i16) -> ElectLeadersResponse {
    let timeout_ms = request.timeout_ms;
    let asked = request.topic_partitions.clone().unwrap_or_default();
    match controlled::decide(cx, request, version, timeout_ms).await {
        Ok(mut response) => {
            // The first version has no place for an error of the whole request: each partition has it already.
            if version == 0 {
                response.error_code = 0;
            }
            response
        }
        Err(code) => {
            let partition = |partition_id: &i32| PartitionResult {
                partition_id: *partition_id,
                error_code: code as i16,
                error_message: None,
                ..Default::default()
            };
            let topics = asked.into_iter().map(|topic| ReplicaElectionResult {
                partition_result: topic.partitions.iter().map(partition).collect(),
                topic: topic.topic,
                ..Default::default()
            });
            ElectLeadersResponse {
                error_code: if version == 0 { 0 } else { code as i16 },
                replica_election_results: topics.collect(),
                ..Default::default()
            }
        }
    }
}
