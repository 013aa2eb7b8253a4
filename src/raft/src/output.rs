//! What the machine asks of its caller, in an order the types enforce.
//!
//! A vote must be on disk before the voter says so, a leader must have its epoch on disk before
//! it speaks. So an [`Output`] falls in two: [`Writes`] to carry out, and a [`Sealed`] list of
//! effects that only opens for the [`Written`] that finishing the writes gives.

use bytes::Bytes;

use crate::messages::{LogRange, Request, Response};
use crate::{ElectionState, LeaderHint, SnapshotId, VoterSet};

/// What one input led to.
#[derive(Debug, Default)]
#[must_use]
pub struct Output {
    pub(crate) writes: Writes,
    pub(crate) effects: Vec<Effect>,
}

impl Output {
    /// The writes to carry out now, and the effects to carry out after.
    pub fn split(self) -> (Writes, Sealed) {
        (self.writes, Sealed { effects: self.effects })
    }
}

/// Writes, in this order: the state synced to disk, the log truncated, the log appended to.
///
/// Only the state must be durable at once. For the log, the caller tells the machine later with
/// [`crate::Input::Durable`]. A caller that can't write must stop using the machine.
#[derive(Debug, Default)]
#[must_use]
pub struct Writes {
    /// Write this as `quorum-state` and sync it.
    pub quorum_state: Option<ElectionState>,
    /// Drop the log from this offset on.
    pub truncate_to: Option<i64>,
    /// Then append this.
    pub append: Option<AppendWrite>,
}

impl Writes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.quorum_state.is_none() && self.truncate_to.is_none() && self.append.is_none()
    }

    /// The caller's word that every write was carried out.
    pub fn done(self) -> Written {
        Written(())
    }
}

/// Proof that an output's writes were carried out.
#[derive(Debug)]
pub struct Written(());

/// Effects that wait for the writes before them.
#[derive(Debug)]
#[must_use]
pub struct Sealed {
    effects: Vec<Effect>,
}

impl Sealed {
    /// The effects, once the writes are done.
    pub fn open(self, _written: Written) -> Vec<Effect> {
        self.effects
    }
}

/// An append to the local log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendWrite {
    /// One control batch by the leader, in its epoch.
    Control {
        /// Offset of the first record; the log's end.
        base_offset: i64,
        /// The leader's epoch.
        epoch: i32,
        /// The records, one an offset.
        records: Vec<ControlRecord>,
    },
    /// Batches fetched from the leader, to be stored as they are.
    Fetched {
        /// Offset of the first record; the log's end.
        base_offset: i64,
        /// The batches.
        bytes: Bytes,
    },
}

/// A control record of the quorum's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlRecord {
    /// `LeaderChangeMessage`: the first record of each epoch.
    LeaderChange {
        /// The new leader.
        leader_id: i32,
        /// All voters.
        voters: Vec<i32>,
        /// The voters that elected it.
        granting_voters: Vec<i32>,
    },
    /// `KRaftVersionRecord`.
    KRaftVersion(i16),
    /// `VotersRecord`.
    Voters(VoterSet),
}

/// Something to do once the writes are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Send a request to a node; the answer comes back as [`crate::Input::Response`].
    Send {
        /// The node.
        to: i32,
        /// The request.
        request: Request,
    },
    /// Answer the request that came with this id.
    Reply {
        /// The id given with [`crate::Input::Request`].
        request_id: u64,
        /// The answer.
        response: Response<LogRange>,
    },
    /// Everything before this offset is committed: durable on a majority of voters, and written
    /// here. A leader whose own sync lags behind its followers' may not have all of it durable.
    Committed {
        /// The high watermark.
        high_watermark: i64,
    },
    /// The epoch or its leader changed.
    Leader(LeaderHint),
    /// This replica can't go on without the leader's snapshot.
    SnapshotRequired {
        /// Whom to ask.
        leader_id: i32,
        /// The snapshot.
        snapshot: SnapshotId,
    },
}
