//! Fetch: file regions of the partitions a client reads, at once or when there is enough.

mod cache;
mod read;
mod session;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callboard_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use callboard_protocol::messages::{FetchRequest, FetchResponse};
use callboard_protocol::wire::Records;
use callboard_protocol::{ByteString, ErrorCode, Uuid};

pub use cache::{FetchSessions, Session, SharedSession};

use self::cache::{Begun, lock};
use self::read::{Bounds, Reading};
use self::session::{Partitions, TopicKey, Wanted};
use super::{Answer, RequestContext};
use crate::net::FileRegion;
use crate::replicas::{Isolation, Kind, Wait};

/// From this version on topics go by id.
const FIRST_WITH_TOPIC_IDS: i16 = 13;
/// From this version on the answer may name the present leader.
const FIRST_WITH_LEADER: i16 = 16;

/// Reads what the client wants; waits for it up to `max.wait.ms` if there is less than `min.bytes`.
pub async fn handle(cx: &RequestContext, request: FetchRequest, version: i16) -> Answer<FetchResponse> {
    let by_id = version >= FIRST_WITH_TOPIC_IDS;
    let now_ms = cx.services.clock.now_ms();
    let sessions = &cx.services.fetch_sessions;
    let begun = sessions.begin(request.session_id, request.session_epoch, by_id, now_ms);
    let (session, keep) = match begun {
        Begun::Refused(error) => {
            return Answer::from(FetchResponse { error_code: error as i16, ..Default::default() });
        }
        Begun::Full { keep } => {
            let partitions = Partitions::default();
            let session = Session { id: 0, epoch: 0, uses_topic_ids: by_id, partitions };
            (Arc::new(Mutex::new(session)), keep)
        }
        Begun::Incremental(session) => (session, false),
    };
    let incremental = lock(&session).id != 0;
    change(&mut lock(&session), &request, by_id);
    if incremental && lock(&session).partitions.is_empty() {
        // A session without partitions has no use.
        sessions.remove(request.session_id);
        return Answer::from(FetchResponse::default());
    }
    let Some(isolation) = isolation(&request) else { return refuse_isolation(&lock(&session)) };
    let bounds = Bounds::of(cx, &request, isolation);
    let reading = read_or_wait(cx, &session, &request, bounds).await;
    let follower = isolation == Isolation::LogEnd;
    let session_id = if keep { sessions.keep(&session, follower, now_ms) } else { lock(&session).id };
    let (mut response, regions) = respond(cx, &mut lock(&session), reading, version, incremental);
    response.session_id = session_id;
    Answer::Response(response, regions)
}

/// Which end of the log the client sees; none for an isolation level that does not exist.
fn isolation(request: &FetchRequest) -> Option<Isolation> {
    if request.replica_id >= 0 || request.replica_state.replica_id >= 0 {
        return Some(Isolation::LogEnd);
    }
    match request.isolation_level {
        0 => Some(Isolation::HighWatermark),
        1 => Some(Isolation::LastStable),
        _ => None,
    }
}

/// Brings a session up to the request: partitions added, changed and forgotten.
fn change(session: &mut Session, request: &FetchRequest, by_id: bool) {
    // Names are copied, so that a session does not hold on to the request's bytes.
    let key = |name: &ByteString, id: Uuid| {
        if by_id { TopicKey::Id(id) } else { TopicKey::Name(ByteString::from(&**name)) }
    };
    for topic in &request.topics {
        let topic_key = key(&topic.topic, topic.topic_id);
        for partition in &topic.partitions {
            session.partitions.put(Wanted {
                topic: topic_key.clone(),
                partition: partition.partition,
                fetch_offset: partition.fetch_offset,
                max_bytes: partition.partition_max_bytes,
                // Any negative epoch stands for none here, as in Kafka.
                current_leader_epoch: partition.current_leader_epoch.max(-1),
                last_fetched_epoch: partition.last_fetched_epoch,
                log_start_offset: partition.log_start_offset,
                answered_high_watermark: -1,
                answered_log_start: -1,
            });
        }
    }
    for topic in &request.forgotten_topics_data {
        let topic_key = key(&topic.topic, topic.topic_id);
        for partition in &topic.partitions {
            session.partitions.forget(&topic_key, *partition);
        }
    }
}

