//! Kafka's messages, record batches, API table and error codes; pure.

pub mod records;
