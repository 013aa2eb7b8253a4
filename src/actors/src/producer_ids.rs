//! Ids for producers, from blocks that the controller gives out.
//!
//! - Who sends: InitProducerId (`NextProducerId`).
//! - Owns: the rest of the present block, and the next one once it has come.
//! - Runs: one on a node.
//! - Mailbox: bounded; a request waits here while a block is being fetched.
//! - Timers: the pause after a failed fetch.
//! - Restart: without a block; the rest of the former one is never used, which is harmless.
//! - To a client, its crash means COORDINATOR_LOAD_IN_PROGRESS: it tries again.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use callboard_protocol::ErrorCode;

use crate::supervision::{Actor, Context, Handler, Message, ReplyTo};

/// When so much of a block is used, the next one is fetched, in tenths.
const FETCH_AT_TENTHS: i64 = 9;
/// The pause after a failed fetch.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// How many requests wait for a block at most.
const MAX_WAITING: usize = 10_000;

/// Fetches a block of ids from the controller.
pub type FetchBlock =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Range<i64>, ErrorCode>>>> + Send + Sync>;

/// Asks for an id that nobody else has.
#[derive(Debug, Clone, Copy)]
pub struct NextProducerId;

impl Message for NextProducerId {
    type Reply = Result<i64, ErrorCode>;
    const NAME: &'static str = "NextProducerId";
}

/// The actor.
pub struct ProducerIds {
    fetch: FetchBlock,
    present: Range<i64>,
    /// The present block's size when it came.
    size: i64,
    next: Option<Range<i64>>,
    fetching: bool,
    waiting: VecDeque<ReplyTo<Result<i64, ErrorCode>>>,
}

impl fmt::Debug for ProducerIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerIds")
            .field("present", &self.present)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl ProducerIds {
    /// No block yet; `fetch` gets them.
    pub fn new(fetch: FetchBlock) -> Self {
        Self { fetch, present: 0..0, size: 0, next: None, fetching: false, waiting: VecDeque::new() }
    }

    fn take(&mut self) -> Option<i64> {
        if self.present.is_empty() {
            self.present = self.next.take()?;
            self.size = self.present.end - self.present.start;
        }
        self.present.next()
    }

    fn fetch_if_low(&mut self, ctx: &mut Context<Self>) {
        let left = self.present.end - self.present.start;
        let low = left * 10 <= self.size * (10 - FETCH_AT_TENTHS);
        if self.fetching || self.next.is_some() || !low {
            return;
        }
        self.fetching = true;
        ctx.effect("FetchBlock", (self.fetch)(), |ids, block, ctx| ids.fetched(block, ctx));
    }

    fn fetched(&mut self, block: Result<Range<i64>, ErrorCode>, ctx: &mut Context<Self>) {
        match block {
            Ok(block) => {
                self.fetching = false;
                self.next = Some(block);
                while let Some(reply) = self.waiting.pop_front() {
                    match self.take() {
                        Some(id) => reply.send(Ok(id)),
                        None => {
                            self.waiting.push_front(reply);
                            break;
                        }
                    }
                }
                self.fetch_if_low(ctx);
            }
            Err(error) => {
                tracing::warn!(error = error.name(), "no producer ids from the controller");
                // The clients try again; so does this actor.
                for reply in self.waiting.drain(..) {
                    reply.send(Err(ErrorCode::CoordinatorLoadInProgress));
                }
                ctx.after("RetryFetch", RETRY_PAUSE, |ids, ctx| {
                    ids.fetching = false;
                    ids.fetch_if_low(ctx);
                });
            }
        }
    }
}

impl Actor for ProducerIds {}

impl Handler<NextProducerId> for ProducerIds {
    fn handle(&mut self, _: NextProducerId, reply: ReplyTo<Result<i64, ErrorCode>>, ctx: &mut Context<Self>) {
        match self.take() {
            Some(id) => reply.send(Ok(id)),
            None if self.waiting.len() >= MAX_WAITING => {
                reply.send(Err(ErrorCode::CoordinatorLoadInProgress))
            }
            None => self.waiting.push_back(reply),
        }
        self.fetch_if_low(ctx);
    }
}
