//! KRaft consensus on one log, as a state machine; pure.
//!
//! [`Machine`] takes an [`Input`] with the time and a random number and gives back an [`Output`]:
//! what to write first, and what to send once that is written. It opens no file, knows no clock
//! and keeps its state in ordered maps, so the same inputs always give the same outputs.
//!
//! What it speaks is KRaft as Kafka 4.4 does: pre-vote, elections, `BeginQuorumEpoch`,
//! `EndQuorumEpoch`, replication by `Fetch` with diverging epochs, a high watermark by majority of
//! what is durable, and a leader that resigns when it no longer hears from a majority. The voter
//! set is given at start and doesn't change; downloading a snapshot and changing voters are not
//! here yet.

mod campaign;
mod election;
mod error;
mod log_view;
mod machine;
mod messages;
mod output;
mod quorum_state;
mod replication;
mod roles;
mod status;
mod timers;
mod voters;

#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;

pub use error::RaftError;
pub use log_view::{LogView, SnapshotId};
pub use machine::{Config, Input, Machine, VotersOrigin};
pub use messages::{
    BatchInfo, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchOutcome, FetchResponse, Fetched, LeaderHint,
    LogRange, QuorumError, Request, Response, Vote, VoteResponse,
};
pub use output::{AppendWrite, ControlRecord, Effect, Output, Sealed, Writes, Written};
pub use quorum_state::ElectionState;
pub use roles::RoleName;
pub use status::{QuorumStatus, ReplicaStatus};
pub use voters::{Endpoint, ReplicaKey, Voter, VoterSet};
