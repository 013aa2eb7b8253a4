//! Transactions over real sockets: what readers see, who is refused, and what outlives crashes and restarts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use callboard_actors::supervision::faults;
use callboard_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use callboard_protocol::messages::fetch_response::PartitionData;
use callboard_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use callboard_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use callboard_protocol::messages::{
    AddPartitionsToTxnRequest, DescribeTransactionsRequest, EndTxnRequest, EndTxnResponse, FetchRequest,
    FindCoordinatorRequest, InitProducerIdRequest, InitProducerIdResponse, OffsetFetchRequest,
    ProduceRequest, TxnOffsetCommitRequest, add_partitions_to_txn_request,
};
use callboard_protocol::records::{BatchBuilder, batches};
use callboard_protocol::wire::Records;
use callboard_protocol::{ByteString, ErrorCode};

use super::common::{Client, produce, with_node, with_node_in};

const ID: ByteString = ByteString::from_static("writer");
const TOPIC: &str = "t";
/// Between two tries of something that is about to be.
const PAUSE: Duration = Duration::from_millis(2);

/// Whether a client tries again at this error.
fn passes(code: i16) -> bool {
    matches!(
        ErrorCode::from(code),
        ErrorCode::ConcurrentTransactions
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotEnoughReplicas
            | ErrorCode::NotLeaderOrFollower
    )
}

/// A producer with its transactional id.
struct Writer {
    client: Client,
    id: i64,
    epoch: i16,
    sequence: i32,
}

impl Writer {
    async fn new(mut client: Client, timeout_ms: i32) -> Self {
        let find = FindCoordinatorRequest { coordinator_keys: vec![ID], key_type: 1, ..Default::default() };
        let found = client.ask(&find, 6).await;
        assert_eq!((found.coordinators[0].error_code, found.coordinators[0].node_id), (0, 1));
        let producer = init(&mut client, timeout_ms).await;
        Self { client, id: producer.producer_id, epoch: producer.producer_epoch, sequence: 0 }
    }

    fn batch(&mut self, value: &'static str) -> Bytes {
        let mut batch = BatchBuilder::new(0).producer(self.id, self.epoch, self.sequence).transactional(true);
        // Records long before their marker would be in a segment of their own.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        batch.append(i64::try_from(now).unwrap(), None, Some(value.as_bytes()), &[]);
        self.sequence += 1;
        batch.build().unwrap()
    }

