//! Produce.

use bytes::Bytes;
use callboard_protocol::Uuid;
use callboard_protocol::messages::InitProducerIdRequest;
use callboard_protocol::records::{BatchBuilder, Compression, CompressionLevels, TimestampType};

use super::fetch::read_all;
use super::{UNKNOWN_ID, bad_names};
use crate::records::{
    TIME_MS, batch, fill, legacy, produce, produce_all, sequenced, topic_data, with_bytes, with_header,
};
use crate::stage::{Stage, encode};

/// Good batches with every kind of acknowledgement, and what is then in the log.
pub fn good(s: &mut Stage<'_>) {
    let id = s.create("a", 2);
    let name = s.topic("a");
    let a = (&name, id);
    s.send("one batch", &produce(s, a, 0, Some(batch(&["a", "b"]))));
    for acks in [-1, 0] {
        let data = vec![topic_data(s, a, vec![(0, Some(batch(&["c"])))])];
        let request = produce_all(acks, data);
        if acks == 0 { s.send_unanswered("acks 0", &request) } else { drop(s.send("acks all", &request)) }
    }
    let two = vec![(0, Some(batch(&["d"]))), (1, Some(batch(&["e"])))];
    s.send("two partitions", &produce_all(1, vec![topic_data(s, a, two)]));
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let builder = BatchBuilder::default().compression(codec, CompressionLevels::default());
        s.send(&format!("{codec}"), &produce(s, a, 0, Some(fill(builder, &["f", "f", "f"]))));
    }
    s.send(
        "append time claimed",
        &produce(
            s,
            a,
            0,
            Some(with_header(&batch(&["g"]), |header| {
                header.set_timestamp_type(TimestampType::LogAppendTime);
            })),
        ),
    );
    let mut builder = BatchBuilder::default();
    builder.append(-1, None, None, &[]);
    builder.append(0, Some(b""), Some(b""), &[(b"", None), (b"h", Some(b""))]);
    s.send("nulls and empties", &produce(s, a, 0, Some(builder.build().expect("a batch"))));
    s.send(
        "a leader epoch claimed",
        &produce(
            s,
            a,
            0,
            Some(with_header(&batch(&["h"]), |header| {
                header.partition_leader_epoch = 7;
            })),
        ),
    );
    for timeout_ms in [0, -1] {
        let mut request = produce(s, a, 1, Some(batch(&["i"])));
        (request.timeout_ms, request.acks) = (timeout_ms, -1);
        s.send(&format!("timeout {timeout_ms}"), &request);
    }
    read_all(s, "a", 0..2);
}

/// Topics and settings that change what is stored.
pub fn stored(s: &mut Stage<'_>) {
    let kinds: [(&str, &[(&str, &str)]); 8] = [
        ("append", &[("message.timestamp.type", "LogAppendTime")]),
        ("gzip", &[("compression.type", "gzip")]),
        ("snappy", &[("compression.type", "snappy")]),
        ("lz4", &[("compression.type", "lz4")]),
        ("zstd", &[("compression.type", "zstd")]),
        ("none", &[("compression.type", "uncompressed")]),
        ("compact", &[("cleanup.policy", "compact")]),
        ("small", &[("max.message.bytes", "200")]),
    ];
    let gzip = || BatchBuilder::default().compression(Compression::Gzip, CompressionLevels::default());
    for (name, configs) in kinds {
        let id = s.create_with(name, 1, configs);
        let topic = s.topic(name);
        let to = (&topic, id);
        s.send(&format!("{name}: plain"), &produce(s, to, 0, Some(batch(&["a", "b"]))));
        s.send(&format!("{name}: compressed"), &produce(s, to, 0, Some(fill(gzip(), &["c", "d"]))));
        let long = "x".repeat(300);
        s.send(&format!("{name}: long"), &produce(s, to, 0, Some(batch(&[&long]))));
        let mut keyless = BatchBuilder::default();
        keyless.append(TIME_MS, Some(b"k"), Some(b"v"), &[]);
        keyless.append(TIME_MS, None, Some(b"v"), &[]);
        s.send(&format!("{name}: no key"), &produce(s, to, 0, Some(keyless.build().expect("a batch"))));
        let mut keyless = BatchBuilder::default();
        (0..5).for_each(|_| keyless.append(TIME_MS, None, Some(b"v"), &[]));
        s.send(&format!("{name}: no keys"), &produce(s, to, 0, Some(keyless.build().expect("a batch"))));
        let claimed = with_header(&batch(&["e"]), |h| h.set_timestamp_type(TimestampType::LogAppendTime));
        s.send(&format!("{name}: append time claimed"), &produce(s, to, 0, Some(claimed)));
        let mut mixed = BatchBuilder::default();
        for (key, time) in [(None, TIME_MS), (Some(&b"k"[..]), i64::MAX / 2), (None, 0), (None, 1), (None, 2)]
        {
            mixed.append(time, key, Some(b"v"), &[]);
        }
        s.send(&format!("{name}: several faults"), &produce(s, to, 0, Some(mixed.build().expect("a batch"))));
        read_all(s, name, 0..1);
    }
}

