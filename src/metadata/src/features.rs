//! The features this build knows and the levels it supports: Kafka 4.4's.

use crate::image::{FeatureRange, METADATA_VERSION};

/// Levels of `kraft.version`; it lives in the raft log's control records, not in the image.
pub const KRAFT_VERSION: &str = "kraft.version";
/// Eligible leader replicas (KIP-966).
pub const ELIGIBLE_LEADER_REPLICAS_VERSION: &str = "eligible.leader.replicas.version";

/// Every feature with its lowest and highest supported level.
pub const SUPPORTED: [(&str, FeatureRange); 7] = [
    (METADATA_VERSION, FeatureRange { min: 7, max: 33 }),
    (ELIGIBLE_LEADER_REPLICAS_VERSION, FeatureRange { min: 0, max: 1 }),
    ("group.version", FeatureRange { min: 0, max: 1 }),
    (KRAFT_VERSION, FeatureRange { min: 0, max: 1 }),
    ("share.version", FeatureRange { min: 0, max: 2 }),
    ("streams.version", FeatureRange { min: 0, max: 1 }),
    ("transaction.version", FeatureRange { min: 0, max: 2 }),
];

/// What this build supports of a feature.
pub fn supported(feature: &str) -> Option<FeatureRange> {
    SUPPORTED.iter().find(|(name, _)| *name == feature).map(|(_, range)| *range)
}
