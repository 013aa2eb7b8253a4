//! UnregisterBroker.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    UnregisterBrokerRecord, UnregisterBrokerRequest, UnregisterBrokerResponse,
};

use super::leadership::BrokerEvent;
use super::{Controller, Outcome};
use crate::record::VersionedRecord;

impl Controller {
    /// Forgets a broker. If it is alive it registers again by itself.
    pub fn unregister_broker(&self, request: &UnregisterBrokerRequest) -> Outcome<UnregisterBrokerResponse> {
        let id = request.broker_id;
        let Some(broker) = self.image().cluster.broker(id) else {
            return Outcome::reply(UnregisterBrokerResponse {
                error_code: ErrorCode::BrokerIdNotRegistered as i16,
                error_message: Some(format!("Broker ID {id} is not currently registered").into()),
                ..Default::default()
            });
        };
        let mut records = self.leadership_changes(BrokerEvent::Leaves(id));
        let record =
            UnregisterBrokerRecord { broker_id: id, broker_epoch: broker.epoch, ..Default::default() };
        records.push(VersionedRecord::new(MetadataRecord::UnregisterBrokerRecord(record), 0));
        let reply = UnregisterBrokerResponse { error_message: None, ..Default::default() };
        Outcome { records, reply, atomic: false }
    }
}
