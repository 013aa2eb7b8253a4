//! The consumer without a group: partitions are assigned, positions are the caller's.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use callboard_protocol::messages::fetch_response::PartitionData;
use callboard_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use callboard_protocol::messages::{FetchRequest, FetchResponse, ListOffsetsRequest};
use callboard_protocol::records::legacy::{AnyBatch, any_batches};
use callboard_protocol::records::{Record, RecordError, RecordHeader};
use callboard_protocol::wire::Records;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::{Client, ClientError};

/// How a consumer fetches.
#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    /// How long a broker may hold a fetch for more data.
    pub max_wait: Duration,
    /// Bytes that a broker waits for.
    pub min_bytes: i32,
    /// Bytes of one fetch, about.
    pub max_bytes: i32,
    /// Bytes of one partition in a fetch, about.
    pub max_partition_bytes: i32,
    /// Where to go when a position is outside of the log.
    pub offset_reset: OffsetReset,
}

impl Default for ConsumerOptions {
    /// 500 ms, 1 byte, 50 MiB, 1 MiB, and an error outside of the log.
    fn default() -> Self {
        Self {
            max_wait: Duration::from_millis(500),
            min_bytes: 1,
            max_bytes: 50 << 20,
            max_partition_bytes: 1 << 20,
            offset_reset: OffsetReset::Error,
        }
    }
}

/// Where to go when a position is outside of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetReset {
    /// The log's start.
    Earliest,
    /// The log's end.
    Latest,
    /// Nowhere: [`Consumer::poll`] gives the error.
    Error,
}

/// An offset to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The first there is.
    Earliest,
    /// The one after the last readable.
    Latest,
    /// That of the first record of this time (milliseconds) or later.
    Timestamp(i64),
}

impl OffsetSpec {
    fn wire(self) -> i64 {
        match self {
            Self::Earliest => -2,
            Self::Latest => -1,
            Self::Timestamp(ms) => ms,
        }
    }
}

/// A record read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumedRecord {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    /// The key.
    pub key: Option<Bytes>,
    /// The value.
    pub value: Option<Bytes>,
    /// The headers.
    pub headers: Vec<RecordHeader>,
}

type Place = (String, i32);

/// What a fetch asked for, and its answer.
struct Fetched {
    leader: i32,
    asked: BTreeMap<Place, i64>,
    result: Result<FetchResponse, ClientError>,
}

/// Reads partitions. One fetch a leader is always on the wire.
#[derive(Debug)]
pub struct Consumer {
    client: Client,
    options: ConsumerOptions,
    /// Assigned partitions, and the offset each is read from next.
    positions: BTreeMap<Place, i64>,
    /// Leaders that owe an answer.
    busy: Vec<i32>,
    fetches: JoinSet<Fetched>,
    ready: VecDeque<ConsumedRecord>,
}

impl std::fmt::Debug for Fetched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fetched({})", self.leader)
    }
}

impl Consumer {
    /// A consumer of a client's cluster with nothing assigned.
    pub fn new(client: Client, options: ConsumerOptions) -> Self {
        Self {
            client,
            options,
            positions: BTreeMap::new(),
            busy: Vec::new(),
            fetches: JoinSet::new(),
            ready: VecDeque::new(),
        }
    }

    /// Adds a partition, to be read from `offset` on; or moves it there.
    pub fn seek(&mut self, topic: &str, partition: i32, offset: i64) {
        self.ready.retain(|record| record.topic != topic || record.partition != partition);
        self.positions.insert((topic.to_owned(), partition), offset);
    }

    /// Adds a partition, to be read from a place to be looked up.
    ///
    /// # Errors
    /// The leader does not say in time.
    pub async fn assign(&mut self, topic: &str, partition: i32, from: OffsetSpec) -> Result<(), ClientError> {
        let offset = self.offset(topic, partition, from).await?;
        self.seek(topic, partition, offset);
        Ok(())
    }

    /// Stops reading a partition.
    pub fn unassign(&mut self, topic: &str, partition: i32) {
        self.ready.retain(|record| record.topic != topic || record.partition != partition);
        self.positions.remove(&(topic.to_owned(), partition));
    }

