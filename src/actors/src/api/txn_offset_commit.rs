//! TxnOffsetCommit: a group's offsets in a transaction. The transaction is verified here, the rest by the group's
//! coordinator.

use std::collections::BTreeMap;

use callboard_coordinator::runtime::Producer;
use callboard_protocol::messages::txn_offset_commit_request::TxnOffsetCommitRequestTopic;
use callboard_protocol::messages::txn_offset_commit_response::{
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};
use callboard_protocol::messages::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::transactional::Writing;
use super::{RequestContext, add_offsets_to_txn, grouped, transactional};

/// From this version on topics go by id.
const FIRST_WITH_TOPIC_IDS: i16 = 6;
/// From this version on committing makes the offsets part of the transaction.
const FIRST_IMPLIED: i16 = 5;
/// From this version on a client can tell that a transaction is to be aborted.
const FIRST_WITH_ABORTABLE: i16 = 4;

type Answers = BTreeMap<(ByteString, i32), i16>;

/// Has the group's coordinator write what it may.
pub async fn handle(
    cx: &RequestContext,
    mut request: TxnOffsetCommitRequest,
    version: i16,
) -> TxnOffsetCommitResponse {
    let asked = std::mem::take(&mut request.topics);
    let mut topics = Vec::with_capacity(asked.len());
    {
        let metadata = cx.services.metadata();
        let by_id = version >= FIRST_WITH_TOPIC_IDS;
        for topic in asked {
            let name = grouped::topic_name(&metadata.image, by_id, topic.topic_id, &topic.name);
            if let Ok(name) = &name
                && let Some(known) = metadata.image.topics.by_name(name)
            {
                let mut good = topic.clone();
                good.partitions.retain(|of| known.partition(of.partition_index).is_some());
                (good.name, good.topic_id) = (name.clone(), known.id);
                if !good.partitions.is_empty() {
                    request.topics.push(good);
                }
            }
            topics.push((topic, name));
        }
    }
    let answers = match request.topics.is_empty() {
        true => Ok(Answers::new()),
        false => commit(cx, request, version).await.map(by_partition),
    };
    let topics = topics.into_iter().map(|(topic, name)| answer(topic, name, &answers));
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}

async fn commit(
    cx: &RequestContext,
    request: TxnOffsetCommitRequest,
    version: i16,
) -> Result<TxnOffsetCommitResponse, ErrorCode> {
    if request.group_id.is_empty() {
        return Err(ErrorCode::InvalidGroupId);
    }
    let partition = add_offsets_to_txn::offsets_partition(cx, &request.group_id).await?;
    let writing = Writing {
        transactional_id: &request.transactional_id,
        producer: Producer { id: request.producer_id, epoch: request.producer_epoch },
        partitions: vec![partition],
        implied: version >= FIRST_IMPLIED,
        knows_abortable: version >= FIRST_WITH_ABORTABLE,
    };
    let verified = transactional::may_write(cx, writing).await.map_err(|error| told(error, version))?;
    verified.into_iter().collect::<Result<(), _>>()?;
    let group_id = request.group_id.clone();
    grouped::ask(cx, &group_id, request).await
}

/// What the client is told when its transaction can't be verified.
fn told(error: ErrorCode, version: i16) -> ErrorCode {
    match error {
        ErrorCode::ProducerFenced => ErrorCode::InvalidProducerEpoch,
        ErrorCode::ConcurrentTransactions if version >= FIRST_IMPLIED => error,
        ErrorCode::ConcurrentTransactions => ErrorCode::CoordinatorLoadInProgress,
        error if transactional::is_passing(error) => ErrorCode::CoordinatorLoadInProgress,
        other => other,
    }
}

fn by_partition(response: TxnOffsetCommitResponse) -> Answers {
    let topics = response.topics.into_iter();
    let partitions = topics.flat_map(|topic| {
        let name = topic.name;
        topic.partitions.into_iter().map(move |of| ((name.clone(), of.partition_index), of.error_code))
    });
    partitions.collect()
}

fn answer(
    topic: TxnOffsetCommitRequestTopic,
    name: Result<ByteString, ErrorCode>,
    answers: &Result<Answers, ErrorCode>,
) -> TxnOffsetCommitResponseTopic {
    let partitions = topic.partitions.iter().map(|partition| {
        let index = partition.partition_index;
        let error_code = match (&name, answers) {
            (Err(error), _) | (Ok(_), Err(error)) => *error as i16,
            // The coordinator was not asked of partitions that are not there.
            (Ok(name), Ok(answers)) => answers
                .get(&(name.clone(), index))
                .copied()
                .unwrap_or(ErrorCode::UnknownTopicOrPartition as i16),
        };
        TxnOffsetCommitResponsePartition { partition_index: index, error_code, ..Default::default() }
    });
    TxnOffsetCommitResponseTopic {
        partitions: partitions.collect(),
        name: topic.name,
        topic_id: topic.topic_id,
        ..Default::default()
    }
}
