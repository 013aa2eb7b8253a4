use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    BrokerHeartbeatRequest, BrokerRegistrationRequest, ControllerRegistrationRequest, UnregisterBrokerRequest,
};
use callboard_protocol::{ErrorCode, Uuid};

use crate::fixture::{Cluster, log_dir, registration, topic};

#[test]
fn a_broker_starts_fenced_and_is_let_in_when_it_has_read_its_registration() {
    let mut cluster = Cluster::new(&[]);
    let expected_epoch = cluster.next_offset;
    let reply = cluster.register(registration(1, 1));
    assert_eq!((reply.error_code, reply.broker_epoch), (0, expected_epoch));
    assert_eq!(cluster.last[0].version, 4);
    assert!(cluster.image().cluster.broker(1).unwrap().fenced);

    let behind = cluster.heartbeat(1, |request| request.current_metadata_offset = expected_epoch - 1);
    assert!(behind.is_fenced && !behind.is_caught_up && cluster.last.is_empty());
    let waiting = cluster.heartbeat(1, |request| request.want_fence = true);
    assert!(waiting.is_fenced && waiting.is_caught_up && cluster.last.is_empty());
    let let_in = cluster.heartbeat(1, |_| {});
    assert!(!let_in.is_fenced && let_in.is_caught_up && !let_in.should_shut_down);
    assert!(matches!(
        &cluster.last[..],
        [only] if only.version == 0
            && matches!(&only.record, MetadataRecord::BrokerRegistrationChangeRecord(r) if r.fenced == -1)
    ));
    cluster.heartbeat(1, |_| {});
    assert!(cluster.last.is_empty());
}

#[test]
fn registrations_are_checked() {
    let mut cluster = Cluster::with_brokers(2, &[]);
    let refused = |cluster: &mut Cluster, request: BrokerRegistrationRequest, code: ErrorCode| {
        let reply = cluster.register(request);
        assert_eq!((reply.error_code, reply.broker_epoch), (code.code(), -1));
        assert!(cluster.last.is_empty());
    };
    let base = || registration(2, 2);
    let other_cluster = BrokerRegistrationRequest { cluster_id: "other".into(), ..base() };
    refused(&mut cluster, other_cluster, ErrorCode::InconsistentClusterId);
    refused(&mut cluster, base(), ErrorCode::DuplicateBrokerRegistration);
    let new = || registration(3, 1);
    let no_dirs = BrokerRegistrationRequest { log_dirs: vec![], ..new() };
    refused(&mut cluster, no_dirs, ErrorCode::InvalidRegistration);
    let same_dirs = BrokerRegistrationRequest { log_dirs: vec![log_dir(3); 2], ..new() };
    refused(&mut cluster, same_dirs, ErrorCode::InvalidRegistration);
    let mut old = new();
    old.features.retain(|feature| feature.name != "share.version");
    refused(&mut cluster, old, ErrorCode::UnsupportedVersion);
    let mut too_old = new();
    too_old.features[0].max_supported_version = 32;
    refused(&mut cluster, too_old, ErrorCode::UnsupportedVersion);
}

#[test]
fn a_repeated_registration_keeps_epoch_and_state() {
    let mut cluster = Cluster::with_brokers(2, &[]);
    let epoch = cluster.epoch(2);
    let reply = cluster.register(registration(2, 1));
    assert_eq!((reply.error_code, reply.broker_epoch), (0, epoch));
    assert!(!cluster.image().cluster.broker(2).unwrap().fenced);
}

#[test]
fn another_run_waits_for_the_end_of_the_session() {
    let mut cluster = Cluster::with_brokers(2, &[]);
    let old = cluster.epoch(2);
    cluster.now_ms += 9_000;
    assert_eq!(cluster.register(registration(2, 2)).error_code, 101);
    cluster.now_ms += 1;
    let reply = cluster.register(registration(2, 2));
    assert_eq!(reply.error_code, 0);
    assert!(reply.broker_epoch > old);
}

#[test]
fn the_own_broker_need_not_wait() {
    let mut cluster = Cluster::one();
    assert_eq!(cluster.register(registration(1, 2)).error_code, 0);
}

#[test]
fn stale_heartbeats_are_refused() {
    let mut cluster = Cluster::one();
    let stale = cluster.heartbeat(1, |request| request.broker_epoch -= 1);
    assert_eq!(stale.error_code, ErrorCode::StaleBrokerEpoch.code());
    let request = BrokerHeartbeatRequest { broker_id: 7, ..Default::default() };
    let unknown = cluster.run(|controller, ctx| controller.heartbeat(&request, ctx));
    assert_eq!(unknown.error_code, ErrorCode::BrokerIdNotRegistered.code());
}

#[test]
fn silent_brokers_are_fenced() {
    let mut cluster = Cluster::with_brokers(3, &[]);
    cluster.topic("t", 6, 3);
    let start = cluster.now_ms;
    cluster.now_ms += 5_000;
    cluster.heartbeat(1, |_| {});
    assert_eq!(cluster.controller.next_session_end_ms(), Some(start + 9_001));
    cluster.now_ms = start + 9_000;
    cluster.run(|controller, ctx| controller.fence_silent_brokers(ctx.now_ms));
    assert!(cluster.last.is_empty());
    cluster.now_ms = start + 9_001;
    cluster.run(|controller, ctx| controller.fence_silent_brokers(ctx.now_ms));
    let fenced: Vec<bool> = cluster.image().cluster.brokers.values().map(|b| b.fenced).collect();
    assert_eq!(fenced, [false, true, true]);
    for number in 0..6 {
        let partition = cluster.partition("t", number);
        assert_eq!((&partition.isr[..], partition.leader), (&[1][..], 1));
    }
    assert_eq!(cluster.controller.next_session_end_ms(), Some(start + 14_001));
}

