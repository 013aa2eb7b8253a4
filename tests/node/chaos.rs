//! Actor chaos: a random actor crashes every 100 ms while a producer and a consumer run. No acknowledged
//! record is lost or doubled, no request stays unanswered, the node stays up.
//!
//! Ten seconds by default; `CALLBOARD_CHAOS_SECONDS=60` for the whole minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callboard_client::{
    Admin, Client, ClientError, ClientOptions, Connection, Consumer, ConsumerOptions, NewTopic, OffsetReset,
    OffsetSpec, Producer, ProducerOptions,
};
use callboard_protocol::messages::MetadataRequest;
use callboard_tests::{Ledger, Node, check_partition};

const PARTITIONS: i32 = 3;
const TOPIC: &str = "storm";
/// No answer within this time counts as none.
const UNANSWERED: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_crash_every_100_ms_harms_nothing() {
    let seconds =
        std::env::var("CALLBOARD_CHAOS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let dir = tempfile::tempdir().expect("a directory");
    let settings = ["callboard.chaos.crash.interval.ms=100", "callboard.chaos.seed=1"];
    let mut node = Node::start(dir.path(), &settings).await;
    let options = ClientOptions {
        request_timeout: UNANSWERED,
        retry_backoff: Duration::from_millis(20),
        ..ClientOptions::new(node.address())
    };
    let client = Client::connect(options).await.expect("a client");
    Admin::new(client.clone()).create_topic(&NewTopic::new(TOPIC, PARTITIONS)).await.expect("a topic");

    let stop = Arc::new(AtomicBool::new(false));
    let producer = Producer::new(client.clone(), ProducerOptions::default());
    let fills: Vec<_> = (0..PARTITIONS)
        .map(|partition| tokio::spawn(Ledger::fill(producer.clone(), TOPIC.into(), partition, stop.clone())))
        .collect();
    let reader = tokio::spawn(follow(client.clone(), stop.clone()));
    let asker = tokio::spawn(ask(node.address(), stop.clone()));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stop.store(true, Ordering::Relaxed);

    let answered = asker.await.expect("the asker ran").expect("every request is answered or refused");
    assert!(answered > 100, "only {answered} requests were answered");
    let mut acknowledged = 0;
    for (partition, fill) in (0..).zip(fills) {
        let ledger = fill.await.expect("the load ran");
        let refused = ledger.answers.iter().find_map(|answer| answer.as_ref().err());
        assert_eq!(refused, None, "a record was given up");
        check_partition(&client, TOPIC, partition, &ledger).await.expect("all that was acknowledged");
        acknowledged += ledger.acknowledged();
    }
    assert!(acknowledged > 1_000, "only {acknowledged} records were written: no load");
    let read = reader.await.expect("the reader ran").expect("records in order");
    assert!(read > 0, "the consumer read nothing");
    assert_eq!(client.unanswered(), 0, "requests were not answered");
    assert!(node.is_running(), "the node is gone");
}

/// Reads along, and checks that offsets go up by one. The number of records read.
async fn follow(client: Client, stop: Arc<AtomicBool>) -> Result<usize, String> {
    let options = ConsumerOptions { offset_reset: OffsetReset::Error, ..ConsumerOptions::default() };
    let mut consumer = Consumer::new(client, options);
    let mut next = vec![0; PARTITIONS as usize];
    for partition in 0..PARTITIONS {
        consumer.assign(TOPIC, partition, OffsetSpec::Earliest).await.map_err(|error| error.to_string())?;
    }
    let mut read = 0;
    while !stop.load(Ordering::Relaxed) {
        let records = consumer.poll(Duration::from_millis(200)).await.map_err(|error| error.to_string())?;
        for record in records {
            let expected = &mut next[record.partition as usize];
            if record.offset != *expected {
                return Err(format!(
                    "partition {}: {} after {}",
                    record.partition,
                    record.offset,
                    *expected - 1
                ));
            }
            *expected += 1;
            read += 1;
        }
    }
    Ok(read)
}

/// Asks for metadata all the time, on connections of its own. Each request is answered, or its connection
/// closes; time must not run out.
async fn ask(address: String, stop: Arc<AtomicBool>) -> Result<usize, String> {
    let mut answered = 0;
    while !stop.load(Ordering::Relaxed) {
        let Ok(connection) = Connection::open(&address, "asker", UNANSWERED).await else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        while !stop.load(Ordering::Relaxed) {
            match connection.call(&MetadataRequest::default()).await {
                Ok(_) => answered += 1,
                Err(ClientError::Connection { .. } | ClientError::Closed) => break,
                Err(error) => return Err(error.to_string()),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    Ok(answered)
}
