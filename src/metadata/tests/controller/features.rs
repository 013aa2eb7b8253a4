use callboard_metadata::{bootstrap, features};
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::update_features_request::FeatureUpdateKey;
use callboard_protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};

use crate::fixture::Cluster;

fn update(cluster: &mut Cluster, validate_only: bool, updates: &[(&str, i16, i8)]) -> UpdateFeaturesResponse {
    let feature_updates = updates
        .iter()
        .map(|(feature, level, upgrade_type)| FeatureUpdateKey {
            feature: (*feature).into(),
            max_version_level: *level,
            upgrade_type: *upgrade_type,
            ..Default::default()
        })
        .collect();
    let request = UpdateFeaturesRequest { feature_updates, validate_only, ..Default::default() };
    cluster.run(|controller, _| controller.update_features(&request, 1))
}

#[test]
fn a_fresh_cluster_has_kafkas_features() {
    let names: Vec<(&str, i16)> = bootstrap::default_features();
    let expected = [
        ("metadata.version", 33),
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("share.version", 2),
        ("streams.version", 1),
        ("transaction.version", 2),
    ];
    assert_eq!(names, expected);
    let records = bootstrap::activation_records(bootstrap::format_records(&names, []), 1);
    assert_eq!(records.len(), 9);
    assert!(matches!(
        &records[0].record,
        MetadataRecord::BeginTransactionRecord(r) if r.name.as_deref() == Some("Bootstrap records")
    ));
    assert!(matches!(
        &records[7].record,
        MetadataRecord::ConfigRecord(r) if r.resource_type == 4 && r.resource_name.is_empty()
            && r.name == "min.insync.replicas" && r.value.as_deref() == Some("1")
    ));
    assert!(matches!(records[8].record, MetadataRecord::EndTransactionRecord(_)));
    let cluster = Cluster::new(&[]);
    for (name, level) in expected {
        assert_eq!(cluster.image().features.level(name), level);
    }
}

#[test]
fn supported_levels_are_those_of_the_protocol_tables() {
    for feature in callboard_protocol::features::FEATURES {
        let range = features::supported(feature.name).unwrap();
        let highest = feature.levels.iter().map(|level| level.level).max().unwrap();
        assert!(range.max <= highest, "{}", feature.name);
    }
}

#[test]
fn refusals() {
    let mut cluster = Cluster::one();
    let unsettled = "Can't downgrade the version of this feature without setting the upgrade type to either safe or \
                     unsafe downgrade.";
    let invalid = |feature: &str, level: i16, why: &str| {
        format!("Invalid update version {level} for feature {feature}. {why}")
    };
    for (feature, level, upgrade_type, reason) in [
        ("foo", 1, 1, invalid("foo", 1, "Local controller 1 does not support this feature.")),
        (
            "metadata.version",
            34,
            1,
            invalid("metadata.version", 34, "Local controller 1 only supports versions 7-33"),
        ),
        ("metadata.version", 32, 1, invalid("metadata.version", 32, unsettled)),
        (
            "metadata.version",
            32,
            2,
            "Unsupported metadata.version downgrade from 33 to 32. Refusing to perform the requested downgrade \
             because it might delete metadata information."
                .to_string(),
        ),
        (
            "metadata.version",
            32,
            3,
            "Unsupported metadata.version downgrade from 33 to 32. Unsafe metadata downgrade is not supported in \
             this version."
                .to_string(),
        ),
        ("group.version", -1, 2, invalid("group.version", -1, "A feature version cannot be less than 0.")),
        (
            "group.version",
            1,
            9,
            invalid("group.version", 1, "The controller does not support the given upgrade type."),
        ),
        (
            "transaction.version",
            3,
            1,
            invalid("transaction.version", 3, "Local controller 1 only supports versions 0-2"),
        ),
        ("kraft.version", 0, 1, invalid("kraft.version", 0, unsettled)),
        ("kraft.version", 0, 2, invalid("kraft.version", 0, "Can't downgrade the version of this feature.")),
    ] {
        let reply = update(&mut cluster, false, &[("group.version", 0, 2), (feature, level, upgrade_type)]);
        let message =
            format!("The update failed for all features since the following feature had an error: {reason}");
        assert_eq!((reply.error_code, reply.error_message.as_deref()), (95, Some(&*message)));
        assert!(reply.results.is_empty() && cluster.last.is_empty());
    }
}

#[test]
fn levels_change() {
    let mut cluster = Cluster::one();
    let reply = update(&mut cluster, true, &[("group.version", 0, 2)]);
    assert_eq!((reply.error_code, reply.results[0].error_message.as_deref()), (0, Some("NONE")));
    assert!(cluster.last.is_empty());
    let same = [("group.version", 1, 1), ("kraft.version", 1, 1), ("metadata.version", 33, 1)];
    assert_eq!(update(&mut cluster, false, &same).results.len(), 3);
    assert!(cluster.last.is_empty());
    update(&mut cluster, false, &[("group.version", 0, 2)]);
    assert_eq!(cluster.image().features.level("group.version"), 0);
    update(&mut cluster, false, &[("eligible.leader.replicas.version", 0, 2)]);
    update(&mut cluster, false, &[("eligible.leader.replicas.version", 1, 1)]);
    assert_eq!(cluster.image().features.level("eligible.leader.replicas.version"), 1);
}

#[test]
fn a_broker_that_lacks_a_level_holds_it_back() {
    let mut cluster = Cluster::one();
    update(&mut cluster, false, &[("share.version", 1, 2)]);
    let mut old = crate::fixture::registration(2, 1);
    old.features.iter_mut().find(|f| f.name == "share.version").unwrap().max_supported_version = 1;
    assert_eq!(cluster.register(old).error_code, 0);
    let reply = update(&mut cluster, false, &[("share.version", 2, 1)]);
    let message = reply.error_message.unwrap();
    assert!(message.ends_with("Broker 2 only supports versions 0-1"), "{message}");
}
