//! What groups have committed: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete, and how old offsets go away.

mod commit;
mod delete;
mod expire;
mod fetch;
mod store;
mod transactional;

pub use store::{Committed, Offsets, PartitionOfGroup};

pub(crate) use commit::commit;
pub(crate) use delete::{delete, topics_deleted};
pub(crate) use expire::{expire, schedule as schedule_expiry};
pub(crate) use fetch::fetch;
pub(crate) use transactional::txn_commit;
