//! DeleteRecords: everything before an offset.

use std::time::Duration;

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use callboard_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

use super::RequestContext;
use super::topics::{self, ByPartition, Found};
use crate::replicas::messages::DeleteRecords;
use crate::replicas::{Goal, Kind, PartitionHandle, Wait};

/// Raises each log's start, and waits until all replicas have done so.
pub async fn handle(cx: &RequestContext, request: DeleteRecordsRequest, _: i16) -> DeleteRecordsResponse {
    let timeout = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    // Of a partition named twice, the last offset counts.
    let mut offsets = ByPartition::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            topics::ask_of(&mut offsets, &topic.name, partition.partition_index, partition.offset);
        }
    }
    let mut topics = Vec::with_capacity(offsets.len());
    for (name, asked) in offsets {
        let found = topics::by_name(cx, &name);
        let mut partitions = Vec::with_capacity(asked.len());
        for (partition_index, offset) in asked {
            let deleted = match find(&found, partition_index) {
                Ok(handle) => delete(cx, handle, offset, timeout).await,
                Err(error) => Err(error),
            };
            partitions.push(DeleteRecordsPartitionResult {
                partition_index,
                low_watermark: deleted.unwrap_or(-1),
                error_code: deleted.err().map_or(0, |error| error as i16),
                ..Default::default()
            });
        }
        topics.push(DeleteRecordsTopicResult { name, partitions, ..Default::default() });
    }
    DeleteRecordsResponse { topics, ..Default::default() }
}

fn find(topic: &Result<Found<'_>, ErrorCode>, index: i32) -> Result<PartitionHandle, ErrorCode> {
    let topic = topic.as_ref().map_err(|error| *error)?;
    if topic.is_internal() {
        return Err(ErrorCode::InvalidTopicException);
    }
    topic.partition(index)
}

async fn delete(
    cx: &RequestContext,
    handle: PartitionHandle,
    before_offset: i64,
    timeout: Duration,
) -> Result<i64, ErrorCode> {
    let asked = handle.actor().ask(DeleteRecords { before_offset }).await;
    let low_watermark = asked.map_err(|_| ErrorCode::NotLeaderOrFollower)??;
    cx.leave_queue();
    let goals = vec![(handle, Goal::LowWatermark { offset: low_watermark })];
    let wait = Wait { goals, min_bytes: 0, timeout };
    match cx.services.replicas.purgatories.wait(Kind::DeleteRecords, wait) {
        Some(ask) => match ask.await.as_deref() {
            Ok([Err(error)]) => Err(*error),
            // If the purgatory crashed, the leader at least has deleted them.
            _ => Ok(low_watermark),
        },
        None => Ok(low_watermark),
    }
}
