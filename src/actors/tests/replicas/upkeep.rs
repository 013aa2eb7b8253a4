//! Retention and the expiry of producers, by the node's own timers.

use std::path::Path;
use std::time::Duration;

use callboard_actors::replicas::messages::{ApplyChanges, DeleteRecords, DescribeProducers};
use callboard_actors::replicas::{PartitionHandle, Status};
use callboard_actors::supervision::Exit;
use callboard_protocol::ErrorCode;
use callboard_protocol::records::BatchBuilder;

use super::common::{Node, TOPIC, append, batch, leads, produce, simulate, until, values, wanted};

fn segments(partition: &PartitionHandle) -> Vec<i64> {
    let reader = partition.view().reader().unwrap();
    reader.segments().into_iter().map(|(base, _)| base).collect()
}

fn files(root: &Path, ending: &str) -> usize {
    let entries = std::fs::read_dir(root.join("topic-0")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(ending)).count()
}

/// Five records, each in a segment of its own.
async fn five_segments(partition: &PartitionHandle) {
    for value in ["a", "b", "c", "d", "e"] {
        produce(partition, &[&value.repeat(600_000)]).await.unwrap();
    }
    assert_eq!(segments(partition), [0, 1, 2, 3, 4]);
}

#[test]
fn old_segments_go_in_two_steps_the_one_written_to_included() {
    simulate(|dir| async move {
        let settings = [("segment.bytes", "1048576"), ("retention.ms", "600000")];
        let (_node, partition) = Node::with_partition(dir.path(), &settings).await;
        five_segments(&partition).await;
        tokio::time::sleep(Duration::from_secs(500)).await;
        assert_eq!(segments(&partition).len(), 5, "not old enough");
        tokio::time::sleep(Duration::from_secs(131)).await;
        until(|| segments(&partition) == [5]).await;
        assert_eq!((files(dir.path(), ".log"), files(dir.path(), ".log.deleted")), (1, 5));
        let offsets = partition.view().offsets(-1).unwrap();
        assert_eq!((offsets.log_start, offsets.log_end), (5, 5));
        assert_eq!(produce(&partition, &["f"]).await.unwrap().base_offset, 5);
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!((files(dir.path(), ".log"), files(dir.path(), ".deleted")), (1, 0));
        assert_eq!(values(&partition), ["f"]);
    });
}

#[test]
fn the_oldest_go_by_size_and_a_change_of_settings_counts_at_once() {
    simulate(|dir| async move {
        let settings = [("segment.bytes", "1048576"), ("retention.bytes", "1300000")];
        let (_node, partition) = Node::with_partition(dir.path(), &settings).await;
        five_segments(&partition).await;
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(segments(&partition), [2, 3, 4]);
        assert_eq!(partition.view().offsets(-1).unwrap().log_start, 2);
    });
}

#[test]
fn a_compacted_topic_keeps_what_is_old() {
    simulate(|dir| async move {
        let settings = [("cleanup.policy", "compact"), ("retention.ms", "1"), ("retention.bytes", "1")];
        let (_node, partition) = Node::with_partition(dir.path(), &settings).await;
        let mut keyed = BatchBuilder::new(0);
        keyed.append(1_700_000_000_000, Some(b"key"), Some(b"value"), &[]);
        partition.actor().ask(append(keyed.build().unwrap())).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(values(&partition), ["value"]);
    });
}

#[test]
fn silent_producers_are_forgotten() {
    simulate(|dir| async move {
        let (_node, partition) = Node::with_partition(dir.path(), &[]).await;
        let send = |sequence| partition.actor().ask(append(batch(&["x"], Some((7, sequence)))));
        send(0).await.unwrap().unwrap();
        assert_eq!(send(5).await.unwrap().unwrap_err().error, ErrorCode::OutOfOrderSequenceNumber);
        // A day of silence and a round of the check.
        tokio::time::sleep(Duration::from_secs(86_400 + 601)).await;
        assert_eq!(partition.actor().ask(DescribeProducers).await.unwrap().unwrap(), []);
        assert_eq!(send(5).await.unwrap().unwrap().base_offset, 1);
        assert_eq!(send(7).await.unwrap().unwrap_err().error, ErrorCode::OutOfOrderSequenceNumber);
    });
}

