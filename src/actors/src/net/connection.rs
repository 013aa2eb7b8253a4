//! One client's connection: requests in, answers out, in order.
//!
//! A single task does all of it, so that a request costs as few wake-ups as
//! can be: what has been read is decoded and started, what is done is written
//! with one call. Produce requests overlap; any other waits for those before
//! it and holds back those after it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::frame::FrameReader;
use super::limits::{QueuePlace, RequestQueue};
use super::outbox::Outbox;
use super::{Answering, Begun, CloseReason, ConnectionInfo, Dispatch, Progress, Reply};

/// The most requests of one connection that are under way at once.
const MAX_IN_FLIGHT: usize = 32;
/// The most bytes of one connection's requests that are under way at once.
const MAX_IN_FLIGHT_BYTES: usize = 32 * 1024 * 1024;
/// With this much unsent no further request is started.
const MAX_UNSENT_BYTES: usize = 1024 * 1024;
/// After this many steps the task lets others of its shard run.
const STEPS_PER_TURN: usize = 16;

/// A request under way.
struct Slot {
    progress: Arc<dyn Progress>,
    size_bytes: usize,
    state: SlotState,
}

enum SlotState {
    Running(Answering),
    Done(Reply),
}

type Entering = Pin<Box<dyn Future<Output = QueuePlace> + Send>>;

/// The state of one connection.
pub(super) struct Connection {
    stream: TcpStream,
    info: Arc<ConnectionInfo>,
    dispatch: Arc<dyn Dispatch>,
    queue: Arc<RequestQueue>,
    reader: FrameReader,
    outbox: Outbox,
    slots: VecDeque<Slot>,
    in_flight_bytes: usize,
    /// A frame that waits for a place in the node's queue.
    waiting: Option<(Bytes, Entering)>,
    /// A frame that waits for those before it.
    held: Option<(Bytes, QueuePlace)>,
    ended: bool,
    idle: Pin<Box<Sleep>>,
    max_idle: Option<Duration>,
    last_active: Instant,
}

impl Connection {
    /// A connection just accepted.
    pub(super) fn new(
        stream: TcpStream,
        info: Arc<ConnectionInfo>,
        dispatch: Arc<dyn Dispatch>,
        bounds: &ConnectionBounds,
    ) -> Self {
        let now = Instant::now();
        let idle = bounds.max_idle.unwrap_or(Duration::from_secs(86_400));
        Self {
            stream,
            info,
            dispatch,
            queue: bounds.queue.clone(),
            reader: FrameReader::new(bounds.max_request_bytes),
            outbox: Outbox::default(),
            slots: VecDeque::new(),
            in_flight_bytes: 0,
            waiting: None,
            held: None,
            ended: false,
            idle: Box::pin(tokio::time::sleep_until(now + idle)),
            max_idle: bounds.max_idle,
            last_active: now,
        }
    }

