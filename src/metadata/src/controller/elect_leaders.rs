//! ElectLeaders.

use callboard_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use callboard_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::partition_change::Election;
use super::{Controller, Outcome, Refusal};
use crate::image::{NO_LEADER, Topic};
use crate::record::VersionedRecord;

impl Controller {
    /// Moves leadership to the preferred replicas, or gives a leader to partitions that have none. Without a list of
    /// partitions all are meant, and those that need no election are left out of the answer.
    pub fn elect_leaders(&self, request: &ElectLeadersRequest) -> Outcome<ElectLeadersResponse> {
        let election = match request.election_type {
            0 => Ok(Election::Preferred),
            1 => Ok(Election::Unclean),
            other => Err(Refusal::new(ErrorCode::InvalidRequest, format!("Unknown election type {other}"))),
        };
        let mut records = Vec::new();
        let mut results = Vec::new();
        match &request.topic_partitions {
            None => {
                for topic in self.image().topics.iter() {
                    let all = topic.partitions.keys().copied();
                    let partitions =
                        all.map(|number| self.elect(&topic.name, number, &election, &mut records));
                    let not_needed = ErrorCode::ElectionNotNeeded as i16;
                    let partitions = partitions.filter(|result| result.error_code != not_needed).collect();
                    results.push(result(&topic.name, partitions));
                }
            }
            Some(topics) => {
                for asked in topics {
                    let numbers = asked.partitions.iter();
                    let partitions =
                        numbers.map(|number| self.elect(&asked.topic, *number, &election, &mut records));
                    results.push(result(&asked.topic, partitions.collect()));
                }
            }
        }
        let error_code = election.err().map_or(ErrorCode::None, |refusal| refusal.code) as i16;
        let reply =
            ElectLeadersResponse { error_code, replica_election_results: results, ..Default::default() };
        Outcome { records, reply, atomic: false }
    }

    fn elect(
        &self,
        name: &ByteString,
        number: i32,
        election: &Result<Election, Refusal>,
        records: &mut Vec<VersionedRecord>,
    ) -> PartitionResult {
        let elected = election.clone().and_then(|election| self.elect_one(name, number, election));
        let (code, message) = match elected {
            Ok(record) => {
                records.push(record);
                (ErrorCode::None, None)
            }
            Err(refusal) => (refusal.code, refusal.message),
        };
        PartitionResult {
            partition_id: number,
            error_code: code as i16,
            error_message: message,
            ..Default::default()
        }
    }

    fn elect_one(
        &self,
        name: &ByteString,
        number: i32,
        election: Election,
    ) -> Result<VersionedRecord, Refusal> {
        let unknown = |message: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, message);
        let topics = &self.image().topics;
        let topic: &Topic =
            topics.by_name(name).ok_or_else(|| unknown(format!("No such topic as {name}")))?;
        let partition = topic
            .partition(number)
            .ok_or_else(|| unknown(format!("No such partition as {name}-{number}")))?;
        let has_leader = partition.leader != NO_LEADER;
        let not_needed = match election {
            Election::Preferred => has_leader && partition.replicas.first() == Some(&partition.leader),
            Election::Online | Election::Unclean => has_leader,
        };
        if not_needed {
            let message = "Leader election not needed for topic partition.";
            return Err(Refusal::new(ErrorCode::ElectionNotNeeded, message));
        }
        let active = |id: i32| self.image().cluster.is_active(id);
        let change = self.partition_change(topic, partition, &active, election, None);
        change.build(topic.id, number).ok_or_else(|| match election {
            Election::Preferred => {
                let message = "The preferred leader was not available.";
                Refusal::new(ErrorCode::PreferredLeaderNotAvailable, message)
            }
            Election::Online | Election::Unclean => Refusal::new(
                ErrorCode::EligibleLeadersNotAvailable,
                "Eligible topic partition leaders are not available.",
            ),
        })
    }
}

fn result(topic: &ByteString, partition_result: Vec<PartitionResult>) -> ReplicaElectionResult {
    ReplicaElectionResult { topic: topic.clone(), partition_result, ..Default::default() }
}
