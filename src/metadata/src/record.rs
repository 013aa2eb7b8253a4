//! Metadata records with the versions they are written at.

use callboard_protocol::messages::metadata_record::MetadataRecord;

/// A metadata record and the version it is encoded at.
#[derive(Debug, Clone, PartialEq)]
pub struct VersionedRecord {
    /// The record.
    pub record: MetadataRecord,
    /// Its version on disk: the lowest that carries every field set, as Kafka chooses.
    pub version: i16,
}

impl VersionedRecord {
    /// Pairs a record with its version.
    pub fn new(record: MetadataRecord, version: i16) -> Self {
        Self { record, version }
    }
}

/// `PartitionRecord` and `PartitionChangeRecord` with directories and eligible leader replicas.
pub(crate) const PARTITION_VERSION: i16 = 2;
/// `RegisterBrokerRecord` with log directories and cordoned ones.
pub(crate) const REGISTER_BROKER_VERSION: i16 = 4;
/// `BrokerRegistrationChangeRecord` that fences or unfences.
pub(crate) const CHANGE_FENCED_VERSION: i16 = 0;
/// `BrokerRegistrationChangeRecord` that begins a controlled shutdown.
pub(crate) const CHANGE_SHUTDOWN_VERSION: i16 = 1;
/// `BrokerRegistrationChangeRecord` that changes the set of online log directories.
pub(crate) const CHANGE_LOG_DIRS_VERSION: i16 = 2;
/// `BrokerRegistrationChangeRecord` that changes the set of cordoned log directories.
pub(crate) const CHANGE_CORDONED_VERSION: i16 = 3;
