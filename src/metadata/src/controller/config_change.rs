//! What AlterConfigs and IncrementalAlterConfigs share: checks of a resource and of its values after the change.

use callboard_protocol::messages::ClearElrRecord;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::{ByteString, ErrorCode};

use super::{Controller, Refusal, pairs};
use crate::config::{self, Scope};
use crate::image::{ConfigResource, ConfigValues, ResourceType, config_record};
use crate::record::VersionedRecord;
use crate::topic_name;

const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";

impl Controller {
    /// Checks that a resource may have configs at all.
    pub(super) fn check_resource(&self, kind: i8, name: &ByteString) -> Result<ConfigResource, Refusal> {
        let refuse = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
        let Some(kind) = ResourceType::from_value(kind) else {
            return refuse(&format!("Unknown resource type {kind}"));
        };
        match kind {
            ResourceType::Topic => {
                if name.is_empty() {
                    return refuse("Default topic resources are not allowed.");
                }
                topic_name::validate(name)
                    .map_err(|message| Refusal::new(ErrorCode::InvalidTopicException, message))?;
                if self.image().topics.id(name).is_none() {
                    let message = format!("The topic '{name}' does not exist.");
                    return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, message));
                }
            }
            ResourceType::Broker => {
                if !name.is_empty() && !name.parse().is_ok_and(|id| self.is_known_node(id)) {
                    let message = format!("No broker with id {name} found.");
                    return Err(Refusal::new(ErrorCode::BrokerIdNotRegistered, message));
                }
            }
            ResourceType::Group if name.is_empty() => {
                return refuse("Default group resources are not allowed.");
            }
            ResourceType::ClientMetrics if name.is_empty() => {
                return refuse("Subscription name can't be empty");
            }
            ResourceType::Group | ResourceType::ClientMetrics => {}
            ResourceType::BrokerLogger => {
                return refuse(&format!("Unknown resource type {}", kind.value()));
            }
        }
        Ok(ConfigResource { kind, name: name.clone() })
    }

    fn is_known_node(&self, id: i32) -> bool {
        self.image().cluster.broker(id).is_some() || self.image().cluster.controllers.contains_key(&id)
    }

    /// The records that take a resource from its values to others, once the others are found good.
    pub(super) fn config_records(
        &self,
        resource: &ConfigResource,
        changes: &[(ByteString, Option<ByteString>)],
    ) -> Result<Vec<VersionedRecord>, Refusal> {
        let before = self.image().configs.of(resource);
        let mut after = before.clone();
        for (name, value) in changes {
            match value {
                Some(value) => after.insert(name.clone(), value.clone()),
                None => after.remove(name),
            };
        }
        self.check_values(resource, &after)?;
        self.check_min_insync(resource, changes)?;
        // A broker's configs are written even when equal: it then reads again the files they name.
        let written: Vec<_> = changes
            .iter()
            .filter(|(name, value)| {
                resource.kind == ResourceType::Broker || before.get(name) != value.as_ref()
            })
            .collect();
        let mut out: Vec<_> = written
            .iter()
            .map(|(name, value)| config_record(resource, name.clone(), value.clone()))
            .collect();
        if self.elr_enabled() && written.iter().any(|(name, _)| *name == MIN_INSYNC_REPLICAS) {
            // Who is eligible was worked out for another minimum.
            let topic_name = match resource.kind {
                ResourceType::Topic => resource.name.clone(),
                _ => ByteString::new(),
            };
            let record = ClearElrRecord { topic_name, ..Default::default() };
            out.push(VersionedRecord::new(MetadataRecord::ClearElrRecord(record), 0));
        }
        Ok(out)
    }

    /// With eligible leader replicas, the minimum of in-sync replicas belongs to topics and the whole cluster.
    fn check_min_insync(
        &self,
        resource: &ConfigResource,
        changes: &[(ByteString, Option<ByteString>)],
    ) -> Result<(), Refusal> {
        if !self.elr_enabled() || resource.kind != ResourceType::Broker {
            return Ok(());
        }
        let Some((_, value)) = changes.iter().find(|(name, _)| *name == MIN_INSYNC_REPLICAS) else {
            return Ok(());
        };
        let message = match (resource.name.is_empty(), value) {
            (false, _) => "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
            (true, None) => "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
            (true, Some(_)) => return Ok(()),
        };
        Err(Refusal::new(ErrorCode::InvalidConfig, message))
    }

    fn check_values(&self, resource: &ConfigResource, after: &ConfigValues) -> Result<(), Refusal> {
        let node_id = self.settings.node_id;
        let refused = match resource.kind {
            ResourceType::Topic => config::validate_topic(&self.effective_settings(node_id), pairs(after)),
            ResourceType::Group => config::validate_group(&self.effective_settings(node_id), pairs(after)),
            ResourceType::ClientMetrics => config::validate_client_metrics(pairs(after)),
            ResourceType::Broker => {
                let scope = if resource.name.is_empty() { Scope::Cluster } else { Scope::OneBroker };
                let id = resource.name.parse().unwrap_or(node_id);
                return config::validate_broker(&self.effective_settings(id), scope, pairs(after))
                    .map_err(|error| Refusal::new(ErrorCode::InvalidRequest, error.to_string()));
            }
            ResourceType::BrokerLogger => Ok(()),
        };
        refused.map_err(|error| {
            let code = match error.is_invalid_request() {
                true => ErrorCode::InvalidRequest,
                false => ErrorCode::InvalidConfig,
            };
            Refusal::new(code, error.to_string())
        })
    }
}
