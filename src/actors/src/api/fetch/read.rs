//! Reading the partitions of one fetch, within its limits.

use bytes::Bytes;
use callboard_protocol::messages::FetchRequest;
use callboard_protocol::messages::fetch_response::{AbortedTransaction, EpochEndOffset, PartitionData};
use callboard_protocol::wire::Records;
use callboard_protocol::{ErrorCode, Uuid};
use callboard_storage::{LogReader, ReadError};

use super::session::{Outcome, Partitions, TopicKey, Wanted};
use crate::api::{RequestContext, topics};
use crate::net::FileRegion;
use crate::replicas::{Goal, Isolation, Offsets, PartitionHandle};

/// The limits of one fetch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// What the client may see.
    pub isolation: Isolation,
    /// Wait until there is so much to read.
    pub min_bytes: u64,
    /// Give no more than so much, but for a first batch that is larger.
    pub max_bytes: u32,
}

impl Bounds {
    /// The request's limits within `fetch.max.bytes`.
    pub(super) fn of(cx: &RequestContext, request: &FetchRequest, isolation: Isolation) -> Self {
        let max_bytes = unsigned(request.max_bytes).min(cx.services.config.fetch_max_bytes);
        let min_bytes = u64::from(unsigned(request.min_bytes).min(max_bytes));
        Self { isolation, min_bytes, max_bytes }
    }

    fn limit(&self, offsets: &Offsets) -> i64 {
        match self.isolation {
            Isolation::HighWatermark => offsets.high_watermark,
            Isolation::LastStable => offsets.last_stable,
            Isolation::LogEnd => offsets.log_end,
        }
    }
}

fn unsigned(bytes: i32) -> u32 {
    u32::try_from(bytes).unwrap_or(0)
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Each partition, in order.
    pub parts: Vec<Part>,
    /// How much of records there is, in bytes.
    pub size_bytes: u64,
    /// Whether waiting would change nothing: a partition has an error, or there is none to wait for.
    pub is_final: bool,
}

/// What was read of one partition.
#[derive(Debug)]
pub(super) struct Part {
    /// Its place in the session.
    pub place: u64,
    /// Its topic.
    pub topic: TopicKey,
    /// Its answer but for the records.
    pub data: PartitionData,
    /// Its records.
    pub region: Option<FileRegion>,
}

impl Part {
    /// What of it a session compares with the answer before.
    pub(super) fn outcome(&self) -> Outcome {
        Outcome {
            has_records: self.region.is_some(),
            is_error: self.data.error_code != 0,
            is_redirect: self.data.diverging_epoch.epoch >= 0,
            high_watermark: self.data.high_watermark,
            log_start_offset: self.data.log_start_offset,
        }
    }
}

/// The topic looked up last: partitions of one topic mostly follow each other.
#[derive(Default)]
struct Lookup {
    last: Option<(TopicKey, Result<Uuid, ErrorCode>)>,
}

impl Lookup {
    fn partition(&mut self, cx: &RequestContext, wanted: &Wanted) -> Result<PartitionHandle, ErrorCode> {
        let known = self.last.as_ref().filter(|(topic, _)| *topic == wanted.topic).map(|(_, id)| *id);
        let id = known.unwrap_or_else(|| {
            let found = match &wanted.topic {
                TopicKey::Id(id) => topics::by_id(cx, *id),
                TopicKey::Name(name) => topics::by_name(cx, name),
            };
            let id = found.map(|topic| topic.id());
            self.last = Some((wanted.topic.clone(), id));
            id
        })?;
        topics::partition(cx, id, wanted.partition)
    }
}

/// Reads each partition in turn until the limits are used up. The first records found come whatever their size.
pub(super) fn read(cx: &RequestContext, partitions: &Partitions, bounds: Bounds) -> Reading {
    let mut reading = Reading { parts: Vec::with_capacity(partitions.len()), ..Reading::default() };
    let mut lookup = Lookup::default();
    let mut left = bounds.max_bytes;
    let mut served = 0;
    let mut unknown = Vec::new();
    for (place, wanted) in partitions.iter() {
        let topic = wanted.topic.clone();
        let handle = match lookup.partition(cx, wanted) {
            Ok(handle) => handle,
            Err(error) if is_unknown(error) => {
                // Answered last and not a reason to answer at once, as Kafka does.
                let data = failed(wanted.partition, error);
                let data = PartitionData { aborted_transactions: Some(Vec::new()), ..data };
                unknown.push(Part { place, topic, data, region: None });
                continue;
            }
            Err(error) => {
                reading.is_final = true;
                reading.parts.push(Part {
                    place,
                    topic,
                    data: failed(wanted.partition, error),
                    region: None,
                });
                continue;
            }
        };
        served += 1;
        let (data, region) = match read_one(&handle, wanted, bounds, left, reading.size_bytes == 0) {
            Ok(read) => read,
            Err(error) => (failed(wanted.partition, error), None),
        };
        let size_bytes = region.as_ref().map_or(0, |region| region.size_bytes);
        left = left.saturating_sub(size_bytes);
        reading.size_bytes += u64::from(size_bytes);
        reading.is_final |= data.error_code != 0 || data.diverging_epoch.epoch >= 0;
        reading.parts.push(Part { place, topic, data, region });
    }
    reading.is_final |= served == 0;
    reading.parts.append(&mut unknown);
    reading
}

