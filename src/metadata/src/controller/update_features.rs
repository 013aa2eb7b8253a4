//! UpdateFeatures.

use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::update_features_request::FeatureUpdateKey;
use callboard_protocol::messages::update_features_response::UpdatableFeatureResult;
use callboard_protocol::messages::{FeatureLevelRecord, UpdateFeaturesRequest, UpdateFeaturesResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::{Controller, Outcome};
use crate::features::{ELIGIBLE_LEADER_REPLICAS_VERSION, KRAFT_VERSION, supported};
use crate::image::{ConfigResource, METADATA_VERSION, ResourceType, config_record};
use crate::record::VersionedRecord;

const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

/// Which way a level may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpgradeType {
    Upgrade,
    SafeDowngrade,
    UnsafeDowngrade,
}

impl Controller {
    /// Changes the levels of features: all of them, or none when one is refused.
    ///
    /// `kraft_version` is the level of the raft log, which no record here can change.
    pub fn update_features(
        &self,
        request: &UpdateFeaturesRequest,
        kraft_version: i16,
    ) -> Outcome<UpdateFeaturesResponse> {
        let mut records = Vec::new();
        for update in &request.feature_updates {
            match self.update_feature(update, kraft_version) {
                Ok(more) => records.extend(more),
                Err(reason) => {
                    let message = format!(
                        "The update failed for all features since the following feature had an error: {reason}"
                    );
                    return Outcome::reply(UpdateFeaturesResponse {
                        error_code: ErrorCode::InvalidUpdateVersion as i16,
                        error_message: Some(message.into()),
                        ..Default::default()
                    });
                }
            }
        }
        if request.validate_only {
            records.clear();
        }
        let results = request
            .feature_updates
            .iter()
            .map(|update| UpdatableFeatureResult {
                feature: update.feature.clone(),
                error_message: Some(ByteString::from_static("NONE")),
                ..Default::default()
            })
            .collect();
        let reply = UpdateFeaturesResponse { error_message: None, results, ..Default::default() };
        Outcome::atomic(records, reply)
    }

    fn update_feature(
        &self,
        update: &FeatureUpdateKey,
        kraft_version: i16,
    ) -> Result<Vec<VersionedRecord>, String> {
        let (feature, level) = (&update.feature, update.max_version_level);
        let invalid =
            |reason: &str| Err(format!("Invalid update version {level} for feature {feature}. {reason}"));
        let upgrade_type = match update.upgrade_type {
            1 => UpgradeType::Upgrade,
            2 => UpgradeType::SafeDowngrade,
            3 => UpgradeType::UnsafeDowngrade,
            _ => return invalid("The controller does not support the given upgrade type."),
        };
        if level < 0 {
            return invalid("A feature version cannot be less than 0.");
        }
        if let Some(reason) = self.unsupported(feature, level) {
            return invalid(&reason);
        }
        let is_kraft = feature == KRAFT_VERSION;
        let current = if is_kraft { kraft_version } else { self.image().features.level(feature) };
        if level < current && upgrade_type == UpgradeType::Upgrade {
            return invalid(
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or \
                 unsafe downgrade.",
            );
        }
        if level > current && upgrade_type != UpgradeType::Upgrade {
            return invalid("Can't downgrade to a newer version.");
        }
        if level == current {
            return Ok(Vec::new());
        }
        if is_kraft {
            return invalid(match level < current {
                true => "Can't downgrade the version of this feature.",
                false => "The raft log was formatted without a dynamic quorum.",
            });
        }
        if feature == METADATA_VERSION && level < current {
            let why = match upgrade_type {
                UpgradeType::UnsafeDowngrade => "Unsafe metadata downgrade is not supported in this version.",
                _ => {
                    "Refusing to perform the requested downgrade because it might delete metadata information."
                }
            };
            return Err(format!("Unsupported metadata.version downgrade from {current} to {level}. {why}"));
        }
        let mut out = Vec::new();
        if feature == ELIGIBLE_LEADER_REPLICAS_VERSION && current == 0 {
            self.settle_min_insync(&mut out);
        }
        let record = FeatureLevelRecord { name: feature.clone(), feature_level: level, ..Default::default() };
        out.push(VersionedRecord::new(MetadataRecord::FeatureLevelRecord(record), 0));
        Ok(out)
    }

    /// Why a level is out of reach: this controller, another one or a broker does not know it.
    fn unsupported(&self, feature: &str, level: i16) -> Option<String> {
        let reason = |who: String, range: Option<crate::image::FeatureRange>| match range {
            None => Some(format!("{who} does not support this feature.")),
            Some(range) if level < range.min || level > range.max => {
                Some(format!("{who} only supports versions {}-{}", range.min, range.max))
            }
            Some(_) => None,
        };
        if level == 0 && supported(feature).is_none() {
            return Some(format!("Feature {feature} not found."));
        }
        let own = self.settings.node_id;
        if let Some(reason) = reason(format!("Local controller {own}"), supported(feature)) {
            return Some(reason);
        }
        let cluster = &self.image().cluster;
        let controllers = cluster.controllers.values().filter(|controller| controller.id != own);
        let controllers = controllers.map(|c| (format!("Controller {}", c.id), c.features.get(feature)));
        let brokers = cluster.brokers.values().map(|b| (format!("Broker {}", b.id), b.features.get(feature)));
        // Level 0 means that the feature is off, so a node that does not know it is no obstacle.
        controllers
            .chain(brokers)
            .filter(|(_, range)| level != 0 || range.is_some())
            .find_map(|(who, range)| reason(who, range.copied()))
    }

    /// With eligible leader replicas the minimum of in-sync replicas is the cluster's: brokers' own go.
    fn settle_min_insync(&self, out: &mut Vec<VersionedRecord>) {
        let configs = &self.image().configs;
        let cluster = ConfigResource::all_brokers();
        if configs.value(&cluster, MIN_INSYNC_REPLICAS).is_none() {
            let value = self.settings.int(MIN_INSYNC_REPLICAS).max(1).to_string();
            out.push(config_record(&cluster, MIN_INSYNC_REPLICAS.into(), Some(value.into())));
        }
        for (resource, values) in configs.iter() {
            let one_broker = resource.kind == ResourceType::Broker && !resource.name.is_empty();
            if one_broker && values.contains_key(MIN_INSYNC_REPLICAS) {
                out.push(config_record(resource, MIN_INSYNC_REPLICAS.into(), None));
            }
        }
    }
}
