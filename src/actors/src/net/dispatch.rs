//! What a connection asks of the rest of the node: to answer its requests.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use super::{CloseReason, ConnectionInfo, Outgoing, QueuePlace};

/// The answer to a request on its way.
pub type Answering = Pin<Box<dyn Future<Output = Reply>>>;

/// What becomes of a request.
#[derive(Debug)]
pub enum Reply {
    /// Send this.
    Send(Outgoing),
    /// Send nothing: the request has no answer.
    Silent,
    /// Close the connection.
    Close(CloseReason),
}

/// How far a request has come.
pub trait Progress {
    /// Whether all it does has been handed on in order, so that the next may begin beside it.
    fn is_submitted(&self) -> bool;
}

/// A request just begun.
pub struct Begun {
    /// How far it has come.
    pub progress: Arc<dyn Progress>,
    /// Its answer; it does nothing until polled.
    pub answering: Answering,
}

/// Who answers requests.
pub trait Dispatch: Debug + Send + Sync {
    /// Whether a request may begin while others of its connection are under way.
    fn may_overlap(&self, frame: &[u8]) -> bool;

    /// Begins the request in `frame` (without its length), which holds `place` in the node's queue.
    ///
    /// # Errors
    /// The request cannot be answered: the connection is to be closed.
    fn begin(
        &self,
        connection: &Arc<ConnectionInfo>,
        frame: Bytes,
        place: QueuePlace,
    ) -> Result<Begun, CloseReason>;
}
