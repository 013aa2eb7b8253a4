//! Produce: batches to their partitions, without copying them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use callboard_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use callboard_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse,
};
use callboard_protocol::messages::{ProduceRequest, ProduceResponse};
use callboard_protocol::records::RecordError;
use callboard_protocol::records::validate::first_is_transactional;
use callboard_protocol::{ByteString, ErrorCode, Uuid};
use callboard_storage::Origin;

use super::leaders::Leaders;
use super::produce_membership::{self, Memberships};
use super::{Answer, RequestContext, topics};
use crate::net::CloseReason;
use crate::replicas::messages::{Append, AppendRefusal, Appended, Membership};
use crate::replicas::{Goal, Kind, PartitionHandle, Wait};
use crate::supervision::Ask;

/// From this version on topics go by id.
const FIRST_WITH_TOPIC_IDS: i16 = 13;
/// From this version on the answer may name the present leader.
const FIRST_WITH_LEADER: i16 = 10;

type Outcome = Result<Appended, AppendRefusal>;

/// One partition of the request: where it stands, or what became of it.
struct Part {
    index: i32,
    state: State,
}

enum State {
    Appending(PartitionHandle, Ask<Outcome>),
    Appended(PartitionHandle, Appended),
    Refused(AppendRefusal),
}

/// Appends each batch of a request whose records were left in `frame`; with acks=all waits until all in-sync replicas
/// have them.
pub async fn handle(
    cx: &RequestContext,
    mut request: ProduceRequest,
    frame: Bytes,
    version: i16,
) -> Answer<ProduceResponse> {
    if request.topic_data.len() > 1 {
        request.topic_data = merged(std::mem::take(&mut request.topic_data));
    }
    let acks = request.acks;
    let timeout = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    let refusal = whole_refusal(&request, &frame);
    let memberships = match refusal {
        Some(_) => Memberships::default(),
        None => produce_membership::find(cx, &request, &frame, version).await,
    };
    let mut topics: Vec<(ByteString, Uuid, Vec<Part>)> = Vec::with_capacity(request.topic_data.len());
    for (topic_at, topic) in request.topic_data.into_iter().enumerate() {
        let parts = match &refusal {
            Some((error, message)) => topic
                .partition_data
                .iter()
                .map(|data| refused(data.index, *error, message.as_deref()))
                .collect(),
            None => submit(cx, &topic, &frame, acks, version, |index| memberships.of(topic_at, index)),
        };
        topics.push((topic.name, topic.topic_id, parts));
    }
    drop(frame);
    // All batches are on their way, in this order: the connection's next request may follow.
    cx.submitted();
    for (_, _, parts) in &mut topics {
        for part in parts {
            part.settle().await;
        }
    }
    if acks == -1 {
        wait_for_replicas(cx, &mut topics, timeout).await;
    }
    if acks == 0 {
        return without_answer(&topics);
    }
    Answer::from(respond(cx, topics, version))
}

/// What is wrong with the request as a whole, and the text that Kafka sends with it.
fn whole_refusal(request: &ProduceRequest, frame: &[u8]) -> Option<(ErrorCode, Option<String>)> {
    let data = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
    let mut records = data.filter_map(|data| data.records.as_ref()?.within(frame));
    let found = records
        .try_fold(false, |found, records| Ok::<_, RecordError>(found || first_is_transactional(records)?));
    match found {
        Err(error) => Some((ErrorCode::CorruptMessage, Some(corruption(&error)))),
        Ok(true) if request.transactional_id.is_none() => {
            Some((ErrorCode::TransactionalIdAuthorizationFailed, None))
        }
        Ok(_) => None,
    }
}

/// Kafka's words for what is wrong with a first batch.
fn corruption(error: &RecordError) -> String {
    match error {
        RecordError::BatchLength(length) => {
            format!("Record size {length} is less than the minimum record overhead (14)")
        }
        RecordError::UnsupportedMagic(magic) => format!("Invalid magic found in record: {magic}"),
        other => other.to_string(),
    }
}

