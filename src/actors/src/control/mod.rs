//! The control plane: the quorum's log, and what reads and writes it.

pub mod loader;
pub mod raft;
