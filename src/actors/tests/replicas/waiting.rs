//! The purgatories.

use std::time::Duration;

use callboard_actors::replicas::{Goal, Isolation, Kind, PartitionHandle, Status, Wait};
use callboard_actors::supervision::faults;
use callboard_protocol::ErrorCode;
use tokio::time::Instant;

use super::common::{Node, TOPIC, produce, simulate, until, wanted};
use callboard_actors::replicas::messages::ApplyChanges;

fn bytes(partition: &PartitionHandle, fetch_offset: i64) -> (PartitionHandle, Goal) {
    let goal = Goal::Bytes {
        fetch_offset,
        max_bytes: 1 << 20,
        isolation: Isolation::HighWatermark,
        current_leader_epoch: -1,
    };
    (partition.clone(), goal)
}

fn wait(goals: Vec<(PartitionHandle, Goal)>, min_bytes: u64, timeout_ms: u64) -> Wait {
    Wait { goals, min_bytes, timeout: Duration::from_millis(timeout_ms) }
}

#[test]
fn a_fetch_waits_for_bytes() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        let purgatories = &node.replicas.purgatories;
        let start = Instant::now();
        let fetch = purgatories.wait(Kind::Fetch, wait(vec![bytes(&partition, 0)], 1, 10_000)).unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        produce(&partition, &["a"]).await.unwrap();
        assert_eq!(fetch.await, Ok(vec![Ok(())]));
        assert_eq!(start.elapsed().as_millis(), 50);
        let fetch = purgatories.wait(Kind::Fetch, wait(vec![bytes(&partition, 0)], 1, 10_000)).unwrap();
        assert_eq!(fetch.await, Ok(vec![Ok(())]));
        assert_eq!(start.elapsed().as_millis(), 50, "what is there is answered at once");
    });
}

#[test]
fn bytes_add_up_over_partitions() {
    simulate(|dir| async move {
        let (node, first) = Node::with_partition(dir.path(), &[]).await;
        let more = vec![wanted(TOPIC, 1, &[])];
        node.apply(ApplyChanges { wanted: more, ..ApplyChanges::default() }).await;
        let second = node.replicas.registry.partition(TOPIC, 1).unwrap();
        until(|| second.view().status() == Status::Leader).await;
        let goals = vec![bytes(&first, 0), bytes(&second, 0)];
        let mut fetch = node.replicas.purgatories.wait(Kind::Fetch, wait(goals, 130, 10_000)).unwrap();
        produce(&first, &["a"]).await.unwrap();
        let early = tokio::time::timeout(Duration::from_millis(10), &mut fetch).await;
        assert!(early.is_err(), "69 bytes of 130");
        produce(&second, &["b"]).await.unwrap();
        assert_eq!(fetch.await, Ok(vec![Ok(()), Ok(())]));
    });
}

#[test]
fn the_time_is_kept() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        for timeout_ms in [0, 1, 70, 5000, 700_000] {
            let start = Instant::now();
            let goals = vec![bytes(&partition, 0)];
            let fetch = node.replicas.purgatories.wait(Kind::Fetch, wait(goals, 1, timeout_ms)).unwrap();
            assert_eq!(fetch.await, Ok(vec![Ok(())]));
            let took = u64::try_from(start.elapsed().as_millis()).unwrap();
            assert!(took >= timeout_ms && took <= timeout_ms + 2, "{took} of {timeout_ms}");
        }
    });
}

#[test]
fn a_produce_request_waits_for_the_high_watermark() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        let goal =
            |offset, leader_epoch| vec![(partition.clone(), Goal::HighWatermark { offset, leader_epoch })];
        let purgatories = &node.replicas.purgatories;
        let mut more = wanted(TOPIC, 0, &[]);
        (more.assignment.replicas, more.assignment.isr) = (vec![1, 2], vec![1, 2]);
        node.apply(ApplyChanges { wanted: vec![more.clone()], ..ApplyChanges::default() }).await;
        produce(&partition, &["a"]).await.unwrap();
        let out_of_time = purgatories.wait(Kind::Produce, wait(goal(1, 0), 0, 100)).unwrap();
        assert_eq!(out_of_time.await, Ok(vec![Err(ErrorCode::RequestTimedOut)]));
        let waiting = purgatories.wait(Kind::Produce, wait(goal(1, 0), 0, 10_000)).unwrap();
        more.assignment.isr = vec![1];
        more.assignment.partition_epoch = 1;
        node.apply(ApplyChanges { wanted: vec![more], ..ApplyChanges::default() }).await;
        assert_eq!(waiting.await, Ok(vec![Ok(())]), "the other replica left the in-sync ones");
        let fenced = purgatories.wait(Kind::Produce, wait(goal(9, 5), 0, 10_000)).unwrap();
        assert_eq!(fenced.await, Ok(vec![Err(ErrorCode::NotLeaderOrFollower)]));
    });
}

#[test]
fn a_partition_s_crash_is_told_at_once() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        let goals = vec![bytes(&partition, 0)];
        let fetch = node.replicas.purgatories.wait(Kind::Fetch, wait(goals, 1, 10_000)).unwrap();
        let start = Instant::now();
        tokio::task::yield_now().await;
        assert!(faults::crash(&node.tree, "node/replicas/partitions/topic-0"));
        assert_eq!(fetch.await, Ok(vec![Err(ErrorCode::NotLeaderOrFollower)]));
        assert!(start.elapsed() < Duration::from_secs(1));
    });
}

#[test]
fn a_purgatory_s_crash_leaves_nobody_without_an_answer_and_the_next_wait_works() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        let purgatories = &node.replicas.purgatories;
        let fetch = purgatories.wait(Kind::Fetch, wait(vec![bytes(&partition, 0)], 1, 10_000)).unwrap();
        tokio::task::yield_now().await;
        assert!(faults::crash(&node.tree, "node/replicas/requests/purgatory-fetch-0"));
        assert!(fetch.await.is_err());
        produce(&partition, &["a"]).await.unwrap();
        let fetch = purgatories.wait(Kind::Fetch, wait(vec![bytes(&partition, 1)], 1, 10_000)).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        produce(&partition, &["b"]).await.unwrap();
        assert_eq!(fetch.await, Ok(vec![Ok(())]));
    });
}
