//! Registered brokers and controllers.

use std::sync::Arc;

use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    BrokerRegistrationChangeRecord, RegisterBrokerRecord, RegisterControllerRecord, register_broker_record,
    register_controller_record,
};
use callboard_protocol::{ByteString, Uuid};
use imbl::OrdMap;

use crate::error::ReplayError;
use crate::record::{REGISTER_BROKER_VERSION, VersionedRecord};

/// Where a broker or controller listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The listener's name, such as `PLAINTEXT`.
    pub name: ByteString,
    /// The advertised host.
    pub host: ByteString,
    /// The advertised port.
    pub port: u16,
    /// The security protocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// The levels of one feature that a node supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureRange {
    /// The lowest level.
    pub min: i16,
    /// The highest level.
    pub max: i16,
}

/// A broker as the controller knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerRegistration {
    /// The broker's `node.id`.
    pub id: i32,
    /// The offset of its registration: unique and growing.
    pub epoch: i64,
    /// A random id of this run of the process.
    pub incarnation_id: Uuid,
    /// Its listeners, in the order registered.
    pub endpoints: Vec<Endpoint>,
    /// What it supports, by feature.
    pub features: OrdMap<ByteString, FeatureRange>,
    /// `broker.rack`.
    pub rack: Option<ByteString>,
    /// A fenced broker takes part in nothing but its own registration.
    pub fenced: bool,
    /// Whether it is shutting down and giving up its leaderships.
    pub in_controlled_shutdown: bool,
    /// Always false today; kept so that old records round-trip.
    pub is_migrating_zk_broker: bool,
    /// The ids of its online log directories, sorted.
    pub log_dirs: Vec<Uuid>,
    /// Those of them that take no new partitions (`cordoned.log.dirs`).
    pub cordoned_log_dirs: Vec<Uuid>,
}

impl BrokerRegistration {
    /// Whether it may lead: unfenced and not shutting down.
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// The endpoint of a listener.
    pub fn endpoint(&self, listener: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|e| e.name == listener)
    }

    /// The log directories that may take new partitions.
    pub fn usable_log_dirs(&self) -> impl Iterator<Item = Uuid> {
        self.log_dirs.iter().copied().filter(|dir| !self.cordoned_log_dirs.contains(dir))
    }

    fn from_record(record: &RegisterBrokerRecord) -> Self {
        let mut log_dirs = record.log_dirs.clone();
        log_dirs.sort_unstable();
        Self {
            id: record.broker_id,
            epoch: record.broker_epoch,
            incarnation_id: record.incarnation_id,
            endpoints: record
                .end_points
                .iter()
                .map(|e| Endpoint {
                    name: e.name.clone(),
                    host: e.host.clone(),
                    port: e.port,
                    security_protocol: e.security_protocol,
                })
                .collect(),
            features: record
                .features
                .iter()
                .map(|f| {
                    let range = FeatureRange { min: f.min_supported_version, max: f.max_supported_version };
                    (f.name.clone(), range)
                })
                .collect(),
            rack: record.rack.clone(),
            fenced: record.fenced,
            in_controlled_shutdown: record.in_controlled_shutdown,
            is_migrating_zk_broker: record.is_migrating_zk_broker,
            log_dirs,
            cordoned_log_dirs: record.cordoned_log_dirs.clone().unwrap_or_default(),
        }
    }

    pub(crate) fn to_record(&self) -> RegisterBrokerRecord {
        RegisterBrokerRecord {
            broker_id: self.id,
            is_migrating_zk_broker: self.is_migrating_zk_broker,
            incarnation_id: self.incarnation_id,
            broker_epoch: self.epoch,
            end_points: self
                .endpoints
                .iter()
                .map(|e| register_broker_record::BrokerEndpoint {
                    name: e.name.clone(),
                    host: e.host.clone(),
                    port: e.port,
                    security_protocol: e.security_protocol,
                    ..Default::default()
                })
                .collect(),
            features: self
                .features
                .iter()
                .map(|(name, range)| register_broker_record::BrokerFeature {
                    name: name.clone(),
                    min_supported_version: range.min,
                    max_supported_version: range.max,
                    ..Default::default()
                })
                .collect(),
            rack: self.rack.clone(),
            fenced: self.fenced,
            in_controlled_shutdown: self.in_controlled_shutdown,
            log_dirs: self.log_dirs.clone(),
            cordoned_log_dirs: (!self.cordoned_log_dirs.is_empty()).then(|| self.cordoned_log_dirs.clone()),
            ..Default::default()
        }
    }
}

/// A controller as its peers know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerRegistration {
    /// The controller's `node.id`.
    pub id: i32,
    /// A random id of this run of the process.
    pub incarnation_id: Uuid,
    /// Always false today; kept so that old records round-trip.
    pub zk_migration_ready: bool,
    /// Its listeners.
    pub endpoints: Vec<Endpoint>,
    /// What it supports, by feature.
    pub features: OrdMap<ByteString, FeatureRange>,
}

impl ControllerRegistration {
    fn from_record(record: &RegisterControllerRecord) -> Self {
        Self {
            id: record.controller_id,
            incarnation_id: record.incarnation_id,
            zk_migration_ready: record.zk_migration_ready,
            endpoints: record
                .end_points
                .iter()
                .map(|e| Endpoint {
                    name: e.name.clone(),
                    host: e.host.clone(),
                    port: e.port,
                    security_protocol: e.security_protocol,
                })
                .collect(),
            features: record
                .features
                .iter()
                .map(|f| {
                    let range = FeatureRange { min: f.min_supported_version, max: f.max_supported_version };
                    (f.name.clone(), range)
                })
                .collect(),
        }
    }

