//! ControllerRegistration.

use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    ControllerRegistrationRequest, ControllerRegistrationResponse, RegisterControllerRecord,
    register_controller_record,
};

use super::{Controller, Outcome};
use crate::record::VersionedRecord;

impl Controller {
    /// Registers a controller: where it listens and what it supports.
    pub fn register_controller(
        &self,
        request: &ControllerRegistrationRequest,
    ) -> Outcome<ControllerRegistrationResponse> {
        let record = RegisterControllerRecord {
            controller_id: request.controller_id,
            incarnation_id: request.incarnation_id,
            zk_migration_ready: request.zk_migration_ready,
            end_points: request
                .listeners
                .iter()
                .map(|listener| register_controller_record::ControllerEndpoint {
                    name: listener.name.clone(),
                    host: listener.host.clone(),
                    port: listener.port,
                    security_protocol: listener.security_protocol,
                    ..Default::default()
                })
                .collect(),
            features: request
                .features
                .iter()
                .map(|feature| register_controller_record::ControllerFeature {
                    name: feature.name.clone(),
                    min_supported_version: feature.min_supported_version,
                    max_supported_version: feature.max_supported_version,
                    ..Default::default()
                })
                .collect(),
            ..Default::default()
        };
        let record = VersionedRecord::new(MetadataRecord::RegisterControllerRecord(record), 0);
        let reply = ControllerRegistrationResponse { error_message: None, ..Default::default() };
        Outcome::atomic(vec![record], reply)
    }
}