#[test]
fn a_lone_broker_shuts_down_and_comes_back() {
    let mut cluster = Cluster::one();
    cluster.topic("t", 2, 1);
    let leaving = cluster.heartbeat(1, |request| request.want_shut_down = true);
    assert!(!leaving.should_shut_down && !leaving.is_fenced);
    assert_eq!(cluster.last[0].version, 1);
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, partition.leader_epoch), (-1, 1));
    assert_eq!(
        (&partition.isr[..], &partition.elr[..], &partition.last_known_elr[..]),
        (&[][..], &[1][..], &[1][..])
    );
    let left = cluster.heartbeat(1, |request| request.want_shut_down = true);
    assert!(left.should_shut_down && left.is_fenced);
    let epoch = cluster.epoch(1);

    let request = BrokerRegistrationRequest { previous_broker_epoch: epoch, ..registration(1, 2) };
    assert_eq!(cluster.register(request).error_code, 0);
    assert_eq!(cluster.last.len(), 1, "it stopped cleanly: it's still eligible");
    cluster.heartbeat(1, |_| {});
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, partition.leader_epoch), (1, 2));
    assert_eq!(
        (&partition.isr[..], &partition.elr[..], &partition.last_known_elr[..]),
        (&[1][..], &[][..], &[][..])
    );
    assert_eq!(partition.leader_recovery_state.value(), 0);
}

#[test]
fn a_lone_broker_that_was_killed_leads_again_as_the_last_known() {
    let mut cluster = Cluster::one();
    cluster.topic("t", 1, 1);
    assert_eq!(cluster.register(registration(1, 2)).error_code, 0);
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, &partition.isr[..], &partition.elr[..]), (-1, &[][..], &[][..]));
    assert_eq!(partition.last_known_elr, [1]);
    cluster.heartbeat(1, |_| {});
    let partition = cluster.partition("t", 0);
    assert_eq!((partition.leader, &partition.isr[..]), (1, &[1][..]));
    assert_eq!((partition.leader_recovery_state.value(), &partition.last_known_elr[..]), (1, &[][..]));
}

#[test]
fn shutdown_waits_until_the_others_know() {
    let mut cluster = Cluster::with_brokers(2, &[]);
    cluster.topic("t", 4, 2);
    let before = cluster.next_offset;
    let leaving = cluster.heartbeat(1, |request| request.want_shut_down = true);
    assert!(!leaving.should_shut_down);
    assert!((0..4).all(|number| cluster.partition("t", number).leader == 2));
    let waiting = |cluster: &mut Cluster| cluster.heartbeat(1, |request| request.want_shut_down = true);
    cluster.heartbeat(2, |request| request.current_metadata_offset = before - 1);
    assert!(!waiting(&mut cluster).should_shut_down);
    cluster.heartbeat(2, |_| {});
    assert!(waiting(&mut cluster).should_shut_down);
}

#[test]
fn a_broker_loses_a_directory() {
    let mut cluster = Cluster::new(&[]);
    for id in [1, 2] {
        let log_dirs = vec![log_dir(id), log_dir(id + 10)];
        cluster.register(BrokerRegistrationRequest { log_dirs, ..registration(id, 1) });
        cluster.heartbeat(id, |_| {});
    }
    cluster.create(vec![topic("t", 2, 2)]);
    assert_eq!(cluster.partition("t", 0).directories, [Uuid::ZERO; 2], "the broker chooses");
    cluster.heartbeat(1, |request| request.offline_log_dirs = vec![log_dir(11)]);
    assert_eq!(cluster.image().cluster.broker(1).unwrap().log_dirs, [log_dir(1)]);
    cluster.heartbeat(1, |request| request.cordoned_log_dirs = Some(vec![log_dir(1)]));
    let reply = cluster.create(vec![topic("u", 1, 2)]);
    assert_eq!(reply.topics[0].error_code, 38, "the only directory left takes no new partitions");
}

#[test]
fn brokers_and_controllers_are_registered_and_forgotten() {
    let mut cluster = Cluster::with_brokers(2, &[]);
    cluster.topic("t", 2, 2);
    let request = UnregisterBrokerRequest { broker_id: 42, ..Default::default() };
    let reply = cluster.run(|controller, _| controller.unregister_broker(&request));
    assert_eq!(reply.error_code, 102);
    assert_eq!(reply.error_message.as_deref(), Some("Broker ID 42 is not currently registered"));
    let request = UnregisterBrokerRequest { broker_id: 2, ..Default::default() };
    assert_eq!(cluster.run(|controller, _| controller.unregister_broker(&request)).error_code, 0);
    assert!(cluster.image().cluster.broker(2).is_none());
    assert!((0..2).all(|number| cluster.partition("t", number).leader == 1));
    let request = ControllerRegistrationRequest {
        controller_id: 1,
        incarnation_id: Uuid::from_u128(5),
        ..Default::default()
    };
    cluster.run(|controller, _| controller.register_controller(&request));
    assert_eq!(cluster.image().cluster.controllers[&1].incarnation_id, Uuid::from_u128(5));
}
