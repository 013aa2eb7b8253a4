//! The features of a cluster (`metadata.version` and the others) and their levels.

/// A feature of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// The feature's name.
    pub name: &'static str,
    /// Its levels, from the lowest up.
    pub levels: &'static [FeatureLevel],
}

/// A level of a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureLevel {
    /// The level's number.
    pub level: i16,
    /// The level's name.
    pub name: &'static str,
    /// The `metadata.version` a cluster is formatted at to get the level by default.
    pub metadata_version: &'static str,
}

/// The feature `metadata.version`.
pub const METADATA_VERSION: &str = "metadata.version";
/// The feature `kraft.version`.
pub const KRAFT_VERSION: &str = "kraft.version";

include!(concat!(env!("OUT_DIR"), "/features.rs"));

impl Feature {
    /// The feature of a name.
    pub fn by_name(name: &str) -> Option<&'static Feature> {
        FEATURES.iter().find(|feature| feature.name == name)
    }

    /// The level of a number.
    pub fn level(&self, level: i16) -> Option<&'static FeatureLevel> {
        self.levels.iter().find(|l| l.level == level)
    }

    /// The level of a name.
    pub fn level_by_name(&self, name: &str) -> Option<&'static FeatureLevel> {
        self.levels.iter().find(|l| l.name == name)
    }
}
