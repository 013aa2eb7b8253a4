//! Client quotas.

use callboard_protocol::ByteString;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{ClientQuotaRecord, client_quota_record};
use imbl::OrdMap;

use crate::record::VersionedRecord;

/// Whom a quota is about: pairs of a type (`user`, `client-id`, `ip`) and a name, `None` for the default, sorted.
pub type QuotaEntity = Vec<(ByteString, Option<ByteString>)>;

/// All client quotas.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QuotasImage {
    entities: OrdMap<QuotaEntity, OrdMap<ByteString, f64>>,
}

impl QuotasImage {
    /// All entities and their values by quota name.
    pub fn iter(&self) -> impl Iterator<Item = (&QuotaEntity, &OrdMap<ByteString, f64>)> {
        self.entities.iter()
    }

    /// The quotas of one entity.
    pub fn of(&self, entity: &QuotaEntity) -> Option<&OrdMap<ByteString, f64>> {
        self.entities.get(entity)
    }

    pub(crate) fn apply(&mut self, record: &ClientQuotaRecord) {
        let mut entity: QuotaEntity =
            record.entity.iter().map(|e| (e.entity_type.clone(), e.entity_name.clone())).collect();
        entity.sort();
        if !record.remove {
            self.entities.entry(entity).or_default().insert(record.key.clone(), record.value);
            return;
        }
        if let Some(values) = self.entities.get_mut(&entity) {
            values.remove(&record.key);
            if values.is_empty() {
                self.entities.remove(&entity);
            }
        }
    }

    pub(crate) fn to_records(&self, out: &mut Vec<VersionedRecord>) {
        for (entity, values) in &self.entities {
            for (key, value) in values {
                let record = ClientQuotaRecord {
                    entity: entity
                        .iter()
                        .map(|(entity_type, entity_name)| client_quota_record::EntityData {
                            entity_type: entity_type.clone(),
                            entity_name: entity_name.clone(),
                            ..Default::default()
                        })
                        .collect(),
                    key: key.clone(),
                    value: *value,
                    remove: false,
                    ..Default::default()
                };
                out.push(VersionedRecord::new(MetadataRecord::ClientQuotaRecord(record), 0));
            }
        }
    }
}
