//! The node's fetch sessions (`max.incremental.fetch.session.cache.slots`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use callboard_protocol::ErrorCode;

use super::session::{FINAL_EPOCH, INITIAL_EPOCH, Partitions, next_epoch};
use crate::supervision::Random;

/// A session may be replaced by another once it has been unused, or has lived, this long.
const EVICTABLE_AFTER_MS: i64 = 120_000;

/// One client's session.
#[derive(Debug)]
pub struct Session {
    /// Its number, above 0; 0 for one that ends with its request.
    pub id: i32,
    /// The epoch the next request must carry.
    pub epoch: i32,
    /// Whether its topics go by id.
    pub uses_topic_ids: bool,
    /// What it reads.
    pub partitions: Partitions,
}

/// A session that several tasks may hold; each request has it to itself while it looks.
pub type SharedSession = Arc<Mutex<Session>>;

/// Locks a session. A crashed request leaves it as whole as any other.
pub fn lock(session: &SharedSession) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Slot {
    session: SharedSession,
    privileged: bool,
    created_ms: i64,
    used_ms: i64,
}

/// All sessions of a node.
#[derive(Debug)]
pub struct FetchSessions {
    most: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    slots: BTreeMap<i32, Slot>,
    random: Random,
}

/// What a request's session id and epoch ask for.
#[derive(Debug)]
pub enum Begun {
    /// The request lists all it wants. `keep` says whether it asks for a session.
    Full {
        /// Whether to keep what it lists as a session.
        keep: bool,
    },
    /// The request changes this session.
    Incremental(SharedSession),
    /// Neither.
    Refused(ErrorCode),
}

impl FetchSessions {
    /// Room for `most` sessions; `random` gives their ids.
    pub fn new(most: usize, random: Random) -> Self {
        let inner = Inner { slots: BTreeMap::new(), random };
        Self { most, inner: Mutex::new(inner) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds what a request asks for, and moves its session to the next epoch.
    pub fn begin(&self, id: i32, epoch: i32, uses_topic_ids: bool, now_ms: i64) -> Begun {
        let mut inner = self.inner();
        if epoch == INITIAL_EPOCH || epoch == FINAL_EPOCH {
            inner.slots.remove(&id);
            return Begun::Full { keep: epoch == INITIAL_EPOCH };
        }
        let Some(slot) = inner.slots.get_mut(&id) else {
            return Begun::Refused(ErrorCode::FetchSessionIdNotFound);
        };
        let mut session = lock(&slot.session);
        if session.epoch != epoch {
            return Begun::Refused(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.uses_topic_ids != uses_topic_ids {
            return Begun::Refused(ErrorCode::FetchSessionTopicIdError);
        }
        session.epoch = next_epoch(epoch);
        drop(session);
        slot.used_ms = now_ms;
        Begun::Incremental(slot.session.clone())
    }

    /// Keeps a session, if there is room or another gives way; gives its id, or 0.
    /// Those of followers (`privileged`) go before those of consumers, larger before smaller.
    pub fn keep(&self, session: &SharedSession, privileged: bool, now_ms: i64) -> i32 {
        let mut inner = self.inner();
        let size = lock(session).partitions.len();
        if inner.slots.len() >= self.most && !inner.make_room(privileged, size, now_ms) {
            return 0;
        }
        let id = inner.unused_id();
        let mut kept = lock(session);
        kept.id = id;
        kept.epoch = next_epoch(INITIAL_EPOCH);
        drop(kept);
        let slot = Slot { session: session.clone(), privileged, created_ms: now_ms, used_ms: now_ms };
        inner.slots.insert(id, slot);
        id
    }

    /// Ends a session.
    pub fn remove(&self, id: i32) {
        self.inner().slots.remove(&id);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.inner().slots.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Inner {
    fn unused_id(&mut self) -> i32 {
        loop {
            // 31 random bits are never negative.
            let id = (self.random.next_u64() >> 33) as i32;
            if id != 0 && !self.slots.contains_key(&id) {
                return id;
            }
        }
    }

    fn make_room(&mut self, privileged: bool, size: usize, now_ms: i64) -> bool {
        let stale = self.slots.iter().min_by_key(|(_, slot)| slot.used_ms);
        let stale = stale.filter(|(_, slot)| now_ms - slot.used_ms > EVICTABLE_AFTER_MS);
        let weight = |slot: &Slot| (slot.privileged, lock(&slot.session).partitions.len());
        let evictable = || {
            let aged = self.slots.iter().filter(|(_, slot)| now_ms - slot.created_ms > EVICTABLE_AFTER_MS);
            aged.min_by_key(|(_, slot)| weight(slot)).filter(|(_, slot)| weight(slot) < (privileged, size))
        };
        let Some(id) = stale.or_else(evictable).map(|(id, _)| *id) else { return false };
        self.slots.remove(&id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SharedSession {
        Arc::new(Mutex::new(Session {
            id: 0,
            epoch: 0,
            uses_topic_ids: true,
            partitions: Partitions::default(),
        }))
    }

    fn refused(begun: &Begun, error: ErrorCode) -> bool {
        matches!(begun, Begun::Refused(code) if *code == error)
    }

    #[test]
    fn epochs_are_checked_and_the_session_goes_on() {
        let sessions = FetchSessions::new(10, Random::new(1));
        let id = sessions.keep(&session(), false, 0);
        assert!(id > 0);
        assert!(matches!(sessions.begin(id, 1, true, 0), Begun::Incremental(_)));
        assert!(refused(&sessions.begin(id, 1, true, 0), ErrorCode::InvalidFetchSessionEpoch));
        assert!(refused(&sessions.begin(id, 3, true, 0), ErrorCode::InvalidFetchSessionEpoch));
        assert!(refused(&sessions.begin(id, 2, false, 0), ErrorCode::FetchSessionTopicIdError));
        assert!(matches!(sessions.begin(id, 2, true, 0), Begun::Incremental(_)));
        assert!(matches!(sessions.begin(id, FINAL_EPOCH, true, 0), Begun::Full { keep: false }));
        assert!(refused(&sessions.begin(id, 3, true, 0), ErrorCode::FetchSessionIdNotFound));
    }

    #[test]
    fn only_an_old_or_lesser_session_gives_way() {
        let sessions = FetchSessions::new(1, Random::new(1));
        let first = sessions.keep(&session(), false, 0);
        assert!(first > 0);
        assert_eq!(sessions.keep(&session(), true, 1000), 0);
        let second = sessions.keep(&session(), true, EVICTABLE_AFTER_MS + 1);
        assert!(second > 0);
        assert!(refused(&sessions.begin(first, 1, true, 0), ErrorCode::FetchSessionIdNotFound));
        assert_eq!(sessions.keep(&session(), false, EVICTABLE_AFTER_MS + 2), 0);
        assert!(sessions.keep(&session(), false, 3 * EVICTABLE_AFTER_MS) > 0);
        assert_eq!(sessions.len(), 1);
    }
}
