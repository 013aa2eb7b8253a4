//! AlterConfigs.

use callboard_protocol::ByteString;
use callboard_protocol::messages::AlterConfigsRequest;
use callboard_protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};

use super::bad_names;
use super::describe_configs;
use crate::stage::Stage;

/// A setting's name and value.
type Setting<'a> = (&'a str, Option<&'a str>);

fn resource(kind: i8, name: &ByteString, configs: &[Setting<'_>]) -> AlterConfigsResource {
    let configs = configs.iter().map(|(name, value)| AlterableConfig {
        name: (*name).to_owned().into(),
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

fn request(resources: Vec<AlterConfigsResource>) -> AlterConfigsRequest {
    AlterConfigsRequest { resources, ..Default::default() }
}

/// Settings of topics, and of what is not there.
pub fn topics(s: &mut Stage<'_>) {
    s.create_with("a", 1, &[("retention.ms", "60000")]);
    s.create("b", 1);
    let (a, b) = (s.topic("a"), s.topic("b"));
    s.send("none", &request(Vec::new()));
    s.send("good", &request(vec![resource(2, &a, &[("segment.ms", Some("5000"))])]));
    let keys = ["retention.ms", "segment.ms"];
    let seen = describe_configs::request(vec![describe_configs::resource(2, &a, Some(&keys))]);
    let is_set = |name: &str, value: &str| {
        let (name, value) = (name.to_owned(), value.to_owned());
        move |answer: &callboard_protocol::messages::DescribeConfigsResponse| {
            answer.results[0].configs.iter().any(|c| c.name == *name && c.value.as_deref() == Some(&value))
        }
    };
    s.settle(&seen, is_set("segment.ms", "5000"));
    s.see("the others are gone", &seen);
    let mut checked = request(vec![resource(2, &a, &[("segment.ms", Some("7000"))])]);
    checked.validate_only = true;
    s.send("only checked", &checked);
    s.send("nothing set", &request(vec![resource(2, &a, &[])]));
    s.settle(&seen, is_set("segment.ms", "604800000"));
    s.see("all are gone", &seen);
    let cases: [(&str, Option<&str>); 10] = [
        ("no.such.config", Some("1")),
        ("", Some("1")),
        ("retention.ms", None),
        ("retention.ms", Some("")),
        ("retention.ms", Some("x")),
        ("segment.bytes", Some("1")),
        ("cleanup.policy", Some("none")),
        ("min.insync.replicas", Some("0")),
        ("remote.storage.enable", Some("true")),
        ("remote.log.copy.disable", Some("true")),
    ];
    for (name, value) in cases {
        s.send(&format!("{name}={value:?}"), &request(vec![resource(2, &a, &[(name, value)])]));
    }
    let twice = [("retention.ms", Some("1")), ("retention.ms", Some("2"))];
    s.send("a setting twice", &request(vec![resource(2, &a, &twice)]));
    // A topic twice is left out: Kafka never answers that.
    let mixed = vec![resource(2, &a, &[("segment.ms", Some("x"))]), resource(2, &b, &twice[..1])];
    s.send("good and bad", &request(mixed));
    s.send("a missing topic", &request(vec![resource(2, &s.topic("missing"), &twice[..1])]));
    for (what, name) in bad_names() {
        s.send(what, &request(vec![resource(2, &name, &twice[..1])]));
    }
    for kind in [0, 1, 3, 8, 16, 32, 64, -1] {
        s.send(&format!("kind {kind}"), &request(vec![resource(kind, &a, &[("x", Some("1"))])]));
    }
    let broker: [(&str, &[Setting<'_>]); 9] = [
        ("", &[("log.cleaner.threads", Some("1"))]),
        ("", &[("min.insync.replicas", Some("0"))]),
        ("1", &[("min.insync.replicas", Some("1"))]),
        ("9", &[("log.cleaner.threads", Some("1"))]),
        ("x", &[("log.cleaner.threads", Some("1"))]),
        ("1", &[("no.such", Some("1"))]),
        ("1", &[("node.id", Some("2"))]),
        ("1", &[("log.cleaner.threads", Some("x"))]),
        ("", &[("listeners", Some("PLAINTEXT://:1"))]),
    ];
    for (name, configs) in broker {
        s.send(&format!("broker {name:?} {configs:?}"), &request(vec![resource(4, &name.into(), configs)]));
    }
}
