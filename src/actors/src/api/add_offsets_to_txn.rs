//! AddOffsetsToTxn: a group's offsets take part in a transaction.

use callboard_coordinator::runtime::Producer;
use callboard_coordinator::transaction::{AddPartitions, TopicPartition};
use callboard_protocol::messages::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::{RequestContext, auto_creation, transactional};
use crate::groups;

/// From this version on a producer is told that another took its place.
const FIRST_WITH_FENCED: i16 = 2;

/// Adds the partition that holds the group's offsets.
pub async fn handle(
    cx: &RequestContext,
    request: AddOffsetsToTxnRequest,
    version: i16,
) -> AddOffsetsToTxnResponse {
    let error = match add(cx, request).await {
        Ok(()) => ErrorCode::None,
        Err(error) => transactional::known_to(error, version, FIRST_WITH_FENCED),
    };
    AddOffsetsToTxnResponse { error_code: error as i16, ..Default::default() }
}

async fn add(cx: &RequestContext, request: AddOffsetsToTxnRequest) -> Result<(), ErrorCode> {
    let partition = offsets_partition(cx, &request.group_id).await?;
    let adding = AddPartitions {
        transactional_id: request.transactional_id,
        producer: Producer { id: request.producer_id, epoch: request.producer_epoch },
        partitions: vec![partition],
        client_version: transactional::KEEPING,
        patience_ms: 0,
    };
    cx.services.transactions.add(adding).await
}

/// The partition that holds a group's offsets. The topic is created if it is not there.
///
/// # Errors
/// COORDINATOR_NOT_AVAILABLE if it can't be created.
pub(super) async fn offsets_partition(
    cx: &RequestContext,
    group_id: &ByteString,
) -> Result<TopicPartition, ErrorCode> {
    if cx.services.groups.partition_of(group_id).is_none() {
        let created = auto_creation::create_internal(cx, groups::TOPIC).await;
        created.map_err(|_| ErrorCode::CoordinatorNotAvailable)?;
    }
    let partition = cx.services.groups.partition_of(group_id).ok_or(ErrorCode::CoordinatorNotAvailable)?;
    Ok(TopicPartition { topic: ByteString::from_static(groups::TOPIC), partition })
}