/// The request's topics, each once: what is said of one a second time counts as more of its partitions.
fn merged(topics: Vec<TopicProduceData>) -> Vec<TopicProduceData> {
    let mut places: BTreeMap<(ByteString, Uuid), usize> = BTreeMap::new();
    let mut out: Vec<TopicProduceData> = Vec::with_capacity(topics.len());
    for topic in topics {
        let place = *places.entry((topic.name.clone(), topic.topic_id)).or_insert(out.len());
        match out.get_mut(place) {
            Some(first) => first.partition_data.extend(topic.partition_data),
            None => out.push(topic),
        }
    }
    out
}

fn refused(index: i32, error: ErrorCode, message: Option<&str>) -> Part {
    let refusal = AppendRefusal { message: message.map(str::to_owned), ..AppendRefusal::of(error) };
    Part { index, state: State::Refused(refusal) }
}

/// Sends a topic's batches to their partitions. Of a partition named twice, only the last batch counts, as in Kafka.
fn submit(
    cx: &RequestContext,
    topic: &TopicProduceData,
    frame: &Bytes,
    acks: i16,
    version: i16,
    membership: impl Fn(i32) -> Result<Membership, AppendRefusal>,
) -> Vec<Part> {
    let found = if version >= FIRST_WITH_TOPIC_IDS {
        topics::by_id(cx, topic.topic_id)
    } else {
        topics::by_name(cx, &topic.name)
    };
    let last: BTreeMap<i32, usize> = match topic.partition_data.len() {
        0 | 1 => BTreeMap::new(),
        _ => topic.partition_data.iter().enumerate().map(|(at, data)| (data.index, at)).collect(),
    };
    let mut parts = Vec::with_capacity(topic.partition_data.len());
    for (at, data) in topic.partition_data.iter().enumerate() {
        if last.get(&data.index).is_some_and(|last| *last != at) {
            continue;
        }
        let handle = found.as_ref().map_err(|error| *error).and_then(|topic| {
            if topic.is_internal() && cx.client_id.as_deref() != Some(topics::ADMIN_CLIENT) {
                return Err(ErrorCode::InvalidTopicException);
            }
            topic.partition(data.index)
        });
        let found = handle.and_then(|handle| Ok((handle, acceptable(data, frame, acks)?)));
        let found = found.map_err(AppendRefusal::of);
        let state = match found.and_then(|found| Ok((found, membership(data.index)?))) {
            Err(refusal) => State::Refused(refusal),
            Ok(((handle, records), membership)) => {
                let append =
                    Append { records, version, all_replicas: acks == -1, origin: Origin::Client, membership };
                let ask = handle.actor().ask(append);
                State::Appending(handle, ask)
            }
        };
        parts.push(Part { index: data.index, state });
    }
    parts
}

/// The records, unless the request can be refused without looking into them.
fn acceptable(data: &PartitionProduceData, frame: &Bytes, acks: i16) -> Result<Bytes, ErrorCode> {
    match data.records.as_ref().and_then(|records| records.of_frame(frame)) {
        // Kafka leaves a request with null records unanswered; an error serves the client better.
        None => Err(ErrorCode::InvalidRecord),
        Some(records) if records.is_empty() => Err(ErrorCode::InvalidRecord),
        Some(_) if !matches!(acks, -1..=1) => Err(ErrorCode::InvalidRequiredAcks),
        Some(records) => Ok(records),
    }
}

impl Part {
    /// Waits until the batch is in the log or refused.
    async fn settle(&mut self) {
        if let State::Appending(handle, ask) = &mut self.state {
            self.state = match ask.await {
                Ok(Ok(appended)) => State::Appended(handle.clone(), appended),
                Ok(Err(refusal)) => State::Refused(refusal),
                // The partition restarts or stops: the client asks for the leader and tries again.
                Err(_) => State::Refused(AppendRefusal::of(ErrorCode::NotLeaderOrFollower)),
            };
        }
    }
}

