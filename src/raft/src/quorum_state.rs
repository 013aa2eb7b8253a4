//! What a replica must remember of elections, and Kafka's `quorum-state` file.

use callboard_protocol::Uuid;
use serde::{Deserialize, Serialize};

use crate::{RaftError, ReplicaKey};

/// The part of the election that must survive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ElectionState {
    /// The newest epoch seen.
    pub epoch: i32,
    /// The leader of that epoch, once known.
    pub leader_id: Option<i32>,
    /// Whom this replica voted for in that epoch.
    pub voted: Option<ReplicaKey>,
}

/// Version 0, of quorums with `kraft.version` 0. Kafka still writes the unused fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileV0 {
    cluster_id: &'static str,
    leader_id: i32,
    leader_epoch: i32,
    voted_id: i32,
    applied_offset: i64,
    current_voters: Vec<FileVoter>,
    #[serde(rename = "data_version")]
    data_version: i16,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileVoter {
    voter_id: i32,
}

/// Version 1, of quorums with `kraft.version` 1.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileV1 {
    leader_id: i32,
    leader_epoch: i32,
    voted_id: i32,
    voted_directory_id: String,
    #[serde(rename = "data_version")]
    data_version: i16,
}

/// Either version, read. Fields that no longer mean anything are not looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileRead {
    leader_id: i32,
    leader_epoch: i32,
    voted_id: i32,
    voted_directory_id: Option<String>,
    #[serde(rename = "data_version")]
    data_version: i16,
}

impl ElectionState {
    /// The file's text as Kafka 4.4 writes it. `voters` appear only for `kraft_version` 0.
    pub fn to_json(
        &self,
        kraft_version: i16,
        voters: impl IntoIterator<Item = i32>,
    ) -> Result<String, RaftError> {
        let leader_id = self.leader_id.unwrap_or(-1);
        let voted_id = self.voted.map_or(-1, |v| v.id);
        let text = if kraft_version == 0 {
            serde_json::to_string(&FileV0 {
                cluster_id: "",
                leader_id,
                leader_epoch: self.epoch,
                voted_id,
                applied_offset: 0,
                current_voters: voters.into_iter().map(|voter_id| FileVoter { voter_id }).collect(),
                data_version: 0,
            })
        } else {
            serde_json::to_string(&FileV1 {
                leader_id,
                leader_epoch: self.epoch,
                voted_id,
                voted_directory_id: self.voted.map_or(Uuid::ZERO, |v| v.directory_id).to_string(),
                data_version: 1,
            })
        };
        text.map_err(|e| RaftError::QuorumState(e.to_string()))
    }

    /// Reads the file's text, of either version.
    pub fn from_json(text: &str) -> Result<Self, RaftError> {
        let bad = |what: String| RaftError::QuorumState(what);
        let file: FileRead = serde_json::from_str(text).map_err(|e| bad(e.to_string()))?;
        if !(0..=1).contains(&file.data_version) {
            return Err(bad(format!("data_version {}", file.data_version)));
        }
        if file.leader_epoch < 0 {
            return Err(bad(format!("leaderEpoch {}", file.leader_epoch)));
        }
        let directory_id = match &file.voted_directory_id {
            Some(text) => text.parse().map_err(|_| bad(format!("votedDirectoryId {text}")))?,
            None => Uuid::ZERO,
        };
        Ok(Self {
            epoch: file.leader_epoch,
            leader_id: (file.leader_id >= 0).then_some(file.leader_id),
            voted: (file.voted_id >= 0).then_some(ReplicaKey::new(file.voted_id, directory_id)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Both texts were written by Kafka 4.4.0.
    const V1: &str = r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#;
    const V0: &str = r#"{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"currentVoters":[{"voterId":1}],"data_version":0}"#;

    #[test]
    fn writes_what_kafka_writes() {
        let state = ElectionState { epoch: 1, leader_id: Some(1), voted: None };
        assert_eq!(state.to_json(1, [1]).as_deref(), Ok(V1));
        assert_eq!(state.to_json(0, [1]).as_deref(), Ok(V0));
        assert_eq!(ElectionState::from_json(V1), Ok(state));
        assert_eq!(ElectionState::from_json(V0), Ok(state));
    }

    #[test]
    fn keeps_a_vote() {
        let state = ElectionState {
            epoch: 7,
            leader_id: None,
            voted: Some(ReplicaKey::new(3, Uuid::from_bytes([9; 16]))),
        };
        let text = state.to_json(1, []).unwrap();
        assert_eq!(ElectionState::from_json(&text), Ok(state));
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for text in [
            "",
            "{}",
            r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":2}"#,
            r#"{"leaderId":1,"leaderEpoch":-1,"votedId":-1,"data_version":0}"#,
            r#"{"leaderId":1,"leaderEpoch":1,"votedId":2,"votedDirectoryId":"?","data_version":1}"#,
        ] {
            assert!(ElectionState::from_json(text).is_err(), "{text}");
        }
    }
}
