//! The last offset of each key, in a bounded table.

use std::hash::{BuildHasher, RandomState};

/// Bytes of one entry: two hashes and an offset.
const ENTRY_BYTES: u64 = 24;

/// Slots of a table that is still empty.
const FIRST_SLOTS: usize = 1024;

/// From keys to the last offsets they were seen at. Keys are known by 128 bits of hash only, as in Kafka; the hashes
/// are seeded anew for each table, so that nobody can choose keys that collide.
#[derive(Debug)]
pub(crate) struct OffsetMap {
    /// Two hashes, and the offset plus one; 0 is a free slot.
    slots: Vec<[u64; 3]>,
    seeds: [RandomState; 2],
    load_factor: f64,
    entries: usize,
    max_slots: usize,
    max_entries: usize,
    latest_offset: i64,
}

impl OffsetMap {
    /// A table that grows to at most `memory_bytes`, filled up to `load_factor`. While it moves to its last size, half
    /// as much again is taken for a moment.
    pub(crate) fn new(memory_bytes: u64, load_factor: f64) -> OffsetMap {
        let load_factor = load_factor.clamp(0.01, 0.99);
        let max_slots = usize::try_from(memory_bytes / ENTRY_BYTES).unwrap_or(usize::MAX).max(2);
        let max_entries = ((max_slots as f64) * load_factor) as usize;
        OffsetMap {
            slots: vec![[0; 3]; max_slots.min(FIRST_SLOTS)],
            seeds: [RandomState::new(), RandomState::new()],
            load_factor,
            entries: 0,
            max_slots,
            max_entries: max_entries.clamp(1, max_slots - 1),
            latest_offset: -1,
        }
    }

    fn grow_if_loaded(&mut self) {
        let count = self.slots.len();
        if count == self.max_slots || (self.entries as f64) < count as f64 * self.load_factor.min(0.9) {
            return;
        }
        let larger = count.saturating_mul(2).min(self.max_slots);
        for entry in std::mem::replace(&mut self.slots, vec![[0; 3]; larger]) {
            let at = self.slot([entry[0], entry[1]]);
            if let Some(slot) = self.slots.get_mut(at).filter(|_| entry[2] != 0) {
                *slot = entry;
            }
        }
    }

    fn hash(&self, key: &[u8]) -> [u64; 2] {
        self.seeds.each_ref().map(|seed| seed.hash_one(key))
    }

    /// The slot that holds the key, or the free one where it would go.
    fn slot(&self, [first, second]: [u64; 2]) -> usize {
        let count = self.slots.len();
        let mut at = ((u128::from(first) * count as u128) >> 64) as usize;
        loop {
            match self.slots.get(at) {
                Some([a, b, offset]) if *offset != 0 && [*a, *b] != [first, second] => {
                    at = if at + 1 == count { 0 } else { at + 1 };
                }
                _ => return at,
            }
        }
    }

    /// Whether no further key may be added.
    pub(crate) fn is_full(&self) -> bool {
        self.entries >= self.max_entries
    }

    /// Notes the offset of a key. There must be room.
    pub(crate) fn put(&mut self, key: &[u8], offset: i64) {
        self.grow_if_loaded();
        let hashes = self.hash(key);
        let at = self.slot(hashes);
        let Some(slot) = self.slots.get_mut(at) else { return };
        self.entries += usize::from(slot[2] == 0);
        *slot = [hashes[0], hashes[1], offset.cast_unsigned() + 1];
    }

    /// The last offset of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<i64> {
        let [_, _, offset] = self.slots.get(self.slot(self.hash(key)))?;
        offset.checked_sub(1).map(u64::cast_signed)
    }

    /// Keys in the table.
    pub(crate) fn len(&self) -> usize {
        self.entries
    }

    /// The offset up to which the table knows all; -1 if nothing.
    pub(crate) fn latest_offset(&self) -> i64 {
        self.latest_offset
    }

    /// Raises the offset up to which the table knows all.
    pub(crate) fn reach(&mut self, offset: i64) {
        self.latest_offset = self.latest_offset.max(offset);
    }

    /// Memory taken, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.slots.len() as u64 * ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_offset_of_each_key() {
        let mut map = OffsetMap::new(1 << 20, 0.9);
        for offset in 0..20_000_i64 {
            map.put(format!("key {}", offset % 7_000).as_bytes(), offset);
        }
        assert_eq!(map.len(), 7_000);
        for key in 0..7_000_i64 {
            let last = if key < 6_000 { 14_000 + key } else { 7_000 + key };
            assert_eq!(map.get(format!("key {key}").as_bytes()), Some(last), "{key}");
        }
        assert_eq!((map.get(b"other"), map.get(b"")), (None, None));
        map.put(b"", 5);
        assert_eq!(map.get(b""), Some(5));
    }

    #[test]
    fn is_full_at_its_load_factor_and_begins_small() {
        let mut map = OffsetMap::new(2_400, 0.5);
        for offset in 0..50 {
            assert!(!map.is_full());
            map.put(&[offset], i64::from(offset));
        }
        assert!(map.is_full());
        assert!((0..50).all(|offset| map.get(&[offset]) == Some(i64::from(offset))));
        assert_eq!(map.memory_bytes(), 2_400);
        assert!(OffsetMap::new(128 << 20, 0.9).memory_bytes() < 30_000);
        let mut smallest = OffsetMap::new(0, 0.9);
        smallest.put(b"a", 0);
        assert!(smallest.is_full() && smallest.get(b"a") == Some(0) && smallest.get(b"b").is_none());
    }
}
