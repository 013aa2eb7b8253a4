//! What whole-node tests share: a node in a process of its own, and a ledger of what was acknowledged.

mod ledger;
mod process;

pub use ledger::{Ledger, check_partition};
pub use process::Node;
