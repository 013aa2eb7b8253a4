//! A node's broker from registration to controlled shutdown, and back.

use std::sync::atomic::Ordering;

use callboard_actors::control::lifecycle::BrokerState;

use crate::node::{Node, simulate};

#[test]
fn a_new_node_starts_a_cluster_and_joins_it() {
    simulate(async |dir| {
        let node = Node::start(dir.path(), 1, -1);
        assert!(node.lifecycle.running().await);
        let epoch = node.broker_epoch.load(Ordering::SeqCst);
        assert!(node.metadata.reached(epoch).await);
        let metadata = node.metadata.current();
        assert_eq!(metadata.image.features.level("metadata.version"), 33);
        assert_eq!(metadata.settings.text("min.insync.replicas"), Some("1"));
        assert_eq!(metadata.image.cluster.controllers.len(), 1);
        assert_eq!(metadata.image.cluster.broker(1).unwrap().epoch, epoch);
        node.stop().await;
    });
}

#[test]
fn a_broker_leaves_in_order_and_comes_back() {
    simulate(async |dir| {
        let node = Node::start(dir.path(), 1, -1);
        assert!(node.lifecycle.running().await);
        assert_eq!(node.create("t", 3).await.unwrap().response, 0);
        node.lifecycle.begin_shutdown().await.unwrap();
        assert_eq!(*node.lifecycle.state().borrow(), BrokerState::MayStop);
        let epoch = node.broker_epoch.load(Ordering::SeqCst);
        node.stop().await;

        let node = Node::start(dir.path(), 2, epoch);
        assert!(node.lifecycle.running().await);
        let mut offset = node.metadata.offset();
        let leads = |_: &i64| (0..3).all(|partition| node.serves("t", partition));
        offset.wait_for(leads).await.unwrap();
        let metadata = node.metadata.current();
        let partition = metadata.image.topics.partition("t", 0).unwrap();
        assert_eq!((partition.leader, partition.leader_epoch), (1, 2));
        assert_eq!(partition.leader_recovery_state.value(), 0);
        assert!(node.broker_epoch.load(Ordering::SeqCst) > epoch);
        node.stop().await;
    });
}

#[test]
fn a_broker_that_was_killed_comes_back_at_once() {
    simulate(async |dir| {
        let node = Node::start(dir.path(), 1, -1);
        assert!(node.lifecycle.running().await);
        node.create("t", 1).await.unwrap();
        // Its session still runs, and no clean end was written down.
        node.stop().await;

        let began = tokio::time::Instant::now();
        let node = Node::start(dir.path(), 2, -1);
        assert!(node.lifecycle.running().await);
        let mut offset = node.metadata.offset();
        offset.wait_for(|_| node.serves("t", 0)).await.unwrap();
        assert!(began.elapsed().as_secs() < 2, "it must not wait for the end of its former session");
        node.stop().await;
    });
}

#[test]
fn a_crashed_lifecycle_keeps_the_broker_in() {
    simulate(async |dir| {
        let node = Node::start(dir.path(), 1, -1);
        assert!(node.lifecycle.running().await);
        let epoch = node.broker_epoch.load(Ordering::SeqCst);
        node.crash("node/lifecycle");
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        assert_eq!(node.broker_epoch.load(Ordering::SeqCst), epoch);
        assert!(!node.metadata.current().image.cluster.broker(1).unwrap().fenced);
        node.stop().await;
    });
}
