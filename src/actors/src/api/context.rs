//! What a handler knows beside its request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use callboard_protocol::header::RequestHeader;
use callboard_protocol::{ApiKey, ByteString};

use crate::net::{ConnectionInfo, Progress, QueuePlace};
use crate::node::Services;

/// One request's circumstances.
#[derive(Debug)]
pub struct RequestContext {
    /// What the node offers its handlers.
    pub services: Arc<Services>,
    /// The connection it came over.
    pub connection: Arc<ConnectionInfo>,
    /// Which API is asked.
    pub api_key: ApiKey,
    /// The version of the request and of its answer.
    pub version: i16,
    /// What the client calls itself.
    pub client_id: Option<ByteString>,
    pub(super) correlation_id: i32,
    submitted: AtomicBool,
    place: Mutex<Option<QueuePlace>>,
}

impl RequestContext {
    pub(super) fn new(
        services: Arc<Services>,
        connection: Arc<ConnectionInfo>,
        header: RequestHeader,
        place: QueuePlace,
    ) -> Self {
        Self {
            services,
            connection,
            api_key: header.api_key,
            version: header.api_version,
            client_id: header.client_id,
            correlation_id: header.correlation_id,
            submitted: AtomicBool::new(false),
            place: Mutex::new(Some(place)),
        }
    }

    /// Says that all this request does has been handed on in order, so that
    /// the connection's next Produce request may begin.
    pub fn submitted(&self) {
        self.submitted.store(true, Ordering::Relaxed);
        self.leave_queue();
    }

    /// Gives up the place in the node's queue of requests: called by a
    /// request that from now on only waits.
    pub fn leave_queue(&self) {
        drop(self.place.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Progress for RequestContext {
    fn is_submitted(&self) -> bool {
        self.submitted.load(Ordering::Relaxed)
    }
}
