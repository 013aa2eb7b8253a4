use callboard_metadata::controller::{Alteration, check_alteration};
use callboard_metadata::image::{ConfigResource, ResourceType};
use callboard_protocol::ByteString;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    AlterConfigsRequest, IncrementalAlterConfigsRequest, alter_configs_request,
    incremental_alter_configs_request,
};

use crate::fixture::Cluster;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const METRICS: i8 = 16;
const GROUP: i8 = 32;

/// Checks and changes as broker 1 and the controller do together.
fn alter<Q: Alteration>(cluster: &mut Cluster, request: &Q) -> Q::Response {
    let checked = check_alteration(request, 1);
    let Some(passed) = checked.passed().cloned() else { return checked.answered(Q::respond(Vec::new())) };
    let decided = cluster.run(|controller, _| controller.alter(&passed));
    checked.answered(decided)
}

fn change(cluster: &mut Cluster, kind: i8, name: &str, ops: &[(&str, i8, Option<&str>)]) -> (i16, String) {
    let configs = ops
        .iter()
        .map(|(name, op, value)| incremental_alter_configs_request::AlterableConfig {
            name: (*name).into(),
            config_operation: *op,
            value: value.map(ByteString::from),
            ..Default::default()
        })
        .collect();
    let resource = incremental_alter_configs_request::AlterConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configs,
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answers = alter(cluster, &request).responses;
    assert_eq!(answers.len(), 1);
    (answers[0].error_code, answers[0].error_message.clone().unwrap_or_default().to_string())
}

fn replace(cluster: &mut Cluster, kind: i8, name: &str, values: &[(&str, Option<&str>)]) -> (i16, String) {
    let configs = values
        .iter()
        .map(|(name, value)| alter_configs_request::AlterableConfig {
            name: (*name).into(),
            value: value.map(ByteString::from),
            ..Default::default()
        })
        .collect();
    let resource = alter_configs_request::AlterConfigsResource {
        resource_type: kind,
        resource_name: name.into(),
        configs,
        ..Default::default()
    };
    let request = AlterConfigsRequest { resources: vec![resource], ..Default::default() };
    let answers = alter(cluster, &request).responses;
    assert_eq!(answers.len(), 1);
    (answers[0].error_code, answers[0].error_message.clone().unwrap_or_default().to_string())
}

fn values(cluster: &Cluster, resource: &ConfigResource) -> Vec<(String, String)> {
    let values = cluster.image().configs.of(resource);
    values.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_string(), value.to_string())
}

const OK: (i16, String) = (0, String::new());

#[test]
fn single_configs_change() {
    let mut cluster = Cluster::one();
    cluster.topic("t", 1, 1);
    let t = ConfigResource::topic("t");
    assert_eq!(change(&mut cluster, TOPIC, "t", &[("retention.ms", 0, Some("5"))]), OK);
    assert_eq!(change(&mut cluster, TOPIC, "t", &[("cleanup.policy", 2, Some("compact"))]), OK);
    assert_eq!(values(&cluster, &t), [pair("cleanup.policy", "delete,compact"), pair("retention.ms", "5")]);
    assert_eq!(change(&mut cluster, TOPIC, "t", &[("cleanup.policy", 2, Some("compact"))]), OK);
    assert!(cluster.last.is_empty(), "nothing changed, nothing written");
    assert_eq!(change(&mut cluster, TOPIC, "t", &[("cleanup.policy", 3, Some("delete"))]), OK);
    assert_eq!(values(&cluster, &t), [pair("cleanup.policy", "compact"), pair("retention.ms", "5")]);
    assert_eq!(change(&mut cluster, TOPIC, "t", &[("cleanup.policy", 1, None), ("no.such", 1, None)]), OK);
    assert_eq!(values(&cluster, &t), [pair("retention.ms", "5")]);
    assert_eq!(change(&mut cluster, TOPIC, "t", &[]), OK);
}

