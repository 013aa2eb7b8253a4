//! ListTransactions.

use super::request::{List, Listed};
use super::shard::TransactionShard;
use super::state::Transaction;
use crate::cluster::Circumstances;

/// The ids that pass the filters.
pub(super) fn list(shard: &TransactionShard, request: &List, cx: &Circumstances<'_>) -> Vec<Listed> {
    let passes = |transaction: &Transaction| {
        let named = request.states.iter().any(|name| *name == *transaction.state.name());
        let owned = request.producer_ids.contains(&transaction.producer.id);
        let open_ms = cx.now_ms.saturating_sub(transaction.started_ms);
        (named || request.states.is_empty())
            && (owned || request.producer_ids.is_empty())
            && (request.open_longer_than_ms < 0 || open_ms > request.open_longer_than_ms)
    };
    let passing = shard.transactions().filter(|(_, transaction)| passes(transaction));
    let listed = passing.map(|(id, transaction)| Listed {
        transactional_id: id.clone(),
        producer_id: transaction.producer.id,
        state: transaction.state,
    });
    listed.collect()
}
