//! OffsetForLeaderEpoch: where a leader's epoch ended.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use callboard_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use callboard_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use super::RequestContext;
use super::topics::{self, Found};

/// Looks the end of each epoch up; an epoch that the log does not know is -1 without an error.
pub async fn handle(
    cx: &RequestContext,
    request: OffsetForLeaderEpochRequest,
    _: i16,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.into_iter().map(|topic| {
        let found = topics::by_name(cx, &topic.topic);
        let partitions = topic.partitions.iter().map(|wanted| answer(&found, wanted)).collect();
        OffsetForLeaderTopicResult { topic: topic.topic, partitions, ..Default::default() }
    });
    OffsetForLeaderEpochResponse { topics: topics.collect(), ..Default::default() }
}

fn answer(topic: &Result<Found<'_>, ErrorCode>, wanted: &OffsetForLeaderPartition) -> EpochEndOffset {
    let (error_code, (leader_epoch, end_offset)) = match look_up(topic, wanted) {
        Ok(found) => (0, found),
        Err(error) => (error as i16, (-1, -1)),
    };
    EpochEndOffset { error_code, partition: wanted.partition, leader_epoch, end_offset, ..Default::default() }
}

fn look_up(
    topic: &Result<Found<'_>, ErrorCode>,
    wanted: &OffsetForLeaderPartition,
) -> Result<(i32, i64), ErrorCode> {
    let topic = topic.as_ref().map_err(|error| *error)?;
    let handle = topic.partition(wanted.partition)?;
    let reader = handle.view().as_leader(wanted.current_leader_epoch)?;
    Ok(reader.epoch_end_offset(wanted.leader_epoch).unwrap_or((-1, -1)))
}
