//! Metadata.

use callboard_protocol::messages::MetadataRequest;
use callboard_protocol::messages::metadata_request::MetadataRequestTopic;
use callboard_protocol::{ByteString, Uuid};

use super::{UNKNOWN_ID, bad_names};
use crate::stage::Stage;

/// A request for topics by name.
pub fn named(names: &[ByteString]) -> MetadataRequest {
    let topics =
        names.iter().map(|name| MetadataRequestTopic { name: Some(name.clone()), ..Default::default() });
    MetadataRequest { topics: Some(topics.collect()), allow_auto_topic_creation: false, ..Default::default() }
}

fn by_id(topic_id: Uuid, name: Option<ByteString>) -> MetadataRequest {
    let topic = MetadataRequestTopic { topic_id, name, ..Default::default() };
    MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: false, ..Default::default() }
}

/// All topics.
pub fn all(s: &mut Stage<'_>) {
    s.send("all", &MetadataRequest { topics: None, ..Default::default() });
    s.send("none", &MetadataRequest { topics: Some(Vec::new()), ..Default::default() });
    let rights = MetadataRequest {
        topics: None,
        allow_auto_topic_creation: false,
        include_cluster_authorized_operations: true,
        include_topic_authorized_operations: true,
        ..Default::default()
    };
    s.send("all with what is allowed", &rights);
}

/// Some topics, by name and id.
pub fn topics(s: &mut Stage<'_>) {
    let id = s.create("a", 3);
    s.create("b", 1);
    let (a, b) = (s.topic("a"), s.topic("b"));
    s.send("one", &named(std::slice::from_ref(&a)));
    s.send("two", &named(&[b.clone(), a.clone()]));
    s.send("one twice", &named(&[a.clone(), a.clone()]));
    s.send("by id", &by_id(id, None));
    s.send("by id, and its name", &by_id(id, Some(a.clone())));
    s.send("by id, and another name", &by_id(id, Some(b)));
    s.send("by an unknown id", &by_id(UNKNOWN_ID, None));
    s.send("by the zero id", &by_id(Uuid::ZERO, None));
    let mut rights = named(&[a.clone(), s.topic("missing")]);
    rights.include_topic_authorized_operations = true;
    s.send("with what is allowed", &rights);
    rights.include_cluster_authorized_operations = true;
    s.send("with what is allowed on the cluster", &rights);
    if s.version() >= 4 {
        s.send("a missing one", &named(&[s.topic("missing")]));
        s.send("a missing one between", &named(&[a, s.topic("missing"), s.topic("b")]));
    }
    for (what, name) in bad_names() {
        s.send(what, &named(&[name]));
    }
    s.send("no name at all", &by_id(Uuid::ZERO, None));
}

/// Topics that the broker makes.
pub fn auto_creation(s: &mut Stage<'_>) {
    let name = s.topic("made");
    let request = MetadataRequest { allow_auto_topic_creation: true, ..named(std::slice::from_ref(&name)) };
    s.send("made", &request);
    s.settle(&named(&[name]), |answer| answer.topics.iter().all(|topic| topic.error_code == 0));
    s.await_served("made", 1);
    s.send("made already", &request);
    for (what, name) in bad_names() {
        let request = MetadataRequest { allow_auto_topic_creation: true, ..named(&[name]) };
        s.send(&format!("made, {what}"), &request);
    }
}
