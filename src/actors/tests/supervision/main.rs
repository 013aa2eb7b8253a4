//! Supervision from outside: what an actor's crash costs, and what it does not.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail by panicking")]

mod admission;
mod barrier;
mod common;
mod fairness;
mod generations;
mod restarts;
mod stopping;
mod tree;
mod watchdog;
