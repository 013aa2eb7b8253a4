//! Where a scenario plays: one broker, one version, fresh topics, and a transcript of what came back.

use std::time::{Duration, Instant};

use bytes::Bytes;
use callboard_protocol::json::JsonForm as _;
use callboard_protocol::messages::{
    self as m, ApiVersionsRequest, CreateTopicsRequest, ListOffsetsRequest, Message, ProduceRequest, Request,
};
use callboard_protocol::wire::Reader;
use callboard_protocol::{ApiKey, ByteString, Uuid, header};
use serde_json::{Value, json};

use crate::broker::{ANSWER_LIMIT, Broker, Connection, Outcome};
use crate::normal::{Names, normalise};
use crate::scenarios::named;

/// How long a change may take until it is seen everywhere.
const SETTLE_LIMIT: Duration = Duration::from_secs(20);
/// Between two looks at whether a change is seen.
const SETTLE_PAUSE: Duration = Duration::from_millis(10);
/// What one step of a scenario showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What was asked.
    pub note: String,
    /// The answer in normal form, or how there was none.
    pub seen: Value,
}

/// One play of a scenario.
#[derive(Debug)]
pub struct Stage<'a> {
    broker: &'a Broker,
    version: i16,
    prefix: String,
    on_controller: bool,
    connection: Option<Connection>,
    names: Names,
    topics: Vec<(ByteString, Uuid)>,
    steps: Vec<Step>,
}