fn is_unknown(error: ErrorCode) -> bool {
    matches!(error, ErrorCode::UnknownTopicId | ErrorCode::UnknownTopicOrPartition)
}

/// What each partition must have before the fetch is answered.
pub(super) fn goals(
    cx: &RequestContext,
    partitions: &Partitions,
    bounds: Bounds,
) -> Vec<(PartitionHandle, Goal)> {
    let mut lookup = Lookup::default();
    let mut goals = Vec::with_capacity(partitions.len());
    for (_, wanted) in partitions.iter() {
        if let Ok(handle) = lookup.partition(cx, wanted) {
            let goal = Goal::Bytes {
                fetch_offset: wanted.fetch_offset,
                max_bytes: unsigned(wanted.max_bytes),
                isolation: bounds.isolation,
                current_leader_epoch: wanted.current_leader_epoch,
            };
            goals.push((handle, goal));
        }
    }
    goals
}

type Read = (PartitionData, Option<FileRegion>);

fn read_one(
    handle: &PartitionHandle,
    wanted: &Wanted,
    bounds: Bounds,
    left: u32,
    first: bool,
) -> Result<Read, ErrorCode> {
    let view = handle.view();
    let reader = view.as_leader(wanted.current_leader_epoch)?;
    let offsets = view.offsets_of(&reader);
    let mut data = PartitionData {
        partition_index: wanted.partition,
        high_watermark: offsets.high_watermark,
        last_stable_offset: offsets.last_stable,
        log_start_offset: offsets.log_start,
        aborted_transactions: None,
        records: Some(Records::Bytes(Bytes::new())),
        ..Default::default()
    };
    if let Some(diverging) = diverging(&reader, wanted)? {
        data.diverging_epoch = diverging;
        return Ok((data, None));
    }
    let max_bytes = unsigned(wanted.max_bytes).min(left);
    let region =
        reader.read(wanted.fetch_offset, max_bytes, bounds.limit(&offsets), first).map_err(error_of)?;
    if bounds.isolation == Isolation::LastStable {
        let until = offsets.last_stable.max(wanted.fetch_offset);
        data.aborted_transactions = Some(aborted(&reader, wanted.fetch_offset, until)?);
    }
    let size_bytes = region.size_bytes;
    let region = FileRegion { file: region.file, position: region.position, size_bytes };
    Ok((data, (size_bytes > 0).then_some(region)))
}

/// Where the client's log and this one part, if the client says what epoch its last record has.
fn diverging(reader: &LogReader, wanted: &Wanted) -> Result<Option<EpochEndOffset>, ErrorCode> {
    if wanted.last_fetched_epoch < 0 {
        return Ok(None);
    }
    let (epoch, end_offset) =
        reader.epoch_end_offset(wanted.last_fetched_epoch).ok_or(ErrorCode::OffsetOutOfRange)?;
    let parted = epoch < wanted.last_fetched_epoch || end_offset < wanted.fetch_offset;
    Ok(parted.then(|| EpochEndOffset { epoch, end_offset, ..Default::default() }))
}

fn aborted(reader: &LogReader, from: i64, until: i64) -> Result<Vec<AbortedTransaction>, ErrorCode> {
    let found = reader.aborted_transactions(from, until).map_err(|_| ErrorCode::KafkaStorageError)?;
    let transaction = |txn: callboard_storage::AbortedTxn| AbortedTransaction {
        producer_id: txn.producer_id,
        first_offset: txn.first_offset,
        ..Default::default()
    };
    Ok(found.into_iter().map(transaction).collect())
}

fn error_of(error: ReadError) -> ErrorCode {
    match error {
        ReadError::OffsetOutOfRange { .. } => ErrorCode::OffsetOutOfRange,
        ReadError::Storage(_) => ErrorCode::KafkaStorageError,
    }
}

/// The answer for a partition that cannot be read.
pub(super) fn failed(partition: i32, error: ErrorCode) -> PartitionData {
    PartitionData {
        partition_index: partition,
        error_code: error as i16,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        aborted_transactions: None,
        records: Some(Records::Bytes(Bytes::new())),
        ..Default::default()
    }
}
