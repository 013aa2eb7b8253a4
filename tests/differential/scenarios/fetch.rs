//! Fetch.

use std::ops::Range;
use std::time::Instant;

use callboard_protocol::messages::FetchRequest;
use callboard_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use callboard_protocol::{ByteString, Uuid};
use serde_json::json;

use super::{UNKNOWN_ID, bad_names};
use crate::records::{batch, store};
use crate::stage::Stage;

/// How long a fetch waits that finds nothing, in milliseconds: so long that one that does not wait is told apart.
const WAIT_MS: i32 = 600;

/// A partition at an offset.
fn at(partition: i32, fetch_offset: i64) -> FetchPartition {
    FetchPartition {
        partition,
        current_leader_epoch: -1,
        fetch_offset,
        last_fetched_epoch: -1,
        log_start_offset: -1,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    }
}

fn topic(by_id: bool, (name, id): (&ByteString, Uuid), partitions: Vec<FetchPartition>) -> FetchTopic {
    FetchTopic {
        topic: if by_id { ByteString::new() } else { name.clone() },
        topic_id: if by_id { id } else { Uuid::ZERO },
        partitions,
        ..Default::default()
    }
}

/// A request that waits for nothing and opens no session.
fn request(topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest {
        replica_id: -1,
        max_wait_ms: 0,
        min_bytes: 0,
        max_bytes: 1 << 22,
        session_epoch: -1,
        topics,
        ..Default::default()
    }
}

/// Reads partitions from their start at the newest version: what a log holds.
pub fn read_all(s: &mut Stage<'_>, name: &str, partitions: Range<i32>) {
    let full = s.topic(name);
    let id = s.id(name);
    for partition in partitions {
        let from_start = request(vec![topic(true, (&full, id), vec![at(partition, 0)])]);
        s.see(&format!("{name}-{partition} read"), &from_start);
    }
}

/// Offsets, limits and epochs, without a session.
pub fn reads(s: &mut Stage<'_>) {
    let by_id = s.version() >= 13;
    let id = s.create("a", 2);
    let name = s.topic("a");
    let a = (&name, id);
    store(s, id, 0, &[batch(&["a", "b"]), batch(&["c"]), batch(&["d", "e", "f"])]);
    store(s, id, 1, &[batch(&["g"])]);
    s.send("nothing", &request(Vec::new()));
    for offset in [0, 1, 2, 4, 6, 7, i64::MAX, -1, i64::MIN] {
        s.send(&format!("from {offset}"), &request(vec![topic(by_id, a, vec![at(0, offset)])]));
    }
    s.send("two partitions", &request(vec![topic(by_id, a, vec![at(1, 0), at(0, 2)])]));
    for limit in [1, 0, -1, 80, 160, 200] {
        let limited = FetchPartition { partition_max_bytes: limit, ..at(0, 0) };
        s.send(
            &format!("{limit} bytes of a partition"),
            &request(vec![topic(by_id, a, vec![limited, at(1, 0)])]),
        );
        let mut limited = request(vec![topic(by_id, a, vec![at(0, 0), at(1, 0)])]);
        limited.max_bytes = limit;
        s.send(&format!("{limit} bytes in all"), &limited);
    }
    for epoch in [0, 1, -2, 5] {
        let partition = FetchPartition { current_leader_epoch: epoch, ..at(0, 0) };
        s.send(&format!("leader epoch {epoch}"), &request(vec![topic(by_id, a, vec![partition])]));
        let partition = FetchPartition { last_fetched_epoch: epoch, ..at(0, 2) };
        s.send(&format!("last epoch {epoch}"), &request(vec![topic(by_id, a, vec![partition])]));
    }
    for isolation_level in [0, 1, 2, -1] {
        let request = FetchRequest { isolation_level, ..request(vec![topic(by_id, a, vec![at(0, 0)])]) };
        s.reconnect();
        s.send(&format!("isolation {isolation_level}"), &request);
    }
    for partition in [2, -1, i32::MAX] {
        s.send(&format!("partition {partition}"), &request(vec![topic(by_id, a, vec![at(partition, 0)])]));
    }
    s.send("no partition", &request(vec![topic(by_id, a, Vec::new())]));
    s.send("a partition twice", &request(vec![topic(by_id, a, vec![at(0, 0), at(0, 2)])]));
    s.send("a topic twice", &request(vec![topic(by_id, a, vec![at(0, 3)]), topic(by_id, a, vec![at(1, 0)])]));
    let missing = s.topic("missing");
    s.send(
        "a missing topic",
        &request(vec![topic(by_id, (&missing, UNKNOWN_ID), vec![at(0, 0)]), topic(by_id, a, vec![at(0, 3)])]),
    );
    s.send("no topic", &request(vec![topic(by_id, (&"".into(), Uuid::ZERO), vec![at(0, 0)])]));
    for (what, name) in bad_names() {
        s.send(what, &request(vec![topic(by_id, (&name, UNKNOWN_ID), vec![at(0, 0)])]));
    }
    let metadata = (&"__cluster_metadata".into(), Uuid::from_u128(1));
    s.send("the metadata topic", &request(vec![topic(by_id, metadata, vec![at(0, 0)])]));
    let rack = FetchRequest { rack_id: "r".into(), ..request(vec![topic(by_id, a, vec![at(0, 3)])]) };
    s.send("a rack", &rack);
    let other = FetchRequest { cluster_id: Some("other".into()), ..rack };
    s.send("another cluster", &other);
}

