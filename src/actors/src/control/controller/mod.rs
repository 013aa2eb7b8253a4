//! The controller actor: the active controller's event loop over [`callboard_metadata::controller::Controller`].
//!
//! - Who sends: handlers of requests, the lifecycle and producer ids ([`Decide`], one kind a request); the raft actor
//!   ([`LogNews`](super::raft::LogNews)).
//! - Owns: the machine with every record replayed, committed or not; what is in flight, each with the machine as it was
//!   before.
//! - Runs: one on a node with the controller role. It decides only while this node leads the quorum.
//! - Mailbox: bounded; the log's news go ahead of requests.
//! - Order: records are replayed at once and appended in the order decided; an answer goes out when the log's high
//!   watermark has passed its records and all that it was decided on.
//! - Timers: the end of the next broker's session.
//! - An append that fails takes the machine back to before it, and with it everything decided later.
//! - Restart: a fault resigns leadership first; the machine is built again from the log. A committed record that can't
//!   be replayed escalates, since it would fail again.
//! - To a client, its crash means NOT_CONTROLLER.

mod actor;
mod in_flight;
mod requests;

use callboard_metadata::VersionedRecord;
use callboard_metadata::controller::ControllerSettings;
use callboard_protocol::ErrorCode;
use callboard_protocol::messages::ControllerRegistrationRequest;
use tokio::sync::watch;

pub use actor::ControllerActor;
pub use requests::{ControllerRequest, Decide, Decided};

use super::raft::{Raft, Resign};
use crate::supervision::{ActorRef, FailureClass, Spec, SupervisorRef};

/// What the controller goes by.
#[derive(Debug, Clone)]
pub struct ControllerOptions {
    /// The node's settings.
    pub settings: ControllerSettings,
    /// How this controller registers itself.
    pub registration: ControllerRegistrationRequest,
    /// The `kraft.version` of the quorum.
    pub kraft_version: i16,
    /// The features of a new cluster, when the node was formatted without any.
    pub default_bootstrap: Vec<VersionedRecord>,
}

/// The way to the controller of this node.
#[derive(Debug, Clone)]
pub struct QuorumController {
    actor: ActorRef<ControllerActor>,
    active_epoch: watch::Receiver<Option<i32>>,
    kraft_version: i16,
}

impl QuorumController {
    /// Starts the actor.
    pub fn spawn(supervisor: &SupervisorRef, raft: &Raft, options: ControllerOptions) -> Self {
        let (publish, active_epoch) = watch::channel(None);
        let (for_factory, unpublish) = (publish.clone(), publish);
        let (raft, log) = (raft.clone(), raft.clone());
        let kraft_version = options.kraft_version;
        let factory = move || ControllerActor::new(options.clone(), log.clone(), for_factory.clone());
        let spec = Spec::new("controller", factory).panic_class(FailureClass::Resign).on_failure(move |_| {
            unpublish.send_replace(None);
            raft.actor().tell(Resign);
        });
        Self { actor: supervisor.spawn(spec), active_epoch, kraft_version }
    }

    /// The epoch in which this node is the active controller, if it is.
    pub fn active_epoch(&self) -> Option<i32> {
        *self.active_epoch.borrow()
    }

    /// Changes of [`active_epoch`](Self::active_epoch).
    pub fn changes(&self) -> watch::Receiver<Option<i32>> {
        self.active_epoch.clone()
    }

    /// The `kraft.version` of the quorum.
    pub fn kraft_version(&self) -> i16 {
        self.kraft_version
    }

    /// Decides a request, and answers when its records are committed.
    ///
    /// # Errors
    /// NOT_CONTROLLER when this node doesn't lead the quorum, or stopped leading it; UNKNOWN_SERVER_ERROR when the
    /// records don't fit the log.
    pub async fn decide<Q: ControllerRequest>(
        &self,
        request: Q,
        version: i16,
    ) -> Result<Decided<Q::Response>, ErrorCode> {
        match self.actor.ask(Decide { request, version }).await {
            Ok(decided) => decided,
            Err(_) => Err(ErrorCode::NotController),
        }
    }

    /// Has a request decided without waiting for it; without room it is dropped.
    pub fn submit<Q: ControllerRequest>(&self, request: Q, version: i16) {
        drop(self.actor.try_ask(Decide { request, version }));
    }
}
