//! The edge of a node: its listeners and the data APIs, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panics")]

mod common;
mod data;
mod groups;
mod refused;
