//! OffsetCommit. Topics and partitions that are not there are refused here, all others by the coordinator.

use std::collections::BTreeMap;

use callboard_protocol::messages::offset_commit_request::OffsetCommitRequestTopic;
use callboard_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use callboard_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::{RequestContext, grouped};

/// From this version on topics go by id.
const FIRST_WITH_TOPIC_IDS: i16 = 10;

/// Has the group's coordinator write what it may.
pub async fn handle(
    cx: &RequestContext,
    mut request: OffsetCommitRequest,
    version: i16,
) -> OffsetCommitResponse {
    let asked = std::mem::take(&mut request.topics);
    let mut topics = Vec::with_capacity(asked.len());
    let by_id = version >= FIRST_WITH_TOPIC_IDS;
    {
        let metadata = cx.services.metadata();
        for topic in asked {
            let name = grouped::topic_name(&metadata.image, by_id, topic.topic_id, &topic.name);
            let known = name.as_ref().ok().and_then(|name| metadata.image.topics.by_name(name));
            let (name, mut good) = (name, topic.clone());
            good.partitions.retain(|partition| {
                known.is_some_and(|known| known.partition(partition.partition_index).is_some())
            });
            if let (Ok(name), Some(known)) = (&name, known) {
                (good.name, good.topic_id) = (name.clone(), known.id);
                if !good.partitions.is_empty() {
                    request.topics.push(good);
                }
            }
            topics.push((topic, name));
        }
    }
    let outcome = match request.topics.is_empty() {
        true => Ok(OffsetCommitResponse::default()),
        false => {
            let group_id = request.group_id.clone();
            grouped::ask(cx, &group_id, request).await
        }
    };
    let answers = outcome.map(by_partition);
    let topics = topics.into_iter().map(|(topic, name)| answer(topic, name, &answers));
    OffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

type Answers = BTreeMap<(ByteString, i32), i16>;

fn by_partition(response: OffsetCommitResponse) -> Answers {
    let mut answers = Answers::new();
    for topic in response.topics {
        for partition in topic.partitions {
            answers.insert((topic.name.clone(), partition.partition_index), partition.error_code);
        }
    }
    answers
}

fn answer(
    topic: OffsetCommitRequestTopic,
    name: Result<ByteString, ErrorCode>,
    answers: &Result<Answers, ErrorCode>,
) -> OffsetCommitResponseTopic {
    let partitions = topic.partitions.iter().map(|partition| {
        let index = partition.partition_index;
        let error_code = match (&name, answers) {
            (Err(error), _) => *error as i16,
            (Ok(_), Err(error)) => *error as i16,
            // The coordinator was not asked of partitions that are not there.
            (Ok(name), Ok(answers)) => answers
                .get(&(name.clone(), index))
                .copied()
                .unwrap_or(ErrorCode::UnknownTopicOrPartition as i16),
        };
        OffsetCommitResponsePartition { partition_index: index, error_code, ..Default::default() }
    });
    OffsetCommitResponseTopic {
        partitions: partitions.collect(),
        name: topic.name,
        topic_id: topic.topic_id,
        ..Default::default()
    }
}
