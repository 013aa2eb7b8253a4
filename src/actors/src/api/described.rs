//! Brokers and partitions as Metadata, DescribeTopicPartitions and DescribeCluster show them.

use callboard_metadata::image::{BrokerRegistration, Endpoint, Image, NO_LEADER, PartitionRegistration};
use callboard_protocol::ErrorCode;

/// What may be done to the cluster where nobody restricts it: create, alter, describe, cluster action, describe and
/// alter configs, idempotent write, one bit each.
pub(super) const CLUSTER_OPERATIONS: i32 = 8096;
/// The same of a topic: read, write, create, delete, alter, describe, describe and alter configs.
pub(super) const TOPIC_OPERATIONS: i32 = 3576;
/// The same of a group: read, delete, describe, describe and alter configs.
pub(super) const GROUP_OPERATIONS: i32 = 3400;
/// Operations were not asked for.
pub(super) const NO_OPERATIONS: i32 = i32::MIN;

/// Brokers with an endpoint on a listener, by id.
pub(super) fn brokers<'a>(
    image: &'a Image,
    listener: &'a str,
    with_fenced: bool,
) -> impl Iterator<Item = (&'a BrokerRegistration, &'a Endpoint)> {
    let brokers = image.cluster.brokers.values().map(AsRef::as_ref);
    brokers
        .filter(move |broker| with_fenced || !broker.fenced)
        .filter_map(move |broker: &BrokerRegistration| Some((broker, broker.endpoint(listener)?)))
}

/// Who is told to be the controller: any live broker, as it hands requests on. -1 when there is none.
pub(super) fn controller_id(image: &Image) -> i32 {
    image.cluster.brokers.values().find(|broker| !broker.fenced).map_or(-1, |broker| broker.id)
}

/// A partition's leader and error as a client of a listener sees them.
pub(super) struct Seen {
    pub(super) error: ErrorCode,
    pub(super) leader: i32,
}

/// Looks for the leader. `lacks_listener` is the error for a leader that is not on this listener.
pub(super) fn seen(
    image: &Image,
    partition: &PartitionRegistration,
    listener: &str,
    lacks_listener: ErrorCode,
) -> Seen {
    let leader = image.cluster.broker(partition.leader).filter(|broker| !broker.fenced);
    match leader {
        None => Seen { error: ErrorCode::LeaderNotAvailable, leader: NO_LEADER },
        Some(broker) if broker.endpoint(listener).is_none() => {
            Seen { error: lacks_listener, leader: NO_LEADER }
        }
        Some(broker) => Seen { error: ErrorCode::None, leader: broker.id },
    }
}

/// The replicas on brokers that are fenced, gone, or whose directory is.
pub(super) fn offline_replicas(image: &Image, partition: &PartitionRegistration) -> Vec<i32> {
    let is_offline = |id: &i32| match image.cluster.broker(*id) {
        None => true,
        Some(broker) if broker.fenced => true,
        Some(broker) => partition.directory(*id).is_some_and(|dir| {
            !dir.is_zero() && !broker.log_dirs.is_empty() && !broker.log_dirs.contains(&dir)
        }),
    };
    partition.replicas.iter().copied().filter(is_offline).collect()
}
