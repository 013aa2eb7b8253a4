//! AddPartitionsToTxn: from a client for one transaction, from a broker for several, or to verify (KIP-890).

use callboard_coordinator::runtime::Producer;
use callboard_coordinator::transaction::{AddPartitions, TopicPartition, Verify};
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use callboard_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use callboard_protocol::messages::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};

use super::{RequestContext, transactional};

/// From this version on it is for brokers, and holds several transactions.
const FIRST_BATCHED: i16 = 4;
/// From this version on the client goes by transaction.version 2.
const FIRST_RAISING: i16 = 5;
/// From this version on a producer is told that another took its place.
const FIRST_WITH_FENCED: i16 = 2;

/// Adds all partitions of a transaction or none.
pub async fn handle(
    cx: &RequestContext,
    request: AddPartitionsToTxnRequest,
    version: i16,
) -> AddPartitionsToTxnResponse {
    if version < FIRST_BATCHED {
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: request.v3_and_below_transactional_id,
            producer_id: request.v3_and_below_producer_id,
            producer_epoch: request.v3_and_below_producer_epoch,
            verify_only: false,
            topics: request.v3_and_below_topics,
            ..Default::default()
        };
        let results = one(cx, &transaction, version).await;
        return AddPartitionsToTxnResponse { results_by_topic_v3_and_below: results, ..Default::default() };
    }
    let mut results = Vec::with_capacity(request.transactions.len());
    for transaction in request.transactions {
        let topic_results = one(cx, &transaction, version).await;
        results.push(AddPartitionsToTxnResult {
            transactional_id: transaction.transactional_id,
            topic_results,
            ..Default::default()
        });
    }
    AddPartitionsToTxnResponse { results_by_transaction: results, ..Default::default() }
}

async fn one(
    cx: &RequestContext,
    transaction: &AddPartitionsToTxnTransaction,
    version: i16,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let partitions = partitions(&transaction.topics);
    let unknown: Vec<bool> = {
        let topics = &cx.services.metadata().image.topics;
        partitions.iter().map(|of| topics.partition(&of.topic, of.partition).is_none()).collect()
    };
    let errors: Vec<ErrorCode> = if transaction.transactional_id.is_empty() {
        vec![ErrorCode::InvalidRequest; partitions.len()]
    } else if !transaction.verify_only && unknown.contains(&true) {
        let error = |unknown: &bool| match unknown {
            true => ErrorCode::UnknownTopicOrPartition,
            false => ErrorCode::OperationNotAttempted,
        };
        unknown.iter().map(error).collect()
    } else {
        ask(cx, transaction, partitions, version).await
    };
    results(&transaction.topics, &errors)
}

fn partitions(topics: &[AddPartitionsToTxnTopic]) -> Vec<TopicPartition> {
    let of_topic = |topic: &AddPartitionsToTxnTopic| {
        let name = topic.name.clone();
        let of = move |partition| TopicPartition { topic: name.clone(), partition };
        topic.partitions.clone().into_iter().map(of)
    };
    topics.iter().flat_map(of_topic).collect()
}

/// An error for each partition, in order.
async fn ask(
    cx: &RequestContext,
    transaction: &AddPartitionsToTxnTransaction,
    partitions: Vec<TopicPartition>,
    version: i16,
) -> Vec<ErrorCode> {
    let count = partitions.len();
    let transactional_id = transaction.transactional_id.clone();
    let producer = Producer { id: transaction.producer_id, epoch: transaction.producer_epoch };
    let transactions = &cx.services.transactions;
    let outcome = if transaction.verify_only {
        let verified = transactions.verify(Verify { transactional_id, producer, partitions }).await;
        verified.map(|inside| {
            let error = |inside| if inside { ErrorCode::None } else { ErrorCode::TransactionAbortable };
            inside.into_iter().map(error).collect()
        })
    } else {
        let raising = version >= FIRST_RAISING;
        let client_version = if raising { transactional::RAISING } else { transactional::KEEPING };
        let adding = AddPartitions { transactional_id, producer, partitions, client_version, patience_ms: 0 };
        transactions.add(adding).await.map(|()| vec![ErrorCode::None; count])
    };
    outcome.unwrap_or_else(|error| vec![transactional::known_to(error, version, FIRST_WITH_FENCED); count])
}

fn results(topics: &[AddPartitionsToTxnTopic], errors: &[ErrorCode]) -> Vec<AddPartitionsToTxnTopicResult> {
    let mut errors = errors.iter().copied();
    let topic = |topic: &AddPartitionsToTxnTopic| AddPartitionsToTxnTopicResult {
        name: topic.name.clone(),
        results_by_partition: topic
            .partitions
            .iter()
            .map(|index| AddPartitionsToTxnPartitionResult {
                partition_index: *index,
                partition_error_code: errors.next().unwrap_or(ErrorCode::UnknownServerError) as i16,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    };
    topics.iter().map(topic).collect()
}
