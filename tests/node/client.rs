//! The native client against a node: every part of it once. With `BOOTSTRAP=host:port` against another broker,
//! Kafka's for one.

use std::time::Duration;

use bytes::Bytes;
use callboard_client::{
    Acks, Admin, Client, ClientOptions, ConsumedRecord, Consumer, ConsumerOptions, NewTopic, OffsetReset,
    OffsetSpec, Producer, ProducerOptions, ProducerRecord, ResourceKind,
};
use callboard_protocol::ErrorCode;
use callboard_protocol::records::Compression;
use callboard_tests::Node;

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// A client, and the node it talks to unless that is somebody else's.
struct Stage {
    client: Client,
    _node: Option<(Node, tempfile::TempDir)>,
}

impl Stage {
    async fn set() -> Self {
        let (address, node) = match std::env::var("BOOTSTRAP") {
            Ok(address) => (address, None),
            Err(_) => {
                let dir = tempfile::tempdir().expect("a directory");
                let node = Node::start(dir.path(), &[]).await;
                (node.address(), Some((node, dir)))
            }
        };
        let client = Client::connect(ClientOptions::new(address)).await.expect("a client");
        Self { client, _node: node }
    }

    /// A new topic whose name no other run has.
    async fn topic(&self, name: &str, partitions: i32) -> String {
        let name = format!("{name}-{}", std::process::id());
        Admin::new(self.client.clone())
            .create_topic(&NewTopic::new(&name, partitions))
            .await
            .expect("a topic");
        name
    }

    async fn read(&self, topic: &str, partition: i32, count: usize) -> Vec<ConsumedRecord> {
        let mut consumer = Consumer::new(self.client.clone(), ConsumerOptions::default());
        consumer.assign(topic, partition, OffsetSpec::Earliest).await.expect("an offset");
        let mut records = Vec::new();
        while records.len() < count {
            let more = consumer.poll(Duration::from_secs(10)).await.expect("records");
            assert!(!more.is_empty(), "only {} of {count} records", records.len());
            records.extend(more);
        }
        records
    }
}

fn record(topic: &str, key: Option<&str>, value: &str) -> ProducerRecord {
    ProducerRecord {
        topic: topic.into(),
        key: key.map(|key| Bytes::copy_from_slice(key.as_bytes())),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
        headers: vec![("h".into(), None), ("i".into(), Some(Bytes::from_static(b"v")))],
        timestamp_ms: Some(1_760_000_000_000),
        ..ProducerRecord::default()
    }
}

#[tokio::test]
async fn records_come_back_with_every_codec() {
    let stage = Stage::set().await;
    let topic = stage.topic("codecs", 1).await;
    for compression in CODECS {
        for idempotent in [false, true] {
            let options = ProducerOptions { compression, idempotent, ..ProducerOptions::default() };
            let producer = Producer::new(stage.client.clone(), options);
            for number in 0..100 {
                let value = format!("{compression} {idempotent} {number}");
                drop(producer.send(record(&topic, Some("k"), &value)).await.expect("queued"));
            }
            producer.flush().await;
        }
    }
    let records = stage.read(&topic, 0, 1000).await;
    let mut expected = 0;
    for compression in CODECS {
        for idempotent in [false, true] {
            for number in 0..100 {
                let read = &records[expected];
                assert_eq!(
                    read.value.as_deref(),
                    Some(format!("{compression} {idempotent} {number}").as_bytes())
                );
                assert_eq!((read.offset, read.timestamp_ms), (expected as i64, 1_760_000_000_000));
                assert_eq!((read.key.as_deref(), read.headers.len()), (Some(&b"k"[..]), 2));
                expected += 1;
            }
        }
    }
    assert_eq!(records.len(), expected);
}

