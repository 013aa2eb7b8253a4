//! Metadata: brokers, topics and their leaders. Topics that are not there may be created by being asked for.

use std::collections::BTreeSet;

use callboard_metadata::image::{Image, Topic};
use callboard_metadata::topic_name;
use callboard_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use callboard_protocol::messages::{MetadataRequest, MetadataResponse};
use callboard_protocol::{ByteString, ErrorCode, Uuid};

use super::described::{self, CLUSTER_OPERATIONS, NO_OPERATIONS, TOPIC_OPERATIONS};
use super::{RequestContext, auto_creation};

/// Up to this version every topic asked for is created: no flag says otherwise.
const LAST_ALWAYS_CREATING: i16 = 3;
/// From this version on a leader without the client's listener has an error of its own.
const FIRST_WITH_LISTENER_ERROR: i16 = 6;
/// From this version on topics may go by id; two versions earlier the field is there already, but refused.
const FIRST_BY_ID: i16 = 12;
/// From this version on there is an error of the whole answer.
const FIRST_WITH_ERROR: i16 = 13;

/// Describes topics and brokers.
pub async fn handle(cx: &RequestContext, request: MetadataRequest, version: i16) -> MetadataResponse {
    let asked = request.topics.as_deref();
    let by_id = asked.is_some_and(|topics| topics.iter().any(|topic| !topic.topic_id.is_zero()));
    let nameless = asked.is_some_and(|topics| topics.iter().any(|topic| topic.name.is_none()));
    if (by_id || nameless) && version < FIRST_BY_ID {
        return refused(&request, ErrorCode::InvalidRequest, ErrorCode::None);
    }
    if nameless && !by_id {
        let code = ErrorCode::UnknownServerError;
        let whole = if version >= FIRST_WITH_ERROR { code } else { ErrorCode::None };
        return refused(&request, code, whole);
    }
    let metadata = cx.services.metadata.current();
    let image = &metadata.image;
    let topics = Topics {
        image,
        listener: &cx.connection.listener.name,
        version,
        operations: match request.include_topic_authorized_operations {
            true => TOPIC_OPERATIONS,
            false => NO_OPERATIONS,
        },
    };
    // Version 0 has no null: an empty list means all.
    let described = match asked {
        None => topics.all(),
        Some([]) if version == 0 => topics.all(),
        Some(asked) if by_id => topics.by_ids(asked.iter().map(|topic| topic.topic_id)),
        Some(asked) => {
            let names = asked.iter().filter_map(|topic| topic.name.clone()).collect();
            let may_create = version <= LAST_ALWAYS_CREATING || request.allow_auto_topic_creation;
            by_names(cx, &topics, names, may_create)
        }
    };
    let brokers = described::brokers(image, topics.listener, false)
        .map(|(broker, endpoint)| MetadataResponseBroker {
            node_id: broker.id,
            host: endpoint.host.clone(),
            port: i32::from(endpoint.port),
            rack: broker.rack.clone(),
            ..Default::default()
        })
        .collect();
    let with_cluster_operations = request.include_cluster_authorized_operations;
    MetadataResponse {
        brokers,
        cluster_id: Some(ByteString::from(cx.services.cluster_id.as_str())),
        controller_id: described::controller_id(image),
        topics: described,
        cluster_authorized_operations: if with_cluster_operations {
            CLUSTER_OPERATIONS
        } else {
            NO_OPERATIONS
        },
        ..Default::default()
    }
}

/// A request that Kafka refuses as a whole: every topic has the error, and there are no brokers.
fn refused(request: &MetadataRequest, code: ErrorCode, whole: ErrorCode) -> MetadataResponse {
    let topics = request.topics.iter().flatten().map(|topic| MetadataResponseTopic {
        error_code: code as i16,
        name: Some(topic.name.clone().unwrap_or_default()),
        topic_id: topic.topic_id,
        topic_authorized_operations: NO_OPERATIONS,
        ..Default::default()
    });
    MetadataResponse {
        topics: topics.collect(),
        controller_id: -1,
        cluster_authorized_operations: NO_OPERATIONS,
        error_code: whole as i16,
        ..Default::default()
    }
}

