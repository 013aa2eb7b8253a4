//! The control plane: the quorum's log, and what reads and writes it.

pub mod applied;
pub mod controller;
pub mod lifecycle;
pub mod loader;
pub mod raft;
