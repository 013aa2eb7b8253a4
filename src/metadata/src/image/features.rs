//! Finalized feature levels.

use callboard_protocol::ByteString;
use callboard_protocol::messages::FeatureLevelRecord;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use imbl::OrdMap;

use crate::record::VersionedRecord;

/// The feature that names the format of the metadata log itself.
pub const METADATA_VERSION: &str = "metadata.version";

/// The finalized level of each feature. A feature at level 0 is absent, as in Kafka.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeaturesImage {
    levels: OrdMap<ByteString, i16>,
}

impl FeaturesImage {
    /// The level of a feature; 0 when it is not finalized.
    pub fn level(&self, feature: &str) -> i16 {
        self.levels.get(feature).copied().unwrap_or(0)
    }

    /// All features and levels, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&ByteString, i16)> {
        self.levels.iter().map(|(name, level)| (name, *level))
    }

    pub(crate) fn apply(&mut self, record: &FeatureLevelRecord) {
        if record.feature_level == 0 {
            self.levels.remove(&record.name);
        } else {
            self.levels.insert(record.name.clone(), record.feature_level);
        }
    }

    /// `metadata.version` comes first: it tells a reader how to read the rest.
    pub(crate) fn to_records(&self, out: &mut Vec<VersionedRecord>) {
        let (first, rest): (Vec<_>, Vec<_>) = self.iter().partition(|(name, _)| *name == METADATA_VERSION);
        for (name, level) in first.into_iter().chain(rest) {
            let record =
                FeatureLevelRecord { name: name.clone(), feature_level: level, ..Default::default() };
            out.push(VersionedRecord::new(MetadataRecord::FeatureLevelRecord(record), 0));
        }
    }
}