impl<'a> Stage<'a> {
    /// A stage whose topics start with `prefix`.
    pub fn new(broker: &'a Broker, version: i16, prefix: String) -> Self {
        let names = Names::new(broker);
        Self {
            broker,
            version,
            prefix,
            on_controller: false,
            connection: None,
            names,
            topics: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// What was seen.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// The version that is tried.
    pub fn version(&self) -> i16 {
        self.version
    }

    /// The full name of a topic of this play.
    pub fn topic(&self, name: &str) -> ByteString {
        format!("{}-{name}", self.prefix).into()
    }

    /// From here on requests go to the controller's listener.
    pub fn visit_controller(&mut self) {
        (self.on_controller, self.connection) = (true, None);
    }

    /// From here on requests go to the broker's listener.
    pub fn visit_broker(&mut self) {
        (self.on_controller, self.connection) = (false, None);
    }

    /// From here on requests go over a new connection.
    pub fn reconnect(&mut self) {
        self.connection = None;
    }

    /// Makes a topic and waits until each of its partitions serves.
    pub fn create(&mut self, name: &str, partitions: i32) -> Uuid {
        self.create_with(name, partitions, &[])
    }

    /// Makes a topic with settings and waits until each of its partitions serves.
    pub fn create_with(&mut self, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Uuid {
        use m::create_topics_request::{CreatableTopic, CreatableTopicConfig};
        let full = self.topic(name);
        let configs = configs.iter().map(|(name, value)| CreatableTopicConfig {
            name: (*name).into(),
            value: Some((*value).into()),
            ..Default::default()
        });
        let topic = CreatableTopic {
            name: full.clone(),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs.collect(),
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
        let made = self.ask(&request).topics.remove(0);
        assert_eq!(made.error_code, 0, "{full}: {:?}", made.error_message);
        self.names.add_topic(made.topic_id, &full);
        self.topics.push((full, made.topic_id));
        self.await_served(name, partitions);
        made.topic_id
    }

    /// Waits until a topic's metadata shows its first `partitions` partitions, and they tell their offsets.
    pub fn await_served(&mut self, name: &str, partitions: i32) {
        let full = self.topic(name);
        self.settle(&named(std::slice::from_ref(&full)), |answer| {
            let topic = answer.topics.first();
            topic.is_some_and(|topic| topic.error_code == 0 && topic.partitions.len() >= partitions as usize)
        });
        self.settle(&list_offsets(&full, 0..partitions, -1), |answer| {
            answer.topics.iter().all(|topic| topic.partitions.iter().all(|p| p.error_code == 0))
        });
    }

    /// The id of a topic that this play made.
    pub fn id(&self, name: &str) -> Uuid {
        let full = self.topic(name);
        self.topics.iter().find(|(topic, _)| *topic == full).map_or(Uuid::ZERO, |(_, id)| *id)
    }

    /// Sends a request at the tried version, and notes the answer.
    pub fn send<R: Request>(&mut self, note: &str, request: &R) -> Option<R::Response> {
        self.send_at(note, request, self.version)
    }

    /// Sends a request at its newest version, and notes the answer.
    pub fn see<R: Request>(&mut self, note: &str, request: &R) -> Option<R::Response> {
        self.send_at(note, request, newest::<R>())
    }

    /// Sends a request at its newest version, for its answer alone.
    pub fn ask<R: Request>(&mut self, request: &R) -> R::Response {
        let frame = encode(request, newest::<R>()).expect("the newest version has every field");
        match self.exchange(&frame, ANSWER_LIMIT) {
            Outcome::Answer(answer) => {
                let (_, response) = header::decode_response::<R>(&answer, newest::<R>()).expect("an answer");
                response
            }
            other => panic!("{}: {} gave {other:?}", self.broker.name, R::NAME),
        }
    }

    /// Asks until the answer is as wanted, or too long.
    pub fn settle<R: Request>(&mut self, request: &R, wanted: impl Fn(&R::Response) -> bool) {
        let end = Instant::now() + SETTLE_LIMIT;
        while !wanted(&self.ask(request)) && Instant::now() < end {
            std::thread::sleep(SETTLE_PAUSE);
        }
    }

    /// Sends bytes as they are, and notes what comes back as an answer to `R` at a version.
    pub fn send_frame<R: Request>(&mut self, note: &str, frame: &[u8], version: i16) -> Option<R::Response> {
        match self.exchange(frame, ANSWER_LIMIT) {
            Outcome::Answer(answer) => self.note_answer::<R>(note, &answer, version),
            other => {
                self.note(note, json!(format!("{other:?}")));
                None
            }
        }
    }

    /// Sends bytes and then nothing more, and notes what comes back.
    pub fn send_last(&mut self, note: &str, bytes: &[u8]) {
        let connection = self.connection();
        connection.send(bytes);
        connection.end();
        let outcome = connection.receive(ANSWER_LIMIT);
        self.connection = None;
        let seen = match outcome {
            Outcome::Answer(answer) => json!(hex(&answer)),
            other => json!(format!("{other:?}")),
        };
        self.note(note, seen);
    }

    /// Produces without an answer, and notes whether the connection then still answers.
    pub fn send_unanswered(&mut self, note: &str, request: &ProduceRequest) {
        let Ok(frame) = encode(request, self.version) else {
            return self.note(note, json!("not in this version"));
        };
        self.connection().send(&frame);
        let next = encode(&ApiVersionsRequest::default(), 0).expect("version 0 has no field");
        let seen = match self.exchange(&next, ANSWER_LIMIT) {
            Outcome::Answer(_) => "no answer, connection open".to_owned(),
            other => format!("{other:?}"),
        };
        self.note(note, json!(seen));
    }

    /// Notes something that was seen otherwise.
    pub fn note(&mut self, note: &str, seen: Value) {
        self.steps.push(Step { note: note.to_owned(), seen });
    }

    fn send_at<R: Request>(&mut self, note: &str, request: &R, version: i16) -> Option<R::Response> {
        match encode(request, version) {
            Ok(frame) => self.send_frame::<R>(note, &frame, version),
            Err(_) => {
                self.note(note, json!("not in this version"));
                None
            }
        }
    }

    fn note_answer<R: Request>(&mut self, note: &str, answer: &Bytes, version: i16) -> Option<R::Response> {
        let mut r = Reader::new(answer);
        let _correlation_id = r.i32();
        if R::KEY.info().response_header_version(version) >= 1 {
            let _ = r.uvarint();
        }
        match R::Response::decode(&mut r, version) {
            Ok(response) => {
                let mut seen = response.to_json(version).expect("what was read can be told");
                self.names.learn(&response.to_json(version).unwrap_or_default());
                if r.remaining() > 0 {
                    seen["(bytes after the answer)"] = json!(r.remaining());
                }
                normalise(R::KEY, &mut seen, &self.names);
                self.note(note, seen);
                Some(response)
            }
            Err(error) => {
                self.note(note, json!(format!("not an answer: {error}: {}", hex(answer))));
                None
            }
        }
    }

    fn connection(&mut self) -> &mut Connection {
        let address = if self.on_controller { &self.broker.controller } else { &self.broker.address };
        self.connection.get_or_insert_with(|| Connection::open(address))
    }

    fn exchange(&mut self, frame: &[u8], limit: Duration) -> Outcome {
        let connection = self.connection();
        connection.send(frame);
        let outcome = connection.receive(limit);
        if !matches!(outcome, Outcome::Answer(_)) {
            self.connection = None;
        }
        outcome
    }
}

/// A request's frame with its size; an error if the version can't say it.
pub fn encode<R: Request>(
    request: &R,
    version: i16,
) -> Result<Vec<u8>, callboard_protocol::wire::EncodeError> {
    let encoded = header::encode_request(1, Some(&"differential".into()), version, request)?;
    Ok(encoded.into_bytes().expect("no region of a file is sent").to_vec())
}

/// The highest stable version of a request.
pub fn newest<R: Request>() -> i16 {
    R::MAX_VERSION.min(R::KEY.info().max_version)
}

/// The versions of an API that are tried: all that are stable and that messages have.
pub fn versions(key: ApiKey) -> std::ops::RangeInclusive<i16> {
    let info = key.info();
    let lowest = if key == ApiKey::Produce { ProduceRequest::MIN_VERSION } else { info.min_version };
    lowest.max(info.min_version)..=info.max_version
}

/// A request for one timestamp's offset in some partitions of a topic.
pub fn list_offsets(
    topic: &ByteString,
    partitions: impl IntoIterator<Item = i32>,
    timestamp: i64,
) -> ListOffsetsRequest {
    use m::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let partitions = partitions.into_iter().map(|partition_index| ListOffsetsPartition {
        partition_index,
        current_leader_epoch: -1,
        timestamp,
        ..Default::default()
    });
    let topic =
        ListOffsetsTopic { name: topic.clone(), partitions: partitions.collect(), ..Default::default() };
    ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..Default::default() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