/// Batches that are refused.
pub fn bad_batches(s: &mut Stage<'_>) {
    let id = s.create("a", 1);
    let name = s.topic("a");
    for (note, records) in bad() {
        s.reconnect();
        s.send(note, &produce(s, (&name, id), 0, Some(records)));
    }
    read_all(s, "a", 0..1);
    s.create("b", 1);
    let id = s.create("c", 2);
    let name = s.topic("c");
    let bad_crc = with_bytes(&batch(&["a"]), 17, &[1, 2, 3, 4]);
    let mixed = vec![(0, Some(batch(&["a"]))), (1, Some(bad_crc))];
    s.send("one of two is corrupt", &produce_all(1, vec![topic_data(s, (&name, id), mixed)]));
    let mixed =
        vec![(0, Some(batch(&["a"]))), (1, Some(with_header(&batch(&["a"]), |h| h.record_count = 2)))];
    s.send("one of two is invalid", &produce_all(1, vec![topic_data(s, (&name, id), mixed)]));
    read_all(s, "c", 0..2);
}

fn bad() -> Vec<(&'static str, Bytes)> {
    let good = batch(&["a", "b", "c"]);
    let two = [&good[..], &good[..]].concat();
    let change = |change: fn(&mut callboard_protocol::records::BatchHeader)| with_header(&good, change);
    let mut ahead = BatchBuilder::default();
    ahead.append(i64::MAX / 2, None, Some(b"v"), &[]);
    let gzip = fill(
        BatchBuilder::default().compression(Compression::Gzip, CompressionLevels::default()),
        &["a", "b"],
    );
    vec![
        ("no bytes", Bytes::new()),
        ("a few bytes", Bytes::from_static(&[0; 10])),
        ("half a header", good.slice(..40)),
        ("cut short", good.slice(..good.len() - 1)),
        ("bytes behind", [&good[..], &[1, 2, 3]].concat().into()),
        ("two batches", two.into()),
        ("a bad checksum", with_bytes(&good, 17, &[9, 9, 9, 9])),
        ("a changed record", with_bytes(&good, good.len() - 2, b"!")),
        ("a length too small", with_bytes(&good, 8, &20_i32.to_be_bytes())),
        ("a negative length", with_bytes(&good, 8, &(-1_i32).to_be_bytes())),
        ("a length too large", with_bytes(&good, 8, &10_000_i32.to_be_bytes())),
        ("magic 0", legacy(0, &["a", "b"])),
        ("magic 1", legacy(1, &["a", "b"])),
        ("magic 3", with_bytes(&good, 16, &[3])),
        ("magic -1", with_bytes(&good, 16, &[0xff])),
        ("a base offset", with_bytes(&good, 0, &5_i64.to_be_bytes())),
        ("a negative base offset", with_bytes(&good, 0, &(-1_i64).to_be_bytes())),
        ("too few counted", change(|h| h.record_count = 2)),
        ("too many counted", change(|h| h.record_count = 4)),
        ("none counted", change(|h| h.record_count = 0)),
        ("a negative count", change(|h| h.record_count = -1)),
        ("a small last offset", change(|h| h.last_offset_delta = 1)),
        ("a large last offset", change(|h| h.last_offset_delta = 9)),
        ("a negative last offset", change(|h| h.last_offset_delta = -1)),
        ("count and last offset too large", change(|h| (h.record_count, h.last_offset_delta) = (9, 8))),
        ("control", change(|h| h.set_control(true))),
        ("transactional", change(|h| h.set_transactional(true))),
        ("transactional with an id", with_header(&sequenced(5, 0, 0, &["a"]), |h| h.set_transactional(true))),
        ("a delete horizon", change(|h| h.set_delete_horizon(true))),
        ("an unknown codec", change(|h| h.attributes |= 5)),
        ("unused attributes", change(|h| h.attributes |= 0x180)),
        ("an id without a sequence", change(|h| (h.producer_id, h.producer_epoch) = (7, 0))),
        ("an id without an epoch", change(|h| (h.producer_id, h.base_sequence) = (7, 0))),
        ("an epoch without an id", change(|h| (h.producer_epoch, h.base_sequence) = (0, 0))),
        ("no records", fill(BatchBuilder::default(), &[])),
        ("a time far ahead", ahead.build().expect("a batch")),
        ("a wrong largest time", change(|h| h.max_timestamp = TIME_MS)),
        ("a largest time far ahead", change(|h| h.max_timestamp = i64::MAX)),
        ("a wrong base time", change(|h| h.base_timestamp = -1)),
        ("said to be gzip", change(|h| h.set_compression(Compression::Gzip))),
        ("said to be snappy", change(|h| h.set_compression(Compression::Snappy))),
        ("said to be lz4", change(|h| h.set_compression(Compression::Lz4))),
        ("said to be zstd", change(|h| h.set_compression(Compression::Zstd))),
        ("gzip, too few counted", with_header(&gzip, |h| (h.record_count, h.last_offset_delta) = (1, 0))),
        ("gzip, too many counted", with_header(&gzip, |h| (h.record_count, h.last_offset_delta) = (3, 2))),
        ("gzip, a control batch", with_header(&gzip, |h| h.set_control(true))),
        ("zeros", Bytes::from_static(&[0; 200])),
        (
            "a negative length behind",
            [&good[..], &with_bytes(&good, 8, &(-1_i32).to_be_bytes())[..]].concat().into(),
        ),
        ("magic 3 behind", [&good[..], &with_bytes(&good, 16, &[3])[..]].concat().into()),
        ("a cut batch behind", [&good[..], &good[..70]].concat().into()),
        ("transactional behind", [&good[..], &change(|h| h.set_transactional(true))[..]].concat().into()),
    ]
}

