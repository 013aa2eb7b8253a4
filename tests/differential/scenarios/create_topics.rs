//! CreateTopics.

use callboard_protocol::ByteString;
use callboard_protocol::messages::CreateTopicsRequest;
use callboard_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};

use super::bad_names;
use super::metadata::named;
use crate::stage::Stage;

/// A topic of one replica.
fn topic(name: ByteString, num_partitions: i32) -> CreatableTopic {
    CreatableTopic { name, num_partitions, replication_factor: 1, ..Default::default() }
}

fn request(topics: Vec<CreatableTopic>) -> CreateTopicsRequest {
    CreateTopicsRequest { topics, timeout_ms: 10_000, ..Default::default() }
}

/// A partition, and its brokers.
type Assigned<'a> = (i32, &'a [i32]);

fn assigned(name: ByteString, partitions: &[Assigned<'_>]) -> CreatableTopic {
    let assignments = partitions.iter().map(|(partition_index, brokers)| CreatableReplicaAssignment {
        partition_index: *partition_index,
        broker_ids: brokers.to_vec(),
        ..Default::default()
    });
    let assignments = assignments.collect();
    CreatableTopic { name, num_partitions: -1, replication_factor: -1, assignments, ..Default::default() }
}

fn config(name: &str, value: Option<&str>) -> CreatableTopicConfig {
    CreatableTopicConfig {
        name: name.to_owned().into(),
        value: value.map(|value| value.to_owned().into()),
        ..Default::default()
    }
}

fn with(topic: CreatableTopic, configs: &[(&str, Option<&str>)]) -> CreatableTopic {
    CreatableTopic { configs: configs.iter().map(|(name, value)| config(name, *value)).collect(), ..topic }
}

/// What is created, and what metadata then says.
pub fn good(s: &mut Stage<'_>) {
    s.send("none", &request(Vec::new()));
    s.send("one", &request(vec![topic(s.topic("a"), 1)]));
    s.send("it exists", &request(vec![topic(s.topic("a"), 1)]));
    s.send("two", &request(vec![topic(s.topic("b"), 3), topic(s.topic("c"), 2)]));
    s.await_served("b", 3);
    s.await_served("c", 2);
    s.see("two in metadata", &named(&[s.topic("b"), s.topic("c")]));
    let defaults = CreatableTopic { replication_factor: -1, ..topic(s.topic("d"), -1) };
    s.send("defaults", &request(vec![defaults]));
    s.send("assigned", &request(vec![assigned(s.topic("e"), &[(0, &[1]), (1, &[1])])]));
    s.await_served("e", 2);
    s.see("assigned in metadata", &named(&[s.topic("e")]));
    let mut check = request(vec![topic(s.topic("f"), 2), topic(s.topic("a"), 2)]);
    check.validate_only = true;
    s.send("only checked", &check);
    s.see("only checked in metadata", &named(&[s.topic("f")]));
    for timeout_ms in [0, -1] {
        let topics = vec![topic(s.topic(&format!("timeout{timeout_ms}")), 1)];
        s.send(&format!("timeout {timeout_ms}"), &CreateTopicsRequest { timeout_ms, ..request(topics) });
    }
    let names = [s.topic("mixed"), "bad/name".into(), s.topic("a"), s.topic("mixed2")];
    s.send("good and bad", &request(names.into_iter().map(|name| topic(name, 1)).collect()));
}

/// What is refused.
pub fn bad(s: &mut Stage<'_>) {
    for (what, name) in bad_names() {
        s.send(what, &request(vec![topic(name, 1)]));
    }
    s.create("x.y", 1);
    s.send("collides", &request(vec![topic(s.topic("x_y"), 1)]));
    s.send("twice", &request(vec![topic(s.topic("t"), 1), topic(s.topic("t"), 2), topic(s.topic("u"), 1)]));
    s.send("the metadata topic", &request(vec![topic("__cluster_metadata".into(), 1)]));
    for partitions in [0, -2, i32::MIN] {
        s.send(&format!("{partitions} partitions"), &request(vec![topic(s.topic("p"), partitions)]));
    }
    for replication_factor in [0, 2, -2, i16::MAX, i16::MIN] {
        let topic = CreatableTopic { replication_factor, ..topic(s.topic("r"), 1) };
        s.send(&format!("{replication_factor} replicas"), &request(vec![topic]));
    }
    let cases: [(&str, &[Assigned<'_>]); 9] = [
        ("assigned to an unknown broker", &[(0, &[9])]),
        ("assigned twice to a broker", &[(0, &[1, 1])]),
        ("assigned to none", &[(0, &[])]),
        ("assigned to a negative broker", &[(0, &[-1])]),
        ("assigned, not from 0", &[(1, &[1])]),
        ("assigned with a gap", &[(0, &[1]), (2, &[1])]),
        ("assigned, a partition twice", &[(0, &[1]), (0, &[1])]),
        ("assigned, a negative partition", &[(-1, &[1])]),
        ("assigned unevenly", &[(0, &[1]), (1, &[1, 2])]),
    ];
    for (note, partitions) in cases {
        s.send(note, &request(vec![assigned(s.topic("s"), partitions)]));
    }
    let assigned = assigned(s.topic("s"), &[(0, &[1])]);
    let both = CreatableTopic { num_partitions: 1, ..assigned.clone() };
    s.send("assigned and counted", &request(vec![both]));
    let both = CreatableTopic { replication_factor: 1, ..assigned };
    s.send("assigned and replicated", &request(vec![both]));
    let mut checked = request(vec![topic("".into(), 1), topic(s.topic("n"), 0)]);
    checked.validate_only = true;
    s.send("only checked", &checked);
    s.send("too many partitions", &request(vec![topic(s.topic("many"), 10_001)]));
}

/// Settings of new topics.
pub fn configs(s: &mut Stage<'_>) {
    let good = [("retention.ms", Some("60000")), ("cleanup.policy", Some("compact"))];
    s.send("good", &request(vec![with(topic(s.topic("a"), 1), &good)]));
    let every = [
        ("cleanup.policy", "compact,delete"),
        ("compression.type", "zstd"),
        ("compression.gzip.level", "5"),
        ("compression.lz4.level", "5"),
        ("compression.zstd.level", "5"),
        ("delete.retention.ms", "1"),
        ("file.delete.delay.ms", "0"),
        ("flush.messages", "1"),
        ("flush.ms", "0"),
        ("index.interval.bytes", "0"),
        ("max.compaction.lag.ms", "1"),
        ("max.message.bytes", "0"),
        ("message.timestamp.after.max.ms", "0"),
        ("message.timestamp.before.max.ms", "0"),
        ("message.timestamp.type", "LogAppendTime"),
        ("min.cleanable.dirty.ratio", "0.25"),
        ("min.insync.replicas", "2"),
        ("preallocate", "true"),
        ("retention.bytes", "-1"),
        ("segment.bytes", "1048576"),
        ("segment.index.bytes", "4"),
        ("segment.jitter.ms", "0"),
        ("segment.ms", "1"),
        ("unclean.leader.election.enable", "true"),
    ];
    let every: Vec<(&str, Option<&str>)> = every.iter().map(|(name, value)| (*name, Some(*value))).collect();
    s.send("every", &request(vec![with(topic(s.topic("b"), 1), &every)]));
    bad_configs(s);
    let mut checked = request(vec![with(topic(s.topic("v"), 1), &good)]);
    checked.validate_only = true;
    s.send("only checked", &checked);
}

/// Settings that are refused, or nearly.
fn bad_configs(s: &mut Stage<'_>) {
    let cases: [(&str, Option<&str>); 27] = [
        ("no.such.config", Some("1")),
        ("", Some("1")),
        ("retention.ms", None),
        ("retention.ms", Some("")),
        ("retention.ms", Some("x")),
        ("retention.ms", Some("-2")),
        ("retention.ms", Some(" 7 ")),
        ("retention.ms", Some("9223372036854775808")),
        ("segment.bytes", Some("1048575")),
        ("segment.bytes", Some("2147483648")),
        ("cleanup.policy", Some("none")),
        ("cleanup.policy", Some("")),
        ("cleanup.policy", Some("delete,delete")),
        ("cleanup.policy", Some("compact, delete")),
        ("compression.type", Some("brotli")),
        ("compression.gzip.level", Some("0")),
        ("compression.zstd.level", Some("23")),
        ("min.cleanable.dirty.ratio", Some("2")),
        ("min.insync.replicas", Some("0")),
        ("preallocate", Some("yes")),
        ("preallocate", Some("TRUE")),
        ("message.timestamp.type", Some("Never")),
        ("max.message.bytes", Some("-1")),
        ("remote.storage.enable", Some("true")),
        ("local.retention.ms", Some("10")),
        ("message.format.version", Some("3.0")),
        ("leader.replication.throttled.replicas", Some("nonsense")),
    ];
    for (at, (name, value)) in cases.into_iter().enumerate() {
        let topic = with(topic(s.topic(&format!("c{at}")), 1), &[(name, value)]);
        s.send(&format!("{name}={value:?}"), &request(vec![topic]));
    }
    let twice = [("retention.ms", Some("1")), ("retention.ms", Some("2"))];
    s.send("twice", &request(vec![with(topic(s.topic("twice"), 1), &twice)]));
    let lags = [("min.compaction.lag.ms", Some("2")), ("max.compaction.lag.ms", Some("1"))];
    s.send("lags", &request(vec![with(topic(s.topic("lags"), 1), &lags)]));
}
