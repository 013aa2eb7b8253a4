//! Appending: what is answered, what is published, what a crash costs.

use callboard_actors::replicas::Status;
use callboard_actors::replicas::messages::{ApplyChanges, DescribeProducers, Wanted};
use callboard_actors::supervision::faults;
use callboard_protocol::ErrorCode;

use super::common::{Node, TOPIC, append, batch, error_of, leads, produce, simulate, until, values, wanted};

#[test]
fn gives_offsets_and_publishes_them() {
    simulate(|dir| async move {
        let (_node, partition) = Node::with_partition(dir.path(), &[]).await;
        let first = produce(&partition, &["a", "b"]).await.unwrap();
        let second = produce(&partition, &["c"]).await.unwrap();
        assert_eq!((first.base_offset, second.base_offset), (0, 2));
        assert_eq!((second.required_high_watermark, second.log_append_time_ms), (3, -1));
        let offsets = partition.view().offsets(0).unwrap();
        assert_eq!((offsets.log_start, offsets.high_watermark, offsets.log_end), (0, 3, 3));
        assert_eq!((offsets.last_stable, offsets.leader_epoch), (3, 0));
        assert_eq!(values(&partition), ["a", "b", "c"]);
    });
}

#[test]
fn stamps_where_the_topic_says_so() {
    simulate(|dir| async move {
        let settings = [("message.timestamp.type", "LogAppendTime")];
        let (_node, partition) = Node::with_partition(dir.path(), &settings).await;
        let appended = produce(&partition, &["a"]).await.unwrap();
        assert!(appended.log_append_time_ms >= 1_700_000_000_000);
    });
}

#[test]
fn refuses_what_breaks_the_rules_and_says_why() {
    simulate(|dir| async move {
        let (_node, partition) = Node::with_partition(dir.path(), &[("max.message.bytes", "100")]).await;
        let refused = produce(&partition, &["x".repeat(200).as_str()]).await.unwrap_err();
        assert_eq!((refused.error, refused.log_start_offset), (ErrorCode::MessageTooLarge, -1));
        let mut bad = batch(&["a"], None).to_vec();
        *bad.last_mut().unwrap() ^= 1;
        let refused = partition.actor().ask(append(bad.into())).await.unwrap().unwrap_err();
        assert_eq!(refused.error, ErrorCode::CorruptMessage);
        assert_eq!(partition.view().high_watermark(), 0);
    });
}

#[test]
fn an_idempotent_producer_s_repeat_gets_its_offset_again_also_after_a_crash() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        let send = |sequence| partition.actor().ask(append(batch(&["a", "b"], Some((5, sequence)))));
        assert_eq!(send(0).await.unwrap().unwrap().base_offset, 0);
        assert_eq!(send(2).await.unwrap().unwrap().base_offset, 2);
        assert!(faults::crash(&node.tree, "node/replicas/partitions/topic-0"));
        until(|| partition.view().status() != Status::Leader).await;
        leads(&partition).await;
        assert_eq!(send(2).await.unwrap().unwrap().base_offset, 2);
        assert_eq!(send(9).await.unwrap().unwrap_err().error, ErrorCode::OutOfOrderSequenceNumber);
        assert_eq!(send(4).await.unwrap().unwrap().base_offset, 4);
        let producers = partition.actor().ask(DescribeProducers).await.unwrap().unwrap();
        assert_eq!((producers.len(), producers[0].producer_id, producers[0].last_sequence), (1, 5, 5));
        assert_eq!(values(&partition), ["a", "b", "a", "b", "a", "b"]);
    });
}

#[test]
fn crashes_cost_no_acknowledged_record() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        let mut expected = Vec::new();
        for round in 0..20 {
            for number in 0..5 {
                let value = format!("{round}-{number}");
                // A partition that is being opened again refuses; a client tries again.
                loop {
                    match produce(&partition, &[value.as_str()]).await {
                        Ok(_) => break,
                        Err(refusal) => assert_eq!(refusal.error, ErrorCode::NotLeaderOrFollower),
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
                expected.push(value);
            }
            assert!(faults::crash(&node.tree, "node/replicas/partitions/topic-0"));
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        assert_eq!(values(&partition), expected);
    });
}

#[test]
fn min_insync_replicas_is_capped_to_the_replicas() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[("min.insync.replicas", "2")]).await;
        assert!(produce(&partition, &["a"]).await.is_ok(), "one replica: 2 is capped to 1");
        let mut more = wanted(TOPIC, 0, &[("min.insync.replicas", "2")]);
        more.assignment.replicas = vec![1, 2];
        more.assignment.partition_epoch = 1;
        node.apply(ApplyChanges { wanted: vec![more], ..ApplyChanges::default() }).await;
        assert_eq!(error_of(&partition).await, ErrorCode::NotEnoughReplicas);
    });
}

#[test]
fn only_a_leader_takes_records_and_epochs_are_compared() {
    simulate(|dir| async move {
        let (node, partition) = Node::with_partition(dir.path(), &[]).await;
        assert_eq!(partition.view().as_leader(1).unwrap_err(), ErrorCode::UnknownLeaderEpoch);
        let assigned = |leader, leader_epoch| {
            let mut wanted = wanted(TOPIC, 0, &[]);
            (wanted.assignment.leader, wanted.assignment.leader_epoch) = (leader, leader_epoch);
            wanted
        };
        let apply =
            |wanted: Wanted| node.apply(ApplyChanges { wanted: vec![wanted], ..ApplyChanges::default() });
        apply(assigned(2, 1)).await;
        assert_eq!(error_of(&partition).await, ErrorCode::NotLeaderOrFollower);
        assert_eq!(partition.view().as_leader(-1).unwrap_err(), ErrorCode::NotLeaderOrFollower);
        apply(assigned(1, 2)).await;
        assert_eq!(produce(&partition, &["a"]).await.unwrap().leader_epoch, 2);
        assert_eq!(partition.view().as_leader(1).unwrap_err(), ErrorCode::FencedLeaderEpoch);
        let reader = partition.view().as_leader(2).unwrap();
        assert_eq!(reader.epoch_end_offset(2), Some((2, 1)));
    });
}

#[test]
fn records_of_a_synced_topic_count_once_they_are_on_the_device() {
    simulate(|dir| async move {
        let (_node, partition) = Node::with_partition(dir.path(), &[("callboard.durability", "fsync")]).await;
        let appended = produce(&partition, &["a"]).await.unwrap();
        until(|| partition.view().high_watermark() == appended.required_high_watermark).await;
        assert_eq!(values(&partition), ["a"]);
    });
}
