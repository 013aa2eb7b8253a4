//! DescribeQuorum: the voters and observers of the metadata log, as its leader sees them.

use callboard_protocol::messages::describe_quorum_request::TopicData as AskedTopic;
use callboard_protocol::messages::describe_quorum_response::{
    Listener, Node, PartitionData, ReplicaState, TopicData,
};
use callboard_protocol::messages::{DescribeQuorumRequest, DescribeQuorumResponse};
use callboard_protocol::{ErrorCode, Uuid};
use callboard_raft::{ReplicaStatus, RoleName, VoterSet};

use super::RequestContext;
use crate::control::raft::{DescribeQuorum, QuorumInfo};

/// The one topic there is to ask about; it has one partition.
const TOPIC: &str = "__cluster_metadata";

/// From this version on answers name directories, endpoints and texts of errors.
const FIRST_WITH_DIRECTORIES: i16 = 2;

/// Asks the raft actor.
pub async fn handle(
    cx: &RequestContext,
    request: DescribeQuorumRequest,
    version: i16,
) -> DescribeQuorumResponse {
    // An actor that is down can't lead.
    let info = cx.services.raft.actor().ask(DescribeQuorum).await.ok().flatten();
    respond(request, info, version)
}

fn respond(request: DescribeQuorumRequest, info: Option<QuorumInfo>, version: i16) -> DescribeQuorumResponse {
    let mut response = if !asks_for_the_quorum(&request.topics) {
        unknown(request)
    } else if let Some(info) = info.filter(|info| info.status.role == RoleName::Leader) {
        describe(&info)
    } else {
        let error = ErrorCode::NotLeaderOrFollower;
        DescribeQuorumResponse {
            error_code: error as i16,
            error_message: Some(error.message().into()),
            ..Default::default()
        }
    };
    if version < FIRST_WITH_DIRECTORIES {
        response.nodes.clear();
        for partition in response.topics.iter_mut().flat_map(|t| &mut t.partitions) {
            for replica in partition.current_voters.iter_mut().chain(&mut partition.observers) {
                replica.replica_directory_id = Uuid::ZERO;
            }
        }
    }
    response
}

/// Kafka answers only a request for that partition and nothing else.
fn asks_for_the_quorum(topics: &[AskedTopic]) -> bool {
    match topics {
        [topic] => match topic.partitions.as_slice() {
            [partition] => topic.topic_name == TOPIC && partition.partition_index == 0,
            _ => false,
        },
        _ => false,
    }
}

