//! ListOffsets: the ends of a log, and offsets by time.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::list_offsets_request::ListOffsetsPartition;
use callboard_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use callboard_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};
use callboard_storage::{LogReader, StorageError, TimestampOffset};

use super::RequestContext;
use super::topics::{self, ByPartition};
use crate::replicas::Isolation;

/// Timestamps that stand for something else, and the first version that knows each.
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;
/// From this version on the answer has a leader epoch.
const FIRST_WITH_LEADER_EPOCH: i16 = 4;
const FIRST_WITH_MAX_TIMESTAMP: i16 = 7;
const FIRST_WITH_EARLIEST_LOCAL: i16 = 8;
const FIRST_WITH_LATEST_TIERED: i16 = 9;
const FIRST_WITH_EARLIEST_PENDING: i16 = 11;

/// Offset, timestamp and leader epoch; -1 where there is none.
type Found = (i64, i64, i32);
const NOTHING: Found = (-1, -1, -1);

/// Looks each partition's offset up.
pub async fn handle(cx: &RequestContext, request: ListOffsetsRequest, version: i16) -> ListOffsetsResponse {
    let isolation = isolation(&request);
    // A partition named twice is refused.
    let mut wanted = ByPartition::new();
    for topic in request.topics {
        for partition in topic.partitions {
            let index = partition.partition_index;
            if topics::ask_of(&mut wanted, &topic.name, index, Ok(partition)).is_some() {
                topics::ask_of(&mut wanted, &topic.name, index, Err(ErrorCode::InvalidRequest));
            }
        }
    }
    let mut topics = Vec::with_capacity(wanted.len());
    for (name, asked) in wanted {
        let found = topics::by_name(cx, &name);
        let mut partitions = Vec::with_capacity(asked.len());
        for (index, asked) in asked {
            let looked_up = match (asked, &found) {
                (Err(error), _) => Err(error),
                (_, Err(error)) => Err(*error),
                (Ok(asked), Ok(topic)) => look_up(cx, topic, &asked, isolation, version).await,
            };
            partitions.push(answer(index, looked_up, version));
        }
        topics.push(ListOffsetsTopicResponse { name, partitions, ..Default::default() });
    }
    ListOffsetsResponse { topics, ..Default::default() }
}

fn answer(
    partition_index: i32,
    looked_up: Result<Found, ErrorCode>,
    version: i16,
) -> ListOffsetsPartitionResponse {
    let (error_code, (offset, timestamp, leader_epoch)) = match looked_up {
        Ok(found) => (0, found),
        Err(error) => (error as i16, NOTHING),
    };
    let leader_epoch = if version >= FIRST_WITH_LEADER_EPOCH { leader_epoch } else { -1 };
    ListOffsetsPartitionResponse {
        partition_index,
        error_code,
        offset,
        timestamp,
        leader_epoch,
        ..Default::default()
    }
}

/// Where the log ends for the one who asks.
fn isolation(request: &ListOffsetsRequest) -> Result<Isolation, ErrorCode> {
    match (request.replica_id, request.isolation_level) {
        (0.., _) => Ok(Isolation::LogEnd),
        (_, 0) => Ok(Isolation::HighWatermark),
        (_, 1) => Ok(Isolation::LastStable),
        _ => Err(ErrorCode::InvalidRequest),
    }
}

async fn look_up(
    cx: &RequestContext,
    topic: &topics::Found<'_>,
    wanted: &ListOffsetsPartition,
    isolation: Result<Isolation, ErrorCode>,
    version: i16,
) -> Result<Found, ErrorCode> {
    let handle = topic.partition(wanted.partition_index)?;
    let isolation = isolation?;
    let view = handle.view();
    let reader = view.as_leader(wanted.current_leader_epoch)?;
    let offsets = view.offsets_of(&reader);
    let end = match isolation {
        Isolation::HighWatermark => offsets.high_watermark,
        Isolation::LastStable => offsets.last_stable,
        Isolation::LogEnd => offsets.log_end,
    };
    let timestamp = wanted.timestamp;
    let since = |first: i16| if version >= first { Ok(()) } else { Err(ErrorCode::UnsupportedVersion) };
    let earliest = || (offsets.log_start, -1, reader.epoch_of(offsets.log_start).unwrap_or(-1));
    match timestamp {
        LATEST => Ok((end, -1, offsets.leader_epoch)),
        EARLIEST => Ok(earliest()),
        EARLIEST_LOCAL => since(FIRST_WITH_EARLIEST_LOCAL).map(|()| earliest()),
        // There is no tiered storage.
        LATEST_TIERED => since(FIRST_WITH_LATEST_TIERED).map(|()| NOTHING),
        EARLIEST_PENDING_UPLOAD => since(FIRST_WITH_EARLIEST_PENDING).map(|()| NOTHING),
        MAX_TIMESTAMP => {
            since(FIRST_WITH_MAX_TIMESTAMP)?;
            search(cx, &reader, end, LogReader::max_timestamp).await
        }
        0.. => search(cx, &reader, end, move |reader| reader.offset_for_timestamp(timestamp)).await,
        _ => Err(ErrorCode::UnsupportedVersion),
    }
}

/// Searches the log where it may block. What is found must lie before the end that the client sees.
async fn search<S>(cx: &RequestContext, reader: &LogReader, end: i64, search: S) -> Result<Found, ErrorCode>
where
    S: FnOnce(&LogReader) -> Result<Option<TimestampOffset>, StorageError> + Send + 'static,
{
    let reader = reader.clone();
    let found = cx.services.shards.blocking(move || search(&reader)).await;
    let found = found.map_err(|_| ErrorCode::KafkaStorageError)?.filter(|found| found.offset < end);
    Ok(found.map_or(NOTHING, |found| (found.offset, found.timestamp_ms, found.leader_epoch.unwrap_or(-1))))
}
