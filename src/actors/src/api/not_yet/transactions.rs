//! Transactions, but for producers without a transactional id.

use callboard_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnTopicResult,
};
use callboard_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use callboard_protocol::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, WriteTxnMarkersRequest, WriteTxnMarkersResponse,
};

use super::super::RequestContext;
use super::{CODE, refuse_at_top, refuse_each, refuse_partitions};

/// From this version on the answer has an error at its top.
const FIRST_ADD_WITH_ERROR: i16 = 4;

/// Nothing can be added to a transaction yet.
pub async fn add_partitions_to_txn(
    _: &RequestContext,
    request: AddPartitionsToTxnRequest,
    version: i16,
) -> AddPartitionsToTxnResponse {
    if version >= FIRST_ADD_WITH_ERROR {
        return AddPartitionsToTxnResponse { error_code: CODE, ..Default::default() };
    }
    let partition = |index: &i32| AddPartitionsToTxnPartitionResult {
        partition_index: *index,
        partition_error_code: CODE,
        ..Default::default()
    };
    let topics = request.v3_and_below_topics.into_iter().map(|topic| AddPartitionsToTxnTopicResult {
        name: topic.name,
        results_by_partition: topic.partitions.iter().map(partition).collect(),
        ..Default::default()
    });
    AddPartitionsToTxnResponse { results_by_topic_v3_and_below: topics.collect(), ..Default::default() }
}

/// No markers are written yet.
pub async fn write_txn_markers(
    _: &RequestContext,
    request: WriteTxnMarkersRequest,
    _: i16,
) -> WriteTxnMarkersResponse {
    let partition = |index: &i32| WritableTxnMarkerPartitionResult {
        partition_index: *index,
        error_code: CODE,
        ..Default::default()
    };
    let markers = request.markers.into_iter().map(|marker| WritableTxnMarkerResult {
        producer_id: marker.producer_id,
        topics: marker
            .topics
            .into_iter()
            .map(|topic| WritableTxnMarkerTopicResult {
                name: topic.name,
                partitions: topic.partition_indexes.iter().map(partition).collect(),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    });
    WriteTxnMarkersResponse { markers: markers.collect(), ..Default::default() }
}

refuse_at_top! {
    add_offsets_to_txn AddOffsetsToTxnRequest AddOffsetsToTxnResponse;
    end_txn EndTxnRequest EndTxnResponse;
    list_transactions ListTransactionsRequest ListTransactionsResponse;
}

refuse_each! {
    describe_transactions DescribeTransactionsRequest.transactional_ids => DescribeTransactionsResponse.transaction_states: describe_transactions_response::TransactionState.transactional_id;
}

refuse_partitions! {
    txn_offset_commit TxnOffsetCommitRequest.topics => TxnOffsetCommitResponse.topics: txn_offset_commit_response::{TxnOffsetCommitResponseTopic, TxnOffsetCommitResponsePartition}
        [name => name, topic_id => topic_id] |p| p.partition_index => partition_index;
}