    /// The offset read next, of records not yet given out by [`Self::poll`]; `None` if not assigned.
    pub fn position(&self, topic: &str, partition: i32) -> Option<i64> {
        let waiting = self.ready.iter().find(|record| record.topic == topic && record.partition == partition);
        let position = self.positions.get(&(topic.to_owned(), partition)).copied();
        position.map(|position| waiting.map_or(position, |record| record.offset))
    }

    /// Looks an offset up. A timestamp after all records gives -1.
    ///
    /// # Errors
    /// The leader does not say in time.
    pub async fn offset(&self, topic: &str, partition: i32, spec: OffsetSpec) -> Result<i64, ClientError> {
        let partitions = vec![ListOffsetsPartition {
            partition_index: partition,
            timestamp: spec.wire(),
            ..ListOffsetsPartition::default()
        }];
        let topics = vec![ListOffsetsTopic { name: topic.into(), partitions, ..ListOffsetsTopic::default() }];
        let request = ListOffsetsRequest { replica_id: -1, topics, ..ListOffsetsRequest::default() };
        let mut tries = self.client.tries();
        loop {
            match self.list_offsets(topic, partition, &request).await {
                Ok(offset) => return Ok(offset),
                Err(error) => tries.again(error).await?,
            }
        }
    }

    async fn list_offsets(
        &self,
        topic: &str,
        partition: i32,
        request: &ListOffsetsRequest,
    ) -> Result<i64, ClientError> {
        let response = self.client.leader(topic, partition).await?.call(request).await?;
        let found = response.topics.first().and_then(|topic| topic.partitions.first()).ok_or_else(|| {
            ClientError::Codec { message: "ListOffsetsResponse", reason: "no partition in it".into() }
        })?;
        ClientError::check(found.error_code, None)?;
        Ok(found.offset)
    }

    /// Records of the assigned partitions, each partition's in order: what is there, or what comes within
    /// `wait`. Leaders that move and brokers that go away are waited out.
    ///
    /// # Errors
    /// A position outside of the log (unless reset), corrupt records, or a refusal that time won't heal.
    pub async fn poll(&mut self, wait: Duration) -> Result<Vec<ConsumedRecord>, ClientError> {
        let end = Instant::now() + wait;
        while self.ready.is_empty() {
            let started = self.start_fetches().await;
            if !started && self.fetches.is_empty() {
                if Instant::now() >= end {
                    break;
                }
                self.back_off(end).await;
                continue;
            }
            match timeout_at(end, self.fetches.join_next()).await {
                Ok(Some(Ok(fetched))) => self.absorb(fetched, end).await?,
                Ok(Some(Err(_))) => self.busy.clear(),
                Ok(None) | Err(_) => break,
            }
        }
        Ok(std::mem::take(&mut self.ready).into())
    }

    async fn back_off(&self, end: Instant) {
        let pause = Instant::now() + self.client.options().retry_backoff;
        tokio::time::sleep_until(pause.min(end)).await;
        let topics: Vec<&str> = self.positions.keys().map(|(topic, _)| topic.as_str()).collect();
        if let Err(error) = self.client.refresh(&topics).await {
            tracing::debug!(%error, "no metadata");
        }
    }

    /// Sends a fetch to each leader that owes none. Whether any was sent.
    async fn start_fetches(&mut self) -> bool {
        let metadata = self.client.metadata();
        let mut by_leader: BTreeMap<i32, BTreeMap<Place, i64>> = BTreeMap::new();
        for (place, offset) in &self.positions {
            if let Some(leader) =
                metadata.leader(&place.0, place.1).filter(|leader| !self.busy.contains(leader))
            {
                by_leader.entry(leader).or_default().insert(place.clone(), *offset);
            }
        }
        let started = !by_leader.is_empty();
        for (leader, asked) in by_leader {
            let (client, request) = (self.client.clone(), self.request(&asked));
            self.busy.push(leader);
            self.fetches.spawn(async move {
                let result = async { client.broker(leader).await?.call(&request).await }.await;
                Fetched { leader, asked, result }
            });
        }
        started
    }

