//! The image: records in, records out, and what differs between two.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use callboard_metadata::ReplayError;
use callboard_metadata::image::{ConfigResource, Delta, Image, TransactionalImage};
use callboard_protocol::Uuid;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::*;

const T: Uuid = Uuid::from_u128(1 << 64 | 7);

fn topic(name: &str, topic_id: Uuid) -> MetadataRecord {
    MetadataRecord::TopicRecord(TopicRecord { name: name.into(), topic_id, ..Default::default() })
}

fn partition(topic_id: Uuid, partition_id: i32) -> MetadataRecord {
    MetadataRecord::PartitionRecord(PartitionRecord {
        partition_id,
        topic_id,
        replicas: vec![1, 2],
        isr: vec![1, 2],
        leader: 1,
        leader_epoch: 0,
        partition_epoch: 0,
        directories: vec![Uuid::from_u128(11), Uuid::from_u128(12)],
        eligible_leader_replicas: Some(vec![2]),
        last_known_elr: Some(vec![1]),
        ..Default::default()
    })
}

fn config(kind: i8, resource: &str, name: &str, value: Option<&str>) -> MetadataRecord {
    MetadataRecord::ConfigRecord(ConfigRecord {
        resource_type: kind,
        resource_name: resource.into(),
        name: name.into(),
        value: value.map(Into::into),
        ..Default::default()
    })
}

fn broker(id: i32, epoch: i64) -> MetadataRecord {
    MetadataRecord::RegisterBrokerRecord(RegisterBrokerRecord {
        broker_id: id,
        broker_epoch: epoch,
        incarnation_id: Uuid::from_u128(99),
        log_dirs: vec![Uuid::from_u128(11)],
        cordoned_log_dirs: Some(vec![Uuid::from_u128(11)]),
        rack: Some("r".into()),
        end_points: vec![register_broker_record::BrokerEndpoint {
            name: "PLAINTEXT".into(),
            host: "h".into(),
            port: 9092,
            ..Default::default()
        }],
        features: vec![register_broker_record::BrokerFeature {
            name: "group.version".into(),
            max_supported_version: 1,
            ..Default::default()
        }],
        ..Default::default()
    })
}

fn feature(name: &str, feature_level: i16) -> MetadataRecord {
    MetadataRecord::FeatureLevelRecord(FeatureLevelRecord {
        name: name.into(),
        feature_level,
        ..Default::default()
    })
}

fn quota(user: &str, value: f64, remove: bool) -> MetadataRecord {
    MetadataRecord::ClientQuotaRecord(ClientQuotaRecord {
        entity: vec![client_quota_record::EntityData {
            entity_type: "user".into(),
            entity_name: Some(user.into()),
            ..Default::default()
        }],
        key: "producer_byte_rate".into(),
        value,
        remove,
        ..Default::default()
    })
}

/// A record of every kind that leaves a trace.
fn everything() -> Vec<MetadataRecord> {
    vec![
        feature("group.version", 1),
        feature("metadata.version", 33),
        broker(1, 5),
        broker(2, 6),
        MetadataRecord::UnfenceBrokerRecord(UnfenceBrokerRecord { id: 1, epoch: 5, ..Default::default() }),
        MetadataRecord::RegisterControllerRecord(RegisterControllerRecord {
            controller_id: 1,
            incarnation_id: Uuid::from_u128(98),
            ..Default::default()
        }),
        topic("t", T),
        partition(T, 0),
        partition(T, 1),
        config(2, "t", "retention.ms", Some("5")),
        config(4, "", "log.cleaner.threads", Some("2")),
        config(32, "g", "consumer.session.timeout.ms", Some("50000")),
        quota("u", 1024.5, false),
        MetadataRecord::ProducerIdsRecord(ProducerIdsRecord {
            next_producer_id: 3_000,
            ..Default::default()
        }),
        MetadataRecord::AccessControlEntryRecord(AccessControlEntryRecord {
            id: Uuid::from_u128(50),
            principal: "User:u".into(),
            ..Default::default()
        }),
        MetadataRecord::UserScramCredentialRecord(UserScramCredentialRecord {
            name: "u".into(),
            mechanism: 1,
            salt: bytes::Bytes::from_static(b"salt"),
            iterations: 4096,
            ..Default::default()
        }),
        MetadataRecord::DelegationTokenRecord(DelegationTokenRecord {
            token_id: "token".into(),
            owner: "User:u".into(),
            renewers: vec!["User:v".into()],
            ..Default::default()
        }),
    ]
}

