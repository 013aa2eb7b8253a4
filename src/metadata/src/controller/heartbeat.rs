//! BrokerHeartbeat, and fencing of brokers that fall silent.

use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationChangeRecord,
};
use callboard_protocol::{ErrorCode, Uuid};

use super::leadership::BrokerEvent;
use super::{Context, Controller, Outcome};
use crate::image::BrokerRegistration;
use crate::record::{
    CHANGE_CORDONED_VERSION, CHANGE_FENCED_VERSION, CHANGE_LOG_DIRS_VERSION, CHANGE_SHUTDOWN_VERSION,
    VersionedRecord,
};

/// What a broker becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BrokerState {
    Fenced,
    Unfenced,
    /// It gives up its leaderships.
    ShuttingDown,
    /// It has none left and may stop.
    MayStop,
}

impl Controller {
    /// Hears from a broker: fences it, unfences it or lets it stop.
    pub fn heartbeat(
        &mut self,
        request: &BrokerHeartbeatRequest,
        ctx: &Context<'_>,
    ) -> Outcome<BrokerHeartbeatResponse> {
        if let Err(code) = self.check_epoch(request.broker_id, request.broker_epoch) {
            let reply = BrokerHeartbeatResponse { error_code: code as i16, ..Default::default() };
            return Outcome::reply(reply);
        }
        self.touch(request.broker_id, ctx.now_ms, Some(request.current_metadata_offset));
        let Some(broker) = self.image().cluster.broker(request.broker_id).cloned() else {
            let code = ErrorCode::BrokerIdNotRegistered as i16;
            return Outcome::reply(BrokerHeartbeatResponse { error_code: code, ..Default::default() });
        };
        let next = self.next_state(&broker, request);
        let mut records = self.state_records(&broker, next);
        if next == BrokerState::ShuttingDown {
            let active_from = ctx.next_offset;
            if let Some(liveness) = self.liveness.get_mut(&broker.id)
                && liveness.shutdown_offset < 0
            {
                liveness.shutdown_offset = active_from;
            }
        }
        records.extend(self.directory_records(&broker, request));
        let reply = BrokerHeartbeatResponse {
            is_caught_up: request.current_metadata_offset >= broker.epoch,
            is_fenced: matches!(next, BrokerState::Fenced | BrokerState::MayStop),
            should_shut_down: next == BrokerState::MayStop,
            ..Default::default()
        };
        Outcome { records, reply, atomic: false }
    }

    fn next_state(&self, broker: &BrokerRegistration, request: &BrokerHeartbeatRequest) -> BrokerState {
        if broker.fenced {
            return if request.want_shut_down {
                BrokerState::MayStop
            } else if !request.want_fence && request.current_metadata_offset >= broker.epoch {
                BrokerState::Unfenced
            } else {
                BrokerState::Fenced
            };
        }
        if broker.in_controlled_shutdown {
            let done = !self.leads_anything(broker.id) && self.others_have_read(broker.id);
            return if done { BrokerState::MayStop } else { BrokerState::ShuttingDown };
        }
        if request.want_fence {
            return if request.want_shut_down { BrokerState::MayStop } else { BrokerState::Fenced };
        }
        match (request.want_shut_down, self.leads_anything(broker.id)) {
            (false, _) => BrokerState::Unfenced,
            (true, true) => BrokerState::ShuttingDown,
            (true, false) => BrokerState::MayStop,
        }
    }

    fn leads_anything(&self, broker_id: i32) -> bool {
        let topics = &self.image().topics;
        topics.iter().flat_map(|topic| topic.partitions.values()).any(|p| p.leader == broker_id)
    }

    /// Whether all active brokers have read that a broker gave up its leaderships.
    fn others_have_read(&self, broker_id: i32) -> bool {
        let Some(own) = self.liveness.get(&broker_id) else { return true };
        self.liveness
            .iter()
            .filter(|(id, _)| **id != broker_id && self.image().cluster.is_active(**id))
            .all(|(_, other)| other.metadata_offset >= own.shutdown_offset)
    }