#[tokio::test]
async fn keys_choose_partitions_and_acks_choose_answers() {
    let stage = Stage::set().await;
    let topic = stage.topic("keys", 4).await;
    for acks in [Acks::Leader, Acks::All] {
        let options = ProducerOptions { acks, idempotent: false, ..ProducerOptions::default() };
        let producer = Producer::new(stage.client.clone(), options);
        let first = producer.write(record(&topic, Some("same"), "a")).await.expect("written");
        let second = producer.write(record(&topic, Some("same"), "b")).await.expect("written");
        assert_eq!((second.partition, second.offset), (first.partition, first.offset + 1));
    }
    let options = ProducerOptions { acks: Acks::None, idempotent: false, ..ProducerOptions::default() };
    let producer = Producer::new(stage.client.clone(), options);
    let written = producer.write(record(&topic, Some("same"), "unanswered")).await.expect("sent");
    assert_eq!(written.offset, -1);
    let records = stage.read(&topic, written.partition, 5).await;
    assert_eq!(records[4].value.as_deref(), Some(&b"unanswered"[..]));
}

#[tokio::test]
async fn a_consumer_seeks_and_resets() {
    let stage = Stage::set().await;
    let topic = stage.topic("seeks", 2).await;
    let producer = Producer::new(stage.client.clone(), ProducerOptions::default());
    for number in 0..10 {
        let record =
            ProducerRecord { partition: Some(number % 2), ..record(&topic, None, &number.to_string()) };
        producer.write(record).await.expect("written");
    }
    let options = ConsumerOptions { offset_reset: OffsetReset::Latest, ..ConsumerOptions::default() };
    let mut consumer = Consumer::new(stage.client.clone(), options);
    assert_eq!(consumer.offset(&topic, 0, OffsetSpec::Latest).await, Ok(5));
    assert_eq!(consumer.offset(&topic, 0, OffsetSpec::Timestamp(0)).await, Ok(0));
    assert_eq!(consumer.offset(&topic, 0, OffsetSpec::Timestamp(i64::MAX)).await, Ok(-1));
    consumer.seek(&topic, 0, 3);
    let records = consumer.poll(Duration::from_secs(10)).await.expect("records");
    assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), [3, 4]);
    // A seek while a fetch is on the wire, to a place outside of the log.
    consumer.seek(&topic, 0, 999);
    assert_eq!(consumer.poll(Duration::from_secs(1)).await, Ok(Vec::new()));
    assert_eq!(consumer.position(&topic, 0), Some(5));
    producer
        .write(ProducerRecord { partition: Some(0), ..record(&topic, None, "new") })
        .await
        .expect("written");
    let records = consumer.poll(Duration::from_secs(10)).await.expect("records");
    assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), [5]);
}

#[tokio::test]
async fn topics_and_settings_are_administered() {
    let stage = Stage::set().await;
    let admin = Admin::new(stage.client.clone());
    let topic = stage.topic("settings", 3).await;
    assert_eq!(admin.describe_topic(&topic).await.expect("described").partitions.len(), 3);
    let again = admin.create_topic(&NewTopic::new(&topic, 1)).await.expect_err("there already");
    assert!(again.is(ErrorCode::TopicAlreadyExists), "{again}");
    let retention = async || {
        let entries = admin.describe_configs(ResourceKind::Topic, &topic).await.expect("settings");
        entries.into_iter().find(|entry| entry.name == "retention.ms").expect("known").value
    };
    admin.alter_configs(ResourceKind::Topic, &topic, &[("retention.ms", Some("1234"))]).await.expect("set");
    wait_for(|| async { retention().await.as_deref() == Some("1234") }).await;
    admin.alter_configs(ResourceKind::Topic, &topic, &[("retention.ms", None)]).await.expect("unset");
    wait_for(|| async { retention().await.as_deref() == Some("604800000") }).await;
    let bad = admin.alter_configs(ResourceKind::Topic, &topic, &[("retention.ms", Some("x"))]).await;
    assert!(bad.expect_err("no number").is(ErrorCode::InvalidConfig));
    admin.delete_topic(&topic).await.expect("deleted");
    wait_for(|| async { admin.describe_topic(&topic).await.is_err() }).await;
}

/// Waits until the cluster has heard of a change.
async fn wait_for<F: Future<Output = bool>>(done: impl Fn() -> F) {
    let heard = async {
        while !done().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), heard).await.expect("the change is seen");
}