    fn to_record(&self) -> RegisterControllerRecord {
        RegisterControllerRecord {
            controller_id: self.id,
            incarnation_id: self.incarnation_id,
            zk_migration_ready: self.zk_migration_ready,
            end_points: self
                .endpoints
                .iter()
                .map(|e| register_controller_record::ControllerEndpoint {
                    name: e.name.clone(),
                    host: e.host.clone(),
                    port: e.port,
                    security_protocol: e.security_protocol,
                    ..Default::default()
                })
                .collect(),
            features: self
                .features
                .iter()
                .map(|(name, range)| register_controller_record::ControllerFeature {
                    name: name.clone(),
                    min_supported_version: range.min,
                    max_supported_version: range.max,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        }
    }
}

/// Everyone registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterImage {
    /// Brokers by id.
    pub brokers: OrdMap<i32, Arc<BrokerRegistration>>,
    /// Controllers by id.
    pub controllers: OrdMap<i32, Arc<ControllerRegistration>>,
}

impl ClusterImage {
    /// A broker's registration.
    pub fn broker(&self, id: i32) -> Option<&BrokerRegistration> {
        self.brokers.get(&id).map(Arc::as_ref)
    }

    /// Whether a broker is registered, unfenced and not shutting down.
    pub fn is_active(&self, id: i32) -> bool {
        self.broker(id).is_some_and(BrokerRegistration::is_active)
    }

    pub(crate) fn register_broker(&mut self, record: &RegisterBrokerRecord) {
        self.brokers.insert(record.broker_id, Arc::new(BrokerRegistration::from_record(record)));
    }

    pub(crate) fn register_controller(&mut self, record: &RegisterControllerRecord) {
        self.controllers.insert(record.controller_id, Arc::new(ControllerRegistration::from_record(record)));
    }

    pub(crate) fn unregister_controller(&mut self, id: i32) -> Result<(), ReplayError> {
        match self.controllers.remove(&id) {
            Some(_) => Ok(()),
            None => Err(ReplayError::UnknownController { controller_id: id }),
        }
    }

    pub(crate) fn unregister_broker(&mut self, id: i32, epoch: i64) -> Result<(), ReplayError> {
        self.update_broker("UnregisterBrokerRecord", id, epoch, |_| {})?;
        self.brokers.remove(&id);
        Ok(())
    }

    pub(crate) fn set_fenced(
        &mut self,
        record: &'static str,
        id: i32,
        epoch: i64,
        fenced: bool,
    ) -> Result<(), ReplayError> {
        self.update_broker(record, id, epoch, |broker| broker.fenced = fenced)
    }

    pub(crate) fn change_broker(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
    ) -> Result<(), ReplayError> {
        const NAME: &str = "BrokerRegistrationChangeRecord";
        let fenced = tristate(NAME, "fenced", record.fenced)?;
        // Going back is not among the changes: only a new registration ends a controlled shutdown.
        if !matches!(record.in_controlled_shutdown, 0 | 1) {
            let value = i64::from(record.in_controlled_shutdown);
            return Err(ReplayError::BadValue { record: NAME, field: "inControlledShutdown", value });
        }
        self.update_broker(NAME, record.broker_id, record.broker_epoch, |broker| {
            if let Some(fenced) = fenced {
                broker.fenced = fenced;
            }
            if record.in_controlled_shutdown == 1 {
                broker.in_controlled_shutdown = true;
            }
            if !record.log_dirs.is_empty() {
                broker.log_dirs = record.log_dirs.clone();
                broker.log_dirs.sort_unstable();
            }
            if let Some(cordoned) = &record.cordoned_log_dirs {
                broker.cordoned_log_dirs = cordoned.clone();
            }
        })
    }

    fn update_broker(
        &mut self,
        record: &'static str,
        id: i32,
        epoch: i64,
        change: impl FnOnce(&mut BrokerRegistration),
    ) -> Result<(), ReplayError> {
        let Some(broker) = self.brokers.get_mut(&id) else {
            return Err(ReplayError::UnknownBroker { record, broker_id: id });
        };
        if broker.epoch != epoch {
            let current = broker.epoch;
            return Err(ReplayError::BrokerEpochMismatch { record, broker_id: id, given: epoch, current });
        }
        change(Arc::make_mut(broker));
        Ok(())
    }

    pub(crate) fn to_records(&self, out: &mut Vec<VersionedRecord>) {
        for broker in self.brokers.values() {
            let record = MetadataRecord::RegisterBrokerRecord(broker.to_record());
            out.push(VersionedRecord::new(record, REGISTER_BROKER_VERSION));
        }
        for controller in self.controllers.values() {
            let record = MetadataRecord::RegisterControllerRecord(controller.to_record());
            out.push(VersionedRecord::new(record, 0));
        }
    }
}

/// -1 means false, 0 no change, 1 true.
fn tristate(record: &'static str, field: &'static str, value: i8) -> Result<Option<bool>, ReplayError> {
    match value {
        -1 => Ok(Some(false)),
        0 => Ok(None),
        1 => Ok(Some(true)),
        _ => Err(ReplayError::BadValue { record, field, value: i64::from(value) }),
    }
}