fn unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse {
    let error = ErrorCode::UnknownTopicOrPartition;
    let topic = |topic: AskedTopic| TopicData {
        topic_name: topic.topic_name,
        partitions: topic
            .partitions
            .into_iter()
            .map(|partition| PartitionData {
                partition_index: partition.partition_index,
                error_code: error as i16,
                error_message: Some(error.message().into()),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    };
    DescribeQuorumResponse { topics: request.topics.into_iter().map(topic).collect(), ..Default::default() }
}

fn describe(info: &QuorumInfo) -> DescribeQuorumResponse {
    let status = &info.status;
    let partition = PartitionData {
        leader_id: status.leader.leader_id.unwrap_or(-1),
        leader_epoch: status.leader.epoch,
        high_watermark: status.high_watermark,
        current_voters: status.voters.iter().map(replica).collect(),
        observers: status.observers.iter().map(replica).collect(),
        ..Default::default()
    };
    let topic = TopicData { topic_name: TOPIC.into(), partitions: vec![partition], ..Default::default() };
    DescribeQuorumResponse { topics: vec![topic], nodes: nodes(&info.voters), ..Default::default() }
}

fn replica(status: &ReplicaStatus) -> ReplicaState {
    ReplicaState {
        replica_id: status.key.id,
        replica_directory_id: status.key.directory_id,
        log_end_offset: status.log_end_offset,
        last_fetch_timestamp: status.last_fetch_ms,
        last_caught_up_timestamp: status.last_caught_up_ms,
        ..Default::default()
    }
}

fn nodes(voters: &VoterSet) -> Vec<Node> {
    let listener = |e: &callboard_raft::Endpoint| Listener {
        name: e.name.as_str().into(),
        host: e.host.as_str().into(),
        port: e.port,
        ..Default::default()
    };
    voters
        .iter()
        .map(|voter| Node {
            node_id: voter.key.id,
            listeners: voter.endpoints.iter().map(listener).collect(),
            ..Default::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use callboard_protocol::messages::Message;
    use callboard_protocol::messages::describe_quorum_request::PartitionData as AskedPartition;
    use callboard_raft::{Endpoint, LeaderHint, QuorumStatus, ReplicaKey, Voter};

    use super::*;

    fn ask(topics: &[(&str, &[i32])]) -> DescribeQuorumRequest {
        let topic = |(name, partitions): &(&str, &[i32])| AskedTopic {
            topic_name: (*name).into(),
            partitions: partitions
                .iter()
                .map(|&partition_index| AskedPartition { partition_index, ..Default::default() })
                .collect(),
            ..Default::default()
        };
        DescribeQuorumRequest { topics: topics.iter().map(topic).collect(), ..Default::default() }
    }

    fn info(role: RoleName) -> QuorumInfo {
        let key = ReplicaKey::new(1, Uuid::from_u128(0xc958_cf26_4414_241d_ef92_12c4_0623_8659));
        let endpoint = Endpoint { name: "CONTROLLER".into(), host: "localhost".into(), port: 27193 };
        let voter = Voter { key, endpoints: vec![endpoint], min_kraft_version: 0, max_kraft_version: 1 };
        let replica = ReplicaStatus {
            key,
            log_end_offset: 5310,
            last_fetch_ms: 0x01a2_2b5d_19aa,
            last_caught_up_ms: 0x01a2_2b5d_19aa,
        };
        let status = QuorumStatus {
            leader: LeaderHint { epoch: 2, leader_id: Some(1) },
            role,
            high_watermark: 5310,
            voters: vec![replica],
            observers: vec![],
        };
        QuorumInfo { status, voters: VoterSet::new([voter]).unwrap() }
    }

    fn hex(response: &DescribeQuorumResponse, version: i16) -> String {
        response.to_bytes(version).unwrap().iter().map(|b| format!("{b:02x}")).collect()
    }

    // The bytes below are Kafka 4.4.0's answers.
    #[test]
    fn the_quorum_as_kafka_describes_it() {
        let respond = |version| respond(ask(&[(TOPIC, &[0])]), Some(info(RoleName::Leader)), version);
        assert_eq!(
            hex(&respond(0), 0),
            "000002135f5f636c75737465725f6d6574616461746102000000000000000000010000000200000000000014be\
             020000000100000000000014be0001000000"
        );
        assert_eq!(
            hex(&respond(2), 2),
            "00000102135f5f636c75737465725f6d657461646174610200000000000001000000010000000200000000000014be\
             0200000001c958cf264414241def9212c40623865900000000000014be000001a22b5d19aa000001a22b5d19aa00\
             0100000200000001020b434f4e54524f4c4c45520a6c6f63616c686f73746a39000000"
        );
    }

    #[test]
    fn other_partitions_are_unknown() {
        for topics in [
            &[("x", &[0][..])][..],
            &[(TOPIC, &[1])],
            &[(TOPIC, &[0, 0])],
            &[(TOPIC, &[0]), ("x", &[0])],
            &[(TOPIC, &[])],
            &[],
        ] {
            let response = respond(ask(topics), Some(info(RoleName::Leader)), 2);
            assert_eq!(response.error_code, 0);
            assert_eq!(response.topics.len(), topics.len());
            let partitions = response.topics.iter().flat_map(|t| &t.partitions);
            assert!(partitions.clone().all(|p| p.error_code == 3), "{topics:?}");
            assert_eq!(partitions.count(), topics.iter().map(|t| t.1.len()).sum::<usize>());
        }
        let response = respond(ask(&[("x", &[0])]), None, 2);
        assert_eq!(
            hex(&response, 2),
            "0000010202780200000000000330546869732073657276657220646f6573206e6f7420686f7374207468697320746f\
             7069632d706172746974696f6e2e00000000000000000000000000000000010100000100"
        );
    }

    #[test]
    fn only_the_leader_describes() {
        for info in [None, Some(info(RoleName::Resigned))] {
            for version in 0..=2 {
                let response = respond(ask(&[(TOPIC, &[0])]), info.clone(), version);
                assert_eq!(response.error_code, ErrorCode::NotLeaderOrFollower as i16);
                assert!(response.topics.is_empty());
                assert!(response.to_bytes(version).is_ok());
            }
        }
    }
}
