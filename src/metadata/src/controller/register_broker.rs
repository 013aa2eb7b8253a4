//! BrokerRegistration.

use std::collections::BTreeSet;

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    BrokerRegistrationRequest, BrokerRegistrationResponse, RegisterBrokerRecord, register_broker_record,
};

use super::leadership::BrokerEvent;
use super::{Context, Controller, Outcome};
use crate::record::{REGISTER_BROKER_VERSION, VersionedRecord};

impl Controller {
    /// Registers a broker: fenced, until it has read the log up to its own registration.
    pub fn register_broker(
        &mut self,
        request: &BrokerRegistrationRequest,
        ctx: &Context<'_>,
    ) -> Outcome<BrokerRegistrationResponse> {
        if let Err(code) = self.check_registration(request, ctx.now_ms) {
            let reply = BrokerRegistrationResponse { error_code: code as i16, ..Default::default() };
            return Outcome::reply(reply);
        }
        let id = request.broker_id;
        let existing = self.image().cluster.broker(id);
        let same_run = existing.filter(|broker| broker.incarnation_id == request.incarnation_id);
        let mut records = Vec::new();
        let may_have_lost = existing.is_some_and(|broker| {
            broker.incarnation_id != request.incarnation_id && broker.epoch != request.previous_broker_epoch
        });
        if may_have_lost {
            records = self.leadership_changes(BrokerEvent::MayHaveLost(id));
        } else if existing.is_some_and(|broker| !broker.fenced) && same_run.is_none() {
            records = self.leadership_changes(BrokerEvent::Leaves(id));
        }
        // A repeated request of one run keeps its epoch and state.
        let epoch = same_run.map_or(ctx.next_offset, |broker| broker.epoch);
        let fenced = same_run.is_none_or(|broker| broker.fenced);
        let in_controlled_shutdown = same_run.is_some_and(|broker| broker.in_controlled_shutdown);
        let record = RegisterBrokerRecord {
            fenced,
            in_controlled_shutdown,
            broker_epoch: epoch,
            ..registration_record(request)
        };
        let record = MetadataRecord::RegisterBrokerRecord(record);
        records.push(VersionedRecord::new(record, REGISTER_BROKER_VERSION));
        self.touch(id, ctx.now_ms, Some(-1));
        if let Some(liveness) = self.liveness.get_mut(&id) {
            liveness.shutdown_offset = -1;
        }
        let reply = BrokerRegistrationResponse { broker_epoch: epoch, ..Default::default() };
        Outcome::atomic(records, reply)
    }

    fn check_registration(&self, request: &BrokerRegistrationRequest, now_ms: i64) -> Result<(), ErrorCode> {
        if request.cluster_id != self.settings.cluster_id {
            return Err(ErrorCode::InconsistentClusterId);
        }
        if let Some(existing) = self.image().cluster.broker(request.broker_id) {
            // An earlier run of this very node cannot be alive: its data directory is locked by us.
            let own = request.broker_id == self.settings.node_id;
            let alive = !existing.fenced && self.has_session(existing.id, now_ms);
            if alive && !own && existing.incarnation_id != request.incarnation_id {
                return Err(ErrorCode::DuplicateBrokerRegistration);
            }
        }
        let distinct: BTreeSet<_> = request.log_dirs.iter().collect();
        if distinct.is_empty() || distinct.len() != request.log_dirs.len() {
            return Err(ErrorCode::InvalidRegistration);
        }
        for (feature, level) in self.image().features.iter() {
            let range = request.features.iter().find(|known| known.name == *feature);
            if !range.is_some_and(|r| r.min_supported_version <= level && level <= r.max_supported_version) {
                return Err(ErrorCode::UnsupportedVersion);
            }
        }
        Ok(())
    }
}

fn registration_record(request: &BrokerRegistrationRequest) -> RegisterBrokerRecord {
    RegisterBrokerRecord {
        broker_id: request.broker_id,
        is_migrating_zk_broker: request.is_migrating_zk_broker,
        incarnation_id: request.incarnation_id,
        end_points: request
            .listeners
            .iter()
            .map(|listener| register_broker_record::BrokerEndpoint {
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
            .map(|feature| register_broker_record::BrokerFeature {
                name: feature.name.clone(),
                min_supported_version: feature.min_supported_version,
                max_supported_version: feature.max_supported_version,
                ..Default::default()
            })
            .collect(),
        rack: request.rack.clone(),
        log_dirs: request.log_dirs.clone(),
        ..Default::default()
    }
}
