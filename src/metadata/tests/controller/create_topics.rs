use callboard_metadata::image::ConfigResource;
use callboard_protocol::messages::create_topics_request::CreatableTopic;
use callboard_protocol::messages::create_topics_response::CreatableTopicResult;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{CreateTopicsRequest, TopicRecord};
use callboard_protocol::{ErrorCode, Uuid};

use crate::fixture::{Cluster, assigned, log_dir, topic, with_configs};

fn one(cluster: &mut Cluster, topic: CreatableTopic) -> CreatableTopicResult {
    let reply = cluster.create(vec![topic]);
    assert_eq!(reply.topics.len(), 1);
    reply.topics.into_iter().next().unwrap()
}

/// Expects a refusal with a code and a text, and no records.
fn refused(cluster: &mut Cluster, topic: CreatableTopic, code: ErrorCode, message: &str) {
    let result = one(cluster, topic);
    assert_eq!((result.error_code, result.error_message.as_deref()), (code.code(), Some(message)));
    assert_eq!((result.num_partitions, result.replication_factor), (-1, -1));
    assert_eq!((result.topic_id, result.configs), (Uuid::ZERO, Some(Vec::new())));
    assert!(cluster.last.is_empty());
}

#[test]
fn a_topic_is_created_as_asked() {
    let mut cluster = Cluster::one();
    let result = one(&mut cluster, with_configs(topic("t", 2, 1), &[("retention.ms", Some(" 7"))]));
    assert_eq!((result.error_code, result.num_partitions, result.replication_factor), (0, 2, 1));
    let versions: Vec<i16> = cluster.last.iter().map(|r| r.version).collect();
    assert_eq!(versions, [0, 0, 2, 2], "topic, config, two partitions");
    let partition = cluster.partition("t", 1);
    assert_eq!((&partition.replicas[..], &partition.isr[..], partition.leader), (&[1][..], &[1][..], 1));
    assert_eq!((partition.leader_epoch, partition.partition_epoch), (0, 0));
    assert_eq!(partition.directories, [log_dir(1)]);
    let stored = cluster.image().configs.value(&ConfigResource::topic("t"), "retention.ms").cloned();
    assert_eq!(stored.as_deref(), Some(" 7"));
    let configs = result.configs.unwrap();
    assert!(configs.is_sorted_by(|a, b| a.name < b.name));
    let told = |name: &str| {
        let config = configs.iter().find(|c| c.name == name).unwrap();
        (config.value.clone().unwrap().to_string(), config.config_source)
    };
    assert_eq!(told("retention.ms"), (" 7".to_string(), 1));
    assert_eq!(told("segment.bytes"), ("1073741824".to_string(), 5));
    assert_eq!(told("min.insync.replicas"), ("1".to_string(), 3), "bootstrap sets it for the cluster");
}

#[test]
fn defaults_come_from_the_settings() {
    let mut cluster = Cluster::new(&[("num.partitions", "4"), ("default.replication.factor", "2")]);
    cluster.start_broker(1, None);
    cluster.start_broker(2, None);
    let result = one(&mut cluster, topic("t", -1, -1));
    assert_eq!((result.num_partitions, result.replication_factor), (4, 2));
}

#[test]
fn validation_alone_writes_nothing() {
    let mut cluster = Cluster::one();
    let request =
        CreateTopicsRequest { topics: vec![topic("t", 2, -1)], validate_only: true, ..Default::default() };
    let reply = cluster.run(|controller, ctx| controller.create_topics(&request, ctx));
    assert_eq!((reply.topics[0].error_code, reply.topics[0].num_partitions), (0, 2));
    assert!(reply.topics[0].topic_id != Uuid::ZERO);
    assert!(cluster.last.is_empty() && cluster.image().topics.is_empty());
}