    async fn try_write(&mut self, partition: i32, value: &'static str, version: i16) -> ErrorCode {
        let batch = self.batch(value);
        let transactional_id = Some(ID);
        let request = ProduceRequest { transactional_id, ..produce(TOPIC, partition, -1, batch) };
        loop {
            let response = self.client.ask(&request, version).await;
            let code = response.responses[0].partition_responses[0].error_code;
            if !passes(code) {
                return code.into();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn write(&mut self, partition: i32, value: &'static str) {
        assert_eq!(self.try_write(partition, value, 12).await, ErrorCode::None);
    }

    async fn end(&mut self, committed: bool, version: i16) -> EndTxnResponse {
        let request = EndTxnRequest {
            transactional_id: ID,
            producer_id: self.id,
            producer_epoch: self.epoch,
            committed,
            ..Default::default()
        };
        loop {
            let response = self.client.ask(&request, version).await;
            if !passes(response.error_code) {
                return response;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Ends the transaction by the protocol that raises the epoch.
    async fn end_and_go_on(&mut self, committed: bool) {
        let ended = self.end(committed, 5).await;
        assert_eq!(ended.error_code, 0, "{:?}", ErrorCode::from(ended.error_code));
        assert_eq!((ended.producer_id, ended.producer_epoch), (self.id, self.epoch + 1));
        (self.epoch, self.sequence) = (ended.producer_epoch, 0);
    }

    async fn state(&mut self) -> ByteString {
        let request = DescribeTransactionsRequest { transactional_ids: vec![ID], ..Default::default() };
        loop {
            let response = self.client.ask(&request, 0).await;
            let state = response.transaction_states.into_iter().next().unwrap();
            if !passes(state.error_code) {
                return state.transaction_state;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn until(&mut self, wanted: &str) {
        while *self.state().await != *wanted {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn init(client: &mut Client, timeout_ms: i32) -> InitProducerIdResponse {
    let request = InitProducerIdRequest {
        transactional_id: Some(ID),
        transaction_timeout_ms: timeout_ms,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    };
    loop {
        let response = client.ask(&request, 5).await;
        if !passes(response.error_code) {
            assert_eq!(response.error_code, 0, "{:?}", ErrorCode::from(response.error_code));
            return response;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn fetch(client: &mut Client, partition: i32, isolation_level: i8) -> PartitionData {
    let topic = FetchTopic {
        topic: ByteString::from_static(TOPIC),
        partitions: vec![FetchPartition {
            partition,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            partition_max_bytes: 1 << 20,
            ..Default::default()
        }],
        ..Default::default()
    };
    let request = FetchRequest {
        replica_id: -1,
        max_bytes: 1 << 20,
        isolation_level,
        session_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    };
    let mut response = client.ask(&request, 12).await;
    response.responses.remove(0).partitions.remove(0)
}

/// What a reader of committed records gets: as a client does it, by the list of aborted transactions.
async fn committed(client: &mut Client, partition: i32) -> Vec<String> {
    let data = fetch(client, partition, 1).await;
    assert_eq!(data.error_code, 0);
    let mut aborted: Vec<(i64, i64)> = data
        .aborted_transactions
        .unwrap_or_default()
        .iter()
        .map(|transaction| (transaction.first_offset, transaction.producer_id))
        .collect();
    aborted.sort_unstable();
    let mut values = Vec::new();
    let mut skipped: Vec<i64> = Vec::new();
    for batch in batches(data.records.as_ref().and_then(Records::as_bytes).unwrap().clone()) {
        let batch = batch.unwrap();
        let producer = batch.header.producer_id;
        while aborted.first().is_some_and(|(first, _)| *first <= batch.header.base_offset) {
            skipped.push(aborted.remove(0).1);
        }
        if batch.header.is_control() {
            skipped.retain(|id| *id != producer);
            continue;
        }
        if batch.header.is_transactional() && skipped.contains(&producer) {
            continue;
        }
        for record in batch.records().unwrap() {
            values.push(String::from_utf8(record.unwrap().value.unwrap().to_vec()).unwrap());
        }
    }
    values
}

async fn stable_at_end(client: &mut Client, partition: i32) {
    loop {
        let data = fetch(client, partition, 0).await;
        if data.last_stable_offset == data.high_watermark {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[test]
fn what_is_committed_is_seen_and_what_is_aborted_is_not() {
    with_node(async |address| {
        let mut reader = Client::connect(address).await;
        reader.create_topic(TOPIC, 2).await;
        let mut writer = Writer::new(Client::connect(address).await, 60_000).await;
        writer.write(0, "one").await;
        writer.write(1, "two").await;
        assert_eq!(committed(&mut reader, 0).await, [""; 0], "it is open");
        assert_eq!(fetch(&mut reader, 0, 1).await.last_stable_offset, 0);
        assert_eq!(fetch(&mut reader, 0, 0).await.high_watermark, 1);
        writer.end_and_go_on(true).await;
        writer.write(0, "never").await;
        writer.end_and_go_on(false).await;
        writer.write(0, "three").await;
        writer.end_and_go_on(true).await;
        stable_at_end(&mut reader, 0).await;
        stable_at_end(&mut reader, 1).await;
        assert_eq!(committed(&mut reader, 0).await, ["one", "three"]);
        assert_eq!(committed(&mut reader, 1).await, ["two"]);
        // Three records, and a marker after each.
        assert_eq!(fetch(&mut reader, 0, 0).await.high_watermark, 6);
        writer.until("CompleteCommit").await;
    });
}

#[test]
fn the_former_protocol_adds_partitions_first_and_keeps_the_epoch() {
    with_node(async |address| {
        let mut reader = Client::connect(address).await;
        reader.create_topic(TOPIC, 2).await;
        let mut writer = Writer::new(Client::connect(address).await, 60_000).await;
        assert_eq!(writer.try_write(0, "no", 10).await, ErrorCode::InvalidTxnState);
        assert_eq!(writer.try_write(0, "no", 11).await, ErrorCode::TransactionAbortable);
        writer.sequence = 0;
        for (value, is_commit) in [("one", true), ("never", false), ("two", true)] {
            let topic = add_partitions_to_txn_request::AddPartitionsToTxnTopic {
                name: ByteString::from_static(TOPIC),
                partitions: vec![0],
                ..Default::default()
            };
            let add = AddPartitionsToTxnRequest {
                v3_and_below_transactional_id: ID,
                v3_and_below_producer_id: writer.id,
                v3_and_below_producer_epoch: writer.epoch,
                v3_and_below_topics: vec![topic],
                ..Default::default()
            };
            while passes(
                writer.client.ask(&add, 3).await.results_by_topic_v3_and_below[0].results_by_partition[0]
                    .partition_error_code,
            ) {
                tokio::time::sleep(PAUSE).await;
            }
            assert_eq!(writer.try_write(0, value, 11).await, ErrorCode::None);
            assert_eq!(writer.try_write(1, "no", 11).await, ErrorCode::TransactionAbortable);
            writer.sequence -= 1;
            assert_eq!(writer.end(is_commit, 4).await.error_code, 0);
        }
        stable_at_end(&mut reader, 0).await;
        assert_eq!(committed(&mut reader, 0).await, ["one", "two"]);
        assert_eq!(committed(&mut reader, 1).await, [""; 0]);
    });
}

#[test]
fn a_successor_fences_and_aborts() {
    with_node(async |address| {
        let mut reader = Client::connect(address).await;
        reader.create_topic(TOPIC, 1).await;
        let mut zombie = Writer::new(Client::connect(address).await, 60_000).await;
        zombie.write(0, "never").await;
        let mut writer = Writer::new(Client::connect(address).await, 60_000).await;
        assert_eq!((writer.id, writer.epoch), (zombie.id, zombie.epoch + 2));
        assert_eq!(zombie.try_write(0, "late", 12).await, ErrorCode::InvalidProducerEpoch);
        assert_eq!(zombie.end(true, 4).await.error_code, ErrorCode::ProducerFenced as i16);
        writer.write(0, "one").await;
        writer.end_and_go_on(true).await;
        stable_at_end(&mut reader, 0).await;
        assert_eq!(committed(&mut reader, 0).await, ["one"]);
    });
}

#[test]
fn a_transaction_that_takes_too_long_is_aborted() {
    with_node(async |address| {
        let mut reader = Client::connect(address).await;
        reader.create_topic(TOPIC, 1).await;
        let mut writer = Writer::new(Client::connect(address).await, 50).await;
        writer.write(0, "never").await;
        writer.until("CompleteAbort").await;
        stable_at_end(&mut reader, 0).await;
        assert_eq!(committed(&mut reader, 0).await, [""; 0]);
        assert_eq!(writer.end(true, 4).await.error_code, ErrorCode::ProducerFenced as i16);
    });
}

async fn group_offset(client: &mut Client, require_stable: bool) -> (i64, i16) {
    let group = OffsetFetchRequestGroup {
        group_id: ByteString::from_static("readers"),
        member_epoch: -1,
        topics: Some(vec![OffsetFetchRequestTopics {
            name: ByteString::from_static(TOPIC),
            partition_indexes: vec![0],
            ..Default::default()
        }]),
        ..Default::default()
    };
    let request = OffsetFetchRequest { groups: vec![group], require_stable, ..Default::default() };
    loop {
        let response = client.ask(&request, 8).await;
        if !passes(response.groups[0].error_code) {
            let partition = &response.groups[0].topics[0].partitions[0];
            return (partition.committed_offset, partition.error_code);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[test]
fn offsets_count_when_their_transaction_is_committed() {
    with_node(async |address| {
        let mut reader = Client::connect(address).await;
        reader.create_topic(TOPIC, 1).await;
        let mut writer = Writer::new(Client::connect(address).await, 60_000).await;
        for (offset, is_commit, expected) in [(5, true, 5), (6, false, 5), (7, true, 7)] {
            let before = if offset == 5 { -1 } else { 5 };
            let request = TxnOffsetCommitRequest {
                transactional_id: ID,
                group_id: ByteString::from_static("readers"),
                producer_id: writer.id,
                producer_epoch: writer.epoch,
                generation_id_or_member_epoch: -1,
                topics: vec![TxnOffsetCommitRequestTopic {
                    name: ByteString::from_static(TOPIC),
                    partitions: vec![TxnOffsetCommitRequestPartition {
                        committed_offset: offset,
                        committed_leader_epoch: -1,
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            };
            loop {
                let response = writer.client.ask(&request, 5).await;
                let code = response.topics[0].partitions[0].error_code;
                if !passes(code) {
                    assert_eq!(ErrorCode::from(code), ErrorCode::None);
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
            assert_eq!(group_offset(&mut reader, false).await, (before, 0));
            let unstable = ErrorCode::UnstableOffsetCommit as i16;
            assert_eq!(group_offset(&mut reader, true).await.1, unstable);
            writer.end_and_go_on(is_commit).await;
            while group_offset(&mut reader, true).await.1 == unstable {
                tokio::time::sleep(PAUSE).await;
            }
            assert_eq!(group_offset(&mut reader, true).await, (expected, 0));
        }
    });
}

#[test]
fn an_open_transaction_outlives_a_restart_and_crashes_of_everything_in_its_way() {
    let dir = tempfile::tempdir().unwrap();
    let (mut id, mut epoch) = (0, 0);
    with_node_in(dir.path(), async |_, address| {
        let mut client = Client::connect(address).await;
        client.create_topic(TOPIC, 1).await;
        let mut writer = Writer::new(client, 60_000).await;
        writer.write(0, "one").await;
        (id, epoch) = (writer.id, writer.epoch);
    });
    with_node_in(dir.path(), async |node, address| {
        let mut reader = Client::connect(address).await;
        let mut writer = Writer { client: Client::connect(address).await, id, epoch, sequence: 1 };
        writer.until("Ongoing").await;
        let crash_shards = async || loop {
            let path = |shard| format!("node/transactions/shards/shard-{shard}");
            // One that is being built again can't be crashed.
            let crashed = (0..3).filter(|shard| faults::crash(node.tree(), &path(*shard))).count();
            if crashed > 0 {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        };
        crash_shards().await;
        writer.write(0, "two").await;
        crash_shards().await;
        let ended = writer.end(true, 5).await;
        // Crashed before the markers or after: the next shard sees to them.
        crash_shards().await;
        assert_eq!(ended.error_code, 0, "{:?}", ErrorCode::from(ended.error_code));
        writer.until("CompleteCommit").await;
        stable_at_end(&mut reader, 0).await;
        assert_eq!(committed(&mut reader, 0).await, ["one", "two"]);
        let again = writer.end(true, 5).await;
        assert_eq!((again.error_code, again.producer_epoch), (0, epoch + 1), "asked again, answered alike");
    });
}
