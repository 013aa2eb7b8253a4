//! The producer against a broker that fails on purpose: every record is written once, in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use callboard_client::{Client, ClientError, ClientOptions, Producer, ProducerOptions, ProducerRecord};
use callboard_protocol::messages::api_versions_response::ApiVersion;
use callboard_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use callboard_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use callboard_protocol::messages::{
    ApiVersionsResponse, InitProducerIdResponse, Message, MetadataResponse, ProduceRequest, ProduceResponse,
};
use callboard_protocol::records::{RecordBatch, add_sequence};
use callboard_protocol::wire::Records;
use callboard_protocol::{ApiKey, ErrorCode, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What becomes of one request to produce or for a producer id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// It is done and answered.
    Well,
    /// It is done, and the connection closes before the answer.
    Silently,
    /// The connection closes at once.
    Close,
    /// It is refused.
    Refuse(ErrorCode),
}

/// A broker of one partition that plays a script, and all is well once that is over.
#[derive(Debug, Default)]
struct Broker {
    script: VecDeque<Act>,
    next_producer_id: i64,
    /// Base sequence, number of records and base offset of each batch of the present producer.
    batches: Vec<(i32, i32, i64)>,
    producer_id: i64,
    values: Vec<Bytes>,
}

impl Broker {
    /// Appends a batch as an idempotent log does; the base offset.
    fn append(&mut self, batch: &RecordBatch) -> Result<i64, ErrorCode> {
        let header = &batch.header;
        if header.producer_id != self.producer_id {
            self.producer_id = header.producer_id;
            self.batches.clear();
        }
        let wanted = self.batches.last().map_or(0, |(sequence, count, _)| add_sequence(*sequence, *count));
        if let Some((_, _, offset)) = self.batches.iter().find(|known| known.0 == header.base_sequence) {
            return Ok(*offset);
        }
        if header.base_sequence != wanted {
            return Err(ErrorCode::OutOfOrderSequenceNumber);
        }
        let offset = self.values.len() as i64;
        self.batches.push((header.base_sequence, header.record_count, offset));
        let records = batch.records().expect("readable").map(|record| record.expect("good"));
        self.values.extend(records.map(|record| record.value.expect("a value")));
        Ok(offset)
    }
}

/// Starts a broker with a script; its address.
async fn start(script: &[Act]) -> (String, Arc<Mutex<Broker>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let broker = Broker { script: script.iter().copied().collect(), producer_id: -1, ..Broker::default() };
    let broker = Arc::new(Mutex::new(broker));
    let shared = broker.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, port, shared.clone()));
        }
    });
    (format!("127.0.0.1:{port}"), broker)
}

async fn serve(mut stream: TcpStream, port: u16, broker: Arc<Mutex<Broker>>) {
    while let Ok(size) = stream.read_i32().await {
        let mut frame = vec![0; size as usize];
        stream.read_exact(&mut frame).await.expect("a whole frame");
        let frame = Bytes::from(frame);
        let (request, mut body) = header::decode_request_header(&frame).expect("a header");
        let (id, version) = (request.correlation_id, request.api_version);
        let answer = match request.api_key {
            ApiKey::ApiVersions => encode(id, request.api_key, version, &versions()),
            ApiKey::Metadata => encode(id, request.api_key, version, &metadata(port)),
            key => {
                let mut broker = broker.lock().expect("no panic");
                let act = broker.script.pop_front().unwrap_or(Act::Well);
                if act == Act::Close {
                    return;
                }
                let answer = if key == ApiKey::InitProducerId {
                    encode(id, key, version, &producer_id(&mut broker, act))
                } else {
                    let request = ProduceRequest::decode(&mut body, version).expect("a request");
                    encode(id, key, version, &produce(&mut broker, request, act))
                };
                if act == Act::Silently {
                    return;
                }
                answer
            }
        };
        if stream.write_all(&answer).await.is_err() {
            return;
        }
    }
}

fn encode<M: Message>(id: i32, key: ApiKey, version: i16, message: &M) -> Bytes {
    header::encode_response(id, key, version, message).expect("encodable").into_bytes().expect("in memory")
}

fn versions() -> ApiVersionsResponse {
    let api = |key: ApiKey, max_version| ApiVersion {
        api_key: key.code(),
        min_version: 0,
        max_version,
        ..ApiVersion::default()
    };
    let api_keys = vec![
        api(ApiKey::Produce, 9),
        api(ApiKey::Metadata, 9),
        api(ApiKey::ApiVersions, 3),
        api(ApiKey::InitProducerId, 4),
    ];
    ApiVersionsResponse { api_keys, ..ApiVersionsResponse::default() }
}

