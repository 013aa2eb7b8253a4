//! DescribeLogDirs: what lies in each log directory, and how full its file system is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use callboard_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use callboard_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::RequestContext;
use crate::replicas::{LogDirectory, PartitionHandle};

/// Unknown, or not asked of a directory that has failed.
const UNKNOWN_BYTES: i64 = -1;

/// Describes all directories, with the partitions asked for or all.
pub async fn handle(cx: &RequestContext, request: DescribeLogDirsRequest, _: i16) -> DescribeLogDirsResponse {
    let wanted = request.topics.map(|topics| {
        let mut wanted: BTreeMap<ByteString, BTreeSet<i32>> = BTreeMap::new();
        for topic in topics {
            wanted.entry(topic.topic).or_default().extend(topic.partitions);
        }
        wanted
    });
    let held = cx.services.replicas.registry.held();
    let mut by_directory: BTreeMap<usize, BTreeMap<ByteString, Vec<DescribeLogDirsPartition>>> =
        BTreeMap::new();
    for handle in held.partitions() {
        let id = handle.id();
        let is_wanted = wanted.as_ref().is_none_or(|wanted| {
            wanted.get(&id.topic).is_some_and(|partitions| partitions.contains(&id.partition))
        });
        if is_wanted && let Some(described) = partition(handle) {
            let topics = by_directory.entry(handle.shared().directory).or_default();
            topics.entry(id.topic.clone()).or_default().push(described);
        }
    }
    let directories = cx.services.replicas.directories.iter().enumerate();
    let results = directories.map(|(at, dir)| directory(dir, by_directory.remove(&at).unwrap_or_default()));
    DescribeLogDirsResponse { results: results.collect(), ..Default::default() }
}

fn partition(handle: &PartitionHandle) -> Option<DescribeLogDirsPartition> {
    let reader = handle.view().reader()?;
    let lag = handle.view().high_watermark().saturating_sub(reader.log_end_offset()).max(0);
    Some(DescribeLogDirsPartition {
        partition_index: handle.id().partition,
        partition_size: i64::try_from(reader.size_bytes()).unwrap_or(i64::MAX),
        offset_lag: lag,
        is_future_key: false,
        ..Default::default()
    })
}

fn directory(
    directory: &LogDirectory,
    topics: BTreeMap<ByteString, Vec<DescribeLogDirsPartition>>,
) -> DescribeLogDirsResult {
    let (total_bytes, usable_bytes) = if directory.is_failed() { None } else { space(&directory.path) }
        .unwrap_or((UNKNOWN_BYTES, UNKNOWN_BYTES));
    let path = std::path::absolute(&directory.path).unwrap_or_else(|_| directory.path.clone());
    let mut result = DescribeLogDirsResult {
        log_dir: path.to_string_lossy().as_ref().into(),
        total_bytes,
        usable_bytes,
        ..Default::default()
    };
    if directory.is_failed() {
        result.error_code = ErrorCode::KafkaStorageError as i16;
        return result;
    }
    let topic = |(name, partitions)| DescribeLogDirsTopic { name, partitions, ..Default::default() };
    result.topics = topics.into_iter().map(topic).collect();
    result
}

/// Size and free space of the file system, in bytes.
fn space(path: &Path) -> Option<(i64, i64)> {
    let found = rustix::fs::statvfs(path).ok()?;
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(found.f_frsize)).unwrap_or(i64::MAX);
    Some((bytes(found.f_blocks), bytes(found.f_bavail)))
}
