//! The indexes beside each segment: from offsets to positions, from timestamps to offsets, and the aborted
//! transactions.

mod map;
mod offset;
mod time;
mod txn;

pub(crate) use offset::OffsetIndex;
pub(crate) use time::{TimeEntry, TimeIndex};
pub use txn::AbortedTxn;
pub(crate) use txn::TxnIndex;
