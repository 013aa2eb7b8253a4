//! Who votes: replicas, their directories and endpoints.

use std::collections::BTreeMap;

use callboard_protocol::Uuid;

use crate::RaftError;

/// A replica of the log: a node's id, and the directory its copy lives in.
///
/// A static quorum (`controller.quorum.voters`) doesn't know directories: the id is then
/// [`Uuid::ZERO`], which matches any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaKey {
    /// `node.id`.
    pub id: i32,
    /// `directory.id` of the metadata log directory, or [`Uuid::ZERO`].
    pub directory_id: Uuid,
}

impl ReplicaKey {
    /// A key of an id and a directory.
    pub fn new(id: i32, directory_id: Uuid) -> Self {
        Self { id, directory_id }
    }

    /// Whether both name one replica: same id, and same directory where both know it.
    pub fn matches(&self, other: &Self) -> bool {
        self.id == other.id
            && (self.directory_id == other.directory_id
                || self.directory_id == Uuid::ZERO
                || other.directory_id == Uuid::ZERO)
    }
}

/// Where a voter listens for its peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Listener name, as in `controller.listener.names`.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// One voter, as a `VotersRecord` stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Voter {
    /// The replica.
    pub key: ReplicaKey,
    /// Where it listens, the default listener first.
    pub endpoints: Vec<Endpoint>,
    /// The lowest `kraft.version` it supports.
    pub min_kraft_version: i16,
    /// The highest `kraft.version` it supports.
    pub max_kraft_version: i16,
}

/// The voters of a quorum, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoterSet {
    voters: BTreeMap<i32, Voter>,
}

impl VoterSet {
    /// A set of voters. Errors: none given, or an id given twice.
    pub fn new(voters: impl IntoIterator<Item = Voter>) -> Result<Self, RaftError> {
        let mut by_id = BTreeMap::new();
        for voter in voters {
            let id = voter.key.id;
            if by_id.insert(id, voter).is_some() {
                return Err(RaftError::DuplicateVoter(id));
            }
        }
        if by_id.is_empty() {
            return Err(RaftError::NoVoters);
        }
        Ok(Self { voters: by_id })
    }

    /// All voters, by ascending id.
    pub fn iter(&self) -> impl Iterator<Item = &Voter> {
        self.voters.values()
    }

    /// All voters' ids, ascending.
    pub fn ids(&self) -> impl Iterator<Item = i32> + '_ {
        self.voters.keys().copied()
    }

    /// The voter with this id.
    pub fn get(&self, id: i32) -> Option<&Voter> {
        self.voters.get(&id)
    }

    /// Whether this replica votes.
    pub fn contains(&self, key: &ReplicaKey) -> bool {
        self.get(key.id).is_some_and(|v| v.key.matches(key))
    }

    /// Whether this replica is the only voter.
    pub fn is_only_voter(&self, key: &ReplicaKey) -> bool {
        self.voters.len() == 1 && self.contains(key)
    }

    /// How many voters make a majority.
    pub fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// How many voters there are; never 0.
    pub fn count(&self) -> usize {
        self.voters.len()
    }
}