    /// Serves the connection until it closes, and says why it did.
    pub(super) async fn serve(mut self) -> CloseReason {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        for _ in 0..STEPS_PER_TURN {
            match self.step(cx) {
                Ok(true) => {}
                Ok(false) => return self.poll_idle(cx),
                Err(reason) => return Poll::Ready(reason),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Does what can be done now; says whether there may be more.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<bool, CloseReason> {
        self.poll_slots(cx);
        self.collect_replies()?;
        self.start_requests(cx)?;
        let held_back = !self.may_start();
        let flushed = match self.outbox.poll_flush(&self.stream, cx) {
            Poll::Ready(result) => result.map(|()| true).map_err(CloseReason::Write)?,
            Poll::Pending => false,
        };
        if self.ended && flushed && self.slots.is_empty() && self.held.is_none() && self.waiting.is_none() {
            return Err(CloseReason::End);
        }
        // What was written may have made room to start what was read.
        if held_back && self.may_start() {
            return Ok(true);
        }
        self.read(cx)
    }

    fn poll_slots(&mut self, cx: &mut Context<'_>) {
        for slot in &mut self.slots {
            if let SlotState::Running(future) = &mut slot.state
                && let Poll::Ready(reply) = future.as_mut().poll(cx)
            {
                slot.state = SlotState::Done(reply);
            }
        }
    }

    /// Takes finished answers off the front, up to the first that is still under way.
    fn collect_replies(&mut self) -> Result<(), CloseReason> {
        while let Some(Slot { state: SlotState::Done(_), .. }) = self.slots.front() {
            let Some(slot) = self.slots.pop_front() else { break };
            self.in_flight_bytes = self.in_flight_bytes.saturating_sub(slot.size_bytes);
            if let SlotState::Done(reply) = slot.state {
                match reply {
                    Reply::Send(outgoing) => self.outbox.push(outgoing).map_err(CloseReason::Write)?,
                    Reply::Silent => {}
                    Reply::Close(reason) => return Err(reason),
                }
            }
        }
        Ok(())
    }

    /// Whether the next request may begin, whatever it is.
    fn may_start(&self) -> bool {
        self.slots.len() < MAX_IN_FLIGHT
            && self.in_flight_bytes < MAX_IN_FLIGHT_BYTES
            && self.outbox.pending_bytes() < MAX_UNSENT_BYTES
    }

    fn start_requests(&mut self, cx: &mut Context<'_>) -> Result<(), CloseReason> {
        while self.may_start() {
            let Some((frame, place)) = self.next_request(cx)? else { break };
            if !self.may_follow(&frame) {
                self.held = Some((frame, place));
                break;
            }
            self.start(frame, place, cx)?;
            self.collect_replies()?;
        }
        Ok(())
    }

    /// Whether a request may begin beside those under way: only a Produce
    /// request may, and only once the one before it has reached its partitions.
    fn may_follow(&self, frame: &[u8]) -> bool {
        match self.slots.back() {
            None => true,
            Some(last) => {
                self.dispatch.may_overlap(frame)
                    && (matches!(last.state, SlotState::Done(_)) || last.progress.is_submitted())
            }
        }
    }

    /// The next whole frame with its place in the node's queue.
    fn next_request(&mut self, cx: &mut Context<'_>) -> Result<Option<(Bytes, QueuePlace)>, CloseReason> {
        if let Some(held) = self.held.take() {
            return Ok(Some(held));
        }
        if let Some((frame, mut entering)) = self.waiting.take() {
            return match entering.as_mut().poll(cx) {
                Poll::Ready(place) => Ok(Some((frame, place))),
                Poll::Pending => {
                    self.waiting = Some((frame, entering));
                    Ok(None)
                }
            };
        }
        let Some(frame) = self.reader.next_frame()? else { return Ok(None) };
        if let Some(place) = self.queue.try_enter(frame.len()) {
            return Ok(Some((frame, place)));
        }
        let entering = Box::pin(self.queue.clone().enter(frame.len()));
        self.waiting = Some((frame, entering));
        self.next_request(cx)
    }

    fn start(&mut self, frame: Bytes, place: QueuePlace, cx: &mut Context<'_>) -> Result<(), CloseReason> {
        let size_bytes = frame.len();
        let Begun { progress, answering: mut future } = self.dispatch.begin(&self.info, frame, place)?;
        let state = match future.as_mut().poll(cx) {
            Poll::Ready(reply) => SlotState::Done(reply),
            Poll::Pending => SlotState::Running(future),
        };
        self.in_flight_bytes += size_bytes;
        self.slots.push_back(Slot { progress, size_bytes, state });
        Ok(())
    }

    /// Reads once, unless a request already waits; says whether anything came.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, CloseReason> {
        if self.ended || self.held.is_some() || self.waiting.is_some() || !self.may_start() {
            return Ok(false);
        }
        // Wait without a buffer: an idle connection holds none.
        if self.stream.poll_read_ready(cx).map_err_ready(CloseReason::Read)?.is_pending() {
            return Ok(false);
        }
        let mut room = self.reader.room();
        let read = std::pin::pin!(self.stream.read_buf(&mut room)).poll(cx);
        match read {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(error)) => Err(CloseReason::Read(error)),
            Poll::Ready(Ok(0)) => {
                self.ended = true;
                Ok(true)
            }
            Poll::Ready(Ok(read_bytes)) => {
                self.reader.filled(read_bytes);
                self.last_active = Instant::now();
                Ok(true)
            }
        }
    }

    /// Closes a connection on which nothing has come for `connections.max.idle.ms`.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        let Some(max_idle) = self.max_idle else { return Poll::Pending };
        while self.idle.as_mut().poll(cx).is_ready() {
            let busy = !self.slots.is_empty() || !self.outbox.is_empty();
            let since = if busy { Instant::now() } else { self.last_active };
            if since.elapsed() >= max_idle {
                return Poll::Ready(CloseReason::Idle);
            }
            self.idle.as_mut().reset(since + max_idle);
        }
        Poll::Pending
    }
}

/// What bounds each connection of a listener.
#[derive(Debug, Clone)]
pub struct ConnectionBounds {
    /// `socket.request.max.bytes`.
    pub max_request_bytes: usize,
    /// `connections.max.idle.ms`; none for no bound.
    pub max_idle: Option<Duration>,
    /// The node's queue of requests.
    pub queue: Arc<RequestQueue>,
}

/// `?` on the error inside a poll.
trait PollExt {
    fn map_err_ready(self, wrap: fn(std::io::Error) -> CloseReason) -> Result<Poll<()>, CloseReason>;
}

impl PollExt for Poll<std::io::Result<()>> {
    fn map_err_ready(self, wrap: fn(std::io::Error) -> CloseReason) -> Result<Poll<()>, CloseReason> {
        match self {
            Poll::Ready(Ok(())) => Ok(Poll::Ready(())),
            Poll::Ready(Err(error)) => Err(wrap(error)),
            Poll::Pending => Ok(Poll::Pending),
        }
    }
}
