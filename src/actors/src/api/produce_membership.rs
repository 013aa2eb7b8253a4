//! Whether the batches of a Produce request may be written as part of their transactions (KIP-890).
//!
//! A partition that has the producer's transaction open needs nothing more. Otherwise the coordinator is asked: up to
//! version 11 whether the partition was added, from 12 on to add it.

use std::collections::BTreeMap;

use bytes::Bytes;
use callboard_coordinator::runtime::Producer;
use callboard_coordinator::transaction::TopicPartition;
use callboard_metadata::config::Value;
use callboard_protocol::messages::ProduceRequest;
use callboard_protocol::messages::produce_request::TopicProduceData;
use callboard_protocol::records::BatchHeader;
use callboard_protocol::{ByteString, ErrorCode};

use super::transactional::{self, Writing};
use super::{RequestContext, topics};
use crate::replicas::messages::{AppendRefusal, MayWrite, Membership};
use crate::supervision::Ask;

/// From this version on topics go by id.
const FIRST_WITH_TOPIC_IDS: i16 = 13;
/// From this version on producing adds partitions to the transaction.
const FIRST_IMPLIED: i16 = 12;
/// From this version on a client can tell that a transaction is to be aborted.
const FIRST_WITH_ABORTABLE: i16 = 11;
const VERIFICATION: &str = "transaction.partition.verification.enable";

/// What is known of the transactions of a request's batches, by the topic's place in the request and the partition.
#[derive(Debug, Default)]
pub(super) struct Memberships(BTreeMap<(usize, i32), Result<Membership, AppendRefusal>>);

impl Memberships {
    /// That of one batch.
    pub(super) fn of(&self, topic_at: usize, partition: i32) -> Result<Membership, AppendRefusal> {
        self.0.get(&(topic_at, partition)).cloned().unwrap_or(Ok(Membership::AsOpen))
    }
}

/// A batch whose partition is asked.
struct Asked {
    topic_at: usize,
    place: TopicPartition,
    producer: Producer,
    answer: Ask<Result<Option<u64>, ErrorCode>>,
}

/// A batch whose transaction is not open in its partition.
struct Unopened {
    topic_at: usize,
    place: TopicPartition,
    number: u64,
}

/// Asks the partitions, and the coordinator where they do not know.
pub(super) async fn find(
    cx: &RequestContext,
    request: &ProduceRequest,
    frame: &Bytes,
    version: i16,
) -> Memberships {
    let mut found = Memberships::default();
    let Some(transactional_id) = &request.transactional_id else { return found };
    let mut unopened: BTreeMap<Producer, Vec<Unopened>> = BTreeMap::new();
    for Asked { topic_at, place, producer, answer } in ask_partitions(cx, request, frame, version) {
        let membership = match answer.await.unwrap_or(Err(ErrorCode::NotLeaderOrFollower)) {
            Ok(None) => Ok(Membership::AsOpen),
            Ok(Some(number)) => {
                unopened.entry(producer).or_default().push(Unopened { topic_at, place, number });
                continue;
            }
            Err(error) => Err(AppendRefusal::of(error)),
        };
        found.0.insert((topic_at, place.partition), membership);
    }
    for (producer, batches) in unopened {
        verify(cx, transactional_id, producer, batches, version, &mut found).await;
    }
    found
}

fn ask_partitions(cx: &RequestContext, request: &ProduceRequest, frame: &Bytes, version: i16) -> Vec<Asked> {
    let mut asked = Vec::new();
    for (topic_at, topic) in request.topic_data.iter().enumerate() {
        // What is not there is refused when the batches are handed on.
        let Some((name, found)) = find_topic(cx, topic, version) else { continue };
        for data in &topic.partition_data {
            let records = data.records.as_ref().and_then(|records| records.within(frame));
            let header = records.and_then(|records| BatchHeader::parse(records).ok());
            let Some(header) = header.filter(BatchHeader::is_transactional) else { continue };
            let Ok(handle) = found.partition(data.index) else { continue };
            let producer = Producer { id: header.producer_id, epoch: header.producer_epoch };
            let question = MayWrite { producer_id: producer.id, producer_epoch: producer.epoch };
            let place = TopicPartition { topic: name.clone(), partition: data.index };
            asked.push(Asked { topic_at, place, producer, answer: handle.actor().ask(question) });
        }
    }
    asked
}

fn find_topic<'a>(
    cx: &'a RequestContext,
    topic: &TopicProduceData,
    version: i16,
) -> Option<(ByteString, topics::Found<'a>)> {
    if version < FIRST_WITH_TOPIC_IDS {
        return Some((topic.name.clone(), topics::by_name(cx, &topic.name).ok()?));
    }
    let name = cx.services.metadata().image.topics.name(topic.topic_id).cloned()?;
    Some((name, topics::by_id(cx, topic.topic_id).ok()?))
}

async fn verify(
    cx: &RequestContext,
    transactional_id: &ByteString,
    producer: Producer,
    batches: Vec<Unopened>,
    version: i16,
    found: &mut Memberships,
) {
    let implied = version >= FIRST_IMPLIED;
    let disabled = matches!(cx.services.metadata().settings.value(VERIFICATION), Some(Value::Boolean(false)));
    let verified = match disabled && !implied {
        true => Ok(vec![Ok(()); batches.len()]),
        false => {
            let partitions = batches.iter().map(|batch| batch.place.clone()).collect();
            let knows_abortable = version >= FIRST_WITH_ABORTABLE;
            let writing = Writing { transactional_id, producer, partitions, implied, knows_abortable };
            transactional::may_write(cx, writing).await
        }
    };
    for (at, Unopened { topic_at, place, number }) in batches.into_iter().enumerate() {
        let allowed = match &verified {
            Ok(each) => each.get(at).copied().unwrap_or(Err(ErrorCode::UnknownServerError)),
            Err(error) => Err(*error),
        };
        let membership = match allowed {
            Ok(()) if disabled => Ok(Membership::Unchecked),
            Ok(()) => Ok(Membership::Verified(number)),
            Err(error) => Err(refusal(error, implied)),
        };
        found.0.insert((topic_at, place.partition), membership);
    }
}

/// What the client is told. Errors that pass have to be ones that a producer knows and tries again at.
fn refusal(error: ErrorCode, implied: bool) -> AppendRefusal {
    match error {
        ErrorCode::ProducerFenced => AppendRefusal::of(ErrorCode::InvalidProducerEpoch),
        ErrorCode::ConcurrentTransactions if implied => AppendRefusal::of(error),
        error if error == ErrorCode::ConcurrentTransactions || transactional::is_passing(error) => {
            let message = format!(
                "Unable to verify the partition has been added to the transaction. Underlying error: {}",
                error.name()
            );
            AppendRefusal { message: Some(message), ..AppendRefusal::of(ErrorCode::NotEnoughReplicas) }
        }
        other => AppendRefusal::of(other),
    }
}
