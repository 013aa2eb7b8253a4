//! Groups, transactions and share groups as state machines; pure.
//!
//! - [`runtime`]: what every coordinator's shard has in common: records replayed at once, answers held until they are
//!   committed, and the way back when an append fails.
//! - [`group`]: the shard of one partition of `__consumer_offsets`, with the groups of both protocols.
//! - [`offsets`]: what groups have committed.
//! - [`transaction`]: the shard of one partition of `__transaction_state`.
//!
//! Time, random numbers and the cluster's metadata come in with each call ([`Circumstances`]); records, answers and
//! work for others go out as values ([`runtime::Outcome`]).

mod cluster;
mod error;
pub mod group;
pub mod offsets;
pub mod runtime;
mod settings;
pub mod transaction;

pub use cluster::{Circumstances, Cluster, TopicView};
pub use error::ReplayError;
pub use settings::{ClassicSettings, ConsumerSettings, OffsetSettings, Settings, TransactionSettings};
