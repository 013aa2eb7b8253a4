use callboard_metadata::image::ConfigResource;
use callboard_protocol::messages::DeleteTopicsRequest;
use callboard_protocol::messages::delete_topics_request::DeleteTopicState;
use callboard_protocol::{ByteString, Uuid};

use crate::fixture::{Cluster, topic, with_configs};

type Told = (Option<String>, Uuid, i16, Option<String>);

fn delete(cluster: &mut Cluster, version: i16, topics: &[(Option<&str>, Uuid)]) -> Vec<Told> {
    let mut request = DeleteTopicsRequest::default();
    for (name, topic_id) in topics {
        let name = name.map(ByteString::from);
        match version {
            6 => request.topics.push(DeleteTopicState { name, topic_id: *topic_id, ..Default::default() }),
            _ => request.topic_names.extend(name),
        }
    }
    let reply = cluster.run(|controller, _| controller.delete_topics(&request, version));
    let text = |s: ByteString| s.to_string();
    reply
        .responses
        .into_iter()
        .map(|r| (r.name.map(text), r.topic_id, r.error_code, r.error_message.map(text)))
        .collect()
}

fn told(name: Option<&str>, id: Uuid, code: i16, message: Option<&str>) -> Told {
    (name.map(str::to_string), id, code, message.map(str::to_string))
}

const UNKNOWN: Option<&str> = Some("This server does not host this topic-partition.");

#[test]
fn by_name_and_by_id() {
    let mut cluster = Cluster::one();
    cluster.create(vec![with_configs(topic("a", 1, 1), &[("retention.ms", Some("5"))])]);
    let a = cluster.image().topics.id("a").unwrap();
    let b = cluster.topic("b", 1, 1);
    let unknown = Uuid::from_u128(9);
    let answers = delete(
        &mut cluster,
        6,
        &[(Some("a"), Uuid::ZERO), (None, b), (Some("c"), Uuid::ZERO), (None, unknown)],
    );
    assert_eq!(
        answers,
        [
            told(Some("a"), a, 0, None),
            told(Some("b"), b, 0, None),
            told(Some("c"), Uuid::ZERO, 3, UNKNOWN),
            told(None, unknown, 100, Some("This server does not host this topic ID.")),
        ]
    );
    assert!(cluster.image().topics.is_empty());
    assert!(cluster.image().configs.of(&ConfigResource::topic("a")).is_empty(), "its configs go with it");
    assert_eq!(delete(&mut cluster, 6, &[]), []);
}

#[test]
fn names_before_version_6() {
    let mut cluster = Cluster::one();
    cluster.topic("d", 1, 1);
    for version in 1..6 {
        let names = [(Some("unknown"), Uuid::ZERO), (Some("d"), Uuid::ZERO), (Some("d"), Uuid::ZERO)];
        let answers = delete(&mut cluster, version, &names);
        assert_eq!(
            answers,
            [
                told(Some("unknown"), Uuid::ZERO, 3, UNKNOWN),
                told(Some("d"), Uuid::ZERO, 42, Some("Duplicate topic name.")),
            ]
        );
    }
    assert_eq!(cluster.image().topics.len(), 1);
}

#[test]
fn odd_requests() {
    let mut cluster = Cluster::one();
    let e = cluster.topic("e", 1, 1);
    let answers = delete(&mut cluster, 6, &[(Some("e"), e), (None, Uuid::ZERO)]);
    assert_eq!(
        answers,
        [
            told(Some("e"), e, 42, Some("You may not specify both topic name and topic id.")),
            told(None, Uuid::ZERO, 42, Some("Neither topic name nor id were specified.")),
        ]
    );
    let answers = delete(&mut cluster, 6, &[(None, e), (Some("e"), Uuid::ZERO), (None, e)]);
    assert_eq!(
        answers,
        [
            told(None, e, 42, Some("Duplicate topic id.")),
            told(Some("e"), e, 42, Some("The provided topic name maps to an ID that was already supplied.")),
        ]
    );
    let answers = delete(&mut cluster, 6, &[(None, e), (Some("e"), Uuid::ZERO)]);
    let message = "The provided topic name maps to an ID that was already supplied.";
    assert_eq!(answers, [told(Some("e"), e, 42, Some(message))]);
    assert_eq!(cluster.image().topics.len(), 1);
}

#[test]
fn deletion_may_be_disabled() {
    let mut cluster = Cluster::new(&[("delete.topic.enable", "false")]);
    cluster.start_broker(1, None);
    cluster.topic("t", 1, 1);
    for (version, code) in [(1, 42), (2, 42), (3, 73), (6, 73)] {
        let answers = delete(&mut cluster, version, &[(Some("t"), Uuid::ZERO)]);
        assert_eq!(answers, [told(Some("t"), Uuid::ZERO, code, Some("Topic deletion is disabled."))]);
    }
}

#[test]
fn a_topic_made_again_is_another() {
    let mut cluster = Cluster::one();
    let first = cluster.topic("t", 3, 1);
    delete(&mut cluster, 6, &[(Some("t"), Uuid::ZERO)]);
    let second = cluster.topic("t", 1, 1);
    assert_ne!(first, second);
    let topics = &cluster.image().topics;
    assert!(topics.by_id(first).is_none());
    assert_eq!(topics.by_name("t").unwrap().partitions.len(), 1);
}
