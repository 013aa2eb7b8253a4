//! The controller's decisions, held against what Kafka 4.4.0 answered to the same requests.
#![allow(clippy::unwrap_used)] // a test fails by panicking

mod brokers;
mod configs;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod features;
mod fixture;
mod leaders;
mod producer_ids;
mod rollback;
