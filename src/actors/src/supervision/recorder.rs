//! The flight recorder: an actor's last entries, by kind, size and time. Never payloads.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

/// How many entries an actor remembers.
pub const REMEMBERED: usize = 32;

/// One entry an actor ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The message's kind, or the timer's or effect's name.
    pub name: &'static str,
    /// The message's size as it was counted for admission.
    pub size_bytes: usize,
    /// How long before the report it began.
    pub ago: Duration,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}B -{}us", self.name, self.size_bytes, self.ago.as_micros())
    }
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    name: &'static str,
    size_bytes: usize,
    began: Instant,
}

/// A ring of the last [`REMEMBERED`] entries. It takes its memory with the first entry.
#[derive(Debug, Default)]
pub struct Recorder {
    ring: Vec<Slot>,
    next: usize,
}

impl Recorder {
    /// Notes an entry that begins now.
    pub fn note(&mut self, name: &'static str, size_bytes: usize, began: Instant) {
        let slot = Slot { name, size_bytes, began };
        if let Some(place) = self.ring.get_mut(self.next) {
            *place = slot;
        } else {
            self.ring.reserve_exact(if self.ring.is_empty() { REMEMBERED } else { 0 });
            self.ring.push(slot);
        }
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// The remembered entries, oldest first.
    pub fn report(&self, now: Instant) -> Vec<Record> {
        let split = self.next.min(self.ring.len());
        let (newer, older) = self.ring.split_at(split);
        older
            .iter()
            .chain(newer)
            .map(|slot| Record {
                name: slot.name,
                size_bytes: slot.size_bytes,
                ago: now.saturating_duration_since(slot.began),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_entries_oldest_first() {
        let mut recorder = Recorder::default();
        let start = Instant::now();
        for size in 0..REMEMBERED + 5 {
            recorder.note("m", size, start);
        }
        let report = recorder.report(start + Duration::from_millis(3));
        assert_eq!(report.len(), REMEMBERED);
        assert_eq!(report[0].size_bytes, 5);
        assert_eq!(report[REMEMBERED - 1].size_bytes, REMEMBERED + 4);
        assert_eq!(report[0].ago, Duration::from_millis(3));
    }

    #[test]
    fn a_short_history_is_in_order() {
        let mut recorder = Recorder::default();
        let now = Instant::now();
        recorder.note("a", 1, now);
        recorder.note("b", 2, now);
        let names: Vec<_> = recorder.report(now).iter().map(|r| r.name).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