/// Topics by name: those there are, then those there are not.
fn by_names(
    cx: &RequestContext,
    topics: &Topics<'_>,
    names: Vec<ByteString>,
    may_create: bool,
) -> Vec<MetadataResponseTopic> {
    let mut seen = BTreeSet::new();
    let names: Vec<ByteString> = names.into_iter().filter(|name| seen.insert(name.clone())).collect();
    let (there, missing): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| topics.image.topics.id(name).is_some());
    let mut out: Vec<_> = there
        .iter()
        .filter_map(|name| topics.image.topics.by_name(name))
        .map(|topic| topics.describe(topic))
        .collect();
    let errors = if may_create && cx.services.config.auto_create_topics_enable {
        auto_creation::create(cx, &missing)
    } else {
        let error = |name: &ByteString| match topic_name::validate(name) {
            Ok(()) => ErrorCode::UnknownTopicOrPartition,
            Err(_) => ErrorCode::InvalidTopicException,
        };
        missing.iter().map(error).collect()
    };
    out.extend(
        missing.into_iter().zip(errors).map(|(name, error)| topics.missing(Some(name), Uuid::ZERO, error)),
    );
    out
}

/// How topics are described in one answer.
struct Topics<'a> {
    image: &'a Image,
    listener: &'a str,
    version: i16,
    operations: i32,
}

impl Topics<'_> {
    fn all(&self) -> Vec<MetadataResponseTopic> {
        self.image.topics.iter_by_name().map(|topic| self.describe(topic)).collect()
    }

    /// Those that nobody knows come first.
    fn by_ids(&self, ids: impl Iterator<Item = Uuid>) -> Vec<MetadataResponseTopic> {
        let ids: BTreeSet<Uuid> = ids.filter(|id| !id.is_zero()).collect();
        let (known, unknown): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| self.image.topics.by_id(*id).is_some());
        let unknown = unknown.into_iter().map(|id| MetadataResponseTopic {
            error_code: ErrorCode::UnknownTopicId as i16,
            name: None,
            topic_id: id,
            topic_authorized_operations: NO_OPERATIONS,
            ..Default::default()
        });
        let known = known.into_iter().filter_map(|id| self.image.topics.by_id(id));
        unknown.chain(known.map(|topic| self.describe(topic))).collect()
    }

    fn missing(&self, name: Option<ByteString>, topic_id: Uuid, error: ErrorCode) -> MetadataResponseTopic {
        MetadataResponseTopic {
            error_code: error as i16,
            is_internal: name.as_deref().is_some_and(topic_name::is_internal),
            name,
            topic_id,
            topic_authorized_operations: self.operations,
            ..Default::default()
        }
    }

    fn describe(&self, topic: &Topic) -> MetadataResponseTopic {
        let lacks_listener = match self.version >= FIRST_WITH_LISTENER_ERROR {
            true => ErrorCode::ListenerNotFound,
            false => ErrorCode::LeaderNotAvailable,
        };
        let partitions = topic.partitions.iter().map(|(number, partition)| {
            let seen = described::seen(self.image, partition, self.listener, lacks_listener);
            let offline = described::offline_replicas(self.image, partition);
            let mut described = MetadataResponsePartition {
                error_code: seen.error as i16,
                partition_index: *number,
                leader_id: seen.leader,
                leader_epoch: partition.leader_epoch,
                replica_nodes: partition.replicas.clone(),
                isr_nodes: partition.isr.clone(),
                ..Default::default()
            };
            // Version 0 has no place for replicas that are off line: they are left out, with an error.
            if self.version == 0 && !offline.is_empty() {
                let online = |id: &i32| !offline.contains(id);
                described.replica_nodes.retain(online);
                described.isr_nodes.retain(online);
                if seen.error == ErrorCode::None {
                    described.error_code = ErrorCode::ReplicaNotAvailable as i16;
                }
            }
            described.offline_replicas = offline;
            described
        });
        MetadataResponseTopic {
            name: Some(topic.name.clone()),
            topic_id: topic.id,
            is_internal: topic_name::is_internal(&topic.name),
            partitions: partitions.collect(),
            topic_authorized_operations: self.operations,
            ..Default::default()
        }
    }
}