#[test]
fn names_are_checked() {
    let mut cluster = Cluster::one();
    cluster.topic("a.b", 1, 1);
    let long = "x".repeat(250);
    for (name, why) in [
        ("", "the empty string is not allowed".to_string()),
        (".", "'.' is not allowed".to_string()),
        ("..", "'..' is not allowed".to_string()),
        (&long, format!("the length of '{long}' is longer than the max allowed length 249")),
        (
            "a\n",
            "'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
                .to_string(),
        ),
    ] {
        let message = format!("Topic name is invalid: {why}");
        refused(&mut cluster, topic(name, 1, 1), ErrorCode::InvalidTopicException, &message);
    }
    let collision = "Topic 'a_b' collides with existing topic: a.b";
    refused(&mut cluster, topic("a_b", 1, 1), ErrorCode::InvalidTopicException, collision);
    let exists = "Topic 'a.b' already exists.";
    refused(&mut cluster, topic("a.b", 1, 1), ErrorCode::TopicAlreadyExists, exists);
    let prohibited = "Creation of internal topic __cluster_metadata is prohibited.";
    refused(&mut cluster, topic("__cluster_metadata", 1, 1), ErrorCode::InvalidRequest, prohibited);
    assert_eq!(one(&mut cluster, topic(&"x".repeat(249), 1, 1)).error_code, 0);
    assert_eq!(one(&mut cluster, topic("...", 1, 1)).error_code, 0);
}

#[test]
fn a_name_given_twice_is_refused_once_and_last() {
    let mut cluster = Cluster::one();
    let reply = cluster.create(vec![topic("d", 1, 1), topic("f", 1, 1), topic("d", 1, 1)]);
    let told: Vec<_> = reply
        .topics
        .iter()
        .map(|t| (t.name.as_ref(), t.error_code, t.error_message.as_deref().unwrap_or("")))
        .collect();
    assert_eq!(told, [("f", 0, ""), ("d", 42, "Duplicate topic name.")]);
}

#[test]
fn impossible_counts_are_refused() {
    let mut cluster = Cluster::one();
    for factor in [0, -2] {
        let message = "Replication factor must be larger than 0, or -1 to use the default value.";
        refused(&mut cluster, topic("t", 1, factor), ErrorCode::InvalidReplicationFactor, message);
    }
    for count in [0, -2] {
        let message = "Number of partitions was set to an invalid non-positive value.";
        refused(&mut cluster, topic("t", count, 1), ErrorCode::InvalidPartitions, message);
    }
    let message = "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be \
                   reached because only 1 broker(s) are registered or some brokers have all their log directories \
                   cordoned.";
    refused(&mut cluster, topic("t", 1, 3), ErrorCode::InvalidReplicationFactor, message);
    let reply = cluster.create(vec![topic("a", 6000, 1), topic("b", 6000, 1)]);
    let codes: Vec<i16> = reply.topics.iter().map(|t| t.error_code).collect();
    assert_eq!(codes, [44, 44]);
}