/// Reads; if that is too little, waits for the partitions once and reads again.
async fn read_or_wait(
    cx: &RequestContext,
    session: &SharedSession,
    request: &FetchRequest,
    bounds: Bounds,
) -> Reading {
    let reading = read::read(cx, &lock(session).partitions, bounds);
    if request.max_wait_ms <= 0 || reading.is_final || reading.size_bytes >= bounds.min_bytes {
        return reading;
    }
    let goals = read::goals(cx, &lock(session).partitions, bounds);
    if goals.is_empty() {
        return reading;
    }
    drop(reading);
    cx.leave_queue();
    let timeout = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let wait = Wait { goals, min_bytes: bounds.min_bytes, timeout };
    if let Some(ask) = cx.services.replicas.purgatories.wait(Kind::Fetch, wait) {
        // However the wait ended, what can be read now is the answer.
        let _ = ask.await;
    }
    read::read(cx, &lock(session).partitions, bounds)
}

fn respond(
    cx: &RequestContext,
    session: &mut Session,
    reading: Reading,
    version: i16,
    incremental: bool,
) -> (FetchResponse, Vec<FileRegion>) {
    let mut leaders = super::leaders::Leaders::new(cx);
    let mut responses: Vec<FetchableTopicResponse> = Vec::new();
    let mut regions = Vec::new();
    for part in reading.parts {
        let news = session.partitions.answered(part.place, part.outcome());
        if incremental && !news {
            continue;
        }
        let (topic, topic_id) = match &part.topic {
            TopicKey::Id(id) => (ByteString::new(), *id),
            TopicKey::Name(name) => (name.clone(), Uuid::ZERO),
        };
        let mut data = part.data;
        if let Some(region) = part.region {
            // There are far fewer partitions than tokens.
            data.records =
                Some(Records::External { token: regions.len() as u32, size_bytes: region.size_bytes });
            regions.push(region);
        }
        let stale = [ErrorCode::NotLeaderOrFollower as i16, ErrorCode::FencedLeaderEpoch as i16];
        if version >= FIRST_WITH_LEADER
            && stale.contains(&data.error_code)
            && let Some((leader_id, leader_epoch)) = leaders.find(&topic, topic_id, data.partition_index)
        {
            data.current_leader.leader_id = leader_id;
            data.current_leader.leader_epoch = leader_epoch;
        }
        match responses.last_mut() {
            Some(last) if last.topic == topic && last.topic_id == topic_id => last.partitions.push(data),
            _ => responses.push(FetchableTopicResponse {
                topic,
                topic_id,
                partitions: vec![data],
                ..Default::default()
            }),
        }
    }
    let node_endpoints = leaders.fetch_endpoints();
    (FetchResponse { responses, node_endpoints, ..Default::default() }, regions)
}

/// An isolation level that does not exist is an error of the request and of each partition.
fn refuse_isolation(session: &Session) -> Answer<FetchResponse> {
    let error = ErrorCode::InvalidRequest;
    let topics = session.partitions.iter().map(|(_, wanted)| {
        let (topic, topic_id) = match &wanted.topic {
            TopicKey::Id(id) => (ByteString::new(), *id),
            TopicKey::Name(name) => (name.clone(), Uuid::ZERO),
        };
        let data =
            PartitionData { aborted_transactions: Some(Vec::new()), ..read::failed(wanted.partition, error) };
        FetchableTopicResponse { topic, topic_id, partitions: vec![data], ..Default::default() }
    });
    let responses = topics.collect();
    Answer::from(FetchResponse { error_code: error as i16, responses, ..Default::default() })
}
