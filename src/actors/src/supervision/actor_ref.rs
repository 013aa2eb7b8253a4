//! How actors are talked to: [`ActorRef`], the answers' future, and a reference by message kind.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll};

use thiserror::Error;
use tokio::sync::oneshot;

use super::actor::{Actor, Handler, Message, ReplyTo};
use super::cell::Shared;
use super::context::Context;
use super::mailbox::{Entry, Envelope, Offered, lock};

/// Why an ask has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AskError {
    /// The mailbox is full.
    #[error("the mailbox is full")]
    Busy,
    /// The actor failed while it had the message.
    #[error("the actor crashed")]
    Crashed,
    /// The actor has stopped and will not come back.
    #[error("the actor has stopped")]
    Stopped,
}

/// The only way to talk to an actor. It stays valid across restarts, and it admits: past the mailbox's bound
/// a sender waits or gets [`AskError::Busy`].
pub struct ActorRef<A: Actor> {
    pub(super) shared: Arc<Shared<A>>,
}

impl<A: Actor> Clone for ActorRef<A> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<A: Actor> fmt::Debug for ActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorRef({})", self.path())
    }
}

struct Letter<M: Message> {
    message: M,
    reply: ReplyTo<M::Reply>,
}

impl<A: Handler<M>, M: Message> Entry<A> for Letter<M> {
    fn name(&self) -> &'static str {
        M::NAME
    }
    fn run(self: Box<Self>, actor: &mut A, ctx: &mut Context<A>) {
        actor.handle(self.message, self.reply, ctx);
    }
    fn refuse(self: Box<Self>) {
        self.reply.refuse(AskError::Stopped);
    }
}

impl<A: Actor> ActorRef<A> {
    /// The actor's path in the tree.
    pub fn path(&self) -> &str {
        &self.shared.node.path
    }

    /// The shard the actor runs on.
    pub fn shard(&self) -> usize {
        self.shared.node.shard
    }

    /// Whether the actor has stopped for good.
    pub fn is_stopped(&self) -> bool {
        self.shared.mailbox.is_closed()
    }

    /// Sends a message and gives its answer. The message is sent by this call, in the order of the calls,
    /// not when the future is first polled; without room it waits its turn. Dropping the future takes back
    /// a message that still waits for room.
    pub fn ask<M: Message>(&self, message: M) -> Ask<M::Reply>
    where
        A: Handler<M>,
    {
        self.send(message, true)
    }

    /// Like [`ask`](Self::ask), but answers `Busy` where that would wait.
    pub fn try_ask<M: Message>(&self, message: M) -> Ask<M::Reply>
    where
        A: Handler<M>,
    {
        self.send(message, false)
    }

    fn send<M: Message>(&self, message: M, wait: bool) -> Ask<M::Reply>
    where
        A: Handler<M>,
    {
        let (reply, receiver) = ReplyTo::channel();
        let (size_bytes, control) = (message.size_bytes(), message.is_control());
        let envelope = Envelope::new(Box::new(Letter { message, reply }), size_bytes);
        let mut ask = Ask { receiver, refused: None, waiting: None };
        if control {
            if !self.shared.mailbox.push_control(envelope) {
                ask.refused = Some(AskError::Stopped);
            }
            return ask;
        }
        match self.shared.mailbox.offer(envelope, wait) {
            Offered::Admitted => {}
            Offered::Waiting(slot) => ask.waiting = Some(Box::new(slot)),
            Offered::Busy => ask.refused = Some(AskError::Busy),
            Offered::Closed => ask.refused = Some(AskError::Stopped),
        }
        ask
    }

    /// Sends a message whose answer nobody waits for. It is never refused for want of room, so use it only
    /// where the number outstanding is bounded by construction. A stopped actor's messages are dropped.
    pub fn tell<M: Message>(&self, message: M)
    where
        A: Handler<M>,
    {
        let (size_bytes, control) = (message.size_bytes(), message.is_control());
        let envelope = Envelope::new(Box::new(Letter { message, reply: ReplyTo::nobody() }), size_bytes);
        if control {
            self.shared.mailbox.push_control(envelope);
        } else {
            self.shared.mailbox.push_data(envelope);
        }
    }

    /// Sends a message whose answer nobody waits for, if there is room.
    ///
    /// # Errors
    /// `Busy` without room, `Stopped` when the actor is gone.
    pub fn try_tell<M: Message>(&self, message: M) -> Result<(), AskError>
    where
        A: Handler<M>,
    {
        let size_bytes = message.size_bytes();
        let envelope = Envelope::new(Box::new(Letter { message, reply: ReplyTo::nobody() }), size_bytes);
        match self.shared.mailbox.offer(envelope, false) {
            Offered::Admitted => Ok(()),
            Offered::Waiting(_) | Offered::Busy => Err(AskError::Busy),
            Offered::Closed => Err(AskError::Stopped),
        }
    }

    /// A reference that knows only one kind of message.
    pub fn recipient<M: Message>(&self) -> Recipient<M>
    where
        A: Handler<M>,
    {
        Recipient { target: Arc::new(self.clone()) }
    }
}

trait TakeBack: Send + Sync {
    fn take_back(&self);
}

impl<A: Actor> TakeBack for Arc<Mutex<Option<Envelope<A>>>> {
    fn take_back(&self) {
        let taken = lock(self).take();
        drop(taken);
    }
}

/// The answer to an ask.
#[must_use = "an answer nobody awaits is lost; use tell"]
pub struct Ask<R> {
    receiver: oneshot::Receiver<Result<R, AskError>>,
    refused: Option<AskError>,
    waiting: Option<Box<dyn TakeBack>>,
}

impl<R> fmt::Debug for Ask<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("refused", &self.refused).finish_non_exhaustive()
    }
}

impl<R> Future for Ask<R> {
    type Output = Result<R, AskError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        if let Some(error) = self.refused {
            return Poll::Ready(Err(error));
        }
        let answer = std::task::ready!(Pin::new(&mut self.receiver).poll(task));
        self.waiting = None;
        Poll::Ready(answer.unwrap_or(Err(AskError::Crashed)))
    }
}

impl<R> Drop for Ask<R> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.take_back();
        }
    }
}

trait Receives<M: Message>: Send + Sync {
    fn ask(&self, message: M) -> Ask<M::Reply>;
    fn try_ask(&self, message: M) -> Ask<M::Reply>;
    fn tell(&self, message: M);
}

impl<M: Message, A: Handler<M>> Receives<M> for ActorRef<A> {
    fn ask(&self, message: M) -> Ask<M::Reply> {
        Self::ask(self, message)
    }
    fn try_ask(&self, message: M) -> Ask<M::Reply> {
        Self::try_ask(self, message)
    }
    fn tell(&self, message: M) {
        Self::tell(self, message);
    }
}

/// A reference to some actor that takes messages of type `M`.
pub struct Recipient<M: Message> {
    target: Arc<dyn Receives<M>>,
}

impl<M: Message> Clone for Recipient<M> {
    fn clone(&self) -> Self {
        Self { target: Arc::clone(&self.target) }
    }
}

impl<M: Message> fmt::Debug for Recipient<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipient<{}>", M::NAME)
    }
}

impl<M: Message> Recipient<M> {
    /// See [`ActorRef::ask`].
    pub fn ask(&self, message: M) -> Ask<M::Reply> {
        self.target.ask(message)
    }
    /// See [`ActorRef::try_ask`].
    pub fn try_ask(&self, message: M) -> Ask<M::Reply> {
        self.target.try_ask(message)
    }
    /// See [`ActorRef::tell`].
    pub fn tell(&self, message: M) {
        self.target.tell(message);
    }
}
