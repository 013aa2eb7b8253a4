use callboard_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use callboard_protocol::messages::elect_leaders_request::TopicPartitions;
use callboard_protocol::messages::{
    AlterPartitionReassignmentsRequest, ElectLeadersRequest, ListPartitionReassignmentsRequest,
};

use crate::fixture::{Cluster, assigned, topic, with_configs};

fn elect(
    cluster: &mut Cluster,
    election_type: i8,
    partitions: Option<&[(&str, &[i32])]>,
) -> (i16, Vec<(String, i32, i16, String)>) {
    let topic_partitions = partitions.map(|all| {
        all.iter()
            .map(|(topic, numbers)| TopicPartitions {
                topic: (*topic).into(),
                partitions: numbers.to_vec(),
                ..Default::default()
            })
            .collect()
    });
    let request = ElectLeadersRequest { election_type, topic_partitions, ..Default::default() };
    let reply = cluster.run(|controller, _| controller.elect_leaders(&request));
    let mut out = Vec::new();
    for topic in reply.replica_election_results {
        for p in topic.partition_result {
            let message = p.error_message.unwrap_or_default().to_string();
            out.push((topic.topic.to_string(), p.partition_id, p.error_code, message));
        }
    }
    (reply.error_code, out)
}

#[test]
fn no_election_where_none_is_needed() {
    let mut cluster = Cluster::one();
    cluster.topic("t", 1, 1);
    for election_type in [0, 1] {
        let (code, told) = elect(&mut cluster, election_type, Some(&[("t", &[0, 7]), ("nope", &[0])]));
        assert_eq!(code, 0);
        let told: Vec<_> = told.iter().map(|(t, p, code, m)| (&**t, *p, *code, &**m)).collect();
        assert_eq!(
            told,
            [
                ("t", 0, 84, "Leader election not needed for topic partition."),
                ("t", 7, 3, "No such partition as t-7"),
                ("nope", 0, 3, "No such topic as nope"),
            ]
        );
        assert_eq!(elect(&mut cluster, election_type, None), (0, vec![]));
    }
    let (code, told) = elect(&mut cluster, 7, Some(&[("t", &[0])]));
    assert_eq!((code, told[0].2, &*told[0].3), (42, 42, "Unknown election type 7"));
}

#[test]
fn leadership_goes_back_to_the_preferred_replica() {
    let mut cluster = Cluster::with_brokers(2, &[]);
    cluster.create(vec![assigned("t", &[(0, &[1, 2])])]);
    cluster.heartbeat(1, |request| request.want_fence = true);
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, partition.leader_epoch, &partition.isr[..]), (2, 1, &[2][..]));
    let (_, told) = elect(&mut cluster, 0, Some(&[("t", &[0])]));
    assert_eq!(told[0].2, 80, "the preferred leader is not there");
    cluster.heartbeat(1, |_| {});
    assert_eq!(cluster.partition("t", 0).isr, [2], "it has to catch up first");
}

#[test]
fn a_leader_is_never_taken_from_outside_unless_allowed() {
    for (unclean, leader, recovery) in [("false", -1, 0), ("true", 1, 1)] {
        let mut cluster = Cluster::with_brokers(2, &[]);
        let mut t = assigned("t", &[(0, &[1, 2])]);
        // A minimum of one in sync: nobody is eligible besides.
        t = with_configs(t, &[("unclean.leader.election.enable", Some(unclean))]);
        cluster.create(vec![t]);
        cluster.heartbeat(1, |request| request.want_fence = true);
        cluster.heartbeat(1, |_| {});
        cluster.heartbeat(2, |request| request.want_fence = true);
        let partition = cluster.partition("t", 0);
        assert_eq!((partition.leader, partition.leader_recovery_state.value()), (leader, recovery));
    }
}

#[test]
fn eligible_replicas_lead_when_nobody_is_in_sync() {
    let mut cluster = Cluster::with_brokers(3, &[]);
    let t = with_configs(assigned("t", &[(0, &[1, 2, 3])]), &[("min.insync.replicas", Some("2"))]);
    cluster.create(vec![t]);
    cluster.heartbeat(1, |request| request.want_fence = true);
    assert!(cluster.partition("t", 0).elr.is_empty(), "two are enough");
    cluster.heartbeat(2, |request| request.want_fence = true);
    assert_eq!(cluster.partition("t", 0).elr, [2]);
    cluster.heartbeat(3, |request| request.want_fence = true);
    let partition = cluster.partition("t", 0);
    assert_eq!(
        (partition.leader, &partition.elr[..], &partition.last_known_elr[..]),
        (-1, &[2, 3][..], &[3][..])
    );
    cluster.heartbeat(1, |_| {});
    assert_eq!(cluster.partition("t", 0).leader, -1, "1 may lack what 2 and 3 took");
    cluster.heartbeat(2, |_| {});
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, &partition.isr[..], &partition.elr[..]), (2, &[2][..], &[3][..]));
    assert_eq!(partition.leader_recovery_state.value(), 0);
}

#[test]
fn reassignments_on_one_broker() {
    let mut cluster = Cluster::one();
    cluster.create(vec![topic("t", 1, 1)]);
    let mut alter = |name: &str, partition_index: i32, replicas: Option<&[i32]>| {
        let partition = ReassignablePartition {
            partition_index,
            replicas: replicas.map(<[i32]>::to_vec),
            ..Default::default()
        };
        let topic =
            ReassignableTopic { name: name.into(), partitions: vec![partition], ..Default::default() };
        let request = AlterPartitionReassignmentsRequest { topics: vec![topic], ..Default::default() };
        let reply = cluster.run(|controller, _| controller.alter_partition_reassignments(&request));
        let p = &reply.responses[0].partitions[0];
        (p.error_code, p.error_message.clone().unwrap_or_default().to_string())
    };
    let assignment = |what: &str| (39, format!("The manual partition assignment includes {what}"));
    assert_eq!(alter("t", 0, None), (85, String::new()));
    assert_eq!(alter("t", 0, Some(&[99])), assignment("broker 99, but no such broker is registered."));
    assert_eq!(alter("t", 0, Some(&[1, 1])), assignment("the broker 1 more than once."));
    assert_eq!(alter("t", 0, Some(&[])), assignment("an empty replica list."));
    assert_eq!(alter("t", 0, Some(&[1])), (0, String::new()));
    assert_eq!(alter("nope", 0, Some(&[1])), (3, "Unable to find a topic named nope.".to_string()));
    assert_eq!(alter("t", 77, Some(&[1])), (3, "Unable to find partition t:77.".to_string()));
    let all = ListPartitionReassignmentsRequest::default();
    assert!(cluster.controller.list_partition_reassignments(&all).topics.is_empty());
}
