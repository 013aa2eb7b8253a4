//! A shard's deadlines, kept with its state so that they go back with it.

use callboard_protocol::ByteString;
use imbl::{OrdMap, OrdSet};

use crate::cluster::Circumstances;

/// What a deadline is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKind {
    /// A classic member has not been heard of for its session timeout.
    ClassicSession(ByteString),
    /// The members of a classic group have had their time to join.
    ClassicJoin,
    /// The members of a classic group have had their time to sync.
    ClassicSync,
    /// A member of a consumer group has not been heard of for the session timeout.
    ConsumerSession(ByteString),
    /// A member of a consumer group has had its time to give up partitions.
    ConsumerRebalance(ByteString),
    /// A classic member of a consumer group has had its time to join again.
    ConsumerJoin(ByteString),
    /// A classic member of a consumer group has had its time to sync.
    ConsumerSync(ByteString),
    /// Committed offsets are looked through for old ones. It belongs to no group: its id is empty.
    OffsetExpiry,
}

/// One deadline's name: setting it again replaces the former time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    /// The group.
    pub group_id: ByteString,
    /// What for.
    pub kind: TimerKind,
}

/// All deadlines of a shard, in milliseconds of the monotonic clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timers {
    times: OrdMap<Deadline, i64>,
    order: OrdSet<(i64, Deadline)>,
}

impl Timers {
    /// Sets a deadline so much after now, or moves it there.
    pub fn set(&mut self, cx: &Circumstances<'_>, group_id: &ByteString, kind: TimerKind, delay_ms: i64) {
        let at_ms = cx.monotonic_ms.saturating_add(delay_ms);
        let deadline = Deadline { group_id: group_id.clone(), kind };
        if let Some(former) = self.times.insert(deadline.clone(), at_ms) {
            if former == at_ms {
                return;
            }
            self.order.remove(&(former, deadline.clone()));
        }
        self.order.insert((at_ms, deadline));
    }

    /// Takes a deadline away, if it is set.
    pub fn cancel(&mut self, group_id: &ByteString, kind: TimerKind) {
        let deadline = Deadline { group_id: group_id.clone(), kind };
        if let Some(at_ms) = self.times.remove(&deadline) {
            self.order.remove(&(at_ms, deadline));
        }
    }

    /// When a deadline is, if it is set, in milliseconds of the monotonic clock.
    pub fn get(&self, group_id: &ByteString, kind: TimerKind) -> Option<i64> {
        self.times.get(&Deadline { group_id: group_id.clone(), kind }).copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The time of the next one.
    pub fn next_ms(&self) -> Option<i64> {
        self.order.get_min().map(|(at_ms, _)| *at_ms)
    }

    /// Takes the first one that is due.
    pub fn take_due(&mut self, monotonic_ms: i64) -> Option<Deadline> {
        let (at_ms, deadline) = self.order.get_min().filter(|(at_ms, _)| *at_ms <= monotonic_ms)?.clone();
        self.order.remove(&(at_ms, deadline.clone()));
        self.times.remove(&deadline);
        Some(deadline)
    }
}
