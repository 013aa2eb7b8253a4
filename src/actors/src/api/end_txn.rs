//! EndTxn: commits or aborts a transaction.

use callboard_coordinator::runtime::Producer;
use callboard_coordinator::transaction::{Decision, End};
use callboard_protocol::messages::{EndTxnRequest, EndTxnResponse};

use super::{RequestContext, transactional};

/// From this version on a producer is told that another took its place.
const FIRST_WITH_FENCED: i16 = 2;
/// From this version on the epoch is raised, and the answer has it.
const FIRST_RAISING: i16 = 5;

/// Answers once the decision is in the log; markers follow.
pub async fn handle(cx: &RequestContext, request: EndTxnRequest, version: i16) -> EndTxnResponse {
    let raising = version >= FIRST_RAISING;
    let end = End {
        transactional_id: request.transactional_id,
        producer: Producer { id: request.producer_id, epoch: request.producer_epoch },
        decision: Decision::from_committed(request.committed),
        client_version: if raising { transactional::RAISING } else { transactional::KEEPING },
    };
    let nobody = EndTxnResponse { producer_id: -1, producer_epoch: -1, ..Default::default() };
    match cx.services.transactions.end(end).await {
        Ok(next) if raising => EndTxnResponse { producer_id: next.id, producer_epoch: next.epoch, ..nobody },
        Ok(_) => nobody,
        Err(error) => {
            let error = transactional::known_to(error, version, FIRST_WITH_FENCED);
            EndTxnResponse { error_code: error as i16, ..nobody }
        }
    }
}
