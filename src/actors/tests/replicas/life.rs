//! Partitions from creation to deletion, and over restarts of the node.

use std::time::Duration;

use callboard_actors::replicas::Status;
use callboard_actors::replicas::messages::{ApplyChanges, DeleteRecords, DirectoryFailed};
use callboard_actors::supervision::{AskError, Exit, faults};
use callboard_protocol::{ErrorCode, Uuid};

use super::common::{Node, TOPIC, leads, produce, simulate, until, values, wanted};

fn names(root: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(root).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_clean_stop_is_marked_and_all_is_there_again() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        produce(&partition, &["a", "b"]).await.unwrap();
        assert_eq!(node.stop().await, Exit::Clean);
        assert_eq!(partition.actor().ask(DeleteRecords { before_offset: 0 }).await, Err(AskError::Stopped));
        let marker = std::fs::read_to_string(dir.path().join(".kafka_cleanshutdown")).unwrap();
        assert_eq!(marker, "{\"version\":0,\"brokerEpoch\":5}");
        let checkpoint = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(checkpoint("recovery-point-offset-checkpoint"), "0\n1\ntopic 0 2\n");
        assert_eq!(checkpoint("replication-offset-checkpoint"), "0\n1\ntopic 0 2\n");
        let (_node, partition) = Node::with_partition(dir.path(), &[]).await;
        assert!(!dir.path().join(".kafka_cleanshutdown").exists(), "a crash from now on means recovery");
        assert_eq!(values(&partition), ["a", "b"]);
        assert_eq!(produce(&partition, &["c"]).await.unwrap().base_offset, 2);
    });
}

#[test]
fn without_a_clean_stop_the_log_is_recovered() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        produce(&partition, &["a", "b"]).await.unwrap();
        std::mem::forget(node);
        let log = dir.path().join("topic-0/00000000000000000000.log");
        let mut bytes = std::fs::read(&log).unwrap();
        bytes.extend([0xff; 40]);
        std::fs::write(&log, bytes).unwrap();
        let (_node, partition) = Node::with_partition(dir.path(), &[]).await;
        assert_eq!(values(&partition), ["a", "b"]);
        assert_eq!(produce(&partition, &["c"]).await.unwrap().base_offset, 2);
    });
}

#[test]
fn checkpoints_are_written_while_it_runs() {
    simulate(|dir| async move {
        let (_node, partition) = Node::with_partition(dir.path(), &[]).await;
        produce(&partition, &["a"]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(6)).await;
        let high_watermarks =
            std::fs::read_to_string(dir.path().join("replication-offset-checkpoint")).unwrap();
        assert_eq!(high_watermarks, "0\n1\ntopic 0 1\n");
    });
}

#[test]
fn records_are_deleted_up_to_the_high_watermark() {
    simulate(|dir| async move {
        let (_node, partition) = Node::with_partition(dir.path(), &[]).await;
        produce(&partition, &["a", "b"]).await.unwrap();
        produce(&partition, &["c"]).await.unwrap();
        let delete = |before_offset| partition.actor().ask(DeleteRecords { before_offset });
        assert_eq!(delete(4).await, Ok(Err(ErrorCode::OffsetOutOfRange)));
        assert_eq!(delete(2).await, Ok(Ok(2)));
        assert_eq!(values(&partition), ["c"]);
        assert_eq!(delete(-1).await, Ok(Ok(3)));
        assert_eq!(partition.view().offsets(-1).unwrap().log_start, 3);
    });
}

#[test]
fn a_deleted_topic_makes_room_for_one_of_the_same_name() {
    simulate(|dir| async move {
        let (node, old) = Node::with_partition(dir.path(), &[]).await;
        produce(&old, &["old"]).await.unwrap();
        let again = Uuid::from_u128(8);
        let changes = ApplyChanges {
            wanted: vec![wanted(again, 0, &[])],
            unwanted_topics: vec![TOPIC],
            ..ApplyChanges::default()
        };
        node.apply(changes).await;
        assert_eq!(old.view().status(), Status::Gone);
        assert_eq!(old.view().as_leader(-1).unwrap_err(), ErrorCode::UnknownTopicOrPartition);
        assert!(node.replicas.registry.partition(TOPIC, 0).is_none());
        let new = node.replicas.registry.partition_named("topic", 0).unwrap();
        leads(&new).await;
        assert_eq!(new.id().topic_id, again);
        assert_eq!(values(&new), Vec::<String>::new());
        assert_eq!(names(dir.path()).iter().filter(|name| name.ends_with("-delete")).count(), 1);
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert!(
            names(dir.path()).iter().all(|name| !name.ends_with("-delete")),
            "after file.delete.delay.ms"
        );
        assert!(new.view().status() == Status::Leader);
    });
}

#[test]
fn what_the_cluster_does_not_know_is_set_aside() {
    simulate(|dir| async move {
        let (node, _) = Node::with_partition(dir.path(), &[]).await;
        node.stop().await;
        let node = Node::start(dir.path());
        node.apply(ApplyChanges { complete: true, ..ApplyChanges::default() }).await;
        let names = names(dir.path());
        assert!(
            names.iter().any(|name| name.starts_with("topic-0.") && name.ends_with("-stray")),
            "{names:?}"
        );
        assert!(!names.contains(&"topic-0".to_owned()));
    });
}

#[test]
fn a_failed_directory_takes_its_partitions_offline_and_the_last_one_the_node() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        let failed = DirectoryFailed { directory: 0, reason: "EIO".to_owned() };
        let _ = node.replicas.manager.ask(failed).await;
        until(|| partition.view().status() == Status::Offline).await;
        assert_eq!(partition.view().as_leader(-1).unwrap_err(), ErrorCode::KafkaStorageError);
        assert!(node.replicas.directories[0].is_failed());
        assert_eq!(node.tree.ended().await, Exit::LogDirectoriesFailed);
    });
}

#[test]
fn the_manager_s_crash_leaves_the_partitions_alone() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        produce(&partition, &["a"]).await.unwrap();
        assert!(faults::crash(&node.tree, "node/replicas/manager"));
        assert_eq!(produce(&partition, &["b"]).await.unwrap().base_offset, 1);
        let more = vec![wanted(TOPIC, 1, &[])];
        node.apply(ApplyChanges { wanted: more, ..ApplyChanges::default() }).await;
        leads(&node.replicas.registry.partition(TOPIC, 1).unwrap()).await;
        assert_eq!(node.stop().await, Exit::Clean);
        assert!(dir.path().join(".kafka_cleanshutdown").exists());
    });
}
