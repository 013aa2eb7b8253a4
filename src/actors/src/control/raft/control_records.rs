//! The control records of the quorum's log, between the machine's form and the wire's.

use callboard_protocol::messages::voters_record::{Endpoint, KRaftVersionFeature, Voter};
use callboard_protocol::messages::{
    KRaftVersionRecord, LeaderChangeMessage, VotersRecord, leader_change_message,
};
use callboard_protocol::records::RecordBatch;
use callboard_protocol::records::control::KRaftRecord;
use callboard_raft::{ControlRecord, ReplicaKey, VoterSet};

use super::LogError;

/// What a log or snapshot says of its quorum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuorumRecords {
    /// The last `KRaftVersionRecord`.
    pub kraft_version: Option<i16>,
    /// The last `VotersRecord`.
    pub voters: Option<VoterSet>,
}

impl QuorumRecords {
    /// Takes note of the records of a batch, if it is one of control records.
    pub fn note(&mut self, batch: &RecordBatch) -> Result<(), LogError> {
        if !batch.header.is_control() {
            return Ok(());
        }
        for record in batch.records()? {
            match KRaftRecord::read(&record?)? {
                Some(KRaftRecord::KRaftVersion(record)) => self.kraft_version = Some(record.k_raft_version),
                Some(KRaftRecord::KRaftVoters(record)) => self.voters = Some(voters_from(record)?),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The machine's record as the wire has it.
pub fn to_wire(record: &ControlRecord) -> KRaftRecord {
    match record {
        ControlRecord::LeaderChange { leader_id, voters, granting_voters } => {
            // Kafka 4.4 writes version 0, without directories, whatever the kraft.version.
            let list = |ids: &[i32]| {
                let voter = |&voter_id| leader_change_message::Voter { voter_id, ..Default::default() };
                ids.iter().map(voter).collect()
            };
            KRaftRecord::LeaderChange(LeaderChangeMessage {
                leader_id: *leader_id,
                voters: list(voters),
                granting_voters: list(granting_voters),
                ..Default::default()
            })
        }
        ControlRecord::KRaftVersion(version) => {
            KRaftRecord::KRaftVersion(KRaftVersionRecord { k_raft_version: *version, ..Default::default() })
        }
        ControlRecord::Voters(voters) => KRaftRecord::KRaftVoters(voters_record(voters)),
    }
}

fn voters_record(voters: &VoterSet) -> VotersRecord {
    let endpoint = |e: &callboard_raft::Endpoint| Endpoint {
        name: e.name.as_str().into(),
        host: e.host.as_str().into(),
        port: e.port,
        ..Default::default()
    };
    let voter = |v: &callboard_raft::Voter| Voter {
        voter_id: v.key.id,
        voter_directory_id: v.key.directory_id,
        endpoints: v.endpoints.iter().map(endpoint).collect(),
        k_raft_version_feature: KRaftVersionFeature {
            min_supported_version: v.min_kraft_version,
            max_supported_version: v.max_kraft_version,
            ..Default::default()
        },
        ..Default::default()
    };
    VotersRecord { voters: voters.iter().map(voter).collect(), ..Default::default() }
}

fn voters_from(record: VotersRecord) -> Result<VoterSet, LogError> {
    let endpoint = |e: Endpoint| callboard_raft::Endpoint {
        name: e.name.to_string(),
        host: e.host.to_string(),
        port: e.port,
    };
    let voter = |v: Voter| callboard_raft::Voter {
        key: ReplicaKey::new(v.voter_id, v.voter_directory_id),
        endpoints: v.endpoints.into_iter().map(endpoint).collect(),
        min_kraft_version: v.k_raft_version_feature.min_supported_version,
        max_kraft_version: v.k_raft_version_feature.max_supported_version,
    };
    VoterSet::new(record.voters.into_iter().map(voter)).map_err(|error| LogError::Damaged(error.to_string()))
}
