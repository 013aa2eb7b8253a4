//! An actor's mailbox: three lanes (commands, control, data), admission by count and bytes, and the senders
//! that wait for room. It belongs to the [`ActorRef`](super::ActorRef), not to the actor, so it outlives
//! every crash.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::actor::Actor;
use super::bell::Bell;
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
    /// The actor has stopped and will not run it: whoever waits is told so.
    fn refuse(self: Box<Self>);
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
    bell: Bell,
    bound: MailboxBound,
    /// Permits taken, written under the lock; and given back, written by the cell. One writer each, so that
    /// no message costs a locked addition; the difference is what is in the mailbox.
    taken: Permits,
    given_back: Permits,
    urgent: AtomicUsize,
    waiting: AtomicUsize,
    running_since_ns: AtomicU64,
    closed: AtomicBool,
}

#[derive(Default)]
struct Permits {
    messages: AtomicUsize,
    bytes: AtomicUsize,
}

impl Permits {
    /// Only one thread at a time may call this.
    fn add(&self, size_bytes: usize) {
        self.messages.store(self.messages.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        if size_bytes > 0 {
            let bytes = self.bytes.load(Ordering::Relaxed).wrapping_add(size_bytes);
            self.bytes.store(bytes, Ordering::Release);
        }
    }
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
            bell: Bell::default(),
            bound,
            taken: Permits::default(),
            given_back: Permits::default(),
            urgent: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            running_since_ns: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    fn has_room_for(&self, size_bytes: usize) -> bool {
        let depth = self.depth();
        if depth == 0 {
            return true;
        }
        depth < self.bound.messages
            && (size_bytes == 0 || self.size_bytes().saturating_add(size_bytes) <= self.bound.size_bytes)
    }

    /// Under the lock only.
    fn take_permit(&self, envelope: &mut Envelope<A>) {
        envelope.counted = true;
        self.taken.add(envelope.size_bytes);
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

    fn wake(&self) {
        self.bell.ring();
    }

    /// The cell looks: its waker for later arrivals.
    pub fn watch(&self, waker: &Waker) {
        self.bell.watch(waker);
    }

    /// The cell is about to rest. True if something came meanwhile, and it must look again: commands in any
    /// case, messages if it takes them.
    pub fn has_come(&self, takes_messages: bool) -> bool {
        self.bell.rearm();
        // From here on whoever sends rings; whoever sent before is seen below.
        if takes_messages && self.waiting.load(Ordering::SeqCst) > 0 {
            self.admit_waiting_in(&mut lock(&self.lanes));
        }
        takes_messages && (self.depth() > 0 || self.is_urgent()) || self.has_command()
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
        if self.depth() == 0 {
            return;
        }
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
        self.given_back.add(size_bytes);
        // One that begins to wait just now may be missed here, but not in `has_come`.
        if self.waiting.load(Ordering::Relaxed) > 0 {
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
        self.given_back.messages.store(self.taken.messages.load(Ordering::Acquire), Ordering::Release);
        self.given_back.bytes.store(self.taken.bytes.load(Ordering::Acquire), Ordering::Release);
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
        // Given back is read first: it never passes what was taken.
        let given_back = self.given_back.messages.load(Ordering::Acquire);
        self.taken.messages.load(Ordering::Acquire).wrapping_sub(given_back)
    }

    /// Their bytes.
    pub fn size_bytes(&self) -> usize {
        let given_back = self.given_back.bytes.load(Ordering::Acquire);
        self.taken.bytes.load(Ordering::Acquire).wrapping_sub(given_back)
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
