//! DeleteTopics.

use callboard_protocol::messages::DeleteTopicsRequest;
use callboard_protocol::messages::delete_topics_request::DeleteTopicState;
use callboard_protocol::{ByteString, Uuid};

use super::metadata::named;
use super::{UNKNOWN_ID, bad_names};
use crate::stage::Stage;

/// A request that names topics as its version does.
fn by_name(s: &Stage<'_>, names: &[ByteString]) -> DeleteTopicsRequest {
    let mut request = DeleteTopicsRequest { timeout_ms: 10_000, ..Default::default() };
    if s.version() < 6 {
        request.topic_names = names.to_vec();
    } else {
        let state = |name: &ByteString| DeleteTopicState { name: Some(name.clone()), ..Default::default() };
        request.topics = names.iter().map(state).collect();
    }
    request
}

fn by_id(ids: &[(Uuid, Option<ByteString>)]) -> DeleteTopicsRequest {
    let topics = ids.iter().map(|(topic_id, name)| DeleteTopicState {
        topic_id: *topic_id,
        name: name.clone(),
        ..Default::default()
    });
    DeleteTopicsRequest { topics: topics.collect(), timeout_ms: 10_000, ..Default::default() }
}

/// By name and id, good and bad.
pub fn all(s: &mut Stage<'_>) {
    let id = s.create("a", 2);
    s.create("b", 1);
    s.create("c", 1);
    let d = s.create("d", 1);
    let (a, b, c) = (s.topic("a"), s.topic("b"), s.topic("c"));
    s.send("none", &by_name(s, &[]));
    s.send("one", &by_name(s, std::slice::from_ref(&a)));
    let gone = |name: &ByteString| named(std::slice::from_ref(name));
    s.settle(&gone(&a), |answer| answer.topics[0].error_code == 3);
    s.send("again", &by_name(s, std::slice::from_ref(&a)));
    s.send("twice", &by_name(s, &[b.clone(), b.clone(), c.clone()]));
    s.settle(&gone(&c), |answer| answer.topics[0].error_code == 3);
    s.see("twice in metadata", &named(&[b.clone(), c]));
    s.send("one and a missing one", &by_name(s, &[b.clone(), s.topic("missing")]));
    for (what, name) in bad_names() {
        s.send(what, &by_name(s, &[name]));
    }
    s.send("the gone id", &by_id(&[(id, None)]));
    s.send("an unknown id", &by_id(&[(UNKNOWN_ID, None)]));
    s.send("the zero id", &by_id(&[(Uuid::ZERO, None)]));
    s.send("id and name", &by_id(&[(d, Some(s.topic("d")))]));
    s.send("an id twice", &by_id(&[(d, None), (d, None)]));
    s.send("an id, and its name by itself", &by_id(&[(d, None), (Uuid::ZERO, Some(s.topic("d")))]));
    let d_named = (Uuid::ZERO, Some(s.topic("d")));
    s.send("an id twice, and its name", &by_id(&[(d, None), d_named.clone(), (d, None)]));
    s.send("a name twice, and its id", &by_id(&[d_named.clone(), d_named.clone(), (d, None)]));
    s.send("an id", &by_id(&[(d, None)]));
    for timeout_ms in [0, -1] {
        s.create(&format!("timeout{timeout_ms}"), 1);
        let request = by_name(s, &[s.topic(&format!("timeout{timeout_ms}"))]);
        s.send(&format!("timeout {timeout_ms}"), &DeleteTopicsRequest { timeout_ms, ..request });
    }
    s.send("an internal name", &by_name(s, &["__cluster_metadata".into()]));
    s.create("e", 1);
    let e = s.topic("e");
    s.visit_controller();
    s.send("on the controller", &by_name(s, &[e]));
    s.visit_broker();
}
