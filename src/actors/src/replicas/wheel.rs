//! A timing wheel: very many deadlines, most of which never come, to the millisecond.
//!
//! Six levels of 64 slots; a slot of each level spans all of the level below. Adding costs a push into a slot.
//! Nothing is ever taken out before its time: the owner knows which entries still mean something.

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 6;

/// What one entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    deadline_ms: u64,
    id: u64,
}

#[derive(Debug)]
struct Level {
    /// A bit for each slot that is not empty.
    occupied: u64,
    slots: Vec<Vec<Entry>>,
}

/// Deadlines by id. Time is in milliseconds from an origin of the owner's choice.
#[derive(Debug)]
pub struct Wheel {
    now_ms: u64,
    levels: Vec<Level>,
    /// Deadlines further away than the wheel reaches.
    far: Vec<Entry>,
}

impl Wheel {
    /// An empty wheel that stands at `now_ms`.
    pub fn new(now_ms: u64) -> Self {
        let level = || Level { occupied: 0, slots: (0..SLOTS).map(|_| Vec::new()).collect() };
        Self { now_ms, levels: (0..LEVELS).map(|_| level()).collect(), far: Vec::new() }
    }

    /// How many deadlines there are.
    #[cfg(test)]
    fn len(&self) -> usize {
        let slots = self.levels.iter().flat_map(|level| &level.slots);
        self.far.len() + slots.map(Vec::len).sum::<usize>()
    }

    /// Adds a deadline. One that has passed comes up with the next `advance`.
    pub fn add(&mut self, deadline_ms: u64, id: u64) {
        self.put(Entry { deadline_ms, id });
    }

    fn put(&mut self, entry: Entry) {
        let at_ms = entry.deadline_ms.max(self.now_ms);
        // The highest bit in which deadline and now differ tells the level.
        let differing = at_ms ^ self.now_ms;
        let highest = u64::BITS - 1 - (differing | 1).leading_zeros();
        let level = (highest / BITS) as usize;
        let slot = (at_ms >> (level as u32 * BITS)) as usize & (SLOTS - 1);
        match self.levels.get_mut(level) {
            Some(level) => {
                level.occupied |= 1 << slot;
                if let Some(entries) = level.slots.get_mut(slot) {
                    entries.push(entry);
                }
            }
            None => self.far.push(entry),
        }
    }

    /// When something is to be done next: a deadline, or the opening of a slot that may hold one.
    pub fn next_ms(&self) -> Option<u64> {
        for (level, slots) in self.levels.iter().enumerate() {
            if slots.occupied == 0 {
                continue;
            }
            let shift = level as u32 * BITS;
            let slot = u64::from(slots.occupied.trailing_zeros());
            let above = self.now_ms >> (shift + BITS) << (shift + BITS);
            return Some((above | slot << shift).max(self.now_ms));
        }
        self.far.iter().map(|entry| entry.deadline_ms).min()
    }

    /// Moves to `now_ms` and gives the ids whose deadline has come, in order of time.
    pub fn advance(&mut self, now_ms: u64, due: &mut Vec<u64>) {
        while let Some(next) = self.next_ms().filter(|next| *next <= now_ms) {
            self.now_ms = next;
            self.open(due);
        }
        self.now_ms = self.now_ms.max(now_ms);
        debug_assert!(self.next_ms().is_none_or(|next| next >= self.now_ms));
    }

    /// Takes out the first slot, which begins now: its entries are due, or belong to lower levels.
    fn open(&mut self, due: &mut Vec<u64>) {
        let first = self.levels.iter_mut().find(|level| level.occupied != 0);
        let entries = match first {
            Some(level) => {
                let slot = level.occupied.trailing_zeros() as usize;
                level.occupied &= level.occupied - 1;
                level.slots.get_mut(slot).map(std::mem::take).unwrap_or_default()
            }
            None => std::mem::take(&mut self.far),
        };
        for entry in entries {
            if entry.deadline_ms <= self.now_ms {
                due.push(entry.id);
            } else {
                self.put(entry);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::Random;

    #[test]
    fn each_deadline_comes_up_once_and_on_time() {
        let mut random = Random::new(7);
        for round in 0..20 {
            let start = random.below(1 << 40);
            let mut wheel = Wheel::new(start);
            let mut expected = std::collections::BTreeMap::new();
            let mut now = start;
            let mut next_id = 0;
            while next_id < 400 || !expected.is_empty() {
                for _ in 0..random.below(4) {
                    if next_id < 400 {
                        let reach = random.below(30);
                        let deadline = now + random.below(1 << reach);
                        expected.insert(next_id, deadline);
                        wheel.add(deadline, next_id);
                        next_id += 1;
                    }
                }
                let step = random.below(29);
                now += random.below(1 << step);
                let mut due = Vec::new();
                wheel.advance(now, &mut due);
                for id in due {
                    let deadline = expected.remove(&id).expect("came up once");
                    assert!(deadline <= now, "round {round}: {deadline} came up at {now}");
                }
                assert!(expected.values().all(|deadline| *deadline > now), "round {round}: one is late");
                assert_eq!(wheel.len(), expected.len());
            }
        }
    }

    #[test]
    fn the_next_time_is_never_after_a_deadline() {
        let mut wheel = Wheel::new(1000);
        assert_eq!(wheel.next_ms(), None);
        wheel.add(1500, 1);
        wheel.add(90_000, 2);
        let mut due = Vec::new();
        while let Some(next) = wheel.next_ms() {
            assert!(next <= 1500 || due == [1]);
            wheel.advance(next, &mut due);
        }
        assert_eq!(due, [1, 2]);
    }

    #[test]
    fn what_has_passed_comes_at_once() {
        let mut wheel = Wheel::new(1000);
        wheel.add(5, 1);
        let mut due = Vec::new();
        wheel.advance(1000, &mut due);
        assert_eq!(due, [1]);
    }
}