    fn state_records(&self, broker: &BrokerRegistration, next: BrokerState) -> Vec<VersionedRecord> {
        match next {
            BrokerState::Unfenced if broker.fenced => {
                let mut out = vec![change(broker, CHANGE_FENCED_VERSION, |record| record.fenced = -1)];
                out.extend(self.leadership_changes(BrokerEvent::Joins(broker.id)));
                out
            }
            BrokerState::Fenced | BrokerState::MayStop if !broker.fenced => self.fence_records(broker),
            BrokerState::ShuttingDown if !broker.in_controlled_shutdown => {
                let record =
                    change(broker, CHANGE_SHUTDOWN_VERSION, |record| record.in_controlled_shutdown = 1);
                let mut out = vec![record];
                out.extend(self.leadership_changes(BrokerEvent::Leaves(broker.id)));
                out
            }
            _ => Vec::new(),
        }
    }

    fn fence_records(&self, broker: &BrokerRegistration) -> Vec<VersionedRecord> {
        let mut out = self.leadership_changes(BrokerEvent::Leaves(broker.id));
        out.push(change(broker, CHANGE_FENCED_VERSION, |record| record.fenced = 1));
        out
    }

    /// Log directories that failed or are cordoned.
    fn directory_records(
        &self,
        broker: &BrokerRegistration,
        request: &BrokerHeartbeatRequest,
    ) -> Vec<VersionedRecord> {
        let mut out = Vec::new();
        let is_offline = |dir: &Uuid| request.offline_log_dirs.contains(dir);
        let (lost, online): (Vec<Uuid>, Vec<Uuid>) = broker.log_dirs.iter().partition(|dir| is_offline(dir));
        if !lost.is_empty() && !online.is_empty() {
            out.push(change(broker, CHANGE_LOG_DIRS_VERSION, |record| record.log_dirs = online));
            out.extend(self.leadership_changes(BrokerEvent::LostDirectories(broker.id, &lost)));
        }
        if let Some(cordoned) = &request.cordoned_log_dirs
            && *cordoned != broker.cordoned_log_dirs
        {
            let cordoned = Some(cordoned.clone());
            out.push(change(broker, CHANGE_CORDONED_VERSION, |record| record.cordoned_log_dirs = cordoned));
        }
        out
    }

    /// Fences the brokers that have been silent for longer than `broker.session.timeout.ms`.
    pub fn fence_silent_brokers(&self, now_ms: i64) -> Outcome<()> {
        let mut records = Vec::new();
        // One at a time: each fencing changes what the next one sees.
        let mut after = self.clone();
        for broker in self.image().cluster.brokers.values() {
            if broker.fenced || self.has_session(broker.id, now_ms) {
                continue;
            }
            let more = after.fence_records(broker);
            if more.iter().any(|record| after.replay(&record.record).is_err()) {
                break;
            }
            records.extend(more);
        }
        Outcome { records, reply: (), atomic: false }
    }

    /// When the next silent broker is due to be fenced, in milliseconds since 1970.
    pub fn next_session_end_ms(&self) -> Option<i64> {
        let timeout_ms = self.settings.int("broker.session.timeout.ms");
        let cluster = &self.image().cluster;
        self.liveness
            .iter()
            .filter(|(id, _)| cluster.broker(**id).is_some_and(|broker| !broker.fenced))
            .map(|(_, liveness)| liveness.last_contact_ms.saturating_add(timeout_ms).saturating_add(1))
            .min()
    }
}

fn change(
    broker: &BrokerRegistration,
    version: i16,
    set: impl FnOnce(&mut BrokerRegistrationChangeRecord),
) -> VersionedRecord {
    let mut record = BrokerRegistrationChangeRecord {
        broker_id: broker.id,
        broker_epoch: broker.epoch,
        ..Default::default()
    };
    set(&mut record);
    VersionedRecord::new(MetadataRecord::BrokerRegistrationChangeRecord(record), version)
}
