//! kill -9 under load, ten times: every acknowledged record is there, in order, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use callboard_client::{Admin, Client, ClientOptions, NewTopic, Producer, ProducerOptions};
use callboard_tests::{Ledger, Node, check_partition};

const KILLS: usize = 10;
const PARTITIONS: i32 = 3;
const TOPIC: &str = "survivors";

#[tokio::test]
async fn acknowledged_records_survive_kill_9() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut node = Node::start(dir.path(), &[]).await;
    let options = ClientOptions {
        request_timeout: Duration::from_secs(5),
        retry_backoff: Duration::from_millis(20),
        ..ClientOptions::new(node.address())
    };
    let client = Client::connect(options).await.expect("a client");
    // Small segments, so that recovery crosses several.
    let topic = NewTopic::new(TOPIC, PARTITIONS).config("segment.bytes", "1048576");
    Admin::new(client.clone()).create_topic(&topic).await.expect("a topic");
    let producer = Producer::new(client.clone(), ProducerOptions::default());
    let stop = Arc::new(AtomicBool::new(false));
    let fills: Vec<_> = (0..PARTITIONS)
        .map(|partition| tokio::spawn(Ledger::fill(producer.clone(), TOPIC.into(), partition, stop.clone())))
        .collect();
    for kill in 0..KILLS {
        // Uneven pauses: the kill meets appends, rolls and the start after the kill before.
        tokio::time::sleep(Duration::from_millis(100 + 37 * (kill as u64 % 5))).await;
        node.kill_and_restart().await;
    }
    stop.store(true, Ordering::Relaxed);
    let mut acknowledged = 0;
    for (partition, fill) in (0..).zip(fills) {
        let ledger = fill.await.expect("the load ran");
        let refused = ledger.answers.iter().find_map(|answer| answer.as_ref().err());
        assert_eq!(refused, None, "a record was given up");
        check_partition(&client, TOPIC, partition, &ledger).await.expect("all that was acknowledged");
        acknowledged += ledger.acknowledged();
    }
    assert!(acknowledged > 1_000, "only {acknowledged} records were written: no load");
}
