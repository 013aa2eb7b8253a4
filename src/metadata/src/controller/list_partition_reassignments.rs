//! ListPartitionReassignments.

use callboard_protocol::ByteString;
use callboard_protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use callboard_protocol::messages::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};

use super::Controller;
use crate::image::Topic;

impl Controller {
    /// The partitions with a reassignment under way: all of them, or those among the ones asked for.
    pub fn list_partition_reassignments(
        &self,
        request: &ListPartitionReassignmentsRequest,
    ) -> ListPartitionReassignmentsResponse {
        let topics = &self.image().topics;
        let found: Vec<OngoingTopicReassignment> = match &request.topics {
            None => topics.iter_by_name().filter_map(|topic| ongoing(topic, |_| true)).collect(),
            Some(asked) => asked
                .iter()
                .filter_map(|asked| {
                    let topic = topics.by_name(&asked.name)?;
                    ongoing(topic, |number| asked.partition_indexes.contains(&number))
                })
                .collect(),
        };
        ListPartitionReassignmentsResponse { error_message: None, topics: found, ..Default::default() }
    }
}

fn ongoing(topic: &Topic, wanted: impl Fn(i32) -> bool) -> Option<OngoingTopicReassignment> {
    let partitions: Vec<_> = topic
        .partitions
        .iter()
        .filter(|(number, partition)| partition.is_reassigning() && wanted(**number))
        .map(|(number, partition)| OngoingPartitionReassignment {
            partition_index: *number,
            replicas: partition.replicas.clone(),
            adding_replicas: partition.adding_replicas.clone(),
            removing_replicas: partition.removing_replicas.clone(),
            ..Default::default()
        })
        .collect();
    let name: ByteString = topic.name.clone();
    (!partitions.is_empty()).then(|| OngoingTopicReassignment { name, partitions, ..Default::default() })
}
