//! ListOffsets and OffsetForLeaderEpoch.

use callboard_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use callboard_protocol::messages::{DeleteRecordsRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest};

use super::bad_names;
use crate::records::{TIME_MS, batch, store};
use crate::stage::{Stage, list_offsets};

/// Special and other timestamps, on empty and filled partitions.
pub fn timestamps(s: &mut Stage<'_>) {
    let id = s.create("a", 3);
    let a = s.topic("a");
    store(s, id, 0, &[batch(&["a", "b", "c"]), batch(&["d", "e"])]);
    store(s, id, 2, &[batch(&["a", "b", "c"]), batch(&["d", "e"])]);
    delete_records(s, 2, 2);
    let times = [0, 1000, 1500, 2000, 2001].map(|after| TIME_MS + after);
    let special = [-1, -2, -3, -4, -5, -6, -7, i64::MIN, i64::MAX, 0, 1];
    for timestamp in special.into_iter().chain(times) {
        s.send(&format!("at {timestamp}"), &list_offsets(&a, 0..3, timestamp));
    }
    s.send("none", &ListOffsetsRequest { replica_id: -1, ..Default::default() });
    s.send("no partition", &list_offsets(&a, [], -1));
    s.send("partitions that are not there", &list_offsets(&a, [3, -1, i32::MAX, 0], -1));
    s.send("a partition twice", &list_offsets(&a, [0, 0], -2));
    s.send("a missing topic", &list_offsets(&s.topic("missing"), 0..1, -1));
    for (what, name) in bad_names() {
        s.send(what, &list_offsets(&name, 0..1, -1));
    }
    let mut twice = list_offsets(&a, 0..1, -1);
    twice.topics.extend(list_offsets(&a, 1..2, -1).topics);
    s.send("a topic twice", &twice);
    for epoch in [0, 1, -2] {
        let mut request = list_offsets(&a, 0..1, -1);
        request.topics[0].partitions[0].current_leader_epoch = epoch;
        s.send(&format!("leader epoch {epoch}"), &request);
    }
    for isolation_level in [1, 2, -1] {
        let request = ListOffsetsRequest { isolation_level, ..list_offsets(&a, 0..1, -1) };
        s.reconnect();
        s.send(&format!("isolation {isolation_level}"), &request);
    }
    for replica_id in [-2, 1, 5] {
        let request = ListOffsetsRequest { replica_id, ..list_offsets(&a, 0..1, -1) };
        s.reconnect();
        s.send(&format!("replica {replica_id}"), &request);
    }
    for timeout_ms in [-1, 1] {
        s.send(
            &format!("timeout {timeout_ms}"),
            &ListOffsetsRequest { timeout_ms, ..list_offsets(&a, 0..1, -1) },
        );
    }
    s.send("the metadata topic", &list_offsets(&"__cluster_metadata".into(), 0..1, -1));
}

fn delete_records(s: &mut Stage<'_>, partition_index: i32, offset: i64) {
    use callboard_protocol::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
    let partition = DeleteRecordsPartition { partition_index, offset, ..Default::default() };
    let topic = DeleteRecordsTopic { name: s.topic("a"), partitions: vec![partition], ..Default::default() };
    s.ask(&DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() });
}

/// Where epochs end.
pub fn epochs(s: &mut Stage<'_>) {
    let id = s.create("a", 2);
    let a = s.topic("a");
    store(s, id, 0, &[batch(&["a", "b", "c"])]);
    let of = |topic: &callboard_protocol::ByteString, partitions: &[(i32, i32, i32)]| {
        let partitions = partitions.iter().map(|(partition, current_leader_epoch, leader_epoch)| {
            OffsetForLeaderPartition {
                partition: *partition,
                current_leader_epoch: *current_leader_epoch,
                leader_epoch: *leader_epoch,
                ..Default::default()
            }
        });
        let topic = OffsetForLeaderTopic {
            topic: topic.clone(),
            partitions: partitions.collect(),
            ..Default::default()
        };
        OffsetForLeaderEpochRequest { replica_id: -2, topics: vec![topic], ..Default::default() }
    };
    s.send("none", &OffsetForLeaderEpochRequest { replica_id: -2, ..Default::default() });
    s.send("no partition", &of(&a, &[]));
    for partition in [0, 1] {
        for epoch in [0, 1, 5, -1, -2] {
            s.send(&format!("epoch {epoch} of partition {partition}"), &of(&a, &[(partition, -1, epoch)]));
        }
        for current in [0, 1, -2] {
            s.send(
                &format!("in epoch {current} of partition {partition}"),
                &of(&a, &[(partition, current, 0)]),
            );
        }
    }
    s.send("two", &of(&a, &[(1, -1, 0), (0, -1, 0)]));
    s.send("twice", &of(&a, &[(0, -1, 0), (0, -1, 1)]));
    s.send("partitions that are not there", &of(&a, &[(2, -1, 0), (-1, -1, 0)]));
    s.send("a missing topic", &of(&s.topic("missing"), &[(0, -1, 0)]));
    for (what, name) in bad_names() {
        s.send(what, &of(&name, &[(0, -1, 0)]));
    }
    for replica_id in [-1, 1, 5] {
        let request = OffsetForLeaderEpochRequest { replica_id, ..of(&a, &[(0, -1, 0)]) };
        s.send(&format!("replica {replica_id}"), &request);
    }
}
