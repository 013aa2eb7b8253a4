//! DescribeProducers: who writes to a partition.

use callboard_metadata::topic_name;
use callboard_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use callboard_protocol::messages::{DescribeProducersRequest, DescribeProducersResponse};
use callboard_protocol::{ByteString, ErrorCode};

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
        let found = find(cx, &topic.name);
        let mut partitions = Vec::with_capacity(topic.partition_indexes.len());
        for partition_index in topic.partition_indexes {
            let part = PartitionResponse { partition_index, ..Default::default() };
            partitions.push(match &found {
                // Only what is wrong with a topic has a text.
                Err((error, message)) => {
                    let error_message = Some(message.clone());
                    PartitionResponse { error_code: *error as i16, error_message, ..part }
                }
                Ok(topic) => match ask(topic, partition_index).await {
                    Err(error) => PartitionResponse { error_code: error as i16, ..part },
                    Ok(producers) => {
                        let active_producers = producers.into_iter().map(state).collect();
                        PartitionResponse { active_producers, ..part }
                    }
                },
            });
        }
        topics.push(TopicResponse { name: topic.name, partitions, ..Default::default() });
    }
    DescribeProducersResponse { topics, ..Default::default() }
}

fn find<'a>(cx: &'a RequestContext, name: &str) -> Result<Found<'a>, (ErrorCode, ByteString)> {
    topic_name::validate(name).map_err(|message| (ErrorCode::InvalidTopicException, message.into()))?;
    topics::by_name(cx, name).map_err(|error| (error, error.message().into()))
}

async fn ask(topic: &Found<'_>, index: i32) -> Result<Vec<ProducerInfo>, ErrorCode> {
    let handle = topic.partition(index)?;
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
