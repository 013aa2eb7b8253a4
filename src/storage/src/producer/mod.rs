//! What the log knows of its producers: sequences, epochs, open transactions.

mod entry;
mod snapshot;
mod stage;
mod state;

pub use entry::{ProducerBatch, ProducerEntry};
pub(crate) use snapshot::{list as list_snapshots, read as read_snapshot, write as write_snapshot};
pub use stage::Origin;
pub(crate) use stage::{Staged, Verdict};
pub(crate) use state::ProducerState;