fn image(records: &[MetadataRecord]) -> Image {
    let mut image = Image::default();
    for record in records {
        image.apply(record).unwrap();
    }
    image
}

#[test]
fn an_image_survives_the_way_over_encoded_records() {
    let before = image(&everything());
    let mut after = Image::default();
    for versioned in before.to_records() {
        let frame = versioned.record.encode_frame(versioned.version).unwrap();
        after.apply(&MetadataRecord::decode_frame(&frame).unwrap().0).unwrap();
    }
    assert_eq!(before, after);
    assert_eq!(before.to_records().len(), everything().len() - 1, "unfencing is part of the registration");
}

#[test]
fn the_metadata_version_comes_first() {
    let records = image(&everything()).to_records();
    assert!(matches!(
        &records[0].record,
        MetadataRecord::FeatureLevelRecord(r) if r.name == "metadata.version"
    ));
}

#[test]
fn removals_leave_nothing() {
    let mut image = image(&everything());
    for record in [
        feature("group.version", 0),
        feature("metadata.version", 0),
        MetadataRecord::UnregisterBrokerRecord(UnregisterBrokerRecord {
            broker_id: 1,
            broker_epoch: 5,
            ..Default::default()
        }),
        MetadataRecord::UnregisterBrokerRecord(UnregisterBrokerRecord {
            broker_id: 2,
            broker_epoch: 6,
            ..Default::default()
        }),
        MetadataRecord::UnregisterControllerRecord(UnregisterControllerRecord {
            controller_id: 1,
            ..Default::default()
        }),
        MetadataRecord::RemoveTopicRecord(RemoveTopicRecord { topic_id: T, ..Default::default() }),
        config(4, "", "log.cleaner.threads", None),
        config(32, "g", "consumer.session.timeout.ms", None),
        quota("u", 0.0, true),
        MetadataRecord::ProducerIdsRecord(ProducerIdsRecord::default()),
        MetadataRecord::RemoveAccessControlEntryRecord(RemoveAccessControlEntryRecord {
            id: Uuid::from_u128(50),
            ..Default::default()
        }),
        MetadataRecord::RemoveUserScramCredentialRecord(RemoveUserScramCredentialRecord {
            name: "u".into(),
            mechanism: 1,
            ..Default::default()
        }),
        MetadataRecord::RemoveDelegationTokenRecord(RemoveDelegationTokenRecord {
            token_id: "token".into(),
            ..Default::default()
        }),
    ] {
        image.apply(&record).unwrap();
    }
    assert_eq!(image, Image::default());
}

#[test]
fn changes_of_a_partition_add_up() {
    let mut image = image(&[topic("t", T), partition(T, 0)]);
    image
        .apply(&MetadataRecord::PartitionChangeRecord(PartitionChangeRecord {
            partition_id: 0,
            topic_id: T,
            isr: Some(vec![2]),
            leader: 2,
            replicas: Some(vec![2, 3]),
            ..Default::default()
        }))
        .unwrap();
    let partition = image.topics.partition("t", 0).unwrap();
    assert_eq!((partition.leader, partition.leader_epoch, partition.partition_epoch), (2, 1, 1));
    assert_eq!(partition.directories, [Uuid::from_u128(12), Uuid::ZERO], "3 has not chosen yet");
    let only_isr =
        PartitionChangeRecord { partition_id: 0, topic_id: T, isr: Some(vec![2, 3]), ..Default::default() };
    image.apply(&MetadataRecord::PartitionChangeRecord(only_isr)).unwrap();
    let partition = image.topics.partition("t", 0).unwrap();
    assert_eq!((partition.leader, partition.leader_epoch, partition.partition_epoch), (2, 1, 2));
    image
        .apply(&MetadataRecord::ClearElrRecord(ClearElrRecord {
            topic_name: "t".into(),
            ..Default::default()
        }))
        .unwrap();
    let partition = image.topics.partition("t", 0).unwrap();
    assert!(partition.elr.is_empty() && partition.last_known_elr.is_empty());
}

