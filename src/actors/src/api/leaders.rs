//! Who leads a partition now, for answers that send a client to another broker.

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard_protocol::messages::{fetch_response, produce_response};
use callboard_protocol::{ByteString, Uuid};

use super::RequestContext;
use crate::control::applied::AppliedMetadata;

/// Finds leaders, and remembers which brokers the answer must describe.
pub(super) struct Leaders<'a> {
    cx: &'a RequestContext,
    metadata: Arc<AppliedMetadata>,
    named: BTreeSet<i32>,
}

impl<'a> Leaders<'a> {
    /// None named yet.
    pub(super) fn new(cx: &'a RequestContext) -> Self {
        Self { cx, metadata: cx.services.metadata(), named: BTreeSet::new() }
    }

    /// Leader and epoch of a partition whose topic goes by id, or by name if the id is zero.
    pub(super) fn find(&mut self, name: &str, id: Uuid, partition: i32) -> Option<(i32, i32)> {
        let topics = &self.metadata.image.topics;
        let topic = if id == Uuid::ZERO { topics.by_name(name) } else { topics.by_id(id) }?;
        let registration = topic.partition(partition)?;
        self.named.insert(registration.leader);
        Some((registration.leader, registration.leader_epoch))
    }

    fn endpoints(&self) -> impl Iterator<Item = (i32, ByteString, i32, Option<ByteString>)> {
        let listener = &self.cx.connection.listener.name;
        self.named.iter().filter_map(move |id| {
            let broker = self.metadata.image.cluster.broker(*id)?;
            let endpoint = broker.endpoint(listener)?;
            Some((*id, endpoint.host.clone(), i32::from(endpoint.port), broker.rack.clone()))
        })
    }

    /// The brokers named, as Produce describes them.
    pub(super) fn produce_endpoints(&self) -> Vec<produce_response::NodeEndpoint> {
        let endpoint = |(node_id, host, port, rack)| produce_response::NodeEndpoint {
            node_id,
            host,
            port,
            rack,
            ..Default::default()
        };
        self.endpoints().map(endpoint).collect()
    }

    /// The brokers named, as Fetch describes them.
    pub(super) fn fetch_endpoints(&self) -> Vec<fetch_response::NodeEndpoint> {
        let endpoint = |(node_id, host, port, rack)| fetch_response::NodeEndpoint {
            node_id,
            host,
            port,
            rack,
            ..Default::default()
        };
        self.endpoints().map(endpoint).collect()
    }
}
