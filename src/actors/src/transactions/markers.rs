//! Writing markers: to every partition of a transaction, for as long as it takes.
//!
//! A partition without a leader is waited for; one whose leader is another broker would be sent WriteTxnMarkers there,
//! and until then is waited for as well. A partition counts as gone only when the metadata says so, and only metadata
//! that has reached this broker's own registration: what is older, as read at a start, may not know a topic yet.

use std::sync::atomic::Ordering;
use std::time::Duration;

use callboard_coordinator::group::EndTransaction;
use callboard_coordinator::runtime::Producer;
use callboard_coordinator::transaction::{Markers, TopicPartition};
use callboard_protocol::ErrorCode;
use futures_util::future::join_all;

use super::Surroundings;
use crate::groups;
use crate::replicas::messages::WriteMarker;
use crate::replicas::{Goal, Kind, PartitionHandle, Replicas, Wait};

/// The pause before a partition is tried again, if the metadata does not change sooner.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// How long one wait for the replicas may take.
const REPLICATION_WAIT: Duration = Duration::from_secs(30);

/// One marker for one partition.
#[derive(Debug, Clone, Copy)]
pub struct MarkerToWrite {
    /// The producer as the marker names it.
    pub producer: Producer,
    /// Whether its transaction is committed.
    pub committed: bool,
    /// The coordinator's epoch.
    pub coordinator_epoch: i32,
    /// The version of the protocol that the client goes by.
    pub transaction_version: i8,
}

/// What became of one try.
enum Tried {
    Done,
    Again,
}

/// Writes markers for the shards of this broker.
#[derive(Debug)]
pub(super) struct Writer {
    around: Surroundings,
}

impl Writer {
    pub(super) const fn new(around: Surroundings) -> Self {
        Self { around }
    }

    /// Writes all, and comes back when each partition has its marker or is gone.
    pub(super) async fn write_all(&self, markers: &Markers, coordinator_epoch: i32) {
        let marker = MarkerToWrite {
            producer: markers.producer,
            committed: markers.decision.is_commit(),
            coordinator_epoch,
            transaction_version: i8::try_from(markers.client_version).unwrap_or(i8::MAX),
        };
        join_all(markers.partitions.iter().map(|partition| self.write(partition, marker))).await;
    }

    async fn write(&self, partition: &TopicPartition, marker: MarkerToWrite) {
        let mut offset = self.around.metadata.offset();
        loop {
            offset.borrow_and_update();
            if matches!(self.try_write(partition, marker).await, Tried::Done) {
                return;
            }
            let changed = offset.changed();
            // A node that stops changes no more; the pause alone keeps this from spinning.
            let _ = tokio::time::timeout(RETRY_PAUSE, changed).await.map(|changed| changed.is_ok());
        }
    }

    async fn try_write(&self, partition: &TopicPartition, marker: MarkerToWrite) -> Tried {
        let metadata = self.around.metadata.current();
        let Some(topic) = metadata.image.topics.by_name(&partition.topic) else {
            return self.gone_or_unknown(metadata.offset);
        };
        let Some(registration) = topic.partition(partition.partition) else {
            return self.gone_or_unknown(metadata.offset);
        };
        if registration.leader != self.around.node_id {
            return Tried::Again;
        }
        let registry = &self.around.replicas.registry;
        let Some(handle) = registry.partition(topic.id, partition.partition) else { return Tried::Again };
        let outcome = write_here(&self.around.replicas, &self.around.groups, &handle, marker).await;
        match outcome {
            Ok(()) => Tried::Done,
            // The producer is past this transaction here: it was ended, or never wrote.
            Err(ErrorCode::InvalidProducerEpoch) => {
                tracing::warn!(
                    topic = %partition.topic,
                    partition = partition.partition,
                    producer_id = marker.producer.id,
                    "a marker is late: the producer has a later epoch there"
                );
                Tried::Done
            }
            // A later coordinator has taken over, and sees to it.
            Err(ErrorCode::TransactionCoordinatorFenced) => Tried::Done,
            Err(_) => Tried::Again,
        }
    }

    fn gone_or_unknown(&self, metadata_offset: i64) -> Tried {
        let registered = self.around.broker_epoch.load(Ordering::SeqCst);
        if registered >= 0 && metadata_offset >= registered { Tried::Done } else { Tried::Again }
    }
}

/// Writes a marker to a partition that this broker leads, waits for its replicas, and tells the group shard if it is one
/// of `__consumer_offsets`.
///
/// # Errors
/// What the partition or its replicas answered. INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED say that the
/// marker comes too late; others may pass.
pub async fn write_here(
    replicas: &Replicas,
    groups: &groups::Groups,
    handle: &PartitionHandle,
    marker: MarkerToWrite,
) -> Result<(), ErrorCode> {
    let write = WriteMarker {
        producer_id: marker.producer.id,
        producer_epoch: marker.producer.epoch,
        committed: marker.committed,
        coordinator_epoch: marker.coordinator_epoch,
        transaction_version: marker.transaction_version,
    };
    let marked = handle.actor().ask(write).await.map_err(|_| ErrorCode::NotLeaderOrFollower)??;
    if handle.view().high_watermark() < marked.required_high_watermark {
        let goal =
            Goal::HighWatermark { offset: marked.required_high_watermark, leader_epoch: marked.leader_epoch };
        let wait = Wait { goals: vec![(handle.clone(), goal)], min_bytes: 0, timeout: REPLICATION_WAIT };
        let waiting = replicas.purgatories.wait(Kind::Produce, wait).ok_or(ErrorCode::NotLeaderOrFollower)?;
        let outcomes = waiting.await.unwrap_or_default();
        outcomes.into_iter().next().unwrap_or(Err(ErrorCode::NotLeaderOrFollower))?;
    }
    let id = handle.id();
    if *id.topic != *groups::TOPIC {
        return Ok(());
    }
    let ended = EndTransaction { producer: marker.producer, committed: marker.committed };
    match groups.transaction_ended(id.partition, ended).await {
        // The next leader reads the marker in the log.
        Ok(()) | Err(ErrorCode::NotCoordinator) => Ok(()),
        Err(error) => Err(error),
    }
}
