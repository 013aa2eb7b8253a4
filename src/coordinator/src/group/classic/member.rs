//! One member of a classic group.

use std::sync::Arc;

use bytes::Bytes;
use callboard_protocol::ByteString;

use crate::runtime::Ticket;

/// A protocol that a member offers, with what it has to say in it.
pub type Protocols = Arc<Vec<(ByteString, Bytes)>>;

/// One member.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// What the coordinator calls it.
    pub id: ByteString,
    /// What a static member calls itself (`group.instance.id`).
    pub instance_id: Option<ByteString>,
    /// `client.id`.
    pub client_id: ByteString,
    /// Where it connected from when it joined.
    pub client_host: ByteString,
    /// How long it may take to join again, in milliseconds.
    pub rebalance_timeout_ms: i32,
    /// How long it may be silent, in milliseconds.
    pub session_timeout_ms: i32,
    /// The protocols it offers, the most wanted first.
    pub protocols: Protocols,
    /// What the leader has given it.
    pub assignment: Bytes,
    /// Whether it has yet to live through its first join: until then it may expire while it waits.
    pub is_new: bool,
    /// Its JoinGroup, while that waits.
    pub joining: Option<Ticket>,
    /// Its SyncGroup, while that waits.
    pub syncing: Option<Ticket>,
}

impl Member {
    /// Whether it offers just these protocols, with just this to say.
    pub fn matches(&self, protocols: &[(ByteString, Bytes)]) -> bool {
        self.protocols.as_slice() == protocols
    }

    /// What it has to say in a protocol; empty if it does not offer it.
    pub fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found.map(|(_, metadata)| metadata.clone()).unwrap_or_default()
    }

    /// The first of its protocols that is a candidate.
    pub fn vote(&self, is_candidate: impl Fn(&ByteString) -> bool) -> Option<&ByteString> {
        self.protocols.iter().map(|(name, _)| name).find(|name| is_candidate(name))
    }
}
