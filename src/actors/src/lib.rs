//! Supervision, and every actor of a node.
