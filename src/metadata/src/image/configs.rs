//! Configurations set through the API.

use callboard_protocol::ByteString;
use callboard_protocol::messages::ConfigRecord;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use imbl::OrdMap;

use crate::error::ReplayError;
use crate::record::VersionedRecord;

/// What a configuration belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceType {
    /// A topic.
    Topic,
    /// A broker, or all of them when the name is empty.
    Broker,
    /// A broker's loggers. Never stored.
    BrokerLogger,
    /// A subscription to clients' metrics.
    ClientMetrics,
    /// A group.
    Group,
}

impl ResourceType {
    /// The value in records and requests.
    pub fn value(self) -> i8 {
        match self {
            Self::Topic => 2,
            Self::Broker => 4,
            Self::BrokerLogger => 8,
            Self::ClientMetrics => 16,
            Self::Group => 32,
        }
    }

    /// From the value in records and requests.
    pub fn from_value(value: i8) -> Option<Self> {
        match value {
            2 => Some(Self::Topic),
            4 => Some(Self::Broker),
            8 => Some(Self::BrokerLogger),
            16 => Some(Self::ClientMetrics),
            32 => Some(Self::Group),
            _ => None,
        }
    }
}

/// A resource with configurations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigResource {
    /// Its type.
    pub kind: ResourceType,
    /// Its name; empty for the default of all brokers.
    pub name: ByteString,
}

impl ConfigResource {
    /// A topic's configurations.
    pub fn topic(name: impl Into<ByteString>) -> Self {
        Self { kind: ResourceType::Topic, name: name.into() }
    }

    /// One broker's configurations.
    pub fn broker(id: i32) -> Self {
        Self { kind: ResourceType::Broker, name: id.to_string().into() }
    }

    /// The dynamic defaults of all brokers.
    pub fn all_brokers() -> Self {
        Self { kind: ResourceType::Broker, name: ByteString::new() }
    }
}

/// The values of one resource, by config name.
pub type ConfigValues = OrdMap<ByteString, ByteString>;

/// All configurations set through the API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigsImage {
    resources: OrdMap<ConfigResource, ConfigValues>,
}

impl ConfigsImage {
    /// The values of a resource; empty when nothing is set.
    pub fn of(&self, resource: &ConfigResource) -> ConfigValues {
        self.resources.get(resource).cloned().unwrap_or_default()
    }

    /// One value.
    pub fn value(&self, resource: &ConfigResource, name: &str) -> Option<&ByteString> {
        self.resources.get(resource)?.get(name)
    }

    /// All resources that have any values.
    pub fn iter(&self) -> impl Iterator<Item = (&ConfigResource, &ConfigValues)> {
        self.resources.iter()
    }

    pub(crate) fn resources(&self) -> &OrdMap<ConfigResource, ConfigValues> {
        &self.resources
    }

    pub(crate) fn apply(&mut self, record: &ConfigRecord) -> Result<(), ReplayError> {
        let Some(kind) = ResourceType::from_value(record.resource_type) else {
            return Err(ReplayError::BadValue {
                record: "ConfigRecord",
                field: "resourceType",
                value: i64::from(record.resource_type),
            });
        };
        let resource = ConfigResource { kind, name: record.resource_name.clone() };
        match &record.value {
            Some(value) => {
                let values = self.resources.entry(resource).or_default();
                values.insert(record.name.clone(), value.clone());
            }
            None => {
                if let Some(values) = self.resources.get_mut(&resource) {
                    values.remove(&record.name);
                    if values.is_empty() {
                        self.resources.remove(&resource);
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn remove_topic(&mut self, name: ByteString) {
        self.resources.remove(&ConfigResource { kind: ResourceType::Topic, name });
    }

    pub(crate) fn to_records(&self, out: &mut Vec<VersionedRecord>) {
        for (resource, values) in &self.resources {
            for (name, value) in values {
                out.push(config_record(resource, name.clone(), Some(value.clone())));
            }
        }
    }
}

/// The record that sets a config, or unsets it when the value is `None`.
pub(crate) fn config_record(
    resource: &ConfigResource,
    name: ByteString,
    value: Option<ByteString>,
) -> VersionedRecord {
    let record = ConfigRecord {
        resource_type: resource.kind.value(),
        resource_name: resource.name.clone(),
        name,
        value,
        ..Default::default()
    };
    VersionedRecord::new(MetadataRecord::ConfigRecord(record), 0)
}
