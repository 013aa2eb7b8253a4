//! InitProducerId: an id for an idempotent producer.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

use super::RequestContext;
use crate::producer_ids::NextProducerId;

/// Hands out an id with epoch 0. A transactional id is checked as Kafka does and then refused: transactions
/// are not built yet.
pub async fn handle(cx: &RequestContext, request: InitProducerIdRequest, _: i16) -> InitProducerIdResponse {
    let mut response = InitProducerIdResponse {
        producer_id: -1,
        producer_epoch: -1,
        ongoing_txn_producer_id: -1,
        ongoing_txn_producer_epoch: -1,
        ..Default::default()
    };
    match next(cx, &request).await {
        Ok(producer_id) => {
            response.producer_id = producer_id;
            response.producer_epoch = 0;
        }
        Err(error) => response.error_code = error as i16,
    }
    response
}

async fn next(cx: &RequestContext, request: &InitProducerIdRequest) -> Result<i64, ErrorCode> {
    if (request.producer_id == -1) != (request.producer_epoch == -1) {
        return Err(ErrorCode::InvalidRequest);
    }
    if let Some(transactional_id) = &request.transactional_id {
        let longest = cx.services.int_setting("transaction.max.timeout.ms");
        return Err(match i64::from(request.transaction_timeout_ms) {
            _ if transactional_id.is_empty() => ErrorCode::InvalidRequest,
            timeout if timeout <= 0 || timeout > longest => ErrorCode::InvalidTransactionTimeout,
            _ => ErrorCode::UnsupportedVersion,
        });
    }
    let asked = cx.services.producer_ids.ask(NextProducerId).await;
    asked.map_err(|_| ErrorCode::CoordinatorLoadInProgress)?
}
