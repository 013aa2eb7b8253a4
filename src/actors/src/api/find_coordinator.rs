//! FindCoordinator. The first group that asks has `__consumer_offsets` created, the first transactional id
//! `__transaction_state`.

use callboard_protocol::messages::find_coordinator_response::Coordinator;
use callboard_protocol::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use callboard_protocol::{ByteString, ErrorCode};

use super::{RequestContext, auto_creation, described};
use crate::{groups, transactions};

/// From this version on several keys are asked for at once.
const FIRST_BATCHED: i16 = 4;
/// From this version on there are coordinators of transactions.
const FIRST_WITH_KEY_TYPE: i16 = 1;

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const SHARE: i8 = 2;

/// Where a coordinator is.
struct Place {
    node_id: i32,
    host: ByteString,
    port: i32,
}

type Found = Result<Place, (ErrorCode, Option<ByteString>)>;

/// Finds the coordinators of all keys.
pub async fn handle(
    cx: &RequestContext,
    request: FindCoordinatorRequest,
    version: i16,
) -> FindCoordinatorResponse {
    let key_type = if version < FIRST_WITH_KEY_TYPE { GROUP } else { request.key_type };
    if version < FIRST_BATCHED {
        return one(find(cx, key_type, &request.key).await);
    }
    let mut coordinators = Vec::with_capacity(request.coordinator_keys.len());
    for key in request.coordinator_keys {
        let found = find(cx, key_type, &key).await;
        coordinators.push(one_of_many(key, found));
    }
    FindCoordinatorResponse { coordinators, ..Default::default() }
}

fn one(found: Found) -> FindCoordinatorResponse {
    match found {
        Ok(Place { node_id, host, port }) => FindCoordinatorResponse {
            node_id,
            host,
            port,
            // Kafka puts the name of the code here.
            error_message: Some(ByteString::from_static("NONE")),
            ..Default::default()
        },
        Err((error, message)) => FindCoordinatorResponse {
            error_code: error as i16,
            error_message: message.or_else(|| Some(error.message().into())),
            node_id: -1,
            port: -1,
            ..Default::default()
        },
    }
}

fn one_of_many(key: ByteString, found: Found) -> Coordinator {
    match found {
        Ok(Place { node_id, host, port }) => Coordinator { key, node_id, host, port, ..Default::default() },
        Err((error, error_message)) => Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: error as i16,
            error_message,
            ..Default::default()
        },
    }
}

async fn find(cx: &RequestContext, key_type: i8, key: &ByteString) -> Found {
    let topic = match key_type {
        GROUP => groups::TOPIC,
        TRANSACTION => transactions::TOPIC,
        SHARE => {
            let message = "This broker does not support coordinators of this kind yet.";
            return Err((ErrorCode::UnsupportedVersion, Some(ByteString::from_static(message))));
        }
        _ => return Err((ErrorCode::InvalidRequest, None)),
    };
    if partition_of(cx, topic, key).is_none()
        && let Err(error) = auto_creation::create_internal(cx, topic).await
    {
        tracing::warn!(error = error.name(), "{topic} can't be created");
        return Err((ErrorCode::CoordinatorNotAvailable, None));
    }
    place(cx, topic, key).ok_or((ErrorCode::CoordinatorNotAvailable, None))
}

fn partition_of(cx: &RequestContext, topic: &str, key: &ByteString) -> Option<i32> {
    match topic {
        transactions::TOPIC => cx.services.transactions.partition_of(key),
        _ => cx.services.groups.partition_of(key),
    }
}

/// Where the leader of the key's partition is, for this listener's clients.
fn place(cx: &RequestContext, topic: &str, key: &ByteString) -> Option<Place> {
    let partition = partition_of(cx, topic, key)?;
    let metadata = cx.services.metadata();
    let registration = metadata.image.topics.partition(topic, partition)?;
    let listener = &cx.connection.listener.name;
    let mut brokers = described::brokers(&metadata.image, listener, false);
    let (broker, endpoint) = brokers.find(|(broker, _)| broker.id == registration.leader)?;
    Some(Place { node_id: broker.id, host: endpoint.host.clone(), port: i32::from(endpoint.port) })
}
