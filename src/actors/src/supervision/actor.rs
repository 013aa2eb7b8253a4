//! What an actor is: messages, handlers, and the reply that one owes.

use tokio::sync::oneshot;

use super::actor_ref::AskError;
use super::context::Context;
use super::failure::Failure;

/// A message one actor sends another, with the type of its answer.
pub trait Message: Send + 'static {
    /// What the sender gets back; `()` where only the arrival matters.
    type Reply: Send + 'static;
    /// The kind, as the tree, the flight recorder and the metrics show it.
    const NAME: &'static str;
    /// Bytes the message holds, counted against the mailbox's byte bound. Zero for small messages.
    fn size_bytes(&self) -> usize {
        0
    }
    /// Control messages (leadership, shutdown, high watermark) go ahead of data and are always admitted:
    /// their number must be bounded by construction.
    fn is_control(&self) -> bool {
        false
    }
}

/// One supervised actor. The value is built by the factory of its [`Spec`](super::Spec), on its shard, from
/// what is durable; after a failure it is dropped and built again.
pub trait Actor: Sized + 'static {
    /// Runs before the first message, and again after each restart.
    ///
    /// # Errors
    /// A failure counts as a crash of the actor: its class decides what follows.
    fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), Failure> {
        let _ = ctx;
        Ok(())
    }
    /// Runs when the actor is asked to stop, not after a failure. Effects begun here are waited for.
    fn stopping(&mut self, ctx: &mut Context<Self>) {
        let _ = ctx;
    }
}

/// An actor that takes messages of type `M`.
pub trait Handler<M: Message>: Actor {
    /// Handles one message. The reply may be sent now or kept for later; dropping it unsent tells the caller
    /// [`AskError::Crashed`](super::AskError::Crashed).
    fn handle(&mut self, message: M, reply: ReplyTo<M::Reply>, ctx: &mut Context<Self>);
}

/// Where an answer goes. Dropped unsent, the caller learns that the actor crashed.
#[derive(Debug)]
pub struct ReplyTo<R> {
    sender: Option<oneshot::Sender<Result<R, AskError>>>,
}

impl<R> ReplyTo<R> {
    /// A reply nobody waits for, as `tell` makes.
    pub const fn nobody() -> Self {
        Self { sender: None }
    }

    /// A reply and the place where it arrives.
    pub(super) fn channel() -> (Self, oneshot::Receiver<Result<R, AskError>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { sender: Some(sender) }, receiver)
    }

    /// Sends the answer. If the caller has gone, it is dropped.
    pub fn send(self, answer: R) {
        if let Some(sender) = self.sender {
            let _ = sender.send(Ok(answer));
        }
    }

    /// Tells the caller that the message was not handled.
    pub(super) fn refuse(self, error: AskError) {
        if let Some(sender) = self.sender {
            let _ = sender.send(Err(error));
        }
    }

    /// Whether the caller no longer waits, or never did.
    pub fn is_closed(&self) -> bool {
        self.sender.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}