#[test]
fn records_that_do_not_fit_are_refused_and_change_nothing() {
    let before = image(&everything());
    let unknown = Uuid::from_u128(77);
    let bad_change =
        BrokerRegistrationChangeRecord { broker_id: 1, broker_epoch: 5, fenced: 7, ..Default::default() };
    for (record, error) in [
        (partition(unknown, 0), ReplayError::UnknownTopicId { record: "PartitionRecord", topic_id: unknown }),
        (
            MetadataRecord::PartitionChangeRecord(PartitionChangeRecord {
                topic_id: T,
                partition_id: 9,
                ..Default::default()
            }),
            ReplayError::UnknownPartition { record: "PartitionChangeRecord", topic_id: T, partition: 9 },
        ),
        (
            MetadataRecord::FenceBrokerRecord(FenceBrokerRecord { id: 1, epoch: 4, ..Default::default() }),
            ReplayError::BrokerEpochMismatch {
                record: "FenceBrokerRecord",
                broker_id: 1,
                given: 4,
                current: 5,
            },
        ),
        (
            MetadataRecord::UnregisterBrokerRecord(UnregisterBrokerRecord {
                broker_id: 9,
                ..Default::default()
            }),
            ReplayError::UnknownBroker { record: "UnregisterBrokerRecord", broker_id: 9 },
        ),
        (
            MetadataRecord::BrokerRegistrationChangeRecord(bad_change),
            ReplayError::BadValue { record: "BrokerRegistrationChangeRecord", field: "fenced", value: 7 },
        ),
        (
            config(77, "x", "a", Some("b")),
            ReplayError::BadValue { record: "ConfigRecord", field: "resourceType", value: 77 },
        ),
    ] {
        let mut image = before.clone();
        assert_eq!(image.apply(&record), Err(error));
        assert_eq!(image, before);
    }
}

#[test]
fn a_transaction_shows_at_its_end_or_never() {
    let begin = MetadataRecord::BeginTransactionRecord(BeginTransactionRecord::default());
    let end = MetadataRecord::EndTransactionRecord(EndTransactionRecord::default());
    let abort = MetadataRecord::AbortTransactionRecord(AbortTransactionRecord::default());
    let mut image = TransactionalImage::default();
    image.apply(&begin).unwrap();
    image.apply(&topic("a", T)).unwrap();
    assert!(image.in_transaction() && image.visible().topics.is_empty());
    assert_eq!(image.latest().topics.len(), 1);
    assert!(image.apply(&begin).is_err());
    image.apply(&end).unwrap();
    assert_eq!(image.visible().topics.len(), 1);
    image.apply(&begin).unwrap();
    image.apply(&topic("b", Uuid::from_u128(8))).unwrap();
    image.apply(&abort).unwrap();
    assert_eq!(image.latest().topics.len(), 1);
    assert!(image.apply(&end).is_err() && image.apply(&abort).is_err());
}

#[test]
fn a_delta_names_what_changed() {
    let old = image(&everything());
    assert!(Delta::between(&old, &old.clone()).is_empty());

    let mut new = old.clone();
    let (u, again) = (Uuid::from_u128(8), Uuid::from_u128(9));
    for record in [
        MetadataRecord::RemoveTopicRecord(RemoveTopicRecord { topic_id: T, ..Default::default() }),
        topic("t", again),
        partition(again, 0),
        topic("u", u),
        partition(u, 0),
        MetadataRecord::FenceBrokerRecord(FenceBrokerRecord { id: 1, epoch: 5, ..Default::default() }),
        config(4, "", "log.cleaner.threads", Some("3")),
        quota("u", 1.0, false),
    ] {
        new.apply(&record).unwrap();
    }
    let delta = Delta::between(&old, &new);
    let topics: Vec<_> =
        delta.topics.iter().map(|t| (&*t.name, t.created, t.deleted, t.changed.len())).collect();
    assert_eq!(topics, [("t", false, true, 0), ("u", true, false, 1), ("t", true, false, 1)]);
    assert_eq!(delta.brokers, [1]);
    assert!(delta.controllers.is_empty() && !delta.features_changed && !delta.security_changed);
    assert!(delta.quotas_changed);
    assert_eq!(delta.configs, [ConfigResource::topic("t"), ConfigResource::all_brokers()]);

    let mut newer = new.clone();
    newer
        .apply(&MetadataRecord::PartitionChangeRecord(PartitionChangeRecord {
            topic_id: u,
            partition_id: 0,
            leader: 2,
            ..Default::default()
        }))
        .unwrap();
    let delta = Delta::between(&new, &newer);
    assert_eq!(delta.topics.len(), 1);
    assert_eq!((delta.topics[0].created, delta.topics[0].changed[0].1.leader), (false, 2));
}
