//! The data path from outside: partitions, the manager, the purgatories, over real files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail by panicking")]

mod common;
mod damage;
mod life;
mod produce;
mod upkeep;
mod waiting;
