//! The form of requests, for each API alike: bytes too few and too many, unknown tagged fields, lengths that can't be.

use callboard_protocol::ApiKey;
use callboard_protocol::messages::Request;

use super::api_versions::resized;
use crate::stage::{Stage, encode};

/// Where a frame's body begins, or its header's tagged fields: after size, key, version, correlation id, client id.
const AFTER_CLIENT_ID: usize = 4 + 2 + 2 + 4 + 2 + "differential".len();
/// One tagged field of an unknown number: count, tag, size, value.
const UNKNOWN_FIELD: [u8; 4] = [1, 99, 1, 7];

/// Requests whose first field is a list.
pub fn list_first<R: Request>(s: &mut Stage<'_>) {
    any::<R>(s);
    let Some((frame, body)) = plain::<R>(s.version()) else { return };
    let lengths: &[&[u8]] = match R::is_flexible(s.version()) {
        true => &[&[0], &[200, 1], &[0xff, 0xff, 0xff, 0xff, 0x07], &[0xff, 0xff, 0xff, 0xff, 0x0f]],
        false => &[&[0xff; 4], &[0xff, 0xff, 0xff, 0xfe], &[0, 0, 0, 99], &[0x7f, 0xff, 0xff, 0xff]],
    };
    let old = if R::is_flexible(s.version()) { 1 } else { 4 };
    for length in lengths {
        let bad = [&frame[..body], length, &frame[body + old..]].concat();
        let version = s.version();
        s.send_frame::<R>(&format!("a first list of length {length:x?}"), &resized(bad), version);
    }
}

/// Any request.
pub fn any<R: Request>(s: &mut Stage<'_>) {
    let version = s.version();
    let Some((frame, body)) = plain::<R>(version) else { return };
    s.send_frame::<R>("plain", &frame, version);
    let longer = resized([&frame[..], &[1, 2, 3]].concat());
    s.send_frame::<R>("bytes behind", &longer, version);
    for kept in [frame.len() - 1, frame.len() - 2, body] {
        if (body..frame.len()).contains(&kept) {
            let shorter = resized(frame[..kept].to_vec());
            s.send_frame::<R>(&format!("the last {} bytes cut", frame.len() - kept), &shorter, version);
        }
    }
    if R::is_flexible(version) {
        let more = resized([&frame[..frame.len() - 1], &UNKNOWN_FIELD].concat());
        s.send_frame::<R>("an unknown tagged field", &more, version);
        let cut = resized([&frame[..frame.len() - 1], &UNKNOWN_FIELD[..3]].concat());
        s.send_frame::<R>("an unknown tagged field that is cut", &cut, version);
    }
    if R::KEY.info().request_header_version(version) >= 2 {
        let more = [&frame[..AFTER_CLIENT_ID], &UNKNOWN_FIELD, &frame[AFTER_CLIENT_ID + 1..]].concat();
        s.send_frame::<R>("an unknown tagged field of the header", &resized(more), version);
    }
    // A controller serves Fetch to other controllers.
    if R::KEY != ApiKey::Fetch {
        s.visit_controller();
        s.send_frame::<R>("on the controller", &frame, version);
        s.visit_broker();
    }
}

/// The frame of a request of defaults, and where its body begins.
fn plain<R: Request>(version: i16) -> Option<(Vec<u8>, usize)> {
    let frame = encode(&R::default(), version).ok()?;
    let tagged = usize::from(R::KEY.info().request_header_version(version) >= 2);
    Some((frame, AFTER_CLIENT_ID + tagged))
}