#[test]
fn a_compacted_topic_is_compacted_and_its_checkpoint_written() {
    simulate(|dir| async move {
        let settings =
            [("cleanup.policy", "compact"), ("segment.bytes", "1048576"), ("delete.retention.ms", "0")];
        let (node, partition) = Node::with_partition(dir.path(), &settings).await;
        let put = async |key: &str, value: &str| {
            let mut keyed = BatchBuilder::new(0);
            keyed.append(1_700_000_000_000, Some(key.as_bytes()), Some(value.as_bytes()), &[]);
            partition.actor().ask(append(keyed.build().unwrap())).await.unwrap().unwrap();
        };
        let large = "x".repeat(600_000);
        for key in ["a", "b", "a", "b", "c"] {
            put(key, &large).await;
        }
        assert_eq!(segments(&partition), [0, 1, 2, 3, 4]);
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert_eq!(values(&partition).len(), 3);
        assert_eq!(segments(&partition), [0, 1, 2, 3, 4], "as they can't be one");
        let checkpoint = || std::fs::read_to_string(dir.path().join("cleaner-offset-checkpoint")).unwrap();
        assert_eq!(checkpoint(), "0\n1\ntopic 0 4\n");
        put("c", "small").await;
        put("d", &large).await;
        tokio::time::sleep(Duration::from_secs(16)).await;
        assert_eq!(checkpoint(), "0\n1\ntopic 0 4\n", "too little is new");
        assert_eq!(node.stop().await, Exit::Clean);
        let (_node, partition) = Node::with_partition(dir.path(), &settings).await;
        assert_eq!(values(&partition).len(), 5);
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert_eq!(files(dir.path(), ".deleted"), 0);
        assert_eq!(checkpoint(), "0\n1\ntopic 0 4\n");
    });
}

#[test]
fn a_log_that_can_not_be_compacted_stops_no_other() {
    simulate(|dir| async move {
        let settings = [("cleanup.policy", "compact"), ("segment.bytes", "1048576")];
        let (node, hurt) = Node::with_partition(dir.path(), &settings).await;
        node.apply(ApplyChanges { wanted: vec![wanted(TOPIC, 1, &settings)], ..ApplyChanges::default() })
            .await;
        let well = node.replicas.registry.partition(TOPIC, 1).unwrap();
        leads(&well).await;
        let large = "x".repeat(600_000);
        for partition in [&hurt, &well] {
            for _ in 0..3 {
                let mut keyed = BatchBuilder::new(0);
                keyed.append(1_700_000_000_000, Some(b"key"), Some(large.as_bytes()), &[]);
                partition.actor().ask(append(keyed.build().unwrap())).await.unwrap().unwrap();
            }
        }
        let path = dir.path().join("topic-0/00000000000000000000.log");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[1_000] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        tokio::time::sleep(Duration::from_secs(31)).await;
        let size = |partition: &PartitionHandle| partition.view().reader().unwrap().size_bytes();
        assert!(size(&well) < 1_300_000, "one record of two is gone");
        assert!(size(&hurt) > 1_800_000);
        assert_eq!(hurt.view().status(), Status::Leader);
    });
}

#[test]
fn with_nothing_but_the_reserve_left_appends_are_refused_and_all_else_goes_on() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        produce(&partition, &["a"]).await.unwrap();
        assert_eq!(node.stop().await, Exit::Clean);
        let node = Node::start_with_reserve(dir.path(), u64::MAX);
        node.apply(ApplyChanges { wanted: vec![wanted(TOPIC, 0, &[])], ..ApplyChanges::default() }).await;
        let partition = node.replicas.registry.partition(TOPIC, 0).unwrap();
        leads(&partition).await;
        let refused = produce(&partition, &["b"]).await.unwrap_err();
        assert_eq!(refused.error, ErrorCode::KafkaStorageError);
        assert_eq!(values(&partition), ["a"]);
        assert_eq!(partition.actor().ask(DeleteRecords { before_offset: 1 }).await, Ok(Ok(1)));
        assert_eq!(partition.view().status(), Status::Leader);
        assert_eq!(node.stop().await, Exit::Clean);
        let (_node, partition) = Node::with_partition(dir.path(), &[]).await;
        assert_eq!(produce(&partition, &["b"]).await.unwrap().base_offset, 1);
    });
}
