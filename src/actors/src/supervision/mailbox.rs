//! An actor's mailbox: three lanes (commands, control, data), admission by count and bytes, and the senders
//! that wait for room. It belongs to the [`ActorRef`](super::ActorRef), not to the actor, so it outlives
//! every crash.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::task::AtomicWaker;

use super::actor::Actor;
use super::cell::Command;
use super::clock::coarse_ns;
use super::context::Context;

/// How much a mailbox holds before senders wait or get `Busy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailboxBound {
    /// Data messages.
    pub messages: usize,
    /// The sum of their sizes. One message alone is always admitted, however large.
    pub size_bytes: usize,
}

impl Default for MailboxBound {
    fn default() -> Self {
        Self { messages: 1024, size_bytes: 64 * 1024 * 1024 }
    }
}

/// Something an actor runs: a message with its handler, or a closure from outside.
pub(super) trait Entry<A: Actor>: Send {
    fn name(&self) -> &'static str;
    fn run(self: Box<Self>, actor: &mut A, ctx: &mut Context<A>);
}

/// An entry on its way, with what admission and the tree need to know.
pub(super) struct Envelope<A: Actor> {
    pub entry: Box<dyn Entry<A>>,
    pub size_bytes: usize,
    /// When it was sent, on the coarse clock.
    pub sent_ns: u64,
    /// Whether it holds a permit of the data lane.
    pub counted: bool,
}

/// A message that waits for room. The sender keeps the other end: if it goes away, the slot is empty.
pub(super) type Slot<A> = Arc<Mutex<Option<Envelope<A>>>>;

/// What became of a message offered to the data lane.
pub(super) enum Offered<A: Actor> {
    Admitted,
    Waiting(Slot<A>),
    Busy,
    Closed,
}

struct Lanes<A: Actor> {
    open: bool,
    commands: VecDeque<Command>,
    control: VecDeque<Envelope<A>>,
    data: VecDeque<Envelope<A>>,
    waiting: VecDeque<Slot<A>>,
}

pub(super) struct Mailbox<A: Actor> {
    lanes: Mutex<Lanes<A>>,
    waker: AtomicWaker,
    scheduled: AtomicBool,
    bound: MailboxBound,
    depth: AtomicUsize,
    bytes: AtomicUsize,
    urgent: AtomicUsize,
    waiting: AtomicUsize,
    running_since_ns: AtomicU64,
    closed: AtomicBool,
}

