//! The shell: the actix actor that carries a cell. The only place where supervision and actix meet in an actor.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};

use super::actor::Actor;
use super::cell::Cell;

/// The actix actor that carries a cell.
struct Shell<A: Actor>(Cell<A>);

/// Nothing in a shell is pinned: futures in it are boxed.
impl<A: Actor> Unpin for Shell<A> {}

impl<A: Actor> actix::Actor for Shell<A> {
    type Context = actix::Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        // Waiting for the pump, not beside it: actix then leaves its own mailbox alone, which is always empty.
        actix::AsyncContext::wait(ctx, Pump);
    }
}

struct Pump;

impl<A: Actor> actix::fut::ActorFuture<Shell<A>> for Pump {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        shell: &mut Shell<A>,
        ctx: &mut actix::Context<Shell<A>>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        ready!(shell.0.poll(task));
        actix::ActorContext::stop(ctx);
        Poll::Ready(())
    }
}

/// Starts a cell on this thread's Arbiter.
pub(super) fn launch<A: Actor>(cell: Cell<A>) {
    drop(actix::Actor::start(Shell(cell)));
}
