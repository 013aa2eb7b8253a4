//! The control records of the quorum's log, between the machine's form and the wire's.

use bytes::Bytes;
use callboard_protocol::messages::voters_record::{Endpoint, KRaftVersionFeature, Voter};
use callboard_protocol::messages::{
    KRaftVersionRecord, LeaderChangeMessage, Message, VotersRecord, leader_change_message,
};
use callboard_protocol::records::control::ControlType;
use callboard_protocol::records::{BatchBuilder, RecordBatch};
use callboard_protocol::wire::{EncodeError, Reader};
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
            let record = record?;
            let value = record.value.unwrap_or_default();
            match ControlType::from_key(record.key.as_deref().unwrap_or_default())? {
                Some(ControlType::KRaftVersion) => {
                    let version = KRaftVersionRecord::decode(&mut Reader::new(&value), 0)?;
                    self.kraft_version = Some(version.k_raft_version);
                }
                Some(ControlType::KRaftVoters) => {
                    self.voters = Some(voters_from(VotersRecord::decode(&mut Reader::new(&value), 0)?)?);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Adds a control record to a batch of them.
pub fn append_to(builder: &mut BatchBuilder, record: &ControlRecord, now_ms: i64) -> Result<(), EncodeError> {
    let (kind, value) = encode(record)?;
    builder.append(now_ms, Some(&kind.key()), Some(&value), &[]);
    Ok(())
}

fn encode(record: &ControlRecord) -> Result<(ControlType, Bytes), EncodeError> {
    Ok(match record {
        ControlRecord::LeaderChange { leader_id, voters, granting_voters } => {
            // Kafka 4.4 writes version 0, without directories, whatever the kraft.version.
            let list = |ids: &[i32]| {
                let voter = |&voter_id| leader_change_message::Voter { voter_id, ..Default::default() };
                ids.iter().map(voter).collect()
            };
            let message = LeaderChangeMessage {
                leader_id: *leader_id,
                voters: list(voters),
                granting_voters: list(granting_voters),
                ..Default::default()
            };
            (ControlType::LeaderChange, message.to_bytes(0)?)
        }
        ControlRecord::KRaftVersion(version) => {
            let message = KRaftVersionRecord { k_raft_version: *version, ..Default::default() };
            (ControlType::KRaftVersion, message.to_bytes(0)?)
        }
        ControlRecord::Voters(voters) => (ControlType::KRaftVoters, voters_record(voters).to_bytes(0)?),
    })
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