#[test]
fn configs_are_checked() {
    let mut cluster = Cluster::one();
    for (configs, message) in [
        (&[("no.such", Some("1"))][..], "Unknown topic config name: no.such"),
        (
            &[("retention.ms", Some("soon"))],
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
        (
            &[("segment.bytes", Some("13"))],
            "Invalid value 13 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            &[("retention.ms", None), ("segment.ms", None)],
            "Null value not supported for topic configs: retention.ms,segment.ms",
        ),
        (
            &[("min.compaction.lag.ms", Some("10")), ("max.compaction.lag.ms", Some("5"))],
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
    ] {
        refused(&mut cluster, with_configs(topic("t", 1, 1), configs), ErrorCode::InvalidConfig, message);
    }
    let twice = [("retention.ms", Some("1")), ("retention.ms", Some("2"))];
    let result = one(&mut cluster, with_configs(topic("t", 1, 1), &twice));
    let kept = result.configs.unwrap().into_iter().find(|c| c.name == "retention.ms").unwrap();
    assert_eq!(kept.value.as_deref(), Some("2"));
}

#[test]
fn assignments_are_checked() {
    let mut cluster = Cluster::with_brokers(2, &[]);
    let wrong = ErrorCode::InvalidReplicaAssignment;
    for (assignments, message) in [
        (
            &[(0, &[42][..])][..],
            "The manual partition assignment includes broker 42, but no such broker is registered.",
        ),
        (&[(1, &[1])], "partitions should be a consecutive 0-based integer sequence"),
        (&[(0, &[1, 1])], "The manual partition assignment includes the broker 1 more than once."),
        (&[(0, &[])], "The manual partition assignment includes an empty replica list."),
        (&[(0, &[1]), (0, &[1])], "Found multiple manual partition assignments for partition 0"),
        (
            &[(0, &[1]), (1, &[1, 2])],
            "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent \
             with previous partitions, which have 1 replica(s).",
        ),
    ] {
        refused(&mut cluster, assigned("t", assignments), wrong, message);
    }
    for (num_partitions, replication_factor, what) in
        [(1, -1, "numPartitions"), (-1, 1, "replication factor")]
    {
        let topic = CreatableTopic { num_partitions, replication_factor, ..assigned("t", &[(0, &[1])]) };
        let message = format!("A manual partition assignment was specified, but {what} was not set to -1.");
        refused(&mut cluster, topic, ErrorCode::InvalidRequest, &message);
    }
    let result = one(&mut cluster, assigned("t", &[(1, &[2, 1]), (0, &[1, 2])]));
    assert_eq!((result.num_partitions, result.replication_factor), (2, 2));
    assert_eq!((cluster.partition("t", 0).leader, cluster.partition("t", 1).leader), (1, 2));
}

#[test]
fn fenced_brokers_get_replicas_but_do_not_lead() {
    let mut cluster = Cluster::with_brokers(2, &[]);
    cluster.heartbeat(2, |request| request.want_fence = true);
    cluster.topic("t", 8, 2);
    for number in 0..8 {
        let partition = cluster.partition("t", number);
        assert_eq!(
            (&partition.replicas[..], &partition.isr[..], partition.leader),
            (&[1, 2][..], &[1][..], 1)
        );
    }
    cluster.heartbeat(1, |request| request.want_fence = true);
    let message = "Unable to replicate the partition 1 time(s): All brokers are currently fenced.";
    refused(&mut cluster, topic("u", 1, 1), ErrorCode::InvalidReplicationFactor, message);
}

#[test]
fn replicas_spread_over_racks_and_brokers() {
    let mut cluster = Cluster::with_brokers(6, &["a", "a", "b", "b", "c", "c"]);
    cluster.topic("t", 12, 3);
    let mut leaders = [0; 7];
    let mut held = [0; 7];
    for number in 0..12 {
        let partition = cluster.partition("t", number);
        let mut racks: Vec<i32> = partition.replicas.iter().map(|id| (id - 1) / 2).collect();
        racks.sort_unstable();
        assert_eq!(racks, [0, 1, 2], "a replica in each rack");
        leaders[partition.leader as usize] += 1;
        for id in &partition.replicas {
            held[*id as usize] += 1;
        }
    }
    assert_eq!((leaders, held), ([0, 2, 2, 2, 2, 2, 2], [0, 6, 6, 6, 6, 6, 6]));
}

#[test]
fn ids_are_random_version_4() {
    let mut cluster = Cluster::one();
    let ids: Vec<Uuid> = (0..200).map(|n| cluster.topic(&format!("t{n}"), 1, 1)).collect();
    for id in &ids {
        assert_eq!((id.as_bytes()[6] >> 4, id.as_bytes()[8] >> 6), (4, 2));
        assert!(!id.to_string().starts_with('-'));
    }
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    assert!(matches!(
        &cluster.last[0].record,
        MetadataRecord::TopicRecord(TopicRecord { topic_id, .. }) if topic_id == ids.last().unwrap()
    ));
}