    fn request(&self, asked: &BTreeMap<Place, i64>) -> FetchRequest {
        let metadata = self.client.metadata();
        let mut topics: Vec<FetchTopic> = Vec::new();
        for ((topic, partition), offset) in asked {
            if topics.last().is_none_or(|last| &*last.topic != topic.as_str()) {
                let topic_id = metadata.topics.get(topic).map(|topic| topic.id).unwrap_or_default();
                topics.push(FetchTopic { topic: topic.as_str().into(), topic_id, ..FetchTopic::default() });
            }
            let partition = FetchPartition {
                partition: *partition,
                fetch_offset: *offset,
                partition_max_bytes: self.options.max_partition_bytes,
                ..FetchPartition::default()
            };
            if let Some(last) = topics.last_mut() {
                last.partitions.push(partition);
            }
        }
        FetchRequest {
            max_wait_ms: i32::try_from(self.options.max_wait.as_millis()).unwrap_or(i32::MAX),
            min_bytes: self.options.min_bytes,
            max_bytes: self.options.max_bytes,
            topics,
            ..FetchRequest::default()
        }
    }

    /// Takes the records of an answer, and acts on its errors.
    async fn absorb(&mut self, fetched: Fetched, end: Instant) -> Result<(), ClientError> {
        let Fetched { leader, asked, result } = fetched;
        self.busy.retain(|busy| *busy != leader);
        let result = result.and_then(|response| {
            ClientError::check(response.error_code, None)?;
            Ok(response)
        });
        let response = match result {
            Ok(response) => response,
            Err(error) if error.is_retriable() => {
                tracing::debug!(%error, leader, "a fetch failed");
                self.back_off(end).await;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let metadata = self.client.metadata();
        let mut stale = false;
        for topic in response.responses {
            let named = (!topic.topic.is_empty()).then(|| topic.topic.to_string());
            let by_id =
                || metadata.topics.values().find(|known| known.id == topic.topic_id).map(|t| t.name.clone());
            let Some(name) = named.or_else(by_id) else { continue };
            for partition in topic.partitions {
                let place = (name.clone(), partition.partition_index);
                // A seek while the fetch was out makes its answer worthless.
                if self.positions.get(&place) == asked.get(&place) {
                    stale |= self.absorb_partition(place, partition).await?;
                }
            }
        }
        if stale {
            self.back_off(end).await;
        }
        Ok(())
    }

    /// Whether metadata is out of date.
    async fn absorb_partition(
        &mut self,
        place: Place,
        partition: PartitionData,
    ) -> Result<bool, ClientError> {
        match ClientError::check(partition.error_code, None) {
            Ok(()) => {
                let Some(Records::Bytes(bytes)) = partition.records else { return Ok(false) };
                self.take_records(&place, bytes)?;
                Ok(false)
            }
            Err(error) if error.is(ErrorCode::OffsetOutOfRange) => {
                let spec = match self.options.offset_reset {
                    OffsetReset::Earliest => OffsetSpec::Earliest,
                    OffsetReset::Latest => OffsetSpec::Latest,
                    OffsetReset::Error => return Err(error),
                };
                let offset = self.offset(&place.0, place.1, spec).await?;
                self.positions.insert(place, offset);
                Ok(false)
            }
            Err(error) if error.is_retriable() => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn take_records(&mut self, place: &Place, bytes: Bytes) -> Result<(), ClientError> {
        let mut position = self.positions.get(place).copied().unwrap_or(0);
        for batch in any_batches(bytes) {
            let batch = match batch {
                // Brokers cut the last batch of an answer.
                Err(RecordError::Truncated { .. }) => break,
                other => other?,
            };
            let next = match &batch {
                AnyBatch::Batch(batch) => {
                    batch.verify_crc()?;
                    Some(batch.header.next_offset())
                }
                AnyBatch::Legacy(_) => None,
            };
            let visible = !matches!(&batch, AnyBatch::Batch(batch) if batch.header.is_control());
            for record in batch.records()? {
                let Record { offset, timestamp, key, value, headers } = record?;
                if visible && offset >= position {
                    let (topic, partition) = place.clone();
                    let timestamp_ms = timestamp;
                    self.ready.push_back(ConsumedRecord {
                        topic,
                        partition,
                        offset,
                        timestamp_ms,
                        key,
                        value,
                        headers,
                    });
                    position = offset + 1;
                }
            }
            position = position.max(next.unwrap_or(position));
        }
        self.positions.insert(place.clone(), position);
        Ok(())
    }
}
