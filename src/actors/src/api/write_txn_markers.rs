//! WriteTxnMarkers: ends transactions in partitions of this broker, for another broker or an administrator.

use callboard_coordinator::runtime::Producer;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::write_txn_markers_request::WritableTxnMarker;
use callboard_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use callboard_protocol::messages::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};
use futures_util::future::join_all;

use super::RequestContext;
use super::topics::{self, Found};
use crate::transactions::{MarkerToWrite, write_here};

/// Writes each marker, and waits for the replicas.
pub async fn handle(cx: &RequestContext, request: WriteTxnMarkersRequest, _: i16) -> WriteTxnMarkersResponse {
    let markers = join_all(request.markers.into_iter().map(|marker| one(cx, marker))).await;
    WriteTxnMarkersResponse { markers, ..Default::default() }
}

async fn one(cx: &RequestContext, request: WritableTxnMarker) -> WritableTxnMarkerResult {
    let marker = MarkerToWrite {
        producer: Producer { id: request.producer_id, epoch: request.producer_epoch },
        committed: request.transaction_result,
        coordinator_epoch: request.coordinator_epoch,
        transaction_version: request.transaction_version,
    };
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let found = topics::by_name(cx, &topic.name);
        let writing = topic.partition_indexes.iter().map(|index| partition(cx, &found, *index, marker));
        let partitions = join_all(writing).await;
        topics.push(WritableTxnMarkerTopicResult { name: topic.name, partitions, ..Default::default() });
    }
    WritableTxnMarkerResult { producer_id: request.producer_id, topics, ..Default::default() }
}

async fn partition(
    cx: &RequestContext,
    topic: &Result<Found<'_>, ErrorCode>,
    partition_index: i32,
    marker: MarkerToWrite,
) -> WritableTxnMarkerPartitionResult {
    let handle = topic.as_ref().map_err(|error| *error).and_then(|topic| topic.partition(partition_index));
    let written = match handle {
        Ok(handle) => write_here(&cx.services.replicas, &cx.services.groups, &handle, marker).await,
        Err(error) => Err(error),
    };
    let error = written.err().unwrap_or(ErrorCode::None);
    WritableTxnMarkerPartitionResult { partition_index, error_code: error as i16, ..Default::default() }
}
