//! What handlers share that ask the transaction coordinator.

use callboard_coordinator::runtime::Producer;
use callboard_coordinator::transaction::{AddPartitions, TopicPartition, Verify};
use callboard_protocol::{ByteString, ErrorCode};

use super::RequestContext;

/// The version of the protocol (transaction.version) in which each end of a transaction raises the epoch, and producing
/// adds partitions (KIP-890).
pub(super) const RAISING: i16 = 2;
/// The version before that.
pub(super) const KEEPING: i16 = 0;

/// Under a fencing error's older name, if the version does not know the newer one.
pub(super) fn known_to(error: ErrorCode, version: i16, first_with_fenced: i16) -> ErrorCode {
    match error {
        ErrorCode::ProducerFenced if version < first_with_fenced => ErrorCode::InvalidProducerEpoch,
        other => other,
    }
}

/// Partitions that a producer wants to write to in a transaction.
#[derive(Debug)]
pub(super) struct Writing<'a> {
    /// Whose transaction.
    pub transactional_id: &'a ByteString,
    /// Who writes.
    pub producer: Producer,
    /// Where.
    pub partitions: Vec<TopicPartition>,
    /// Whether writing makes them part of the transaction; they must be in it already otherwise.
    pub implied: bool,
    /// Whether the client can tell that a transaction is to be aborted (TRANSACTION_ABORTABLE).
    pub knows_abortable: bool,
}

/// Whether the coordinator lets a producer write, partition by partition.
///
/// # Errors
/// Those of the coordinator, for all of them.
pub(super) async fn may_write(
    cx: &RequestContext,
    writing: Writing<'_>,
) -> Result<Vec<Result<(), ErrorCode>>, ErrorCode> {
    let Writing { transactional_id, producer, partitions, implied, knows_abortable } = writing;
    let (transactions, transactional_id) = (&cx.services.transactions, transactional_id.clone());
    let count = partitions.len();
    if implied {
        let patience_ms = cx.services.int_setting("add.partitions.to.txn.retry.backoff.max.ms");
        let client_version = RAISING;
        let adding = AddPartitions { transactional_id, producer, partitions, client_version, patience_ms };
        transactions.add(adding).await?;
        return Ok(vec![Ok(()); count]);
    }
    let verified = transactions.verify(Verify { transactional_id, producer, partitions }).await?;
    let outside = if knows_abortable { ErrorCode::TransactionAbortable } else { ErrorCode::InvalidTxnState };
    Ok(verified.into_iter().map(|inside| if inside { Ok(()) } else { Err(outside) }).collect())
}

/// Whether an error says that the coordinator can't answer now, and may soon.
pub(super) const fn is_passing(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::NotCoordinator
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::RequestTimedOut
    )
}
