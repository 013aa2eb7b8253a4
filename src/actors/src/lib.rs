//! Supervision, and every actor of a node.

pub mod supervision;
