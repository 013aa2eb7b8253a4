//! ApiVersions, and frames that are no requests.

use callboard_protocol::ApiKey;
use callboard_protocol::messages::{ApiVersionsRequest, DescribeClusterRequest, MetadataRequest};

use crate::stage::{Stage, encode};

fn request(name: &str, version: &str) -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: name.to_owned().into(),
        client_software_version: version.to_owned().into(),
        ..Default::default()
    }
}

/// What is served, to clients of good and bad names, on both listeners.
pub fn answers(s: &mut Stage<'_>) {
    let good = request("differential", "1.0");
    s.send("a good name", &good);
    for (name, version) in [
        ("", "1.0"),
        ("differential", ""),
        ("bad name", "1.0"),
        ("differential", "1 0"),
        ("-x", "1"),
        ("x-", "1"),
        ("caf\u{e9}", "1"),
        ("a.b-c_d", "1"),
        ("ok", "1_2"),
        (&"n".repeat(300), "1"),
    ] {
        s.send(&format!("named {name:?} {version:?}"), &request(name, version));
        s.send("the connection goes on", &good);
    }
    let cluster = s.ask(&DescribeClusterRequest::default()).cluster_id;
    let clusters = [None, Some(cluster), Some("other".into()), Some("".into())];
    for (cluster, cluster_id) in ["none", "this", "another", "empty"].into_iter().zip(clusters) {
        for node_id in [-1, 1, 77, -2] {
            let request = ApiVersionsRequest { cluster_id: cluster_id.clone(), node_id, ..good.clone() };
            s.send(&format!("cluster {cluster}, node {node_id}"), &request);
        }
    }
    s.visit_controller();
    s.send("of the controller", &good);
    s.send("of the controller, a bad name", &request("", ""));
}

/// Frames that are cut, too long, or of APIs and versions that are not there.
pub fn frames(s: &mut Stage<'_>) {
    let version = s.version();
    let good = encode(&request("differential", "1.0"), version).expect("names are ignorable");
    let mut longer = good.clone();
    longer.extend([1, 2, 3]);
    let longer = resized(longer);
    s.send_frame::<ApiVersionsRequest>("bytes after the last field", &longer, version);
    s.send_last("only a part of a frame", &good[..good.len() - 1]);
    for (note, size) in
        [("a negative size", -1_i32), ("a size beyond the limit", 104_857_601), ("size zero", 0)]
    {
        let mut frame = good.clone();
        frame[..4].copy_from_slice(&size.to_be_bytes());
        s.send_last(note, &frame);
    }
    for size in [1, 2, 4, 7, 8, 9] {
        s.send_last(&format!("a header cut to {size} bytes"), &resized(good[..4 + size].to_vec()));
    }
    if version >= 3 {
        s.send_last("a body cut short", &resized(good[..good.len() - 3].to_vec()));
    }
    let mut long_id = good.clone();
    long_id[12..14].copy_from_slice(&i16::MAX.to_be_bytes());
    s.send_last("a client id longer than the frame", &long_id);
    let mut no_id = good[..12].to_vec();
    no_id.extend((-1_i16).to_be_bytes());
    no_id.extend(&good[14 + "differential".len()..]);
    s.send_frame::<ApiVersionsRequest>("no client id", &resized(no_id), version);
    for key in [-1_i16, 93, 95, 999, i16::MAX] {
        let mut frame = good.clone();
        frame[4..6].copy_from_slice(&key.to_be_bytes());
        s.send_last(&format!("API key {key}"), &frame);
    }
    for unknown in [-1_i16, 6, 7, i16::MAX] {
        let mut frame = good.clone();
        frame[6..8].copy_from_slice(&unknown.to_be_bytes());
        s.send_frame::<ApiVersionsRequest>(&format!("version {unknown}"), &frame, 0);
    }
    gates(s);
}

/// Versions and APIs that are not served on a listener.
fn gates(s: &mut Stage<'_>) {
    let metadata = encode(&MetadataRequest::default(), 1).expect("a request");
    for (note, key, version) in [
        ("Metadata below", ApiKey::Metadata, -1_i16),
        ("Metadata above", ApiKey::Metadata, 99),
        ("Produce 0", ApiKey::Produce, 0),
        ("Produce 2", ApiKey::Produce, 2),
        ("Fetch 3", ApiKey::Fetch, 3),
        ("CreateTopics 1", ApiKey::CreateTopics, 1),
        ("Vote on a broker", ApiKey::Vote, 1),
        ("BrokerHeartbeat on a broker", ApiKey::BrokerHeartbeat, 0),
        ("Envelope on a broker", ApiKey::Envelope, 0),
    ] {
        let mut frame = metadata.clone();
        frame[4..6].copy_from_slice(&key.code().to_be_bytes());
        frame[6..8].copy_from_slice(&version.to_be_bytes());
        s.send_last(note, &frame);
    }
    s.visit_controller();
    s.send_last("Metadata on a controller", &metadata);
    let mut frame = metadata.clone();
    frame[4..6].copy_from_slice(&ApiKey::ListOffsets.code().to_be_bytes());
    s.send_last("ListOffsets on a controller", &frame);
}

/// A frame whose size is that of its bytes.
pub fn resized(mut frame: Vec<u8>) -> Vec<u8> {
    let size = (frame.len() - 4) as i32;
    frame[..4].copy_from_slice(&size.to_be_bytes());
    frame
}
