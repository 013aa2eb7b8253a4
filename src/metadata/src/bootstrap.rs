//! The first records of a cluster.

use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    BeginTransactionRecord, ConfigRecord, EndTransactionRecord, FeatureLevelRecord, UserScramCredentialRecord,
};

use crate::features::{ELIGIBLE_LEADER_REPLICAS_VERSION, SUPPORTED};
use crate::image::{METADATA_VERSION, ResourceType};
use crate::record::VersionedRecord;

/// The setting that eligible leader replicas need at cluster level.
const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// The features and levels of a fresh cluster: `metadata.version` first, the others by name, without
/// `kraft.version`, which is a control record of the raft log.
pub fn default_features() -> Vec<(&'static str, i16)> {
    let others = SUPPORTED.iter().filter(|(name, _)| *name != crate::features::KRAFT_VERSION);
    others.map(|(name, range)| (*name, range.max)).collect()
}

/// What `storage format` writes into `bootstrap.checkpoint` or the first snapshot: the features that are not at
/// level 0, in the order given, and SCRAM credentials.
pub fn format_records(
    features: &[(&str, i16)],
    scram: impl IntoIterator<Item = UserScramCredentialRecord>,
) -> Vec<VersionedRecord> {
    let mut out: Vec<_> = features
        .iter()
        .filter(|(_, level)| *level != 0)
        .map(|(name, level)| {
            let record =
                FeatureLevelRecord { name: (*name).into(), feature_level: *level, ..Default::default() };
            VersionedRecord::new(MetadataRecord::FeatureLevelRecord(record), 0)
        })
        .collect();
    out.extend(
        scram.into_iter().map(|r| VersionedRecord::new(MetadataRecord::UserScramCredentialRecord(r), 0)),
    );
    out
}

/// What the first active controller writes to an empty log: the bootstrap records in a transaction, and with eligible
/// leader replicas the cluster-wide minimum of in-sync replicas.
pub fn activation_records(bootstrap: Vec<VersionedRecord>, min_insync_replicas: i32) -> Vec<VersionedRecord> {
    let feature_level = |feature: &str| {
        bootstrap.iter().find_map(|r| match &r.record {
            MetadataRecord::FeatureLevelRecord(r) if r.name == feature => Some(r.feature_level),
            _ => None,
        })
    };
    debug_assert!(feature_level(METADATA_VERSION).is_some(), "bootstrap records name metadata.version");
    let with_elr = feature_level(ELIGIBLE_LEADER_REPLICAS_VERSION).is_some_and(|level| level > 0);
    let begin = BeginTransactionRecord { name: Some("Bootstrap records".into()), ..Default::default() };
    let mut out = vec![VersionedRecord::new(MetadataRecord::BeginTransactionRecord(begin), 0)];
    out.extend(bootstrap);
    if with_elr {
        let record = ConfigRecord {
            resource_type: ResourceType::Broker.value(),
            name: MIN_INSYNC_REPLICAS.into(),
            value: Some(min_insync_replicas.to_string().into()),
            ..Default::default()
        };
        out.push(VersionedRecord::new(MetadataRecord::ConfigRecord(record), 0));
    }
    out.push(VersionedRecord::new(MetadataRecord::EndTransactionRecord(EndTransactionRecord::default()), 0));
    out
}
