//! IncrementalAlterConfigs.

use callboard_protocol::ByteString;
use callboard_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use callboard_protocol::messages::{DescribeConfigsResponse, IncrementalAlterConfigsRequest};

use super::{bad_names, describe_configs};
use crate::stage::Stage;

/// One change: operation, name, value.
type Change<'a> = (i8, &'a str, Option<&'a str>);

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Changes of one resource.
pub fn resource(kind: i8, name: &ByteString, changes: &[Change<'_>]) -> AlterConfigsResource {
    let configs = changes.iter().map(|(config_operation, name, value)| AlterableConfig {
        name: (*name).to_owned().into(),
        config_operation: *config_operation,
        value: value.map(|value| value.to_owned().into()),
        ..Default::default()
    });
    AlterConfigsResource {
        resource_type: kind,
        resource_name: name.clone(),
        configs: configs.collect(),
        ..Default::default()
    }
}

/// A request of some resources.
pub fn request(resources: Vec<AlterConfigsResource>) -> IncrementalAlterConfigsRequest {
    IncrementalAlterConfigsRequest { resources, ..Default::default() }
}

/// Whether an answer has this value.
fn has(name: &str, value: &str) -> impl Fn(&DescribeConfigsResponse) -> bool {
    let (name, value) = (name.to_owned(), value.to_owned());
    move |answer| {
        answer.results[0].configs.iter().any(|c| c.name == *name && c.value.as_deref() == Some(&value))
    }
}

/// Each operation on a topic's settings.
pub fn topics(s: &mut Stage<'_>) {
    s.create("a", 1);
    let a = s.topic("a");
    let keys = ["retention.ms", "cleanup.policy", "segment.ms"];
    let seen = describe_configs::request(vec![describe_configs::resource(2, &a, Some(&keys))]);
    let steps: [(&str, Change<'_>, &str, &str); 8] = [
        ("set", (SET, "retention.ms", Some("1000")), "retention.ms", "1000"),
        (
            "append to the default",
            (APPEND, "cleanup.policy", Some("compact")),
            "cleanup.policy",
            "delete,compact",
        ),
        (
            "append what is there",
            (APPEND, "cleanup.policy", Some("compact")),
            "cleanup.policy",
            "delete,compact",
        ),
        ("subtract", (SUBTRACT, "cleanup.policy", Some("delete")), "cleanup.policy", "compact"),
        (
            "subtract what is not there",
            (SUBTRACT, "cleanup.policy", Some("delete")),
            "cleanup.policy",
            "compact",
        ),
        ("delete", (DELETE, "retention.ms", None), "retention.ms", "604800000"),
        ("delete again", (DELETE, "retention.ms", None), "retention.ms", "604800000"),
        ("delete with a value", (DELETE, "cleanup.policy", Some("x")), "cleanup.policy", "delete"),
    ];
    for (note, change, name, value) in steps {
        s.send(note, &request(vec![resource(2, &a, &[change])]));
        s.settle(&seen, has(name, value));
        s.see(&format!("{note}: seen"), &seen);
    }
    let two = [(SET, "retention.ms", Some("1")), (SET, "segment.ms", Some("2"))];
    let mut checked = request(vec![resource(2, &a, &two)]);
    checked.validate_only = true;
    s.send("only checked", &checked);
    s.see("only checked: seen", &seen);
    s.send("two", &request(vec![resource(2, &a, &two)]));
    s.settle(&seen, has("segment.ms", "2"));
    s.see("two: seen", &seen);
}

/// What is refused.
pub fn bad(s: &mut Stage<'_>) {
    s.create("a", 1);
    s.create("b", 1);
    let (a, b) = (s.topic("a"), s.topic("b"));
    s.send("none", &request(Vec::new()));
    s.send("no change", &request(vec![resource(2, &a, &[])]));
    let cases: [Change<'_>; 22] = [
        (SET, "no.such.config", Some("1")),
        (SET, "", Some("1")),
        (SET, "retention.ms", None),
        (SET, "retention.ms", Some("")),
        (SET, "retention.ms", Some("x")),
        (SET, "retention.ms", Some("-2")),
        (SET, "segment.bytes", Some("1")),
        (SET, "cleanup.policy", Some("none")),
        (SET, "cleanup.policy", Some("")),
        (APPEND, "retention.ms", Some("1")),
        (SUBTRACT, "retention.ms", Some("1")),
        (APPEND, "cleanup.policy", None),
        (APPEND, "cleanup.policy", Some("")),
        (APPEND, "cleanup.policy", Some("none")),
        (APPEND, "cleanup.policy", Some("compact,compact")),
        (SUBTRACT, "cleanup.policy", Some("delete")),
        (SUBTRACT, "cleanup.policy", None),
        (DELETE, "no.such.config", None),
        (4, "retention.ms", Some("1")),
        (-1, "retention.ms", Some("1")),
        (SET, "remote.storage.enable", Some("true")),
        (SET, "leader.replication.throttled.replicas", Some("*")),
    ];
    for (at, change) in cases.into_iter().enumerate() {
        s.send(&format!("{at}: {change:?}"), &request(vec![resource(2, &b, &[change])]));
    }
    let twice = [(SET, "retention.ms", Some("1")), (SET, "retention.ms", Some("2"))];
    s.send("a setting twice", &request(vec![resource(2, &a, &twice)]));
    let both = [(SET, "retention.ms", Some("1")), (DELETE, "retention.ms", None)];
    s.send("set and deleted", &request(vec![resource(2, &a, &both)]));
    s.send("a topic twice", &request(vec![resource(2, &a, &twice[..1]), resource(2, &a, &twice[1..])]));
    let mixed = vec![resource(2, &a, &[(SET, "segment.ms", Some("x"))]), resource(2, &b, &twice[..1])];
    s.send("good and bad", &request(mixed));
    s.send("a missing topic", &request(vec![resource(2, &s.topic("missing"), &twice[..1])]));
    for (what, name) in bad_names() {
        s.send(what, &request(vec![resource(2, &name, &twice[..1])]));
    }
    for kind in [0, 1, 3, 5, 64, -1] {
        s.send(&format!("kind {kind}"), &request(vec![resource(kind, &a, &twice[..1])]));
    }
    s.visit_controller();
    s.send("on the controller", &request(vec![resource(2, &a, &twice[..1])]));
    s.send("on the controller, bad", &request(vec![resource(2, &a, &[(SET, "retention.ms", Some("x"))])]));
}

/// Settings of brokers, loggers, groups and metrics.
pub fn others(s: &mut Stage<'_>) {
    brokers(s);
    loggers(s);
    groups(s);
    metrics(s);
}

/// Of brokers.
fn brokers(s: &mut Stage<'_>) {
    let brokers: [(&str, Change<'_>); 28] = [
        ("1", (SUBTRACT, "log.retention.ms", Some("1"))),
        ("1", (APPEND, "no.such", Some("1"))),
        ("g", (APPEND, "log.retention.ms", Some("1"))),
        ("", (APPEND, "log.retention.ms", Some("1"))),
        ("9", (SET, "log.cleaner.threads", Some("1"))),
        ("x", (SET, "log.cleaner.threads", Some("1"))),
        ("-1", (SET, "log.cleaner.threads", Some("1"))),
        ("1", (SET, "no.such", Some("1"))),
        ("1", (SET, "node.id", Some("2"))),
        ("1", (DELETE, "node.id", None)),
        ("1", (SET, "log.cleaner.threads", Some("x"))),
        ("1", (SET, "log.cleaner.threads", Some("0"))),
        ("1", (SET, "log.cleaner.threads", Some("99"))),
        ("", (SET, "log.cleaner.threads", Some("99"))),
        ("", (SET, "listeners", Some("PLAINTEXT://:1"))),
        ("", (SET, "node.id", Some("2"))),
        ("", (SET, "num.io.threads", Some("-1"))),
        ("", (SET, "num.io.threads", Some("1000"))),
        ("1", (SET, "log.retention.ms", Some("x"))),
        ("1", (SET, "log.segment.bytes", Some("1"))),
        ("1", (SET, "min.insync.replicas", Some("2"))),
        ("", (SET, "min.insync.replicas", Some("0"))),
        ("", (DELETE, "min.insync.replicas", None)),
        ("1", (APPEND, "log.cleanup.policy", Some("none"))),
        ("1", (APPEND, "log.retention.ms", Some("1"))),
        ("1", (SET, "follower.replication.throttled.rate", Some("-1"))),
        ("", (SET, "advertised.listeners", Some("PLAINTEXT://x:1"))),
        ("1", (SET, "metric.reporters", Some("no.such.Class"))),
    ];
    for (name, change) in brokers {
        s.send(&format!("broker {name:?} {change:?}"), &request(vec![resource(4, &name.into(), &[change])]));
    }
}

/// Of loggers.
fn loggers(s: &mut Stage<'_>) {
    let loggers: [(&str, Change<'_>); 12] = [
        ("1", (SET, "no.such.Logger", Some("LOUD"))),
        ("1", (SET, "no.such.Logger", None)),
        ("1", (APPEND, "no.such.Logger", Some("INFO"))),
        ("1", (SUBTRACT, "no.such.Logger", Some("INFO"))),
        ("1", (DELETE, "no.such.Logger", None)),
        ("1", (9, "no.such.Logger", Some("INFO"))),
        ("1", (SET, "no.such.Logger", Some("DEBUG"))),
        ("1", (SET, "root", Some("LOUD"))),
        ("9", (SET, "root", Some("INFO"))),
        ("", (SET, "root", Some("INFO"))),
        ("x", (SET, "root", Some("INFO"))),
        ("1", (APPEND, "root", Some("INFO"))),
    ];
    for (name, change) in loggers {
        s.send(&format!("logger {name:?} {change:?}"), &request(vec![resource(8, &name.into(), &[change])]));
    }
}

/// Of groups.
fn groups(s: &mut Stage<'_>) {
    let groups: [(&str, Change<'_>); 9] = [
        ("", (SET, "consumer.session.timeout.ms", Some("50000"))),
        ("g", (SET, "no.such", Some("1"))),
        ("g", (SET, "consumer.session.timeout.ms", Some("x"))),
        ("g", (SET, "consumer.session.timeout.ms", Some("1"))),
        ("g", (SET, "consumer.heartbeat.interval.ms", Some("999999"))),
        ("g", (SET, "share.auto.offset.reset", Some("never"))),
        ("g", (APPEND, "consumer.session.timeout.ms", Some("1"))),
        ("g", (DELETE, "consumer.session.timeout.ms", None)),
        ("g", (SET, "share.isolation.level", Some("read_any"))),
    ];
    for (name, change) in groups {
        s.send(&format!("group {name:?} {change:?}"), &request(vec![resource(32, &name.into(), &[change])]));
    }
}

/// Of client metrics.
fn metrics(s: &mut Stage<'_>) {
    let metrics: [(&str, Change<'_>); 8] = [
        ("", (SET, "interval.ms", Some("1000"))),
        ("m", (SET, "no.such", Some("1"))),
        ("m", (SET, "interval.ms", Some("x"))),
        ("m", (SET, "interval.ms", Some("1"))),
        ("m", (SET, "match", Some("nonsense"))),
        ("m", (SET, "match", Some("no_such=x"))),
        ("m", (APPEND, "interval.ms", Some("1"))),
        ("m", (DELETE, "metrics", None)),
    ];
    for (name, change) in metrics {
        s.send(
            &format!("metrics {name:?} {change:?}"),
            &request(vec![resource(16, &name.into(), &[change])]),
        );
    }
}

/// Settings that stay, and where they then show; taken back at the end.
pub fn kept(s: &mut Stage<'_>) {
    let resources = |operation: i8| {
        vec![
            resource(4, &"1".into(), &[(operation, "log.cleaner.backoff.ms", Some("14000"))]),
            resource(4, &"".into(), &[(operation, "log.retention.ms", Some("9000000"))]),
            resource(32, &"kept".into(), &[(operation, "consumer.session.timeout.ms", Some("50000"))]),
            resource(16, &"kept".into(), &[(operation, "interval.ms", Some("1000"))]),
        ]
    };
    let keys = ["log.retention.ms", "log.cleaner.backoff.ms"];
    let seen = describe_configs::request(vec![
        describe_configs::resource(4, &"1".into(), Some(&keys)),
        describe_configs::resource(4, &"".into(), Some(&keys)),
        describe_configs::resource(32, &"kept".into(), None),
        describe_configs::resource(16, &"kept".into(), None),
    ]);
    s.send("set", &request(resources(SET)));
    s.settle(&seen, has("log.retention.ms", "9000000"));
    s.see("set: seen", &seen);
    s.see("listed", &callboard_protocol::messages::ListConfigResourcesRequest::default());
    s.create("a", 1);
    let topic = describe_configs::resource(2, &s.topic("a"), Some(&["retention.ms"]));
    s.see("a topic's default", &describe_configs::request(vec![topic]));
    s.send("taken back", &request(resources(DELETE)));
    s.settle(&seen, |answer| !has("log.retention.ms", "9000000")(answer));
    s.see("taken back: seen", &seen);
}