#[test]
fn refusals() {
    let mut cluster = Cluster::one();
    cluster.topic("t", 1, 1);
    let bad_name = "Topic name is invalid: 'a*b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'";
    for (kind, name, ops, code, message) in [
        (
            TOPIC,
            "t",
            &[("retention.ms", 0, Some("x"))][..],
            40,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (TOPIC, "t", &[("no.such", 0, Some("x"))], 40, "Unknown topic config name: no.such"),
        (TOPIC, "t", &[("retention.ms", 0, None)], 42, "Null value not supported for : retention.ms"),
        (
            TOPIC,
            "t",
            &[("retention.ms", 2, Some("5"))],
            40,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            TOPIC,
            "t",
            &[("no.such", 3, Some("5"))],
            40,
            "Can't SUBTRACT to key no.such because its type is not LIST.",
        ),
        (TOPIC, "t", &[("retention.ms", 9, Some("5"))], -1, ""),
        (
            TOPIC,
            "t",
            &[("retention.ms", 0, Some("5")), ("retention.ms", 0, Some("6"))],
            42,
            "Error due to duplicate config keys",
        ),
        (TOPIC, "nope", &[("retention.ms", 0, Some("5"))], 3, "The topic 'nope' does not exist."),
        (TOPIC, "", &[("retention.ms", 0, Some("5"))], 42, "Default topic resources are not allowed."),
        (TOPIC, "a*b", &[("retention.ms", 0, Some("5"))], 17, bad_name),
        (99, "x", &[("a", 0, Some("b"))], 42, "Unknown resource type 99"),
        (0, "x", &[("a", 0, Some("b"))], 42, "Unknown resource type 0"),
        (
            BROKER,
            "1",
            &[("log.dirs", 0, Some("/x"))],
            42,
            "Cannot update these configs dynamically: [log.dirs]",
        ),
        (
            BROKER,
            "99",
            &[("num.io.threads", 0, Some("9"))],
            42,
            "Unexpected broker id, expected 1, but received 99",
        ),
        (BROKER, "x", &[("num.io.threads", 0, Some("9"))], 42, "Node id must be an integer, but it is: x"),
        (
            BROKER,
            "1",
            &[("num.io.threads", 0, Some("x"))],
            42,
            "Invalid value x for configuration num.io.threads: Not a number of type INT",
        ),
        (
            BROKER,
            "1",
            &[("min.insync.replicas", 0, Some("2"))],
            40,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        (
            BROKER,
            "",
            &[("min.insync.replicas", 1, None)],
            40,
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
        (
            GROUP,
            "",
            &[("consumer.session.timeout.ms", 0, Some("50000"))],
            42,
            "Default group resources are not allowed.",
        ),
        (
            GROUP,
            "g",
            &[("consumer.session.timeout.ms", 0, Some("1"))],
            40,
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        (METRICS, "", &[("interval.ms", 0, Some("15000"))], 42, "Subscription name can't be empty"),
        (
            METRICS,
            "m",
            &[("interval.ms", 0, Some("1"))],
            42,
            "Invalid value 1 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        (METRICS, "m", &[("match", 0, Some("x"))], 40, "Illegal client matching pattern: x"),
        (LOGGER, "9", &[("kafka", 0, Some("INFO"))], 42, "Unexpected node id. Expected 1, but received 9"),
        (LOGGER, "1", &[("kafka", 0, Some("INFO"))], 40, "Logger kafka does not exist!"),
    ] {
        let answer = change(&mut cluster, kind, name, ops);
        assert_eq!(answer, (code, message.to_string()), "{kind} {name} {ops:?}");
        assert!(cluster.last.is_empty());
    }
}

#[test]
fn a_resource_given_twice_is_refused() {
    let resource = incremental_alter_configs_request::AlterConfigsResource {
        resource_type: TOPIC,
        resource_name: "t".into(),
        ..Default::default()
    };
    let request =
        IncrementalAlterConfigsRequest { resources: vec![resource.clone(), resource], ..Default::default() };
    let checked = check_alteration(&request, 1);
    assert!(checked.passed().is_none());
    let answers = checked.answered(Default::default());
    let messages: Vec<_> =
        answers.responses.iter().map(|a| (a.error_code, a.error_message.as_deref())).collect();
    assert_eq!(messages, [(42, Some("Each resource must appear at most once.")); 2]);
}

#[test]
fn answers_stand_in_the_order_of_the_request() {
    let mut cluster = Cluster::one();
    let resource = |kind, name: &str, config: &str, op, value: &str| {
        incremental_alter_configs_request::AlterConfigsResource {
            resource_type: kind,
            resource_name: name.into(),
            configs: vec![incremental_alter_configs_request::AlterableConfig {
                name: config.into(),
                config_operation: op,
                value: Some(value.into()),
                ..Default::default()
            }],
            ..Default::default()
        }
    };
    let resources = vec![
        resource(METRICS, "m", "interval.ms", 0, "1"),
        resource(BROKER, "9", "log.retention.ms", 0, "1"),
        resource(GROUP, "g", "consumer.session.timeout.ms", 0, "50000"),
        resource(8, "1", "a.Logger", 2, "INFO"),
        resource(BROKER, "1", "log.retention.ms", 3, "1"),
        resource(BROKER, "", "no.such", 2, "1"),
    ];
    let request = IncrementalAlterConfigsRequest { resources, ..Default::default() };
    let answers = alter(&mut cluster, &request).responses;
    let seen: Vec<_> = answers.iter().map(|a| (a.resource_type, a.error_code)).collect();
    let wanted = [(METRICS, 42), (BROKER, 42), (GROUP, 0), (8, 42), (BROKER, 40), (BROKER, 40)];
    assert_eq!(seen, wanted);
    let text = |at: usize| answers[at].error_message.as_deref().unwrap_or_default();
    assert_eq!(text(3), "APPEND operation is not allowed for the BROKER_LOGGER resource");
    assert_eq!(text(4), "Config value subtract is not allowed for config key: log.retention.ms");
    assert_eq!(text(5), "Unknown config name: no.such");
}

#[test]
fn brokers_groups_and_subscriptions_keep_configs() {
    let mut cluster = Cluster::one();
    assert_eq!(change(&mut cluster, BROKER, "", &[("log.cleaner.threads", 0, Some("2"))]), OK);
    assert_eq!(change(&mut cluster, BROKER, "1", &[("some.plugin", 0, Some("x"))]), OK);
    assert_eq!(change(&mut cluster, BROKER, "1", &[("some.plugin", 0, Some("x"))]), OK);
    assert_eq!(cluster.last.len(), 1, "a broker's configs are written again");
    assert_eq!(change(&mut cluster, GROUP, "g", &[("consumer.session.timeout.ms", 0, Some("50000"))]), OK);
    assert_eq!(change(&mut cluster, METRICS, "m", &[("interval.ms", 0, Some("15000"))]), OK);
    let kinds: Vec<_> = cluster.image().configs.iter().map(|(resource, _)| resource.kind).collect();
    let expected =
        [ResourceType::Broker, ResourceType::Broker, ResourceType::ClientMetrics, ResourceType::Group];
    assert_eq!(kinds, expected);
    assert_eq!(change(&mut cluster, GROUP, "g", &[("consumer.session.timeout.ms", 1, None)]), OK);
    let group = ConfigResource { kind: ResourceType::Group, name: "g".into() };
    assert!(cluster.image().configs.of(&group).is_empty());
}

#[test]
fn a_new_minimum_in_sync_clears_the_eligible() {
    let mut cluster = Cluster::one();
    cluster.topic("t", 1, 1);
    for (kind, name) in [(TOPIC, "t"), (BROKER, "")] {
        assert_eq!(change(&mut cluster, kind, name, &[("min.insync.replicas", 0, Some("2"))]), OK);
        assert!(matches!(
            &cluster.last[..],
            [config, clear] if matches!(config.record, MetadataRecord::ConfigRecord(_))
                && matches!(&clear.record, MetadataRecord::ClearElrRecord(r) if r.topic_name == name)
        ));
    }
}

#[test]
fn alter_configs_replaces_all() {
    let mut cluster = Cluster::one();
    cluster.topic("t", 1, 1);
    let t = ConfigResource::topic("t");
    let two = [("retention.ms", Some("5")), ("segment.ms", Some("7"))];
    assert_eq!(replace(&mut cluster, TOPIC, "t", &two), OK);
    assert_eq!(replace(&mut cluster, TOPIC, "t", &[("retention.ms", Some("6"))]), OK);
    assert_eq!(values(&cluster, &t), [pair("retention.ms", "6")]);
    for (kind, name, given, code, message) in [
        (TOPIC, "t", &[("retention.ms", None)][..], 42, "Null value not supported for : retention.ms"),
        (TOPIC, "t", &[("no.such", Some("x"))], 40, "Unknown topic config name: no.such"),
        (TOPIC, "nope", &[("retention.ms", Some("5"))], 3, "The topic 'nope' does not exist."),
        (LOGGER, "1", &[("kafka", Some("INFO"))], 42, "Unknown resource type 8"),
        (BROKER, "1", &[("log.dirs", Some("/x"))], 42, "Cannot update these configs dynamically: [log.dirs]"),
    ] {
        assert_eq!(replace(&mut cluster, kind, name, given), (code, message.to_string()));
    }
    assert_eq!(replace(&mut cluster, TOPIC, "t", &[]), OK);
    assert!(values(&cluster, &t).is_empty());
}

#[test]
fn validation_alone_writes_nothing() {
    let mut cluster = Cluster::one();
    cluster.topic("t", 1, 1);
    let resource = incremental_alter_configs_request::AlterConfigsResource {
        resource_type: TOPIC,
        resource_name: "t".into(),
        configs: vec![incremental_alter_configs_request::AlterableConfig {
            name: "retention.ms".into(),
            value: Some("5".into()),
            ..Default::default()
        }],
        ..Default::default()
    };
    let request = IncrementalAlterConfigsRequest {
        resources: vec![resource],
        validate_only: true,
        ..Default::default()
    };
    let reply = cluster.run(|controller, _| controller.alter(&request));
    assert_eq!(reply.responses[0].error_code, 0);
    assert!(cluster.last.is_empty());
}
