//! The edge of a node: its listeners and the data APIs, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

mod common;
mod consumer_groups;
mod data;
mod groups;
mod refused;
mod transactions;