/// Locks, also after a panic elsewhere: what these locks guard is never left half-changed.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<A: Actor> Mailbox<A> {
    pub fn new(bound: MailboxBound) -> Self {
        let lanes = Lanes {
            open: true,
            commands: VecDeque::new(),
            control: VecDeque::new(),
            data: VecDeque::new(),
            waiting: VecDeque::new(),
        };
        Self {
            lanes: Mutex::new(lanes),
            waker: AtomicWaker::new(),
            scheduled: AtomicBool::new(false),
            bound,
            depth: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            urgent: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            running_since_ns: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn has_room_for(&self, size_bytes: usize) -> bool {
        let depth = self.depth.load(Ordering::SeqCst);
        if depth == 0 {
            return true;
        }
        let bytes = self.bytes.load(Ordering::SeqCst);
        depth < self.bound.messages
            && (size_bytes == 0 || bytes.saturating_add(size_bytes) <= self.bound.size_bytes)
    }

    fn take_permit(&self, envelope: &mut Envelope<A>) {
        envelope.counted = true;
        self.depth.fetch_add(1, Ordering::SeqCst);
        if envelope.size_bytes > 0 {
            self.bytes.fetch_add(envelope.size_bytes, Ordering::SeqCst);
        }
    }

    /// Offers a message to the data lane. Without room it waits in order of arrival, if `wait` says so.
    pub fn offer(&self, mut envelope: Envelope<A>, wait: bool) -> Offered<A> {
        let mut lanes = lock(&self.lanes);
        if !lanes.open {
            return Offered::Closed;
        }
        if lanes.waiting.is_empty() && self.has_room_for(envelope.size_bytes) {
            self.take_permit(&mut envelope);
            lanes.data.push_back(envelope);
            drop(lanes);
            self.wake();
            return Offered::Admitted;
        }
        if !wait {
            return Offered::Busy;
        }
        let slot = Arc::new(Mutex::new(Some(envelope)));
        lanes.waiting.push_back(Arc::clone(&slot));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // Room may have come between the look and the registration.
        let admitted = self.admit_waiting_in(&mut lanes);
        drop(lanes);
        if admitted {
            self.wake();
        }
        Offered::Waiting(slot)
    }

    /// Puts a message in the data lane whether or not there is room: for `tell`. False when closed.
    pub fn push_data(&self, mut envelope: Envelope<A>) -> bool {
        let mut lanes = lock(&self.lanes);
        if !lanes.open {
            return false;
        }
        self.take_permit(&mut envelope);
        lanes.data.push_back(envelope);
        drop(lanes);
        self.wake();
        true
    }

    /// Puts a message in the control lane. False when closed.
    pub fn push_control(&self, envelope: Envelope<A>) -> bool {
        let mut lanes = lock(&self.lanes);
        if !lanes.open {
            return false;
        }
        self.urgent.fetch_add(1, Ordering::SeqCst);
        lanes.control.push_back(envelope);
        drop(lanes);
        self.wake();
        true
    }

    /// Puts a supervisor's command ahead of everything. False when closed.
    pub fn push_command(&self, command: Command) -> Result<(), Command> {
        let mut lanes = lock(&self.lanes);
        if !lanes.open {
            return Err(command);
        }
        self.urgent.fetch_add(1, Ordering::SeqCst);
        lanes.commands.push_back(command);
        drop(lanes);
        self.wake();
        Ok(())
    }

    pub fn wake(&self) {
        if !self.scheduled.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// The cell is about to look: later arrivals wake it again.
    pub fn watch(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
        self.scheduled.store(false, Ordering::SeqCst);
    }

    pub fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::SeqCst) > 0
    }

    pub fn next_command(&self) -> Option<Command> {
        if !self.is_urgent() {
            return None;
        }
        let command = lock(&self.lanes).commands.pop_front();
        if command.is_some() {
            self.urgent.fetch_sub(1, Ordering::SeqCst);
        }
        command
    }

    pub fn has_command(&self) -> bool {
        self.is_urgent() && !lock(&self.lanes).commands.is_empty()
    }

    pub fn next_control(&self) -> Option<Envelope<A>> {
        if !self.is_urgent() {
            return None;
        }
        let envelope = lock(&self.lanes).control.pop_front();
        if envelope.is_some() {
            self.urgent.fetch_sub(1, Ordering::SeqCst);
        }
        envelope
    }

    /// Moves the whole data lane to the cell's batch: one lock for many messages. They keep their permits
    /// until each begins.
    pub fn take_batch(&self, batch: &mut VecDeque<Envelope<A>>) {
        debug_assert!(batch.is_empty());
        std::mem::swap(&mut lock(&self.lanes).data, batch);
    }

    /// A message begins: its permit goes to whoever waits.
    pub fn begin(&self, envelope: &Envelope<A>) {
        self.running_since_ns.store(envelope.sent_ns, Ordering::Relaxed);
        if envelope.counted {
            self.release(envelope.size_bytes);
        }
    }

    pub fn idle(&self) {
        self.running_since_ns.store(0, Ordering::Relaxed);
    }

    fn release(&self, size_bytes: usize) {
        self.depth.fetch_sub(1, Ordering::SeqCst);
        if size_bytes > 0 {
            self.bytes.fetch_sub(size_bytes, Ordering::SeqCst);
        }
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.admit_waiting_in(&mut lock(&self.lanes));
        }
    }

    fn admit_waiting_in(&self, lanes: &mut Lanes<A>) -> bool {
        let mut admitted = false;
        while let Some(slot) = lanes.waiting.front() {
            let mut held = lock(slot);
            let room = held.as_ref().is_none_or(|envelope| self.has_room_for(envelope.size_bytes));
            if !room {
                break;
            }
            if let Some(mut envelope) = held.take() {
                self.take_permit(&mut envelope);
                lanes.data.push_back(envelope);
                admitted = true;
            }
            drop(held);
            lanes.waiting.pop_front();
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        admitted
    }

    /// Closes for good. Returns what was still in it, to be dropped outside the lock.
    pub fn close(&self) -> Vec<Envelope<A>> {
        self.closed.store(true, Ordering::SeqCst);
        let mut lanes = lock(&self.lanes);
        lanes.open = false;
        let waiting = std::mem::take(&mut lanes.waiting);
        let mut left: Vec<_> = lanes.control.drain(..).collect();
        left.extend(lanes.data.drain(..));
        let commands = std::mem::take(&mut lanes.commands);
        drop(lanes);
        left.extend(waiting.iter().filter_map(|slot| lock(slot).take()));
        self.urgent.store(0, Ordering::SeqCst);
        self.waiting.store(0, Ordering::SeqCst);
        self.depth.store(0, Ordering::SeqCst);
        self.bytes.store(0, Ordering::SeqCst);
        self.idle();
        // A dropped command's acknowledgement tells its sender that there is nothing left to do.
        drop(commands);
        left
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Data messages in the mailbox.
    pub fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Their bytes.
    pub fn size_bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Senders that wait for room.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Since when the oldest message (the one that runs, if one does) has been here; zero without one.
    pub fn oldest_ns(&self) -> u64 {
        let running = self.running_since_ns.load(Ordering::Relaxed);
        if running != 0 {
            return running;
        }
        let lanes = lock(&self.lanes);
        let front = |lane: &VecDeque<Envelope<A>>| lane.front().map_or(0, |envelope| envelope.sent_ns);
        match (front(&lanes.control), front(&lanes.data)) {
            (0, data) => data,
            (control, 0) => control,
            (control, data) => control.min(data),
        }
    }
}

impl<A: Actor> Envelope<A> {
    pub fn new(entry: Box<dyn Entry<A>>, size_bytes: usize) -> Self {
        Self { entry, size_bytes, sent_ns: coarse_ns(), counted: false }
    }
}
