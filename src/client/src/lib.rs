//! The native client: producer, consumer and admin.
//!
//! A [`Client`] knows the cluster (brokers, topics, leaders) and holds one pipelined [`Connection`] to each
//! broker. [`Producer`], [`Consumer`] and [`Admin`] are made from it. All need a tokio runtime.

mod admin;
mod client;
mod connection;
mod consumer;
mod error;
mod metadata;
mod partitioner;
mod producer;

pub use admin::{Admin, ConfigEntry, NewTopic, ResourceKind};
pub use client::{Client, ClientOptions};
pub use connection::{Connection, Reply};
pub use consumer::{ConsumedRecord, Consumer, ConsumerOptions, OffsetReset, OffsetSpec};
pub use error::ClientError;
pub use metadata::{BrokerAddress, Metadata, PartitionMetadata, TopicMetadata};
pub use producer::{Acks, Delivery, Producer, ProducerOptions, ProducerRecord, RecordMetadata};
