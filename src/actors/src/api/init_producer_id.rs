//! InitProducerId: an id for an idempotent producer, or the producer of a transactional id.

use callboard_coordinator::runtime::Producer;
use callboard_coordinator::transaction::InitProducer;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

use super::{RequestContext, transactional};
use crate::producer_ids::NextProducerId;

/// From this version on a producer is told that another took its place.
const FIRST_WITH_FENCED: i16 = 4;

/// Without a transactional id hands out an id with epoch 0; with one asks the coordinator.
pub async fn handle(
    cx: &RequestContext,
    request: InitProducerIdRequest,
    version: i16,
) -> InitProducerIdResponse {
    let mut response = InitProducerIdResponse {
        producer_id: -1,
        producer_epoch: -1,
        ongoing_txn_producer_id: -1,
        ongoing_txn_producer_epoch: -1,
        ..Default::default()
    };
    match init(cx, request).await {
        Ok(producer) => {
            response.producer_id = producer.id;
            response.producer_epoch = producer.epoch;
        }
        Err(error) => {
            response.error_code = transactional::known_to(error, version, FIRST_WITH_FENCED) as i16;
        }
    }
    response
}

async fn init(cx: &RequestContext, request: InitProducerIdRequest) -> Result<Producer, ErrorCode> {
    let present = match (request.producer_id, request.producer_epoch) {
        (-1, -1) => None,
        (-1, _) | (_, -1) => return Err(ErrorCode::InvalidRequest),
        (id, epoch) => Some(Producer { id, epoch }),
    };
    let Some(transactional_id) = request.transactional_id else {
        let asked = cx.services.producer_ids.ask(NextProducerId).await;
        let id = asked.map_err(|_| ErrorCode::CoordinatorLoadInProgress)??;
        return Ok(Producer { id, epoch: 0 });
    };
    if transactional_id.is_empty() {
        return Err(ErrorCode::InvalidRequest);
    }
    let timeout_ms = request.transaction_timeout_ms;
    cx.services.transactions.init(InitProducer { transactional_id, timeout_ms, present }).await
}
