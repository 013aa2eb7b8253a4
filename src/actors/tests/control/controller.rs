//! The controller's event loop: answers after the commit, rollback, crashes.

use std::time::Duration;

use callboard_metadata::image::ConfigResource;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::{
    AllocateProducerIdsRequest, IncrementalAlterConfigsRequest, incremental_alter_configs_request,
};

use crate::node::{Node, create_request, simulate};

fn set_broker_config(name: &str, value: String) -> IncrementalAlterConfigsRequest {
    let config = incremental_alter_configs_request::AlterableConfig {
        name: name.into(),
        value: Some(value.into()),
        ..Default::default()
    };
    let resource = incremental_alter_configs_request::AlterConfigsResource {
        resource_type: 4,
        resource_name: "1".into(),
        configs: vec![config],
        ..Default::default()
    };
    IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() }
}

#[test]
fn a_decision_is_answered_when_its_partitions_serve() {
    simulate(async |dir| {
        let node = Node::start(dir.path(), 1, -1);
        assert!(node.lifecycle.running().await);
        for name in ["a", "b", "c"] {
            assert_eq!(node.create(name, 20).await.unwrap().response, 0);
            assert!((0..20).all(|partition| node.serves(name, partition)), "{name} is answered too early");
        }
        let again = node.create("a", 1).await.unwrap();
        assert_eq!(again.response, ErrorCode::TopicAlreadyExists.code());
        node.stop().await;
    });
}

#[test]
fn decisions_made_at_once_are_all_committed_in_order() {
    simulate(async |dir| {
        let node = Node::start(dir.path(), 1, -1);
        assert!(node.lifecycle.running().await);
        let all: Vec<_> = (0..50).map(|n| node.decide(create_request(&format!("t{n:02}"), 1))).collect();
        let mut last = -1;
        for decided in futures_util::future::join_all(all).await {
            let decided = decided.unwrap();
            assert_eq!(decided.response.topics[0].error_code, 0);
            assert!(decided.last_offset > last);
            last = decided.last_offset;
        }
        assert_eq!(node.topics().len(), 50);
        node.stop().await;
    });
}

#[test]
fn what_does_not_fit_the_log_is_rolled_back() {
    simulate(async |dir| {
        let node = Node::start(dir.path(), 1, -1);
        assert!(node.lifecycle.running().await);
        let too_large = node.decide(set_broker_config("some.plugin", "x".repeat(9 << 20)));
        // Decided on the state that goes: it may succeed only if it was decided after the rollback.
        let behind = node.decide(create_request("behind", 1));
        let (too_large, behind) = futures_util::future::join(too_large, behind).await;
        assert_eq!(too_large.unwrap_err(), ErrorCode::UnknownServerError);
        assert!(matches!(behind, Err(ErrorCode::NotController) | Ok(_)));
        let expected: &[&str] = if behind.is_ok() { &["after", "behind"] } else { &["after"] };
        assert_eq!(node.create("after", 1).await.unwrap().response, 0);
        assert_eq!(node.topics(), expected);
        let metadata = node.metadata.current();
        assert!(metadata.image.configs.value(&ConfigResource::broker(1), "some.plugin").is_none());
        node.decide(set_broker_config("some.plugin", "small".to_owned())).await.unwrap();
        node.stop().await;
    });
}

#[test]
fn a_crashed_controller_resigns_and_is_built_again_from_the_log() {
    simulate(async |dir| {
        let node = Node::start(dir.path(), 1, -1);
        assert!(node.lifecycle.running().await);
        node.create("before", 2).await.unwrap();
        let epoch = node.controller.active_epoch().unwrap();
        for round in 0..3 {
            node.crash("node/controller");
            let in_flight = node.decide(create_request(&format!("during{round}"), 1)).await;
            assert!(matches!(in_flight, Err(ErrorCode::NotController) | Ok(_)));
            let mut changes = node.controller.changes();
            let later = changes.wait_for(|now| now.is_some_and(|now| now > epoch + round)).await.unwrap();
            assert!(later.is_some());
            drop(later);
            assert_eq!(node.create(&format!("after{round}"), 1).await.unwrap().response, 0);
        }
        let topics = node.topics();
        assert!(["before", "after0", "after1", "after2"].iter().all(|name| topics.iter().any(|t| t == name)));
        node.stop().await;
    });
}

#[test]
fn a_crash_of_the_log_takes_nothing_that_was_answered() {
    simulate(async |dir| {
        let node = Node::start(dir.path(), 1, -1);
        assert!(node.lifecycle.running().await);
        let mut created = Vec::new();
        for round in 0..5 {
            node.crash("node/raft");
            let mut attempt = 0;
            loop {
                let name = format!("t{round}-{attempt}");
                match node.create(&name, 1).await {
                    Ok(decided) => {
                        assert_eq!(decided.response, 0);
                        created.push(name);
                        break;
                    }
                    Err(code) => assert_eq!(code, ErrorCode::NotController),
                }
                attempt += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let topics = node.topics();
        assert!(created.iter().all(|name| topics.contains(name)), "{created:?} {topics:?}");
        node.stop().await;
        let node = Node::start(dir.path(), 2, -1);
        assert!(node.lifecycle.running().await);
        let topics = node.topics();
        assert!(created.iter().all(|name| topics.contains(name)), "{created:?} {topics:?}");
        node.stop().await;
    });
}

#[test]
fn producer_ids_are_never_given_twice() {
    simulate(async |dir| {
        let mut start = 0;
        for run in 1..4 {
            let node = Node::start(dir.path(), run, -1);
            assert!(node.lifecycle.running().await);
            let broker_epoch = node.broker_epoch.load(std::sync::atomic::Ordering::SeqCst);
            let request = AllocateProducerIdsRequest { broker_id: 1, broker_epoch, ..Default::default() };
            let reply = node.decide(request).await.unwrap().response;
            assert_eq!((reply.error_code, reply.producer_id_start), (0, start));
            start += i64::from(reply.producer_id_len);
            node.stop().await;
        }
    });
}
