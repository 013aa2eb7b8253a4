//! Settings, held against what Kafka 4.4.0 accepts, answers and refuses.

#![allow(clippy::unwrap_used, clippy::panic)]

use callboard_metadata::config::{
    BrokerConfig, ConfigError, ConfigType, Durability, Scope, Settings, TimestampType, TopicConfig,
    broker_definitions, group_definitions, topic_definitions, validate_broker, validate_client_metrics,
    validate_group, validate_topic,
};

fn unescape(text: &str) -> String {
    text.replace("\\t", "\t").replace("\\n", "\n").replace("\\\\", "\\")
}

/// One setting of each pair of type and validator, with values good and bad.
#[test]
fn values_are_accepted_and_refused_as_kafka_does() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for line in include_str!("config-values.tsv").lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [table, name, value, verdict, expected] = columns[..] else { panic!("{line}") };
        let table = match table {
            "broker" => broker_definitions(),
            "topic" => topic_definitions(),
            _ => group_definitions(),
        };
        let definition = table.get(name).unwrap();
        let (ours, text) = match definition.parse(&unescape(value)) {
            Ok(value) => ("ok", value.to_string()),
            Err(error) => ("err", error.to_string()),
        };
        checked += 1;
        if ours != verdict || text != unescape(expected) {
            wrong.push(format!("{name}={value}: {ours} {text}\n     Kafka: {verdict} {expected}"));
        }
    }
    assert!(checked > 2_000);
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

const COMBINED: [(&str, &str); 6] = [
    ("process.roles", "broker,controller"),
    ("node.id", "1"),
    ("controller.quorum.bootstrap.servers", "localhost:9093"),
    ("listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"),
    ("controller.listener.names", "CONTROLLER"),
    ("log.dirs", "/data/a,/data/b"),
];

fn properties(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all: Vec<(&str, &str)> = COMBINED.to_vec();
    for (name, value) in changes {
        all.retain(|(other, _)| other != name);
        if *value != "(unset)" {
            all.push((name, value));
        }
    }
    all.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
}

fn settings(changes: &[(&str, &str)]) -> Settings {
    BrokerConfig::from_properties(properties(changes)).unwrap().0.settings
}

#[test]
fn a_combined_node_has_its_listeners_and_limits() {
    let (config, remarks) = BrokerConfig::from_properties(properties(&[])).unwrap();
    assert!(remarks.unknown.is_empty() && remarks.without_effect.is_empty(), "{remarks:?}");
    assert!(config.roles.broker && config.roles.controller);
    assert_eq!(config.listeners.len(), 1);
    assert_eq!(config.listeners[0].address.to_string(), "localhost:9092");
    assert_eq!(config.controller_listeners[0].name, "CONTROLLER");
    assert_eq!(config.advertised_listeners, config.listeners);
    assert_eq!(config.inter_broker_listener_name, "PLAINTEXT");
    assert_eq!(config.log_dirs.len(), 2);
    assert_eq!(config.metadata_log_dir, config.log_dirs[0]);
    assert_eq!(config.socket_request_max_bytes, 104_857_600);
    assert_eq!(config.connections_max_idle_ms, Some(600_000));
    assert_eq!(config.queued_max_request_bytes, None);
    assert_eq!(config.broker_session_timeout_ms, 9_000);
    assert_eq!(config.metadata_log.max_idle_interval_ms, Some(500));
    assert_eq!(config.durability, Durability::PageCache);
}

