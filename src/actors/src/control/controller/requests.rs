//! The requests a controller decides.

use callboard_metadata::controller::{Context, Controller, Outcome};
use callboard_protocol::ErrorCode;
use callboard_protocol::messages as m;
use callboard_protocol::messages::Request;

use crate::supervision::Message;

/// A request for the active controller, in the version that came.
#[derive(Debug)]
pub struct Decide<Q> {
    /// The request.
    pub request: Q,
    /// Its version.
    pub version: i16,
}

/// A decision that is committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided<R> {
    /// The answer.
    pub response: R,
    /// Who has read the metadata log up to this offset sees what was decided.
    pub last_offset: i64,
}

/// A request that the controller's machine decides.
pub trait ControllerRequest: Request<Response: Send + 'static> + Send + 'static {
    /// Decides it. `kraft_version` is the quorum's.
    fn decide(
        &self,
        machine: &mut Controller,
        circumstances: &mut Context<'_>,
        version: i16,
        kraft_version: i16,
    ) -> Outcome<Self::Response>;
}

impl<Q: ControllerRequest> Message for Decide<Q> {
    type Reply = Result<Decided<Q::Response>, ErrorCode>;
    const NAME: &'static str = Q::NAME;
}

macro_rules! decisions {
    ($($request:ident($this:ident, $machine:ident, $ctx:ident, $version:ident, $kraft:ident) => $decide:expr;)*) => {$(
        impl ControllerRequest for m::$request {
            fn decide(
                &self,
                $machine: &mut Controller,
                $ctx: &mut Context<'_>,
                $version: i16,
                $kraft: i16,
            ) -> Outcome<Self::Response> {
                let $this = self;
                $decide
            }
        }
    )*};
}

decisions! {
    CreateTopicsRequest(r, machine, ctx, _v, _k) => machine.create_topics(r, ctx);
    DeleteTopicsRequest(r, machine, _ctx, version, _k) => machine.delete_topics(r, version);
    CreatePartitionsRequest(r, machine, ctx, _v, _k) => machine.create_partitions(r, ctx);
    AlterConfigsRequest(r, machine, _ctx, _v, _k) => machine.alter(r);
    IncrementalAlterConfigsRequest(r, machine, _ctx, _v, _k) => machine.alter(r);
    UpdateFeaturesRequest(r, machine, _ctx, _v, kraft_version) => machine.update_features(r, kraft_version);
    ElectLeadersRequest(r, machine, _ctx, _v, _k) => machine.elect_leaders(r);
    AlterPartitionReassignmentsRequest(r, machine, _ctx, _v, _k) => machine.alter_partition_reassignments(r);
    ListPartitionReassignmentsRequest(r, machine, _ctx, _v, _k) => {
        Outcome { records: Vec::new(), reply: machine.list_partition_reassignments(r), atomic: false }
    };
    UnregisterBrokerRequest(r, machine, _ctx, _v, _k) => machine.unregister_broker(r);
    BrokerRegistrationRequest(r, machine, ctx, _v, _k) => machine.register_broker(r, ctx);
    BrokerHeartbeatRequest(r, machine, ctx, _v, _k) => machine.heartbeat(r, ctx);
    ControllerRegistrationRequest(r, machine, _ctx, _v, _k) => machine.register_controller(r);
    AllocateProducerIdsRequest(r, machine, _ctx, _v, _k) => machine.allocate_producer_ids(r);
}
