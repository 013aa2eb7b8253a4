//! DeleteRecords.

use callboard_protocol::ByteString;
use callboard_protocol::messages::DeleteRecordsRequest;
use callboard_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};

use super::bad_names;
use crate::records::{batch, store};
use crate::stage::{Stage, list_offsets};

fn topic(name: &ByteString, partitions: &[(i32, i64)]) -> DeleteRecordsTopic {
    let partitions = partitions.iter().map(|(partition_index, offset)| DeleteRecordsPartition {
        partition_index: *partition_index,
        offset: *offset,
        ..Default::default()
    });
    DeleteRecordsTopic { name: name.clone(), partitions: partitions.collect(), ..Default::default() }
}

fn request(topics: Vec<DeleteRecordsTopic>) -> DeleteRecordsRequest {
    DeleteRecordsRequest { topics, timeout_ms: 10_000, ..Default::default() }
}

/// Good and bad offsets, partitions and topics.
pub fn all(s: &mut Stage<'_>) {
    let id = s.create("a", 2);
    store(s, id, 0, &[batch(&["a", "b", "c"]), batch(&["d", "e"])]);
    let a = s.topic("a");
    s.send("none", &request(Vec::new()));
    s.send("no partition", &request(vec![topic(&a, &[])]));
    for offset in [0, 2, 1, 2, 6, i64::MAX, -2, i64::MIN, 4] {
        s.send(&format!("to {offset}"), &request(vec![topic(&a, &[(0, offset)])]));
    }
    s.see("earliest", &list_offsets(&a, 0..1, -2));
    s.send("to the end", &request(vec![topic(&a, &[(0, -1)])]));
    s.send("to the end again", &request(vec![topic(&a, &[(0, -1)])]));
    s.see("earliest at the end", &list_offsets(&a, 0..1, -2));
    s.send("an empty partition", &request(vec![topic(&a, &[(1, -1)])]));
    s.send("an empty partition to 1", &request(vec![topic(&a, &[(1, 1)])]));
    s.send("two partitions", &request(vec![topic(&a, &[(1, 0), (0, 5)])]));
    s.send("a partition twice", &request(vec![topic(&a, &[(0, 1), (0, 9)])]));
    s.send("a topic twice", &request(vec![topic(&a, &[(0, 1)]), topic(&a, &[(1, 0)])]));
    for partition in [2, -1, i32::MAX] {
        s.send(&format!("partition {partition}"), &request(vec![topic(&a, &[(partition, 0)])]));
    }
    s.send("a missing topic", &request(vec![topic(&s.topic("missing"), &[(0, 0)]), topic(&a, &[(0, 0)])]));
    for (what, name) in bad_names() {
        s.send(what, &request(vec![topic(&name, &[(0, 0)])]));
    }
    s.send("the metadata topic", &request(vec![topic(&"__cluster_metadata".into(), &[(0, 0)])]));
    let id = s.create_with("compact", 1, &[("cleanup.policy", "compact")]);
    store(s, id, 0, &[batch(&["a"])]);
    let compact = s.topic("compact");
    s.send("a compacted topic", &request(vec![topic(&compact, &[(0, 1)])]));
    for timeout_ms in [0, -1] {
        let request = DeleteRecordsRequest { timeout_ms, ..request(vec![topic(&a, &[(0, 5)])]) };
        s.send(&format!("timeout {timeout_ms}"), &request);
    }
}