fn metadata(port: u16) -> MetadataResponse {
    let partitions = vec![MetadataResponsePartition { leader_id: 1, ..MetadataResponsePartition::default() }];
    MetadataResponse {
        brokers: vec![MetadataResponseBroker {
            node_id: 1,
            host: "127.0.0.1".into(),
            port: port.into(),
            ..MetadataResponseBroker::default()
        }],
        controller_id: 1,
        topics: vec![MetadataResponseTopic {
            name: Some("t".into()),
            partitions,
            ..MetadataResponseTopic::default()
        }],
        ..MetadataResponse::default()
    }
}

fn producer_id(broker: &mut Broker, act: Act) -> InitProducerIdResponse {
    let error_code = if let Act::Refuse(error) = act { error.code() } else { 0 };
    broker.next_producer_id += 1;
    InitProducerIdResponse {
        error_code,
        producer_id: broker.next_producer_id,
        ..InitProducerIdResponse::default()
    }
}

fn produce(broker: &mut Broker, request: ProduceRequest, act: Act) -> ProduceResponse {
    let records = &request.topic_data[0].partition_data[0].records;
    let bytes = records.as_ref().and_then(Records::as_bytes).expect("records").clone();
    let result = match act {
        Act::Refuse(error) => Err(error),
        _ => broker.append(&RecordBatch::parse(bytes).expect("a batch")),
    };
    let error_code = result.err().map_or(0, ErrorCode::code);
    let base_offset = result.unwrap_or(-1);
    let partition =
        PartitionProduceResponse { error_code, base_offset, ..PartitionProduceResponse::default() };
    let topic = TopicProduceResponse {
        name: "t".into(),
        partition_responses: vec![partition],
        ..TopicProduceResponse::default()
    };
    ProduceResponse { responses: vec![topic], ..ProduceResponse::default() }
}

fn record(number: usize) -> ProducerRecord {
    ProducerRecord {
        topic: "t".into(),
        partition: Some(0),
        value: Some(number.to_string().into()),
        ..ProducerRecord::default()
    }
}

/// Sends 40 records in batches of one or a few against a script: what each was answered.
async fn play(script: &[Act]) -> (Vec<Result<i64, ClientError>>, Arc<Mutex<Broker>>) {
    let (address, broker) = start(script).await;
    let options = ClientOptions { retry_backoff: Duration::from_millis(1), ..ClientOptions::new(address) };
    let client = Client::connect(options).await.expect("a client");
    client.refresh(&["t"]).await.expect("metadata");
    let producer =
        Producer::new(client, ProducerOptions { batch_size_bytes: 80, ..ProducerOptions::default() });
    let mut sent = Vec::new();
    for number in 0..40 {
        sent.push(producer.send(record(number)).await.expect("queued"));
    }
    let mut answers = Vec::new();
    for delivery in sent {
        let answer =
            tokio::time::timeout(Duration::from_secs(5), delivery).await.expect("no record is forgotten");
        answers.push(answer.map(|metadata| metadata.offset));
    }
    (answers, broker)
}

/// Plays a script that must harm nothing.
async fn play_well(script: &[Act]) {
    let (answers, broker) = play(script).await;
    let offsets: Vec<_> = answers.into_iter().map(|answer| answer.expect("written")).collect();
    assert_eq!(offsets, (0..40).collect::<Vec<_>>(), "{script:?}");
    let broker = broker.lock().expect("no panic");
    let values: Vec<_> = (0..40).map(|number| Bytes::from(number.to_string())).collect();
    assert_eq!(broker.values, values, "{script:?}");
    assert!(broker.script.is_empty(), "the script was not played: {:?}", broker.script);
}

#[tokio::test]
async fn failures_that_pass_cost_no_record() {
    use Act::{Close, Refuse, Silently, Well};
    let moved = Refuse(ErrorCode::NotLeaderOrFollower);
    play_well(&[]).await;
    // The first request is for the producer id.
    play_well(&[Refuse(ErrorCode::CoordinatorLoadInProgress), Close, Well]).await;
    play_well(&[Well, moved]).await;
    play_well(&[Well, Well, moved, Well, moved]).await;
    play_well(&[Well, Close]).await;
    play_well(&[Well, Silently]).await;
    play_well(&[Well, Well, Silently, Close, Silently, moved, Well, Close]).await;
}

#[tokio::test]
async fn a_refused_batch_fails_alone() {
    let (answers, broker) = play(&[Act::Well, Act::Well, Act::Refuse(ErrorCode::MessageTooLarge)]).await;
    let failed: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    assert!(!failed.is_empty() && failed.len() < 10, "{failed:?}");
    assert!(failed.iter().all(|error| error.is(ErrorCode::MessageTooLarge)), "{failed:?}");
    let written: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).copied().collect();
    assert_eq!(written, (0..written.len() as i64).collect::<Vec<_>>(), "the others follow, in order");
    let broker = broker.lock().expect("no panic");
    assert_eq!(broker.values.len(), written.len());
    assert_eq!(broker.next_producer_id, 2, "the rest is written under a new id, without a gap");
}
