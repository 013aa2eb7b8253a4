//! The raft actor: the quorum's log, `__cluster_metadata-0`.
//!
//! - Who sends: the controller ([`Append`], [`ReadBootstrap`], [`Resign`]), the metadata loader ([`WriteSnapshot`]), both
//!   [`Subscribe`]; DescribeQuorum handlers ([`DescribeQuorum`]).
//! - Owns: the log's files, its snapshots and `quorum-state`; the [`callboard_raft::Machine`]; the subscriptions. It tells
//!   [`LogNews`] to subscribers, one at a time each, and publishes the leader ([`Raft::leader`]).
//! - Runs: one a node. Opening, syncs (one for all appends since the last), votes, snapshots and reads for subscribers
//!   that are behind go to the blocking pool; appends go to the page cache from the actor itself.
//! - Mailbox: bounded by count; the controller has one append outstanding for each event.
//! - Timers: the machine's next deadline (none for a quorum of one that leads), retention each minute.
//! - Restart: built again from its files, in a new epoch. Subscriptions outlive it. The new epoch tells the controller
//!   to go back to what is committed. An I/O error escalates with
//!   [`Exit::MetadataFailed`](crate::supervision::Exit::MetadataFailed): a node can't go on without its metadata log.
//! - To a client, its crash means NOT_CONTROLLER until a controller leads again.

mod actor;
mod batches;
mod control_records;
mod error;
mod feed;
mod handlers;
mod messages;
mod open;
mod options;
mod retention;
mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use callboard_metadata::VersionedRecord;
use callboard_raft::LeaderHint;
use tokio::sync::watch;

pub use actor::RaftActor;
pub use error::LogError;
pub use messages::{
    Append, AppendFailed, AppendedRange, CommittedBatch, DescribeQuorum, Leadership, LogNews, QuorumInfo,
    ReadBootstrap, Resign, Snapshot, Subscribe, WriteSnapshot,
};
pub use open::{LOG_DIR, QUORUM_STATE};
pub use options::RaftOptions;

use crate::supervision::{ActorRef, Ask, Spec, SupervisorRef};
use feed::Shared;

/// Largest batch of records, as Kafka's.
pub const MAX_BATCH_BYTES: usize = 8 << 20;
/// Bytes read at once for a subscriber.
const READ_BYTES: u32 = 1 << 20;

/// The way to the raft actor.
#[derive(Debug, Clone)]
pub struct Raft {
    actor: ActorRef<RaftActor>,
    leader: watch::Receiver<LeaderHint>,
}

impl Raft {
    /// Starts the actor.
    pub fn spawn(supervisor: &SupervisorRef, options: RaftOptions) -> Self {
        let shared = Arc::new(Shared::default());
        let leader = shared.leader.subscribe();
        let factory = move || RaftActor::new(options.clone(), Arc::clone(&shared));
        Self { actor: supervisor.spawn(Spec::new("raft", factory)), leader }
    }

    /// The actor itself.
    pub fn actor(&self) -> &ActorRef<RaftActor> {
        &self.actor
    }

    /// The epoch and its leader, as of now.
    pub fn leader(&self) -> LeaderHint {
        *self.leader.borrow()
    }

    /// Changes of the leader.
    pub fn leader_changes(&self) -> watch::Receiver<LeaderHint> {
        self.leader.clone()
    }

    /// Appends records as one batch: see [`Append`].
    pub fn append(
        &self,
        records: Vec<VersionedRecord>,
        expected_epoch: i32,
        expected_offset: Option<i64>,
    ) -> Ask<Result<AppendedRange, AppendFailed>> {
        self.actor.ask(Append { records, expected_epoch, expected_offset })
    }

    /// Follows the log: see [`Subscribe`].
    pub fn subscribe(&self, subscribe: Subscribe) -> Ask<()> {
        self.actor.ask(subscribe)
    }
}
