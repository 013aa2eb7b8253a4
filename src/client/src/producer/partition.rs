//! The task of one partition: batches out, answers in, order kept.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use callboard_protocol::messages::{InitProducerIdRequest, ProduceRequest, ProduceResponse};
use callboard_protocol::records::add_sequence;
use callboard_protocol::wire::Records;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::batch::{OpenBatch, SealedBatch};
use super::{Acks, ProducerOptions, Queued};
use crate::{Client, ClientError};

/// Base offset and append time of a written batch.
type Written = Result<(i64, i64), ClientError>;

/// An answer to come. `Sync` as well, since the task holds it across its waits.
type Answer = Pin<Box<dyn Future<Output = Written> + Send + Sync>>;

/// A batch on the wire.
struct InFlight {
    batch: SealedBatch,
    answer: Answer,
}

/// What an idempotent broker knows this partition's writer by.
struct Identity {
    producer_id: i64,
    epoch: i16,
    next_sequence: i32,
}

pub(super) struct PartitionTask {
    client: Client,
    options: Arc<ProducerOptions>,
    topic: String,
    partition: i32,
    queue: mpsc::UnboundedReceiver<Queued>,
    open: OpenBatch,
    /// Sealed and waiting for a place on the wire, oldest first.
    ready: VecDeque<SealedBatch>,
    in_flight: VecDeque<InFlight>,
    identity: Option<Identity>,
    closing: bool,
}

/// What woke the task.
enum Event {
    Queued(Option<Queued>),
    Answered(Written),
    Due,
}

impl PartitionTask {
    pub(super) fn new(
        client: Client,
        options: Arc<ProducerOptions>,
        topic: String,
        partition: i32,
        queue: mpsc::UnboundedReceiver<Queued>,
    ) -> Self {
        let open = OpenBatch::new(&options);
        Self {
            client,
            options,
            topic,
            partition,
            queue,
            open,
            ready: VecDeque::new(),
            in_flight: VecDeque::new(),
            identity: None,
            closing: false,
        }
    }

    /// Runs until the producer is gone and all its records are settled.
    pub(super) async fn run(mut self) {
        while !(self.closing && self.is_idle()) {
            match self.next_event().await {
                Event::Queued(Some(queued)) => self.take(queued),
                Event::Queued(None) => self.closing = true,
                Event::Answered(result) => self.settle(result).await,
                Event::Due => {}
            }
            self.seal_if_due();
            self.dispatch().await;
        }
    }

    fn is_idle(&self) -> bool {
        self.open.is_empty() && self.ready.is_empty() && self.in_flight.is_empty()
    }

    async fn next_event(&mut self) -> Event {
        // A full batch that finds no place on the wire holds the queue: memory is bounded by the buffer.
        let takes = !self.closing && self.ready.is_empty();
        let waits = takes && !self.open.is_empty() && !self.wire_is_full();
        let due = self.open.due(&self.options);
        tokio::select! {
            biased;
            result = async { match self.in_flight.front_mut() {
                Some(head) => head.answer.as_mut().await,
                None => std::future::pending().await,
            } } => Event::Answered(result),
            queued = self.queue.recv(), if takes => Event::Queued(queued),
            () = sleep_until(due), if waits => Event::Due,
        }
    }

    fn wire_is_full(&self) -> bool {
        self.in_flight.len() >= self.options.max_in_flight.max(1)
    }

    /// Takes a record and all that wait behind it, as far as they fit in the batch.
    fn take(&mut self, queued: Queued) {
        self.put(queued);
        while !self.open.is_full(&self.options)
            && let Ok(queued) = self.queue.try_recv()
        {
            self.put(queued);
        }
    }

    fn put(&mut self, queued: Queued) {
        if self.open.is_empty() {
            self.open = OpenBatch::new(&self.options);
        }
        self.open.push(queued);
    }

    fn seal_if_due(&mut self) {
        let due = self.closing
            || self.open.is_full(&self.options)
            || self.open.due(&self.options) <= tokio::time::Instant::now();
        if self.open.is_empty() || !due || (self.wire_is_full() && !self.open.is_full(&self.options)) {
            return;
        }
        let open = std::mem::replace(&mut self.open, OpenBatch::new(&self.options));
        self.ready.extend(open.seal(self.options.delivery_timeout));
    }

    /// Puts ready batches on the wire while there is place.
    async fn dispatch(&mut self) {
        while !self.wire_is_full()
            && let Some(mut batch) = self.ready.pop_front()
        {
            if batch.is_expired() {
                self.give_up(batch, &ClientError::Timeout(self.options.delivery_timeout.as_millis() as u64));
                continue;
            }
            if let Err(error) = self.number(&mut batch).await {
                if error.is_retriable() {
                    // Nothing but this loop tries again: with an empty wire no answer would wake the task.
                    self.ready.push_front(batch);
                    self.pause().await;
                } else {
                    batch.failed(&error);
                }
                continue;
            }
            let answer = self.start(&batch).await;
            self.in_flight.push_back(InFlight { batch, answer });
        }
    }

