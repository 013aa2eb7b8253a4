//! What a damaged or missing file takes down: its partition, and nothing more.

use std::path::Path;
use std::time::Duration;

use callboard_actors::replicas::Status;
use callboard_actors::replicas::messages::ApplyChanges;
use callboard_actors::supervision::Exit;
use callboard_protocol::{ErrorCode, Uuid};

use super::common::{Node, TOPIC, leads, produce, simulate, until, values, wanted};

/// Two partitions with a record each, stopped in order; then `damage` works in the first one's directory.
async fn damaged(root: &Path, damage: impl FnOnce(&Path)) -> Node {
    let both = || ApplyChanges {
        wanted: vec![wanted(TOPIC, 0, &[]), wanted(TOPIC, 1, &[])],
        ..ApplyChanges::default()
    };
    let node = Node::start(root);
    node.apply(both()).await;
    for number in [0, 1] {
        let partition = node.replicas.registry.partition(TOPIC, number).unwrap();
        leads(&partition).await;
        produce(&partition, &["a"]).await.unwrap();
    }
    assert_eq!(node.stop().await, Exit::Clean);
    damage(&root.join("topic-0"));
    let node = Node::start(root);
    node.apply(both()).await;
    node
}

async fn only_the_first_is_offline(node: &Node) {
    let [hurt, well] = [0, 1].map(|number| node.replicas.registry.partition(TOPIC, number).unwrap());
    until(|| hurt.view().status() == Status::Offline).await;
    assert_eq!(hurt.view().as_leader(-1).unwrap_err(), ErrorCode::KafkaStorageError);
    leads(&well).await;
    assert_eq!(values(&well), ["a"]);
    assert_eq!(produce(&well, &["b"]).await.unwrap().base_offset, 1);
    assert!(!node.replicas.directories[0].is_failed());
}

#[test]
fn a_damaged_file_takes_its_partition_offline_and_no_other() {
    simulate(|dir| async move {
        let damage = |partition: &Path| {
            std::fs::write(partition.join("partition.metadata"), "what is this").unwrap();
        };
        let node = damaged(dir.path(), damage).await;
        only_the_first_is_offline(&node).await;
        assert_eq!(node.stop().await, Exit::Clean);
        assert!(!dir.path().join(".kafka_cleanshutdown").exists(), "one log was not closed");
    });
}

#[test]
fn files_of_another_topic_are_not_taken_for_the_partition() {
    simulate(|dir| async move {
        let other = "version: 0\ntopic_id: VIYaLQ2XSlKK8APGPbn5Tg";
        let damage = |partition: &Path| std::fs::write(partition.join("partition.metadata"), other).unwrap();
        only_the_first_is_offline(&damaged(dir.path(), damage).await).await;
    });
}

#[test]
fn a_deleted_topic_takes_a_damaged_partition_with_it() {
    simulate(|dir| async move {
        let damage = |partition: &Path| std::fs::write(partition.join("partition.metadata"), "?").unwrap();
        let node = damaged(dir.path(), damage).await;
        only_the_first_is_offline(&node).await;
        let again = Uuid::from_u128(8);
        node.apply(ApplyChanges {
            wanted: vec![wanted(again, 0, &[])],
            unwanted_topics: vec![TOPIC],
            ..ApplyChanges::default()
        })
        .await;
        let partition = node.replicas.registry.partition(again, 0).unwrap();
        leads(&partition).await;
        assert_eq!(produce(&partition, &["new"]).await.unwrap().base_offset, 0);
        tokio::time::sleep(Duration::from_secs(61)).await;
        let left = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with("-delete")));
    });
}

#[test]
fn a_directory_that_is_gone_ends_the_node_that_has_no_other() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[("segment.bytes", "1048576")]).await;
        std::fs::remove_dir_all(dir.path()).unwrap();
        // The next segment can't be made.
        let large = "x".repeat(600_000);
        produce(&partition, &[&large]).await.unwrap();
        let refused = produce(&partition, &[&large]).await.unwrap_err();
        assert_eq!(refused.error, ErrorCode::KafkaStorageError);
        assert_eq!(node.tree.ended().await, Exit::LogDirectoriesFailed);
    });
}
