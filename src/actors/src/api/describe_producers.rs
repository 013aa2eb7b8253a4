//! DescribeProducers: who writes to a partition.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use callboard_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse};

use super::RequestContext;
use super::topics::{self, Found};
use crate::replicas::messages::{DescribeProducers, ProducerInfo};

/// Asks each partition for the producers it knows.
pub async fn handle(
    cx: &RequestContext,
    request: DescribeProducersRequest,
    _: i16,
) -> DescribeProducersResponse {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let found = topics::by_name(cx, &topic.name);
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for partition_index in topic.partition_indexes {
            let producers = ask(&found, partition_index).await;
            let error = producers.as_ref().err().copied();
            partitions.push(PartitionResponse {
                partition_index,
                error_code: error.map_or(0, |error| error as i16),
                error_message: error.map(|error| error.message().into()),
                active_producers: producers.unwrap_or_default().into_iter().map(state).collect(),
                ..Default::default()
            });
        }
        topics.push(TopicResponse { name: topic.name, partitions, ..Default::default() });
    }
    DescribeProducersResponse { topics, ..Default::default() }
}

async fn ask(topic: &Result<Found<'_>, ErrorCode>, index: i32) -> Result<Vec<ProducerInfo>, ErrorCode> {
    let handle = topic.as_ref().map_err(|error| *error)?.partition(index)?;
    handle.actor().ask(DescribeProducers).await.map_err(|_| ErrorCode::NotLeaderOrFollower)?
}

fn state(producer: ProducerInfo) -> ProducerState {
    ProducerState {
        producer_id: producer.producer_id,
        producer_epoch: producer.producer_epoch,
        last_sequence: producer.last_sequence,
        last_timestamp: producer.last_timestamp_ms,
        coordinator_epoch: producer.coordinator_epoch,
        current_txn_start_offset: producer.current_txn_start_offset,
        ..Default::default()
    }
}
