//! AllocateProducerIds: blocks of producer ids for a broker to hand out.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, ProducerIdsRecord,
};

use super::{Controller, Outcome};
use crate::record::VersionedRecord;

/// How many ids a block has.
const BLOCK_SIZE: i32 = 1_000;

impl Controller {
    /// Gives a broker the next block of producer ids.
    pub fn allocate_producer_ids(
        &self,
        request: &AllocateProducerIdsRequest,
    ) -> Outcome<AllocateProducerIdsResponse> {
        let refuse = |code: ErrorCode| {
            Outcome::reply(AllocateProducerIdsResponse { error_code: code as i16, ..Default::default() })
        };
        if let Err(code) = self.check_epoch(request.broker_id, request.broker_epoch) {
            return refuse(code);
        }
        let start = self.image().next_producer_id;
        let Some(next) = start.checked_add(i64::from(BLOCK_SIZE)) else {
            return refuse(ErrorCode::UnknownServerError);
        };
        let record = ProducerIdsRecord {
            broker_id: request.broker_id,
            broker_epoch: request.broker_epoch,
            next_producer_id: next,
            ..Default::default()
        };
        let record = VersionedRecord::new(MetadataRecord::ProducerIdsRecord(record), 0);
        let reply = AllocateProducerIdsResponse {
            producer_id_start: start,
            producer_id_len: BLOCK_SIZE,
            ..Default::default()
        };
        Outcome::atomic(vec![record], reply)
    }
}
