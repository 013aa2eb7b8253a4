use callboard_protocol::messages::CreatePartitionsRequest;
use callboard_protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};

use crate::fixture::{Cluster, log_dir};

type Asked<'a> = (&'a str, i32, Option<&'a [&'a [i32]]>);

fn grow(cluster: &mut Cluster, validate_only: bool, topics: &[Asked<'_>]) -> Vec<(i16, String)> {
    let topics = topics
        .iter()
        .map(|(name, count, assignments)| CreatePartitionsTopic {
            name: (*name).into(),
            count: *count,
            assignments: assignments.map(|all| {
                all.iter()
                    .map(|ids| CreatePartitionsAssignment { broker_ids: ids.to_vec(), ..Default::default() })
                    .collect()
            }),
            ..Default::default()
        })
        .collect();
    let request = CreatePartitionsRequest { topics, validate_only, ..Default::default() };
    let reply = cluster.run(|controller, ctx| controller.create_partitions(&request, ctx));
    reply
        .results
        .into_iter()
        .map(|r| (r.error_code, r.error_message.unwrap_or_default().to_string()))
        .collect()
}

#[test]
fn refusals() {
    let mut cluster = Cluster::one();
    cluster.topic("t", 3, 1);
    let less = |n| format!("The topic t currently has 3 partition(s); {n} would not be an increase.");
    let only = |more, given| {
        format!(
            "Attempted to add {more} additional partition(s), but only {given} assignment(s) were specified."
        )
    };
    let assignment = |what: &str| format!("The manual partition assignment includes {what}");
    for (count, assignments, code, message) in [
        (3, None, 37, "Topic already has 3 partition(s).".to_string()),
        (2, None, 37, less(2)),
        (0, None, 37, less(0)),
        (-1, None, 37, less(-1)),
        (5, Some(&[&[1][..]][..]), 39, only(2, 1)),
        (4, Some(&[&[1], &[1]]), 39, only(1, 2)),
        (4, Some(&[]), 39, only(1, 0)),
        (4, Some(&[&[91]]), 39, assignment("broker 91, but no such broker is registered.")),
        (4, Some(&[&[1, 1]]), 39, assignment("the broker 1 more than once.")),
        (4, Some(&[&[]]), 39, assignment("an empty replica list.")),
        (20_001, None, 44, "Excessively large number of additional partitions per request.".to_string()),
    ] {
        for validate_only in [true, false] {
            let answers = grow(&mut cluster, validate_only, &[("t", count, assignments)]);
            assert_eq!(answers, [(code, message.clone())], "to {count}");
        }
    }
    assert_eq!(grow(&mut cluster, false, &[("unknown", 4, None)]), [(3, String::new())]);
    let twice = grow(&mut cluster, false, &[("t", 7, None), ("t", 8, None), ("unknown", 3, None)]);
    assert_eq!(twice, [(42, "Duplicate topic name.".to_string()), (3, String::new())]);
    assert_eq!(cluster.image().topics.by_name("t").unwrap().partitions.len(), 3);
}

#[test]
fn topics_grow() {
    let mut cluster = Cluster::with_brokers(3, &[]);
    cluster.topic("t", 2, 2);
    assert_eq!(grow(&mut cluster, true, &[("t", 4, None)]), [(0, String::new())]);
    assert_eq!(cluster.image().topics.by_name("t").unwrap().partitions.len(), 2);
    assert_eq!(grow(&mut cluster, false, &[("t", 4, None)]), [(0, String::new())]);
    assert_eq!(cluster.partition("t", 3).replicas.len(), 2);
    assert_eq!(grow(&mut cluster, false, &[("t", 5, Some(&[&[3, 1]]))]), [(0, String::new())]);
    let partition = cluster.partition("t", 4);
    assert_eq!((&partition.replicas[..], partition.leader), (&[3, 1][..], 3));
    assert_eq!(partition.directories, [log_dir(3), log_dir(1)]);
    let answers = grow(&mut cluster, false, &[("t", 6, Some(&[&[1]]))]);
    assert_eq!(answers[0].0, 39, "as many replicas as the others: {}", answers[0].1);
}