/// Requests that name something wrong.
pub fn bad_requests(s: &mut Stage<'_>) {
    let id = s.create("a", 1);
    let name = s.topic("a");
    let a = (&name, id);
    let records = || Some(batch(&["a"]));
    s.send("nothing", &produce_all(1, Vec::new()));
    s.send("no partition", &produce_all(1, vec![topic_data(s, a, Vec::new())]));
    for partition in [1, -1, i32::MAX] {
        s.send(&format!("partition {partition}"), &produce(s, a, partition, records()));
    }
    let missing = s.topic("missing");
    s.send("a missing topic", &produce(s, (&missing, UNKNOWN_ID), 0, records()));
    s.send(
        "a missing topic too",
        &produce_all(
            1,
            vec![
                topic_data(s, (&missing, UNKNOWN_ID), vec![(0, records())]),
                topic_data(s, a, vec![(0, records())]),
            ],
        ),
    );
    s.send("no topic", &produce(s, (&"".into(), Uuid::ZERO), 0, records()));
    for (what, name) in bad_names() {
        s.send(what, &produce(s, (&name, UNKNOWN_ID), 0, records()));
    }
    for acks in [2, -2, i16::MAX] {
        s.send(&format!("acks {acks}"), &produce_all(acks, vec![topic_data(s, a, vec![(0, records())])]));
    }
    let cases = [
        ("a missing topic", topic_data(s, (&missing, UNKNOWN_ID), vec![(0, records())])),
        ("a missing partition", topic_data(s, a, vec![(5, records())])),
        ("a corrupt batch", topic_data(s, a, vec![(0, Some(with_bytes(&batch(&["a"]), 17, &[1])))])),
        ("magic 3", topic_data(s, a, vec![(0, Some(with_bytes(&batch(&["a"]), 16, &[3])))])),
        ("no bytes", topic_data(s, a, vec![(0, Some(Bytes::new()))])),
    ];
    for (note, data) in cases {
        s.send(&format!("acks 2, {note}"), &produce_all(2, vec![data]));
    }
    s.send(
        "a partition twice",
        &produce_all(1, vec![topic_data(s, a, vec![(0, records()), (0, records())])]),
    );
    s.send(
        "a topic twice",
        &produce_all(1, vec![topic_data(s, a, vec![(0, records())]), topic_data(s, a, vec![(0, records())])]),
    );
    s.send(
        "the metadata topic",
        &produce(s, (&"__cluster_metadata".into(), Uuid::from_u128(1)), 0, records()),
    );
    let unanswered = [
        ("acks 0, a missing topic", topic_data(s, (&missing, UNKNOWN_ID), vec![(0, records())])),
        ("acks 0, a corrupt batch", topic_data(s, a, vec![(0, Some(with_bytes(&batch(&["a"]), 17, &[1])))])),
        ("acks 0, no bytes", topic_data(s, a, vec![(0, Some(Bytes::new()))])),
        ("acks 0, good", topic_data(s, a, vec![(0, records())])),
    ];
    for (note, data) in unanswered {
        s.send_unanswered(note, &produce_all(0, vec![data]));
    }
    s.send_unanswered("acks 0, nothing", &produce_all(0, Vec::new()));
    let mut named = produce(s, a, 0, records());
    named.transactional_id = Some("t".into());
    s.send("a transactional id, a plain batch", &named);
    named.transactional_id = Some("".into());
    s.send("an empty transactional id, a plain batch", &named);
    read_all(s, "a", 0..1);
    cut(s, a);
}

