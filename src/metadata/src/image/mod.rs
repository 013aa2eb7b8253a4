//! The cluster's metadata at one offset of the log.
//!
//! All parts are persistent maps: cloning an image copies a few pointers, and two images share what is equal.
//! So a rollback is an old clone, and the difference of two images costs what has changed.

mod cluster;
mod configs;
mod delta;
mod features;
mod quotas;
mod security;
mod topics;
mod transaction;

use callboard_protocol::messages::ProducerIdsRecord;
use callboard_protocol::messages::metadata_record::MetadataRecord;

pub use cluster::{BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint, FeatureRange};
pub(crate) use configs::config_record;
pub use configs::{ConfigResource, ConfigValues, ConfigsImage, ResourceType};
pub use delta::{Delta, TopicDelta};
pub use features::{FeaturesImage, METADATA_VERSION};
pub use quotas::{QuotaEntity, QuotasImage};
pub use security::{Acl, DelegationToken, ScramCredential, SecurityImage};
pub use topics::{
    LeaderRecoveryState, NO_LEADER, NO_LEADER_CHANGE, PartitionRegistration, Topic, TopicsImage,
    UNASSIGNED_DIRECTORY,
};
pub use transaction::TransactionalImage;

use crate::error::ReplayError;
use crate::record::VersionedRecord;

/// The cluster's metadata.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Image {
    /// Finalized features.
    pub features: FeaturesImage,
    /// Brokers and controllers.
    pub cluster: ClusterImage,
    /// Topics and partitions.
    pub topics: TopicsImage,
    /// Configurations set through the API.
    pub configs: ConfigsImage,
    /// Client quotas.
    pub quotas: QuotasImage,
    /// ACLs, credentials, tokens.
    pub security: SecurityImage,
    /// The first producer id that no broker has been given yet.
    pub next_producer_id: i64,
}

impl Image {
    /// Applies one record.
    ///
    /// Transaction markers have no effect here: [`TransactionalImage`] sees to them. On an error the image is as
    /// it was before the record.
    pub fn apply(&mut self, record: &MetadataRecord) -> Result<(), ReplayError> {
        match record {
            MetadataRecord::RegisterBrokerRecord(r) => self.cluster.register_broker(r),
            MetadataRecord::UnregisterBrokerRecord(r) => {
                return self.cluster.unregister_broker(r.broker_id, r.broker_epoch);
            }
            MetadataRecord::FenceBrokerRecord(r) => {
                return self.cluster.set_fenced("FenceBrokerRecord", r.id, r.epoch, true);
            }
            MetadataRecord::UnfenceBrokerRecord(r) => {
                return self.cluster.set_fenced("UnfenceBrokerRecord", r.id, r.epoch, false);
            }
            MetadataRecord::BrokerRegistrationChangeRecord(r) => return self.cluster.change_broker(r),
            MetadataRecord::RegisterControllerRecord(r) => self.cluster.register_controller(r),
            MetadataRecord::UnregisterControllerRecord(r) => {
                return self.cluster.unregister_controller(r.controller_id);
            }
            MetadataRecord::TopicRecord(r) => self.topics.create(r),
            MetadataRecord::PartitionRecord(r) => return self.topics.set_partition(r),
            MetadataRecord::PartitionChangeRecord(r) => return self.topics.change_partition(r),
            MetadataRecord::RemoveTopicRecord(r) => {
                let name = self.topics.remove(r)?;
                self.configs.remove_topic(name);
            }
            MetadataRecord::ClearElrRecord(r) => return self.topics.clear_elr(&r.topic_name),
            MetadataRecord::ConfigRecord(r) => return self.configs.apply(r),
            MetadataRecord::FeatureLevelRecord(r) => self.features.apply(r),
            MetadataRecord::ClientQuotaRecord(r) => self.quotas.apply(r),
            MetadataRecord::ProducerIdsRecord(r) => self.next_producer_id = r.next_producer_id,
            MetadataRecord::AccessControlEntryRecord(r) => self.security.set_acl(r),
            MetadataRecord::RemoveAccessControlEntryRecord(r) => self.security.remove_acl(r),
            MetadataRecord::UserScramCredentialRecord(r) => self.security.set_scram(r),
            MetadataRecord::RemoveUserScramCredentialRecord(r) => self.security.remove_scram(r),
            MetadataRecord::DelegationTokenRecord(r) => self.security.set_token(r),
            MetadataRecord::RemoveDelegationTokenRecord(r) => self.security.remove_token(r),
            // The migration from ZooKeeper is over; its state has no meaning any more.
            MetadataRecord::ZkMigrationStateRecord(_)
            | MetadataRecord::NoOpRecord(_)
            | MetadataRecord::BeginTransactionRecord(_)
            | MetadataRecord::EndTransactionRecord(_)
            | MetadataRecord::AbortTransactionRecord(_) => {}
        }
        Ok(())
    }

    /// The records that make this image from an empty one, in the order Kafka's snapshots have.
    pub fn to_records(&self) -> Vec<VersionedRecord> {
        let mut out = Vec::new();
        self.features.to_records(&mut out);
        self.cluster.to_records(&mut out);
        self.topics.to_records(&mut out);
        self.configs.to_records(&mut out);
        self.quotas.to_records(&mut out);
        if self.next_producer_id > 0 {
            let record = ProducerIdsRecord {
                broker_id: -1,
                broker_epoch: -1,
                next_producer_id: self.next_producer_id,
                ..Default::default()
            };
            out.push(VersionedRecord::new(MetadataRecord::ProducerIdsRecord(record), 0));
        }
        self.security.acl_and_token_records(&mut out);
        self.security.scram_records(&mut out);
        out
    }
}
