//! One table of what is served where, and one file per API.
//!
//! ApiVersions, the version gate and the dispatch all come from [`table`], so
//! the node never promises a version that it lacks.

mod add_offsets_to_txn;
mod add_partitions_to_txn;
mod alter_configs;
mod api_versions;
mod auto_creation;
mod consumer_group_describe;
mod consumer_group_heartbeat;
mod consumer_protocol;
mod context;
mod controlled;
mod create_partitions;
mod create_topics;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_quorum;
mod describe_topic_partitions;
mod describe_transactions;
mod described;
mod disabled;
mod elect_leaders;
mod end_txn;
mod fetch;
mod find_coordinator;
mod grouped;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leaders;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_transactions;
mod metadata;
mod not_yet;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod partition_reassignments;
mod produce;
mod produce_membership;
mod sync_group;
mod table;
mod topics;
mod transactional;
mod txn_offset_commit;
mod unregister_broker;
mod update_features;
mod write_txn_markers;

use std::sync::Arc;

use bytes::Bytes;
use callboard_protocol::ApiKey;
use callboard_protocol::header;
use callboard_protocol::messages::{Message, Request};
use callboard_protocol::wire::Reader;

pub use context::RequestContext;
pub use fetch::FetchSessions;
pub use table::{Entry, Service, entry, table};

use crate::net::{
    Answering, Begun, CloseReason, ConnectionInfo, Dispatch, FileRegion, Outgoing, QueuePlace, Reply,
};
use crate::node::Services;

/// What a handler returns: most return the response itself, which turns into this.
#[derive(Debug)]
pub enum Answer<R> {
    /// A response, and the file regions that its records name by index.
    Response(R, Vec<FileRegion>),
    /// The request wants no answer.
    Silent,
    /// Only closing can tell the client.
    Close(CloseReason),
}

impl<R> From<R> for Answer<R> {
    fn from(response: R) -> Self {
        Self::Response(response, Vec::new())
    }
}

/// Runs a request from the bytes after its header.
type Begin = fn(Arc<RequestContext>, Bytes) -> Answering;

/// The table at work: what connections ask to answer their requests.
#[derive(Debug)]
pub struct Api {
    services: Arc<Services>,
}

impl Api {
    /// Handlers over a node's services.
    pub fn new(services: Arc<Services>) -> Self {
        Self { services }
    }
}

impl Dispatch for Api {
    /// Only Produce requests may overlap.
    fn may_overlap(&self, frame: &[u8]) -> bool {
        frame.starts_with(&(ApiKey::Produce as i16).to_be_bytes())
    }

    fn begin(
        &self,
        connection: &Arc<ConnectionInfo>,
        frame: Bytes,
        place: QueuePlace,
    ) -> Result<Begun, CloseReason> {
        let kind = connection.listener.kind;
        let (api_key, version) = key_and_version(&frame)?;
        let not_served = CloseReason::NotServed { api_key, version };
        let Some(entry) = ApiKey::try_from(api_key).ok().and_then(|key| entry(key, kind)) else {
            return Err(not_served);
        };
        let bad_header = |error| CloseReason::Request(format!("header: {error}"));
        let (header, mut body) = header::decode_request_header(&frame).map_err(bad_header)?;
        let body = body.take_rest();
        let context = RequestContext::new(self.services.clone(), connection.clone(), header, place);
        let context = Arc::new(context);
        if entry.serves(version) {
            let answering = (entry.begin)(context.clone(), body);
            return Ok(Begun { progress: context, answering });
        }
        if entry.key != ApiKey::ApiVersions {
            return Err(not_served);
        }
        let reply = api_versions::unknown_version(&context);
        Ok(Begun { progress: context, answering: Box::pin(std::future::ready(reply)) })
    }
}

fn key_and_version(frame: &[u8]) -> Result<(i16, i16), CloseReason> {
    match frame {
        [k0, k1, v0, v1, ..] => Ok((i16::from_be_bytes([*k0, *k1]), i16::from_be_bytes([*v0, *v1]))),
        _ => Err(CloseReason::Request("header: cut short".to_owned())),
    }
}

/// Decodes a request's body; bytes after its last field are ignored, as Kafka does.
fn decode<Q: Request>(mut body: Reader<'_>, version: i16) -> Result<Q, Reply> {
    Q::decode(&mut body, version)
        .map_err(|error| Reply::Close(CloseReason::Request(format!("{}: {error}", Q::NAME))))
}

/// Encodes an answer with its header.
fn finish<Q: Request>(context: &RequestContext, answer: Answer<Q::Response>) -> Reply {
    match answer {
        Answer::Silent => Reply::Silent,
        Answer::Close(reason) => Reply::Close(reason),
        Answer::Response(response, regions) => encode(context, context.version, &response, regions),
    }
}

fn encode<R: Message>(
    context: &RequestContext,
    version: i16,
    response: &R,
    regions: Vec<FileRegion>,
) -> Reply {
    match header::encode_response(context.correlation_id, context.api_key, version, response) {
        Ok(encoded) => Reply::Send(Outgoing { encoded, regions }),
        Err(error) => Reply::Close(CloseReason::Answer(format!("{}: {error}", R::NAME))),
    }
}