/// Frames that end early.
fn cut(s: &mut Stage<'_>, topic: (&callboard_protocol::ByteString, Uuid)) {
    let frame = encode(&produce(s, topic, 0, Some(batch(&["a"]))), s.version()).expect("a request");
    for kept in [30, 40, 60, frame.len() - 2] {
        s.send_last(&format!("cut to {kept} bytes"), &super::api_versions::resized(frame[..kept].to_vec()));
    }
    let longer = super::api_versions::resized([&frame[..], &[0, 1, 2]].concat());
    let version = s.version();
    s.send_frame::<callboard_protocol::messages::ProduceRequest>("bytes behind", &longer, version);
}

/// Sequences of idempotent producers.
pub fn idempotent(s: &mut Stage<'_>) {
    let id = s.create("a", 1);
    let name = s.topic("a");
    let a = (&name, id);
    let first = s.see(
        "a producer",
        &InitProducerIdRequest { producer_id: -1, producer_epoch: -1, ..Default::default() },
    );
    let pid = first.map_or(-1, |answer| answer.producer_id);
    let steps: [(&str, i16, i32, &[&str]); 18] = [
        ("first", 0, 0, &["a", "b"]),
        ("the same again", 0, 0, &["a", "b"]),
        ("next", 0, 2, &["c"]),
        ("a gap", 0, 5, &["x"]),
        ("within", 0, 1, &["x"]),
        ("next again", 0, 3, &["d"]),
        ("more", 0, 4, &["e"]),
        ("more", 0, 5, &["f"]),
        ("more", 0, 6, &["g"]),
        ("more", 0, 7, &["h"]),
        ("the fifth last", 0, 3, &["d"]),
        ("the first", 0, 0, &["a", "b"]),
        ("another size of a former one", 0, 5, &["f", "g"]),
        ("a newer epoch, not from 0", 1, 3, &["i"]),
        ("a newer epoch", 1, 0, &["i"]),
        ("the old epoch", 0, 8, &["x"]),
        ("a negative epoch", -1, 1, &["x"]),
        ("a negative sequence", 1, -1, &["x"]),
    ];
    for (note, epoch, sequence, values) in steps {
        s.send(note, &produce(s, a, 0, Some(sequenced(pid, epoch, sequence, values))));
    }
    let unknown = 1 << 40;
    s.send("an unknown producer, not from 0", &produce(s, a, 0, Some(sequenced(unknown, 0, 9, &["j"]))));
    s.send("its next", &produce(s, a, 0, Some(sequenced(unknown, 0, 10, &["k"]))));
    let wrapping = unknown + 1;
    s.send("up to the last sequence", &produce(s, a, 0, Some(sequenced(wrapping, 0, i32::MAX, &["l", "m"]))));
    s.send("after the last sequence", &produce(s, a, 0, Some(sequenced(wrapping, 0, 1, &["n"]))));
    s.send("a producer of id -2", &produce(s, a, 0, Some(sequenced(-2, 0, 0, &["o"]))));
    read_all(s, "a", 0..1);
}
