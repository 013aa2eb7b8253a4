//! DescribeConfigs.

use callboard_protocol::ByteString;
use callboard_protocol::messages::DescribeConfigsRequest;
use callboard_protocol::messages::describe_configs_request::DescribeConfigsResource;

use super::bad_names;
use crate::stage::Stage;

/// One resource, with all of its settings or some.
pub fn resource(kind: i8, name: &ByteString, keys: Option<&[&str]>) -> DescribeConfigsResource {
    DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.clone(),
        configuration_keys: keys.map(|keys| keys.iter().map(|key| (*key).to_owned().into()).collect()),
        ..Default::default()
    }
}

/// A request with synonyms.
pub fn request(resources: Vec<DescribeConfigsResource>) -> DescribeConfigsRequest {
    DescribeConfigsRequest { resources, include_synonyms: true, ..Default::default() }
}

/// Topics, and kinds of resources that are not there.
pub fn topics(s: &mut Stage<'_>) {
    s.create_with("a", 1, &[("retention.ms", "60000"), ("cleanup.policy", "compact")]);
    s.create("b", 1);
    let (a, b) = (s.topic("a"), s.topic("b"));
    s.send("none", &request(Vec::new()));
    s.send("all of a topic", &request(vec![resource(2, &a, None)]));
    let bare = DescribeConfigsRequest { include_synonyms: false, ..request(vec![resource(2, &a, None)]) };
    s.send("without synonyms", &bare);
    s.send("with texts", &DescribeConfigsRequest { include_documentation: true, ..bare });
    s.send("no key", &request(vec![resource(2, &a, Some(&[]))]));
    let keys = ["retention.ms", "no.such.key", "segment.bytes", "retention.ms"];
    s.send("some keys", &request(vec![resource(2, &a, Some(&keys))]));
    s.send("two topics", &request(vec![resource(2, &b, Some(&keys)), resource(2, &a, Some(&keys))]));
    s.send(
        "a topic twice",
        &request(vec![resource(2, &a, Some(&keys[..1])), resource(2, &a, Some(&keys[2..3]))]),
    );
    s.send("a missing topic", &request(vec![resource(2, &s.topic("missing"), None)]));
    for (what, name) in bad_names() {
        s.send(what, &request(vec![resource(2, &name, None)]));
    }
    for kind in [0, 1, 3, 5, 64, 127, -1] {
        s.send(&format!("kind {kind}"), &request(vec![resource(kind, &a, None)]));
    }
    for kind in [16, 32] {
        for name in ["", "absent"] {
            s.send(&format!("kind {kind} {name:?}"), &request(vec![resource(kind, &name.into(), None)]));
        }
    }
    for name in ["", "9", "x", "-1", "1x", " 1"] {
        let keys = ["log.retention.hours", "num.partitions"];
        s.send(&format!("broker {name:?}"), &request(vec![resource(4, &name.into(), Some(&keys))]));
        s.send(&format!("broker logger {name:?}"), &request(vec![resource(8, &name.into(), Some(&["a"]))]));
    }
}

/// Everything of a broker.
pub fn brokers(s: &mut Stage<'_>) {
    s.send("all of the broker", &request(vec![resource(4, &"1".into(), None)]));
    s.send("all of the default", &request(vec![resource(4, &"".into(), None)]));
    let keys =
        ["node.id", "log.dirs", "log.retention.ms", "min.insync.replicas", "sasl.jaas.config", "no.such"];
    s.send("some of the broker", &request(vec![resource(4, &"1".into(), Some(&keys))]));
    s.visit_controller();
    s.send("of the controller", &request(vec![resource(4, &"1".into(), Some(&keys))]));
    s.send("a topic of the controller", &request(vec![resource(2, &"t".into(), Some(&keys))]));
}
