//! The producer: records in, offsets out, in order and once per partition.
//!
//! One task a partition gathers records into batches and keeps several requests on the wire. When one fails,
//! the task waits for the others, then sends again what is missing, in order and with the same sequence
//! numbers, so that an idempotent broker drops what it has already.

mod batch;
mod partition;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use callboard_protocol::records::{Compression, CompressionLevels};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::partitioner::partition_of;
use crate::{Client, ClientError};

use partition::PartitionTask;

/// Which replicas must have a record before it counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Acks {
    /// None: the broker does not even answer.
    None,
    /// The leader.
    Leader,
    /// All that are in sync.
    #[default]
    All,
}

impl Acks {
    pub(crate) fn wire(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

/// How a producer works.
#[derive(Debug, Clone)]
pub struct ProducerOptions {
    /// Which replicas must have a record.
    pub acks: Acks,
    /// Whether the broker drops duplicates and keeps order (needs [`Acks::All`]).
    pub idempotent: bool,
    /// Codec of the batches.
    pub compression: Compression,
    /// How hard it tries.
    pub levels: CompressionLevels,
    /// A batch is sent when it has this many bytes, or sooner.
    pub batch_size_bytes: usize,
    /// How long a batch that is not full waits for more records.
    pub linger: Duration,
    /// Requests on the wire for one partition; at most 5 keep order.
    pub max_in_flight: usize,
    /// How long a record may take, tries included, before it is given up.
    pub delivery_timeout: Duration,
    /// Bytes of records not yet written; [`Producer::send`] waits at the limit.
    pub buffer_bytes: usize,
}

impl Default for ProducerOptions {
    /// Kafka's defaults: idempotent, acks of all, 16 KiB batches, 5 in flight, 2 minutes, 32 MiB.
    fn default() -> Self {
        Self {
            acks: Acks::All,
            idempotent: true,
            compression: Compression::None,
            levels: CompressionLevels::default(),
            batch_size_bytes: 16 << 10,
            linger: Duration::ZERO,
            max_in_flight: 5,
            delivery_timeout: Duration::from_secs(120),
            buffer_bytes: 32 << 20,
        }
    }
}

/// A record to write.
#[derive(Debug, Clone, Default)]
pub struct ProducerRecord {
    /// The topic.
    pub topic: String,
    /// The partition; chosen by key, or in turn, if not given.
    pub partition: Option<i32>,
    /// The key.
    pub key: Option<Bytes>,
    /// The value.
    pub value: Option<Bytes>,
    /// Names and values.
    pub headers: Vec<(String, Option<Bytes>)>,
    /// Milliseconds since 1970; now if not given.
    pub timestamp_ms: Option<i64>,
}

impl ProducerRecord {
    fn size_bytes(&self) -> usize {
        let part = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        let headers: usize = self.headers.iter().map(|(name, value)| name.len() + part(value)).sum();
        part(&self.key) + part(&self.value) + headers + 32
    }
}

/// Where a record was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordMetadata {
    /// The partition.
    pub partition: i32,
    /// The offset; -1 if the broker does not say (acks 0, or a duplicate of long ago).
    pub offset: i64,
    /// The broker's time in milliseconds if it stamps records, -1 otherwise.
    pub log_append_time_ms: i64,
}

/// A record on its way; a future of where it was written.
#[derive(Debug)]
pub struct Delivery(oneshot::Receiver<Result<RecordMetadata, ClientError>>);

impl Future for Delivery {
    type Output = Result<RecordMetadata, ClientError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or(Err(ClientError::Closed)))
    }
}

/// A record in a partition's queue, with whom to tell, and its share of the buffer.
struct Queued {
    record: ProducerRecord,
    answer: oneshot::Sender<Result<RecordMetadata, ClientError>>,
    permit: OwnedSemaphorePermit,
}

/// Writes records. Cheap to clone. Records still queued when the last clone is dropped are sent on.
#[derive(Debug, Clone)]
pub struct Producer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Client,
    options: Arc<ProducerOptions>,
    buffer: Arc<Semaphore>,
    buffer_bytes: u32,
    next_partition: AtomicI32,
    tasks: Mutex<HashMap<(String, i32), mpsc::UnboundedSender<Queued>>>,
}

impl Producer {
    /// A producer of a client's cluster.
    pub fn new(client: Client, options: ProducerOptions) -> Self {
        let buffer_bytes =
            u32::try_from(options.buffer_bytes.max(1)).unwrap_or(u32::MAX >> 3).min(u32::MAX >> 3);
        let inner = Inner {
            client,
            options: Arc::new(options),
            buffer: Arc::new(Semaphore::new(buffer_bytes as usize)),
            buffer_bytes,
            next_partition: AtomicI32::new(0),
            tasks: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Queues a record and gives a future of its delivery. Waits while the buffer is full.
    /// Records for one partition are written in the order of these calls.
    ///
    /// # Errors
    /// The topic can't be seen, when the partition is to be chosen.
    pub async fn send(&self, record: ProducerRecord) -> Result<Delivery, ClientError> {
        let partition = match record.partition {
            Some(partition) => partition,
            None => self.choose(&record).await?,
        };
        let size = u32::try_from(record.size_bytes()).unwrap_or(u32::MAX).min(self.inner.buffer_bytes);
        let permit =
            self.inner.buffer.clone().acquire_many_owned(size).await.map_err(|_| ClientError::Closed)?;
        let (answer, delivery) = oneshot::channel();
        let key = (record.topic.clone(), partition);
        let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let task = tasks.entry(key).or_insert_with_key(|(topic, partition)| {
            let (sender, queue) = mpsc::unbounded_channel();
            let (client, options) = (self.inner.client.clone(), self.inner.options.clone());
            tokio::spawn(PartitionTask::new(client, options, topic.clone(), *partition, queue).run());
            sender
        });
        task.send(Queued { record, answer, permit }).map_err(|_| ClientError::Closed)?;
        Ok(Delivery(delivery))
    }

    /// Queues a record and waits until it is written.
    ///
    /// # Errors
    /// It could not be written in time, or the broker refused it.
    pub async fn write(&self, record: ProducerRecord) -> Result<RecordMetadata, ClientError> {
        self.send(record).await?.await
    }

    /// Waits until every record queued so far is written or given up.
    pub async fn flush(&self) {
        let all = self.inner.buffer.acquire_many(self.inner.buffer_bytes).await;
        drop(all);
    }

    async fn choose(&self, record: &ProducerRecord) -> Result<i32, ClientError> {
        let count = self.inner.client.partition_count(&record.topic).await?;
        Ok(match &record.key {
            Some(key) => partition_of(key, count),
            None => self.inner.next_partition.fetch_add(1, Ordering::Relaxed).rem_euclid(count.max(1)),
        })
    }
}
