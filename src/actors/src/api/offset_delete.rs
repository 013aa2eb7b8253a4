//! OffsetDelete. Topics and partitions that are not there are refused here, all others by the coordinator.

use std::collections::BTreeMap;

use callboard_protocol::messages::offset_delete_request::OffsetDeleteRequestTopic;
use callboard_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use callboard_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::{RequestContext, grouped};

/// Has the group's coordinator delete what it may.
pub async fn handle(cx: &RequestContext, mut request: OffsetDeleteRequest, _: i16) -> OffsetDeleteResponse {
    if request.group_id.is_empty() {
        let error_code = ErrorCode::InvalidGroupId as i16;
        return OffsetDeleteResponse { error_code, ..Default::default() };
    }
    let asked = std::mem::take(&mut request.topics);
    {
        let metadata = cx.services.metadata();
        let topics = &metadata.image.topics;
        let there = asked.iter().filter(|topic| topics.id(&topic.name).is_some()).cloned();
        request.topics = there
            .map(|mut topic| {
                topic
                    .partitions
                    .retain(|partition| topics.partition(&topic.name, partition.partition_index).is_some());
                topic
            })
            .filter(|topic| !topic.partitions.is_empty())
            .collect();
    }
    let outcome = match request.topics.is_empty() {
        true => Ok(OffsetDeleteResponse::default()),
        false => {
            let group_id = request.group_id.clone();
            grouped::ask(cx, &group_id, request).await
        }
    };
    match outcome {
        Err(error) => OffsetDeleteResponse { error_code: error as i16, ..Default::default() },
        Ok(response) if response.error_code != ErrorCode::None as i16 => response,
        Ok(response) => {
            let mut answers = BTreeMap::new();
            for topic in response.topics {
                for partition in topic.partitions {
                    answers.insert((topic.name.clone(), partition.partition_index), partition.error_code);
                }
            }
            let topics = asked.into_iter().map(|topic| answer(topic, &answers));
            OffsetDeleteResponse { topics: topics.collect(), ..Default::default() }
        }
    }
}

fn answer(
    topic: OffsetDeleteRequestTopic,
    answers: &BTreeMap<(ByteString, i32), i16>,
) -> OffsetDeleteResponseTopic {
    let partitions = topic.partitions.iter().map(|partition| {
        let partition_index = partition.partition_index;
        let unknown = ErrorCode::UnknownTopicOrPartition as i16;
        let error_code = answers.get(&(topic.name.clone(), partition_index)).copied().unwrap_or(unknown);
        OffsetDeleteResponsePartition { partition_index, error_code }
    });
    OffsetDeleteResponseTopic { partitions: partitions.collect(), name: topic.name }
}
