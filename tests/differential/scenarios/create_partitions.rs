//! CreatePartitions.

use callboard_protocol::ByteString;
use callboard_protocol::messages::CreatePartitionsRequest;
use callboard_protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};

use super::bad_names;
use super::metadata::named;
use crate::stage::Stage;

fn topic(name: ByteString, count: i32, assignments: Option<&[&[i32]]>) -> CreatePartitionsTopic {
    let assignments = assignments.map(|all| {
        let all = all
            .iter()
            .map(|brokers| CreatePartitionsAssignment { broker_ids: brokers.to_vec(), ..Default::default() });
        all.collect()
    });
    CreatePartitionsTopic { name, count, assignments, ..Default::default() }
}

fn request(topics: Vec<CreatePartitionsTopic>) -> CreatePartitionsRequest {
    CreatePartitionsRequest { topics, timeout_ms: 10_000, ..Default::default() }
}

/// Good and bad counts and assignments.
pub fn all(s: &mut Stage<'_>) {
    s.create("a", 2);
    s.create("b", 1);
    let (a, b) = (s.topic("a"), s.topic("b"));
    s.send("none", &request(Vec::new()));
    for count in [2, 1, 0, -1, i32::MIN, 10_003] {
        s.send(&format!("to {count}"), &request(vec![topic(a.clone(), count, None)]));
    }
    let mut checked = request(vec![topic(a.clone(), 4, None), topic(b.clone(), 0, None)]);
    checked.validate_only = true;
    s.send("only checked", &checked);
    s.see("only checked in metadata", &named(std::slice::from_ref(&a)));
    let cases: [(&str, &[&[i32]]); 8] = [
        ("none assigned", &[]),
        ("too few assigned", &[&[1]]),
        ("too many assigned", &[&[1], &[1], &[1]]),
        ("assigned to an unknown broker", &[&[1], &[9]]),
        ("assigned to nobody", &[&[1], &[]]),
        ("assigned twice to a broker", &[&[1], &[1, 1]]),
        ("assigned to a negative broker", &[&[1], &[-1]]),
        ("more replicas assigned", &[&[1, 2], &[1, 2]]),
    ];
    for (note, assignments) in cases {
        s.send(note, &request(vec![topic(a.clone(), 4, Some(assignments))]));
    }
    s.send("assigned", &request(vec![topic(a.clone(), 4, Some(&[&[1], &[1]]))]));
    s.await_served("a", 4);
    s.see("assigned in metadata", &named(std::slice::from_ref(&a)));
    let twice = vec![topic(a.clone(), 5, None), topic(a.clone(), 6, None), topic(b.clone(), 2, None)];
    s.send("twice", &request(twice));
    s.send("one and a missing one", &request(vec![topic(s.topic("missing"), 6, None), topic(b, 3, None)]));
    for (what, name) in bad_names() {
        s.send(what, &request(vec![topic(name, 2, None)]));
    }
    for timeout_ms in [0, -1] {
        s.create(&format!("timeout{timeout_ms}"), 1);
        let topics = vec![topic(s.topic(&format!("timeout{timeout_ms}")), 2, None)];
        s.send(&format!("timeout {timeout_ms}"), &CreatePartitionsRequest { timeout_ms, ..request(topics) });
    }
    s.visit_controller();
    s.send("on the controller", &request(vec![topic(a, 5, None)]));
    s.visit_broker();
}
