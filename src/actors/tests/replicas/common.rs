//! A data path on one thread with simulated time, over a directory of its own.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use bytes::Bytes;
use callboard_actors::replicas::messages::{
    Append, AppendRefusal, Appended, ApplyChanges, Assignment, Membership, Wanted,
};
use callboard_actors::replicas::{
    CleanerOptions, LogDirectory, PartitionHandle, PartitionId, PartitionSettings, Replicas, ReplicasSetup,
    Status, Upkeep,
};
use callboard_actors::supervision::{Clock, Exit, Shards, Strategy, Tree};
use callboard_metadata::config::{Settings, TopicConfig};
use callboard_protocol::records::{BatchBuilder, batches};
use callboard_protocol::{ErrorCode, Uuid};
use callboard_storage::Origin;

pub const TOPIC: Uuid = Uuid::from_u128(7);

pub struct Node {
    pub tree: Tree,
    pub replicas: Replicas,
}

impl Node {
    pub fn start(root: &Path) -> Self {
        Self::start_with_reserve(root, 0)
    }

    /// With so much room on the disk that appends leave alone.
    pub fn start_with_reserve(root: &Path, disk_reserve_bytes: u64) -> Self {
        let shards = Shards::local(Clock::simulated(1_700_000_000_000));
        let tree = Tree::new("node", Strategy::OneForOne, &shards, 1);
        let directory = LogDirectory::new(root.to_owned(), Uuid::from_u128(99));
        let setup = ReplicasSetup {
            node_id: 1,
            directories: Arc::new(vec![directory]),
            checkpoint_interval: Duration::from_secs(60),
            high_watermark_interval: Duration::from_secs(5),
            upkeep: Upkeep {
                initial_delay: Duration::from_secs(30),
                retention_interval: Duration::from_secs(300),
                producer_expiration_interval: Duration::from_secs(600),
                disk_reserve_bytes,
            },
            cleaners: CleanerOptions {
                enabled: true,
                threads: 1,
                backoff: Duration::from_secs(15),
                dedupe_buffer_bytes: 1 << 20,
                load_factor: 0.9,
                max_bytes_per_second: f64::MAX,
            },
            broker_epoch: Arc::new(AtomicI64::new(5)),
        };
        let replicas = Replicas::start(tree.root(), &shards, setup);
        Self { tree, replicas }
    }

    /// Makes partition 0 of the topic, and waits until it takes requests.
    pub async fn with_partition(root: &Path, overrides: &[(&str, &str)]) -> (Self, PartitionHandle) {
        let node = Self::start(root);
        node.apply(ApplyChanges { wanted: vec![wanted(TOPIC, 0, overrides)], ..ApplyChanges::default() })
            .await;
        let handle = node.replicas.registry.partition(TOPIC, 0).unwrap();
        leads(&handle).await;
        (node, handle)
    }

    pub async fn apply(&self, changes: ApplyChanges) {
        self.replicas.manager.ask(changes).await.unwrap();
    }

    pub async fn stop(self) -> Exit {
        self.tree.shutdown(Duration::from_secs(30)).await
    }
}

pub fn simulate<F: Future>(test: impl FnOnce(tempfile::TempDir) -> F) -> F::Output {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async { test(tempfile::tempdir().unwrap()).await })
}

pub async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never came to be");
}

pub async fn leads(handle: &PartitionHandle) {
    until(|| handle.view().status() == Status::Leader).await;
}

pub fn settings(overrides: &[(&str, &str)]) -> Arc<PartitionSettings> {
    let (broker, _) = Settings::from_properties([]).unwrap();
    let effective = TopicConfig::effective(&broker, overrides.iter().copied());
    Arc::new(PartitionSettings::new(&effective, 86_400_000))
}

pub fn wanted(topic_id: Uuid, partition: i32, overrides: &[(&str, &str)]) -> Wanted {
    Wanted {
        id: PartitionId { topic_id, topic: "topic".into(), partition },
        assignment: Assignment {
            leader: 1,
            leader_epoch: 0,
            partition_epoch: 0,
            replicas: vec![1],
            isr: vec![1],
        },
        settings: settings(overrides),
        directory: Uuid::ZERO,
    }
}

/// One batch with one record for each value, of an idempotent producer if `sequence` says so.
pub fn batch(values: &[&str], producer: Option<(i64, i32)>) -> Bytes {
    let mut builder = BatchBuilder::new(0);
    if let Some((id, sequence)) = producer {
        builder = builder.producer(id, 0, sequence);
    }
    for value in values {
        builder.append(1_700_000_000_000, None, Some(value.as_bytes()), &[]);
    }
    builder.build().unwrap()
}

pub fn append(records: Bytes) -> Append {
    Append {
        records,
        version: 12,
        all_replicas: true,
        origin: Origin::Client,
        membership: Membership::AsOpen,
    }
}

pub async fn produce(handle: &PartitionHandle, values: &[&str]) -> Result<Appended, AppendRefusal> {
    handle.actor().ask(append(batch(values, None))).await.unwrap()
}

pub async fn error_of(handle: &PartitionHandle) -> ErrorCode {
    produce(handle, &["x"]).await.unwrap_err().error
}

/// All values in the partition below its high watermark.
pub fn values(handle: &PartitionHandle) -> Vec<String> {
    let reader = handle.view().as_leader(-1).unwrap();
    let (mut offset, limit) = (reader.log_start_offset(), handle.view().high_watermark());
    let mut values = Vec::new();
    while offset < limit {
        let region = reader.read(offset, 1 << 20, limit, true).unwrap();
        for batch in batches(region.to_bytes().unwrap()) {
            for record in batch.unwrap().records().unwrap() {
                let record = record.unwrap();
                if record.offset >= offset {
                    values.push(String::from_utf8(record.value.unwrap().to_vec()).unwrap());
                    offset = record.offset + 1;
                }
            }
        }
    }
    values
}
