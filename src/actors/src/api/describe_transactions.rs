//! DescribeTransactions: what the coordinator knows of transactional ids.

use callboard_coordinator::transaction::Transaction;
use callboard_protocol::messages::describe_transactions_response::{TopicData, TransactionState};
use callboard_protocol::messages::{DescribeTransactionsRequest, DescribeTransactionsResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::RequestContext;

/// Asks for each id in turn.
pub async fn handle(
    cx: &RequestContext,
    request: DescribeTransactionsRequest,
    _: i16,
) -> DescribeTransactionsResponse {
    let mut transaction_states = Vec::with_capacity(request.transactional_ids.len());
    for id in request.transactional_ids {
        transaction_states.push(one(cx, id).await);
    }
    DescribeTransactionsResponse { transaction_states, ..Default::default() }
}

async fn one(cx: &RequestContext, transactional_id: ByteString) -> TransactionState {
    let found = match transactional_id.is_empty() {
        true => Err(ErrorCode::InvalidRequest),
        false => cx.services.transactions.describe(&transactional_id).await,
    };
    match found.and_then(|found| found.ok_or(ErrorCode::TransactionalIdNotFound)) {
        Ok(transaction) => TransactionState { transactional_id, ..described(&transaction) },
        Err(error) => TransactionState { transactional_id, error_code: error as i16, ..Default::default() },
    }
}

fn described(transaction: &Transaction) -> TransactionState {
    let mut topics: Vec<TopicData> = Vec::new();
    for of in &transaction.partitions {
        match topics.last_mut().filter(|last| last.topic == of.topic) {
            Some(last) => last.partitions.push(of.partition),
            None => topics.push(TopicData {
                topic: of.topic.clone(),
                partitions: vec![of.partition],
                ..Default::default()
            }),
        }
    }
    TransactionState {
        transaction_state: ByteString::from_static(transaction.state.name()),
        transaction_timeout_ms: transaction.timeout_ms,
        transaction_start_time_ms: transaction.started_ms,
        producer_id: transaction.producer.id,
        producer_epoch: transaction.producer.epoch,
        topics,
        ..Default::default()
    }
}