/// Waits until the high watermarks have passed what was appended.
async fn wait_for_replicas(
    cx: &RequestContext,
    topics: &mut [(ByteString, Uuid, Vec<Part>)],
    timeout: Duration,
) {
    let mut goals = Vec::new();
    let mut waiting = Vec::new();
    for part in topics.iter_mut().flat_map(|(_, _, parts)| parts) {
        if let State::Appended(handle, appended) = &part.state
            && handle.view().high_watermark() < appended.required_high_watermark
        {
            let goal = Goal::HighWatermark {
                offset: appended.required_high_watermark,
                leader_epoch: appended.leader_epoch,
            };
            goals.push((handle.clone(), goal));
            waiting.push(part);
        }
    }
    if waiting.is_empty() {
        return;
    }
    let wait = Wait { goals, min_bytes: 0, timeout };
    let outcomes = match cx.services.replicas.purgatories.wait(Kind::Produce, wait) {
        Some(ask) => ask.await.unwrap_or_default(),
        None => Vec::new(),
    };
    for (at, part) in waiting.into_iter().enumerate() {
        // Without an outcome the purgatory crashed: what the partition has reached by now decides.
        let error = match outcomes.get(at) {
            Some(Ok(())) => continue,
            Some(Err(error)) => *error,
            None if part.is_replicated() => continue,
            None => ErrorCode::NotLeaderOrFollower,
        };
        part.state = State::Refused(AppendRefusal::of(error));
    }
}

impl Part {
    fn is_replicated(&self) -> bool {
        match &self.state {
            State::Appended(handle, appended) => {
                handle.view().high_watermark() >= appended.required_high_watermark
            }
            _ => false,
        }
    }
}

/// With acks=0 nothing is answered; an error closes the connection so that the client notices.
fn without_answer(topics: &[(ByteString, Uuid, Vec<Part>)]) -> Answer<ProduceResponse> {
    for (name, id, parts) in topics {
        for part in parts {
            if let State::Refused(refusal) = &part.state {
                let what = format!("{name} {id} partition {}: {}", part.index, refusal.error.name());
                return Answer::Close(CloseReason::UnacknowledgedProduce(what));
            }
        }
    }
    Answer::Silent
}

fn respond(cx: &RequestContext, topics: Vec<(ByteString, Uuid, Vec<Part>)>, version: i16) -> ProduceResponse {
    let mut leaders = Leaders::new(cx);
    let mut responses: Vec<TopicProduceResponse> = Vec::with_capacity(topics.len());
    for (name, topic_id, parts) in topics {
        let mut partition_responses = Vec::with_capacity(parts.len());
        for part in parts {
            let mut response = answer(&part);
            if version >= FIRST_WITH_LEADER
                && response.error_code == ErrorCode::NotLeaderOrFollower as i16
                && let Some((leader_id, leader_epoch)) = leaders.find(&name, topic_id, part.index)
            {
                response.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch, ..Default::default() };
            }
            partition_responses.push(response);
        }
        if !partition_responses.is_empty() {
            responses.push(TopicProduceResponse {
                name,
                topic_id,
                partition_responses,
                ..Default::default()
            });
        }
    }
    ProduceResponse { responses, node_endpoints: leaders.produce_endpoints(), ..Default::default() }
}

fn answer(part: &Part) -> PartitionProduceResponse {
    let base = PartitionProduceResponse {
        index: part.index,
        base_offset: -1,
        log_append_time_ms: -1,
        log_start_offset: -1,
        ..Default::default()
    };
    match &part.state {
        State::Appended(_, appended) => PartitionProduceResponse {
            base_offset: appended.base_offset,
            log_append_time_ms: appended.log_append_time_ms,
            log_start_offset: appended.log_start_offset,
            ..base
        },
        State::Refused(refusal) => PartitionProduceResponse {
            error_code: refusal.error as i16,
            log_start_offset: refusal.log_start_offset,
            record_errors: refusal
                .records
                .iter()
                .map(|(index, message)| BatchIndexAndErrorMessage {
                    batch_index: *index,
                    batch_index_error_message: Some(message.as_str().into()),
                    ..Default::default()
                })
                .collect(),
            error_message: refusal.message.as_deref().map(ByteString::from),
            ..base
        },
        // Every part is settled before it is answered.
        State::Appending(..) => {
            PartitionProduceResponse { error_code: ErrorCode::NotLeaderOrFollower as i16, ..base }
        }
    }
}
