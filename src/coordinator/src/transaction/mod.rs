//! Transactions: the shard of one partition of `__transaction_state`, and the transactional ids in it.
//!
//! [`TransactionShard`] is the [`Machine`](crate::runtime::Machine). A transactional id ([`Transaction`]) goes from
//! `Empty` to `Ongoing` when the first partition takes part, by EndTxn or its timeout to `PrepareCommit` or
//! `PrepareAbort`, and once the leaders of all its partitions have written a marker to `CompleteCommit` or
//! `CompleteAbort`, where the next transaction may begin. Each step is one record with all that is known of the id, so
//! a new coordinator goes on wherever the former one stopped: what was prepared gets its markers once more.
//!
//! Markers are [`Effect`]s; they leave once the decision is committed to the log, and come back one partition at a time
//! ([`TransactionShard::marked`]). A partition without a leader is waited for. It is passed over only when the cluster's
//! metadata says that it is gone.
//!
//! Kafka keeps a transition apart until it is in its log, and answers CONCURRENT_TRANSACTIONS meanwhile. Here the state
//! changes at once and the answer waits: the runtime takes both back if the log fails.

mod admin;
mod begin;
mod end;
mod record;
mod request;
mod shard;
mod state;
mod timers;

pub use record::TransactionRecord;
pub use request::{AddPartitions, End, InitProducer, List, Listed, Reply, Request, Verify};
pub use shard::{Done, Effect, Markers, TransactionOutcome, TransactionShard};
pub use state::{
    Decision, LAST_CLIENT_EPOCH, NO_EPOCH, NO_PRODUCER_ID, State, TopicPartition, Transaction,
    WITHOUT_TIMEOUT_MS,
};
