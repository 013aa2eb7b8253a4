//! Incremental fetch sessions: what a client reads, remembered between its requests.

use std::collections::BTreeMap;

use callboard_protocol::{ByteString, Uuid};

/// A topic as a request names it: by id from Fetch 13 on, by name before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopicKey {
    /// By id.
    Id(Uuid),
    /// By name. Never a slice of a request, so that a session holds no frame's memory.
    Name(ByteString),
}

/// A partition that a client reads, and what its session remembers of the last answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The topic.
    pub topic: TopicKey,
    /// The partition's index.
    pub partition: i32,
    /// Where to read.
    pub fetch_offset: i64,
    /// The most bytes to read from it.
    pub max_bytes: i32,
    /// The leader epoch that the client knows; -1 if none.
    pub current_leader_epoch: i32,
    /// The epoch of the last record it has; -1 if it does not say.
    pub last_fetched_epoch: i32,
    /// The follower's log start offset; -1 from a consumer.
    pub log_start_offset: i64,
    /// The high watermark last answered; -1 if it must be answered in any case.
    pub answered_high_watermark: i64,
    /// The log start offset last answered; -1 if none was.
    pub answered_log_start: i64,
}

/// What of an answer decides whether an incremental answer carries it.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Whether it has records.
    pub has_records: bool,
    /// Whether it is an error.
    pub is_error: bool,
    /// Whether it tells of a divergence or another replica to read from.
    pub is_redirect: bool,
    /// The high watermark.
    pub high_watermark: i64,
    /// The log start offset.
    pub log_start_offset: i64,
}

/// The partitions of one client, in the order in which they are read: one that gave records
/// goes to the end, so that each gets its turn.
#[derive(Debug, Default)]
pub struct Partitions {
    ordered: BTreeMap<u64, Wanted>,
    places: BTreeMap<(TopicKey, i32), u64>,
    next_place: u64,
}

impl Partitions {
    /// Adds a partition at the end, or changes what is wanted of it.
    pub fn put(&mut self, wanted: Wanted) {
        let key = (wanted.topic.clone(), wanted.partition);
        if let Some(known) = self.places.get(&key).and_then(|place| self.ordered.get_mut(place)) {
            *known = Wanted {
                answered_high_watermark: known.answered_high_watermark,
                answered_log_start: known.answered_log_start,
                ..wanted
            };
            return;
        }
        self.places.insert(key, self.next_place);
        self.ordered.insert(self.next_place, wanted);
        self.next_place += 1;
    }

    /// Removes a partition, if it is there.
    pub fn forget(&mut self, topic: &TopicKey, partition: i32) {
        if let Some(place) = self.places.remove(&(topic.clone(), partition)) {
            self.ordered.remove(&place);
        }
    }

    /// The partitions in order, each with its place.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Wanted)> {
        self.ordered.iter().map(|(place, wanted)| (*place, wanted))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ordered.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }

    /// Remembers an answer; says whether it has anything that the client does not know.
    pub fn answered(&mut self, place: u64, outcome: Outcome) -> bool {
        let Some(wanted) = self.ordered.get_mut(&place) else { return false };
        let mut news = outcome.has_records || outcome.is_redirect;
        if outcome.high_watermark != wanted.answered_high_watermark {
            wanted.answered_high_watermark = outcome.high_watermark;
            news = true;
        }
        if outcome.log_start_offset != wanted.answered_log_start {
            wanted.answered_log_start = outcome.log_start_offset;
            news = true;
        }
        if outcome.is_error {
            // Answered again as soon as the error has passed.
            wanted.answered_high_watermark = -1;
            news = true;
        }
        if outcome.has_records {
            self.move_to_end(place);
        }
        news
    }

    fn move_to_end(&mut self, place: u64) {
        let Some(wanted) = self.ordered.remove(&place) else { return };
        self.places.insert((wanted.topic.clone(), wanted.partition), self.next_place);
        self.ordered.insert(self.next_place, wanted);
        self.next_place += 1;
    }
}

/// The epoch that begins a session.
pub const INITIAL_EPOCH: i32 = 0;
/// The epoch that ends one.
pub const FINAL_EPOCH: i32 = -1;

/// The epoch after `epoch`; 0 begins a session, so the largest is followed by 1.
pub fn next_epoch(epoch: i32) -> i32 {
    if epoch < 0 { FINAL_EPOCH } else { epoch.checked_add(1).unwrap_or(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn wanted(partition: i32) -> Wanted {
        Wanted {
            topic: TopicKey::Name("t".into()),
            partition,
            fetch_offset: 0,
            max_bytes: 1,
            current_leader_epoch: -1,
            last_fetched_epoch: -1,
            log_start_offset: -1,
            answered_high_watermark: -1,
            answered_log_start: -1,
        }
    }

    fn idle(high_watermark: i64) -> Outcome {
        Outcome {
            has_records: false,
            is_error: false,
            is_redirect: false,
            high_watermark,
            log_start_offset: 0,
        }
    }

    fn order(partitions: &Partitions) -> Vec<i32> {
        partitions.iter().map(|(_, wanted)| wanted.partition).collect()
    }

    #[test]
    fn a_partition_is_answered_once_then_only_with_news() {
        let mut partitions = Partitions::default();
        partitions.put(wanted(0));
        assert!(partitions.answered(0, idle(5)));
        assert!(!partitions.answered(0, idle(5)));
        assert!(partitions.answered(0, idle(6)));
        let error = Outcome { is_error: true, ..idle(-1) };
        assert!(partitions.answered(0, error));
        assert!(partitions.answered(0, error));
        assert!(partitions.answered(0, idle(6)));
        assert!(!partitions.answered(0, idle(6)));
    }

    #[test]
    fn one_that_gave_records_goes_to_the_end() {
        let mut partitions = Partitions::default();
        for index in 0..3 {
            partitions.put(wanted(index));
        }
        assert!(partitions.answered(0, Outcome { has_records: true, ..idle(1) }));
        assert_eq!(order(&partitions), [1, 2, 0]);
        partitions.put(Wanted { fetch_offset: 7, ..wanted(1) });
        assert_eq!(order(&partitions), [1, 2, 0]);
        partitions.forget(&TopicKey::Name("t".into()), 2);
        assert_eq!(order(&partitions), [1, 0]);
    }

    #[test]
    fn epochs_never_come_back_to_the_first() {
        assert_eq!(next_epoch(INITIAL_EPOCH), 1);
        assert_eq!(next_epoch(i32::MAX), 1);
    }
}
