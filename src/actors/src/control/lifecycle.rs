//! The life of the broker role: registration, heartbeats, controlled shutdown.
//!
//! - Who sends: the node ([`BeginShutdown`]).
//! - Owns: what the controller thinks of this broker, published as [`BrokerState`].
//! - Runs: one on a node with the broker role.
//! - Mailbox: one message in a node's life.
//! - Timers: the next heartbeat; the next attempt to register.
//! - Restart: it registers again with the same incarnation, which keeps the broker's epoch and state.
//! - To a client, its crash means nothing unless it lasts for `broker.session.timeout.ms`: then the broker is fenced.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::{
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest, BrokerRegistrationResponse,
};
use tokio::sync::watch;

use super::applied::BrokerMetadata;
use super::controller::{Decided, QuorumController};
use crate::supervision::{
    Actor, ActorRef, Ask, Context, Failure, Handler, Message, ReplyTo, Spec, SupervisorRef, TimerHandle,
};

/// The pause after an attempt to register that failed.
const REGISTRATION_PAUSE: Duration = Duration::from_millis(50);
/// The pause between heartbeats that wait for something: to be let in, or to be allowed to stop.
const EAGER_PAUSE: Duration = Duration::from_millis(10);

/// What a broker is to its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokerState {
    /// Not registered yet.
    Starting,
    /// Registered, but kept out until it has read the metadata.
    Fenced,
    /// Let in: it may lead.
    Running,
    /// Giving up its leaderships.
    ShuttingDown,
    /// It leads nothing any more and may stop.
    MayStop,
}

/// How a broker registers.
#[derive(Debug, Clone)]
pub struct LifecycleOptions {
    /// Who it is; `previous_broker_epoch` from the clean-shutdown file, -1 without one.
    pub registration: BrokerRegistrationRequest,
    /// `broker.heartbeat.interval.ms`.
    pub heartbeat_interval: Duration,
    /// Where its epoch is told to whoever writes it down.
    pub broker_epoch: Arc<AtomicI64>,
}

/// The way to the lifecycle.
#[derive(Debug, Clone)]
pub struct BrokerLifecycle {
    actor: ActorRef<LifecycleActor>,
    state: watch::Receiver<BrokerState>,
}

impl BrokerLifecycle {
    /// Starts the actor: it registers the broker as soon as there is a controller.
    pub fn spawn(
        supervisor: &SupervisorRef,
        controller: &QuorumController,
        metadata: &BrokerMetadata,
        options: LifecycleOptions,
    ) -> Self {
        let (publish, state) = watch::channel(BrokerState::Starting);
        let (controller, metadata) = (controller.clone(), metadata.clone());
        let factory = move || LifecycleActor {
            options: options.clone(),
            controller: controller.clone(),
            metadata: metadata.clone(),
            state: publish.clone(),
            registered: false,
            asking: false,
            next_beat: None,
            stopping: None,
        };
        Self { actor: supervisor.spawn(Spec::new("lifecycle", factory)), state }
    }

    /// What the broker is now, and its changes.
    pub fn state(&self) -> watch::Receiver<BrokerState> {
        self.state.clone()
    }

    /// Waits until the broker is let in. False if the node stops first.
    pub async fn running(&self) -> bool {
        self.state.clone().wait_for(|state| *state == BrokerState::Running).await.is_ok()
    }

    /// Gives up all leaderships; answered when the controller allows the broker to stop.
    pub fn begin_shutdown(&self) -> Ask<()> {
        self.actor.ask(BeginShutdown)
    }
}

/// Asks the broker to give up its leaderships. Answered when it may stop.
#[derive(Debug)]
pub struct BeginShutdown;

impl Message for BeginShutdown {
    type Reply = ();
    const NAME: &'static str = "BeginShutdown";
    fn is_control(&self) -> bool {
        true
    }
}

/// The actor. See the [module](self).
pub struct LifecycleActor {
    options: LifecycleOptions,
    controller: QuorumController,
    metadata: BrokerMetadata,
    state: watch::Sender<BrokerState>,
    registered: bool,
    /// A registration or heartbeat is on its way.
    asking: bool,
    /// The timer of the next heartbeat.
    next_beat: Option<TimerHandle>,
    /// Set once the node wants to stop.
    stopping: Option<Vec<ReplyTo<()>>>,
}

impl fmt::Debug for LifecycleActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifecycleActor").field("registered", &self.registered).finish_non_exhaustive()
    }
}

type Ctx = Context<LifecycleActor>;

impl LifecycleActor {
    fn register(&mut self, ctx: &mut Ctx) {
        if self.asking {
            return;
        }
        self.asking = true;
        let controller = self.controller.clone();
        let request = self.options.registration.clone();
        let registering = async move {
            // Asking a controller that is not active yet would only come back at once.
            let mut changes = controller.changes();
            let _ = changes.wait_for(Option::is_some).await;
            controller.decide(request, BROKER_REGISTRATION_VERSION).await
        };
        ctx.effect("register", registering, Self::registration_answered);
    }

