//! Supervision, and every actor of a node.

pub mod api;
pub mod control;
pub mod coordinator;
pub mod groups;
pub mod net;
pub mod node;
pub mod producer_ids;
pub mod replicas;
pub mod supervision;
pub mod transactions;
