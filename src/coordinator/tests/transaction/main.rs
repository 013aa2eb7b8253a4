//! The transaction shard: conversations with right answers, records, and a seeded simulation with failovers.

#![allow(clippy::unwrap_used, clippy::panic)]

mod conversations;
mod desk;
mod ends;
mod failures;
mod records;
mod simulation;
mod time;