    fn registration_answered(
        &mut self,
        answer: Result<Decided<BrokerRegistrationResponse>, ErrorCode>,
        ctx: &mut Ctx,
    ) {
        self.asking = false;
        let code = answer.as_ref().map_or_else(|code| *code, |a| ErrorCode::from(a.response.error_code));
        let Ok(Decided { response, .. }) = answer.and_then(|answer| match code {
            ErrorCode::None => Ok(answer),
            _ => Err(code),
        }) else {
            tracing::debug!(error = %code, "the broker is not registered yet");
            ctx.after("register again", REGISTRATION_PAUSE, |actor, ctx| actor.register(ctx));
            return;
        };
        tracing::info!(epoch = response.broker_epoch, "the broker is registered");
        self.options.broker_epoch.store(response.broker_epoch, Ordering::SeqCst);
        self.registered = true;
        if self.stopping.is_none() && *self.state.borrow() == BrokerState::Starting {
            self.state.send_replace(BrokerState::Fenced);
        }
        self.catch_up_then_beat(response.broker_epoch, ctx);
    }

    /// The controller lets a broker in when it has read its own registration.
    fn catch_up_then_beat(&mut self, epoch: i64, ctx: &mut Ctx) {
        let metadata = self.metadata.clone();
        let session = self.options.heartbeat_interval;
        let catching_up = async move { tokio::time::timeout(session, metadata.reached(epoch)).await };
        ctx.effect("catch up", catching_up, |actor: &mut Self, _, ctx| actor.beat(ctx));
    }

    fn beat(&mut self, ctx: &mut Ctx) {
        if self.asking || !self.registered {
            return;
        }
        self.asking = true;
        let controller = self.controller.clone();
        let request = BrokerHeartbeatRequest {
            broker_id: self.options.registration.broker_id,
            broker_epoch: self.options.broker_epoch.load(Ordering::SeqCst),
            current_metadata_offset: self.metadata.current().offset,
            want_shut_down: self.stopping.is_some(),
            ..Default::default()
        };
        let beating = async move { controller.decide(request, BROKER_HEARTBEAT_VERSION).await };
        ctx.effect("heartbeat", beating, Self::beat_answered);
    }

    fn beat_answered(&mut self, answer: Result<Decided<BrokerHeartbeatResponse>, ErrorCode>, ctx: &mut Ctx) {
        self.asking = false;
        let code = answer.as_ref().map_or_else(|code| *code, |a| ErrorCode::from(a.response.error_code));
        match (answer, code) {
            (Ok(answer), ErrorCode::None) => self.follow(&answer.response, ctx),
            (_, ErrorCode::StaleBrokerEpoch | ErrorCode::BrokerIdNotRegistered) => {
                tracing::warn!(error = %code, "the controller does not know this broker; registering again");
                self.registered = false;
                self.register(ctx);
            }
            _ => {
                tracing::debug!(error = %code, "a heartbeat was not taken");
                self.beat_after(REGISTRATION_PAUSE, ctx);
            }
        }
    }

    fn follow(&mut self, response: &BrokerHeartbeatResponse, ctx: &mut Ctx) {
        let stopping = self.stopping.is_some();
        let state = match (stopping, response.should_shut_down, response.is_fenced) {
            (true, true, _) => BrokerState::MayStop,
            (true, false, _) => BrokerState::ShuttingDown,
            (false, _, true) => BrokerState::Fenced,
            (false, _, false) => BrokerState::Running,
        };
        self.state.send_if_modified(|now| std::mem::replace(now, state) != state);
        if state == BrokerState::MayStop {
            self.stopping.iter_mut().flat_map(std::mem::take).for_each(|waiting| waiting.send(()));
            return;
        }
        let pause = match state {
            BrokerState::Running => self.options.heartbeat_interval,
            _ => EAGER_PAUSE,
        };
        self.beat_after(pause, ctx);
    }

    fn beat_after(&mut self, pause: Duration, ctx: &mut Ctx) {
        if let Some(timer) = self.next_beat.take() {
            ctx.cancel(timer);
        }
        self.next_beat = Some(ctx.after("heartbeat", pause, |actor, ctx| actor.beat(ctx)));
    }
}

/// The versions in which this broker speaks to the controller: the newest, as the request is never encoded here.
const BROKER_REGISTRATION_VERSION: i16 = 4;
const BROKER_HEARTBEAT_VERSION: i16 = 2;

impl Actor for LifecycleActor {
    fn started(&mut self, ctx: &mut Ctx) -> Result<(), Failure> {
        self.register(ctx);
        Ok(())
    }
}

impl Handler<BeginShutdown> for LifecycleActor {
    fn handle(&mut self, _: BeginShutdown, reply: ReplyTo<()>, ctx: &mut Ctx) {
        if *self.state.borrow() == BrokerState::MayStop || !self.registered {
            return reply.send(());
        }
        self.stopping.get_or_insert_default().push(reply);
        self.beat(ctx);
    }
}