    /// Gives a batch its sequence number, and the task a producer id first if it has none.
    async fn number(&mut self, batch: &mut SealedBatch) -> Result<(), ClientError> {
        if !self.options.idempotent || batch.has_sequence() {
            return Ok(());
        }
        let identity = match &mut self.identity {
            Some(identity) => identity,
            None => {
                let request = InitProducerIdRequest {
                    transactional_id: None,
                    transaction_timeout_ms: i32::MAX,
                    ..InitProducerIdRequest::default()
                };
                let response = self.client.call_any(&request).await?;
                ClientError::check(response.error_code, None)?;
                self.identity.insert(Identity {
                    producer_id: response.producer_id,
                    epoch: response.producer_epoch,
                    next_sequence: 0,
                })
            }
        };
        batch.number(identity.producer_id, identity.epoch, identity.next_sequence);
        identity.next_sequence = add_sequence(identity.next_sequence, batch.record_count());
        Ok(())
    }

    /// Sends a batch to the leader. Errors come with the answer, so that they are settled in order.
    async fn start(&self, batch: &SealedBatch) -> Answer {
        let leader = match self.client.leader(&self.topic, self.partition).await {
            Ok(leader) => leader,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let request = self.request(batch);
        if self.options.acks == Acks::None {
            let sent = leader.send_unanswered(&request).map(|()| (-1, -1));
            return Box::pin(std::future::ready(sent));
        }
        match leader.start(&request) {
            Ok(reply) => Box::pin(async move { written(&reply.receive().await?) }),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn request(&self, batch: &SealedBatch) -> ProduceRequest {
        let topic_id =
            self.client.metadata().topics.get(&self.topic).map(|topic| topic.id).unwrap_or_default();
        let partition = PartitionProduceData {
            index: self.partition,
            records: Some(Records::Bytes(batch.bytes())),
            ..PartitionProduceData::default()
        };
        let topic = TopicProduceData {
            name: self.topic.as_str().into(),
            topic_id,
            partition_data: vec![partition],
            ..TopicProduceData::default()
        };
        let timeout = self.client.options().request_timeout.as_millis();
        ProduceRequest {
            acks: self.options.acks.wire(),
            timeout_ms: i32::try_from(timeout).unwrap_or(i32::MAX),
            topic_data: vec![topic],
            ..ProduceRequest::default()
        }
    }

    /// Acts on the answer to the oldest batch on the wire.
    async fn settle(&mut self, result: Written) {
        let Some(head) = self.in_flight.pop_front() else { return };
        match result {
            Ok((base_offset, time_ms)) => head.batch.written(self.partition, base_offset, time_ms),
            Err(error) => self.recover(head.batch, error).await,
        }
    }

    /// After a failure: waits for the rest of the wire, then lines up again what was not written.
    async fn recover(&mut self, batch: SealedBatch, error: ClientError) {
        tracing::debug!(topic = self.topic, partition = self.partition, %error, "a batch failed");
        let mut again = VecDeque::new();
        let mut lost = None;
        self.sort_out(batch, error, &mut again, &mut lost);
        while let Some(InFlight { batch, answer }) = self.in_flight.pop_front() {
            match answer.await {
                Ok((base_offset, time_ms)) => batch.written(self.partition, base_offset, time_ms),
                Err(error) => self.sort_out(batch, error, &mut again, &mut lost),
            }
        }
        if lost.is_some() {
            // A gap in the sequence would stop the partition for good: go on as another producer.
            self.identity = None;
            again.iter_mut().for_each(SealedBatch::unnumber);
        }
        let pause = !again.is_empty();
        while let Some(batch) = again.pop_back() {
            self.ready.push_front(batch);
        }
        if pause {
            self.pause().await;
        }
    }

    /// Whether a failed batch is tried again or given up.
    fn sort_out(
        &mut self,
        batch: SealedBatch,
        error: ClientError,
        again: &mut VecDeque<SealedBatch>,
        lost: &mut Option<ClientError>,
    ) {
        if error.is(ErrorCode::DuplicateSequenceNumber) {
            return batch.written(self.partition, -1, -1);
        }
        // Behind a batch that failed, the broker can only find a gap.
        let follows = (!again.is_empty() || lost.is_some()) && error.is(ErrorCode::OutOfOrderSequenceNumber);
        if (error.is_retriable() || follows) && !batch.is_expired() {
            again.push_back(batch);
        } else {
            batch.failed(&error);
            *lost = Some(error);
        }
    }

    fn give_up(&mut self, batch: SealedBatch, error: &ClientError) {
        if batch.has_sequence() {
            self.identity = None;
            self.ready.iter_mut().for_each(SealedBatch::unnumber);
        }
        batch.failed(error);
    }

    async fn pause(&self) {
        tokio::time::sleep(self.client.options().retry_backoff).await;
        if let Err(error) = self.client.refresh(&[&self.topic]).await {
            tracing::debug!(%error, "no metadata");
        }
    }
}

/// The one partition's part of an answer.
fn written(response: &ProduceResponse) -> Written {
    let partition =
        response.responses.first().and_then(|topic| topic.partition_responses.first()).ok_or_else(|| {
            ClientError::Codec { message: "ProduceResponse", reason: "no partition in it".into() }
        })?;
    ClientError::check(partition.error_code, partition.error_message.as_deref())?;
    Ok((partition.base_offset, partition.log_append_time_ms))
}