#[test]
fn a_node_is_refused_with_the_setting_and_what_is_allowed() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("node.id", "(unset)")], "Missing required configuration \"node.id\""),
        (&[("process.roles", "(unset)")], "Missing required configuration \"process.roles\""),
        (&[("process.roles", "zookeeper")], "String must be one of: broker, controller"),
        (
            &[("num.partitions", "0")],
            "Invalid value 0 for configuration num.partitions: Value must be at least 1",
        ),
        (&[("listeners", "PLAINTEXT://localhost:9092")], "when running the KRaft controller role"),
        (&[("listeners", "CONTROLLER://localhost:9093")], "at least one broker advertised listener"),
        (&[("process.roles", "broker")], "just the broker role"),
        (&[("process.roles", "controller")], "when process.roles=controller"),
        (
            &[("listeners", "PLAINTEXT://:9092,CONTROLLER://:9092")],
            "Each listener must have a different port",
        ),
        (&[("listeners", "PLAINTEXT//x,CONTROLLER://:9093")], "Unable to parse PLAINTEXT//x"),
        (
            &[("listeners", "OTHER://:9092,CONTROLLER://:9093")],
            "No security protocol defined for listener OTHER",
        ),
        (&[("listeners", "SSL://:9092,CONTROLLER://:9093")], "serves PLAINTEXT listeners only"),
        (&[("listeners", "PLAINTEXT://:9092,plaintext://:9094,CONTROLLER://:9093")], "a different name"),
        (&[("advertised.listeners", "PLAINTEXT://0.0.0.0:9092")], "nonroutable meta-address 0.0.0.0"),
        (&[("advertised.listeners", "SSL://h:9092")], "Found SSL"),
        (&[("inter.broker.listener.name", "CONTROLLER")], "defined in advertised.listeners"),
        (&[("listener.security.protocol.map", "PLAINTEXT:TLS")], "each entry is LISTENER:PROTOCOL"),
        (&[("controller.quorum.bootstrap.servers", "(unset)")], "parseable set of controllers"),
        (&[("controller.quorum.voters", "2@h:1")], "must be included in the set of voters"),
        (&[("broker.id", "7")], "node.id"),
        (&[("log.retention.ms", "0")], "log.retention.ms must be unlimited (-1)"),
        (&[("queued.max.request.bytes", "5")], "queued.max.request.bytes must be larger"),
        (&[("max.connections.per.ip.overrides", "h:x")], "each entry is HOST:LIMIT"),
        (&[("callboard.durability", "maybe")], "String must be one of: page-cache, fsync"),
        (&[("callboard.durable", "fsync")], "callboard.durability"),
    ];
    for (changes, expected) in cases {
        let error = BrokerConfig::from_properties(properties(changes)).unwrap_err().to_string();
        assert!(error.contains(expected), "{changes:?}: {error}");
    }
}

#[test]
fn a_topic_takes_its_own_values_then_the_brokers_then_the_defaults() {
    let broker = settings(&[
        ("log.retention.hours", "2"),
        ("log.roll.hours", "3"),
        ("log.flush.scheduler.interval.ms", "77"),
        ("log.segment.bytes", "2097152"),
        ("callboard.durability", "fsync"),
    ]);
    let own =
        [("segment.bytes", "3145728"), ("message.timestamp.type", "LogAppendTime"), ("preallocate", "TRUE")];
    let topic = TopicConfig::effective(&broker, own);
    assert_eq!(topic.retention_ms, 2 * 3_600_000);
    assert_eq!(topic.segment_ms, 3 * 3_600_000);
    assert_eq!(topic.flush_ms, 77);
    assert_eq!(topic.segment_bytes, 3_145_728);
    assert_eq!(topic.message_timestamp_type, TimestampType::LogAppendTime);
    assert!(topic.preallocate && topic.cleanup_policy.delete && !topic.cleanup_policy.compact);
    assert_eq!(topic.max_message_bytes, 1_048_588);
    assert_eq!(topic.durability, Durability::Fsync);
    let other = TopicConfig::effective(&broker, [("internal.segment.bytes", "100")]);
    assert_eq!(other.segment_bytes, 100);
    assert_eq!(TopicConfig::effective(&settings(&[]), []).flush_ms, i64::MAX);
}

fn text(result: Result<(), ConfigError>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "OK".to_owned())
}

// The answers of Kafka 4.4.0 to the same changes.
#[test]
fn changes_of_topics_are_judged_as_kafka_does() {
    let broker = settings(&[]);
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("nosuch", "1")], "Unknown topic config name: nosuch"),
        (&[("retention.ms", "")], "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        (
            &[("min.compaction.lag.ms", "100"), ("max.compaction.lag.ms", "50")],
            "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)",
        ),
        (&[("cleanup.policy", "")], "OK"),
        (&[("cleanup.policy", "delete,compact,delete")], "OK"),
        (
            &[("remote.storage.enable", "true")],
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
        ),
        (&[("local.retention.bytes", "5"), ("retention.bytes", "4")], "OK"),
        (&[("internal.segment.bytes", "100")], "OK"),
        (
            &[("leader.replication.throttled.replicas", "1:x")],
            "Invalid value [1:x] for configuration leader.replication.throttled.replicas: \
             leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following \
             format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
    ];
    for (values, expected) in cases {
        assert_eq!(text(validate_topic(&broker, values.iter().copied())), *expected, "{values:?}");
    }
}

