//! DescribeTopicPartitions: topics in the order of their names, so many partitions at a time.

use std::collections::BTreeSet;

use callboard_metadata::image::{Image, Topic};
use callboard_metadata::topic_name;
use callboard_protocol::messages::describe_topic_partitions_request::Cursor as AskedCursor;
use callboard_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use callboard_protocol::messages::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::RequestContext;
use super::described::{self, NO_OPERATIONS, TOPIC_OPERATIONS};

/// Describes topics from the cursor on, until the limit is reached.
pub async fn handle(
    cx: &RequestContext,
    request: DescribeTopicPartitionsRequest,
    _: i16,
) -> DescribeTopicPartitionsResponse {
    let metadata = cx.services.metadata.current();
    let image = &metadata.image;
    let names: BTreeSet<&ByteString> = request.topics.iter().map(|topic| &topic.name).collect();
    if names.iter().any(|name| name.is_empty()) {
        return refused(&request, ErrorCode::UnknownServerError);
    }
    if let Some(cursor) = &request.cursor {
        let foreign = !names.is_empty() && !names.contains(&cursor.topic_name);
        if foreign || cursor.partition_index < 0 {
            return refused(&request, ErrorCode::InvalidRequest);
        }
    }
    let most = usize::try_from(cx.services.config.max_request_partition_size_limit).unwrap_or(usize::MAX);
    let asked = usize::try_from(request.response_partition_limit).unwrap_or(0);
    let start = request.cursor.as_ref();
    let mut page = Page {
        image,
        listener: &cx.connection.listener.name,
        left: asked.min(most).max(1),
        topics: Vec::new(),
        next: None,
    };
    let from = start.map_or("", |cursor| &cursor.topic_name);
    if names.is_empty() {
        image.topics.iter_from(from).try_for_each(|topic| page.add(&topic.name, Some(topic), start));
    } else {
        let rest = names.into_iter().filter(|name| ***name >= *from);
        rest.into_iter().try_for_each(|name| page.add(name, image.topics.by_name(name), start));
    }
    DescribeTopicPartitionsResponse { topics: page.topics, next_cursor: page.next, ..Default::default() }
}

fn refused(request: &DescribeTopicPartitionsRequest, code: ErrorCode) -> DescribeTopicPartitionsResponse {
    let topic = |name: &ByteString| DescribeTopicPartitionsResponseTopic {
        error_code: code as i16,
        name: Some(name.clone()),
        topic_authorized_operations: NO_OPERATIONS,
        ..Default::default()
    };
    DescribeTopicPartitionsResponse {
        topics: request.topics.iter().map(|asked| topic(&asked.name)).collect(),
        ..Default::default()
    }
}

/// An answer as it fills up.
struct Page<'a> {
    image: &'a Image,
    listener: &'a str,
    left: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    next: Option<Cursor>,
}

impl Page<'_> {
    /// Adds a topic, or notes where the next page begins. `None` once the page is full.
    fn add(&mut self, name: &ByteString, topic: Option<&Topic>, start: Option<&AskedCursor>) -> Option<()> {
        let first = start.filter(|cursor| cursor.topic_name == *name).map_or(0, |c| c.partition_index);
        let Some(topic) = topic else {
            let error = match topic_name::validate(name) {
                Ok(()) => ErrorCode::UnknownTopicOrPartition,
                Err(_) => ErrorCode::InvalidTopicException,
            };
            self.topics.push(DescribeTopicPartitionsResponseTopic {
                error_code: error as i16,
                name: Some(name.clone()),
                is_internal: topic_name::is_internal(name),
                topic_authorized_operations: TOPIC_OPERATIONS,
                ..Default::default()
            });
            return Some(());
        };
        if self.left == 0 {
            self.next = Some(cursor(name, first));
            return None;
        }
        let mut partitions = Vec::new();
        for (number, partition) in topic.partitions.range(first..) {
            if partitions.len() == self.left {
                self.next = Some(cursor(name, *number));
                break;
            }
            let seen = described::seen(self.image, partition, self.listener, ErrorCode::ListenerNotFound);
            partitions.push(DescribeTopicPartitionsResponsePartition {
                error_code: seen.error as i16,
                partition_index: *number,
                leader_id: seen.leader,
                leader_epoch: partition.leader_epoch,
                replica_nodes: partition.replicas.clone(),
                isr_nodes: partition.isr.clone(),
                eligible_leader_replicas: Some(partition.elr.clone()),
                last_known_elr: Some(partition.last_known_elr.clone()),
                offline_replicas: described::offline_replicas(self.image, partition),
                ..Default::default()
            });
        }
        self.left -= partitions.len();
        self.topics.push(DescribeTopicPartitionsResponseTopic {
            name: Some(topic.name.clone()),
            topic_id: topic.id,
            is_internal: topic_name::is_internal(&topic.name),
            partitions,
            topic_authorized_operations: TOPIC_OPERATIONS,
            ..Default::default()
        });
        if self.next.is_some() { None } else { Some(()) }
    }
}

fn cursor(name: &ByteString, partition_index: i32) -> Cursor {
    Cursor { topic_name: name.clone(), partition_index, ..Default::default() }
}