/// Requests that wait.
pub fn waits(s: &mut Stage<'_>) {
    let by_id = s.version() >= 13;
    let id = s.create("a", 1);
    let name = s.topic("a");
    let waiting = |offset, max_wait_ms, min_bytes| FetchRequest {
        max_wait_ms,
        min_bytes,
        ..request(vec![topic(by_id, (&name, id), vec![at(0, offset)])])
    };
    let timed = |s: &mut Stage<'_>, note: &str, request: &FetchRequest| {
        let start = Instant::now();
        s.send(note, request);
        let waited = start.elapsed().as_millis() as i64 >= i64::from(request.max_wait_ms.max(WAIT_MS)) - 50;
        s.note(&format!("{note}: waited"), json!(waited));
    };
    timed(s, "empty", &waiting(0, WAIT_MS, 1));
    timed(s, "empty, no bytes wanted", &waiting(0, WAIT_MS, 0));
    timed(s, "empty, negative bytes wanted", &waiting(0, WAIT_MS, -1));
    timed(s, "empty, a negative time", &waiting(0, -5, 1));
    timed(s, "an offset outside", &waiting(9, WAIT_MS, 1));
    store(s, id, 0, &[batch(&["a"])]);
    timed(s, "a record", &waiting(0, 5000, 1));
    timed(s, "more wanted than is there", &waiting(0, WAIT_MS, 100_000));
    timed(s, "at the end", &waiting(1, WAIT_MS, 1));
}

/// Sessions: full, incremental, forgotten, ended, unknown.
pub fn sessions(s: &mut Stage<'_>) {
    let by_id = s.version() >= 13;
    let id = s.create("a", 3);
    let name = s.topic("a");
    let a = (&name, id);
    store(s, id, 0, &[batch(&["a"])]);
    let of = |session_id, session_epoch, partitions: Vec<FetchPartition>| FetchRequest {
        session_id,
        session_epoch,
        ..request(if partitions.is_empty() { Vec::new() } else { vec![topic(by_id, a, partitions)] })
    };
    let forget = |request: FetchRequest, partitions: &[i32]| FetchRequest {
        forgotten_topics_data: vec![ForgottenTopic {
            topic: if by_id { ByteString::new() } else { a.0.clone() },
            topic_id: if by_id { a.1 } else { Uuid::ZERO },
            partitions: partitions.to_vec(),
            ..Default::default()
        }],
        ..request
    };
    let opened = s.send("opened", &of(0, 0, vec![at(0, 0), at(1, 0)]));
    let session = opened.map_or(0, |answer| answer.session_id);
    s.send("nothing new", &of(session, 1, Vec::new()));
    s.send("moved on", &of(session, 2, vec![at(0, 1)]));
    store(s, id, 1, &[batch(&["b"])]);
    s.send("a new record", &of(session, 3, Vec::new()));
    s.send("the same again", &of(session, 4, Vec::new()));
    s.send("a partition more", &of(session, 5, vec![at(2, 0)]));
    s.send("one forgotten", &forget(of(session, 6, Vec::new()), &[1]));
    s.send("added and forgotten", &forget(of(session, 7, vec![at(1, 0)]), &[1]));
    s.send("an unknown one forgotten", &forget(of(session, 8, Vec::new()), &[9]));
    s.send("an epoch again", &of(session, 8, Vec::new()));
    s.send("an epoch ahead", &of(session, 99, Vec::new()));
    s.send("goes on", &of(session, 9, vec![at(0, 0)]));
    s.send("a bad offset", &of(session, 10, vec![at(0, 50)]));
    s.send("the bad offset again", &of(session, 11, Vec::new()));
    s.send("a missing partition", &of(session, 12, vec![at(7, 0)]));
    s.send("the missing one again", &of(session, 13, Vec::new()));
    s.send("an unknown session", &of(session.wrapping_add(1), 1, Vec::new()));
    s.send("a negative session", &of(-5, 1, Vec::new()));
    s.send("session 0 in epoch 1", &of(0, 1, vec![at(0, 0)]));
    s.send("a negative epoch", &of(session, -2, Vec::new()));
    s.send("ended", &of(session, -1, vec![at(0, 0)]));
    s.send("gone", &of(session, 14, Vec::new()));
    s.send("opened without partitions", &of(0, 0, Vec::new()));
    let again = s.send("opened again", &of(0, 0, vec![at(0, 0)]));
    let session = again.map_or(0, |answer| answer.session_id);
    s.send("replaced", &of(session, 0, vec![at(0, 0), at(1, 0)]));
    s.send("the replaced one", &of(session, 1, Vec::new()));
    let missing = s.topic("missing");
    let opened = FetchRequest {
        session_epoch: 0,
        ..request(vec![topic(by_id, (&missing, UNKNOWN_ID), vec![at(0, 0)]), topic(by_id, a, vec![at(0, 0)])])
    };
    let opened = s.send("opened with a missing topic", &opened);
    let session = opened.map_or(0, |answer| answer.session_id);
    s.send("the missing topic again", &of(session, 1, Vec::new()));
}