#[test]
fn changes_of_brokers_are_judged_as_kafka_does() {
    let broker = settings(&[]);
    let cases: &[(Scope, &str, &str, &str)] = &[
        (Scope::OneBroker, "log.dirs", "/x", "Cannot update these configs dynamically: [log.dirs]"),
        (Scope::OneBroker, "nosuch", "5", "OK"),
        (
            Scope::OneBroker,
            "log.cleaner.threads",
            "abc",
            "Invalid value abc for configuration log.cleaner.threads: Not a number of type INT",
        ),
        (
            Scope::OneBroker,
            "log.cleaner.threads",
            "100",
            "Invalid value org.apache.kafka.common.config.ConfigException: Log cleaner threads cannot be increased to \
             more than double the current value 1 for configuration Invalid dynamic configuration",
        ),
        (
            Scope::Cluster,
            "listeners",
            "PLAINTEXT://localhost:1",
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]",
        ),
        (Scope::Cluster, "log.retention.ms", "123456", "OK"),
        (
            Scope::OneBroker,
            "num.io.threads",
            "100",
            "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation \
             failed for num.io.threads=100, value should not be greater than double the current value 8 for \
             configuration Invalid dynamic configuration",
        ),
        (Scope::OneBroker, "num.io.threads", "9", "OK"),
        (
            Scope::OneBroker,
            "listeners",
            "PLAINTEXT://localhost:1",
            "requirement failed: controller.listener.names must only contain values appearing in the 'listeners' \
             configuration when running the KRaft controller role",
        ),
        (
            Scope::OneBroker,
            "log.cleaner.dedupe.buffer.size",
            "1",
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        (
            Scope::OneBroker,
            "ssl.keystore.password",
            "x",
            "These security configs can be dynamically updated only per-listener using the listener prefix: \
             [ssl.keystore.password]",
        ),
        (Scope::OneBroker, "listener.name.external.ssl.keystore.password", "x", "OK"),
        (Scope::OneBroker, "leader.replication.throttled.rate", "1000", "OK"),
    ];
    for (scope, name, value, expected) in cases {
        assert_eq!(text(validate_broker(&broker, *scope, [(*name, *value)])), *expected, "{name}={value}");
    }
}

#[test]
fn changes_of_groups_and_subscriptions_are_judged_as_kafka_does() {
    let broker = settings(&[]);
    for (name, value, expected) in [
        ("nosuch", "5", "Unknown group config name: nosuch"),
        (
            "consumer.session.timeout.ms",
            "5",
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        ("consumer.session.timeout.ms", "50000", "OK"),
        (
            "consumer.heartbeat.interval.ms",
            "abc",
            "Invalid value abc for configuration consumer.heartbeat.interval.ms: Not a number of type INT",
        ),
        (
            "streams.num.standby.replicas",
            "10",
            "streams.num.standby.replicas must be less than or equal to 2",
        ),
        (
            "streams.rack.aware.assignment.tags",
            "a,a",
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            "share.auto.offset.reset",
            "by_duration:PT-1S",
            "Invalid value by_duration:PT-1S for configuration share.auto.offset.reset: Invalid value \
             `by_duration:PT-1S` for configuration share.auto.offset.reset. The value must be either 'earliest', \
             'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
    ] {
        assert_eq!(text(validate_group(&broker, [(name, value)])), expected, "{name}={value}");
    }
    for (name, value, expected, invalid_request) in [
        ("nosuch", "5", "Unknown client metrics configuration: nosuch", true),
        (
            "interval.ms",
            "5",
            "Invalid value 5 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
            true,
        ),
        ("match", "client_id=[", "Illegal client matching pattern: client_id=[", false),
        ("match", "nosuch=a", "Illegal client matching pattern: nosuch=a", false),
        ("match", "client_id=", "Illegal client matching pattern: client_id=", false),
    ] {
        let error = validate_client_metrics([(name, value)]).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.is_invalid_request(), invalid_request, "{name}");
    }
    assert!(
        validate_client_metrics([("match", "client_id=a.*"), ("metrics", ""), ("interval.ms", "1000")])
            .is_ok()
    );
}

#[test]
fn every_kafka_setting_is_there() {
    let kafka = broker_definitions().iter().filter(|d| !d.name.starts_with("callboard.")).count();
    // 379 of the file, and three that exist only while a broker runs.
    assert_eq!(kafka, 379 + 3);
    assert_eq!(topic_definitions().iter().count(), 38 + 1);
    assert_eq!(group_definitions().iter().count(), 27);
    assert!(broker_definitions().iter().filter(|d| d.kind == ConfigType::Password).all(|d| d.is_sensitive()));
}
