//! How many connections there may be, and how much of their requests may wait at once.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The connections of a node: how many there are and may be (`max.connections`,
/// `max.connections.per.ip`, `max.connections.per.ip.overrides`).
#[derive(Debug)]
pub struct ConnectionLimits {
    most: usize,
    most_per_ip: usize,
    overrides: BTreeMap<IpAddr, usize>,
    open: Mutex<Open>,
    closed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    by_ip: BTreeMap<IpAddr, usize>,
}

/// What becomes of a connection that comes in.
#[derive(Debug)]
pub enum Admittance {
    /// It is served; the ticket is given back when it closes.
    Admitted(ConnectionTicket),
    /// Its address has as many as it may: close it.
    TooManyFromAddress,
    /// The node has as many as it may: wait for [`ConnectionLimits::one_closed`].
    Full,
}

impl ConnectionLimits {
    /// No connection yet, and these limits.
    pub fn new(most: usize, most_per_ip: usize, overrides: BTreeMap<IpAddr, usize>) -> Arc<Self> {
        Arc::new(Self { most, most_per_ip, overrides, open: Mutex::default(), closed: Notify::new() })
    }

    /// Counts a connection from `address`, if there may be one more.
    pub fn admit(self: &Arc<Self>, address: IpAddr) -> Admittance {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.total >= self.most {
            return Admittance::Full;
        }
        let limit = self.overrides.get(&address).copied().unwrap_or(self.most_per_ip);
        let from_address = open.by_ip.get(&address).copied().unwrap_or(0);
        if from_address >= limit {
            return Admittance::TooManyFromAddress;
        }
        open.by_ip.insert(address, from_address + 1);
        open.total += 1;
        Admittance::Admitted(ConnectionTicket { limits: self.clone(), address })
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).total
    }

    /// Waits until a connection closes.
    pub async fn one_closed(&self) {
        self.closed.notified().await;
    }

    fn give_back(&self, address: IpAddr) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.total = open.total.saturating_sub(1);
        if let Some(count) = open.by_ip.get_mut(&address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.by_ip.remove(&address);
            }
        }
        drop(open);
        self.closed.notify_one();
    }
}

/// One counted connection; dropped, it no longer counts.
#[derive(Debug)]
pub struct ConnectionTicket {
    limits: Arc<ConnectionLimits>,
    address: IpAddr,
}

impl Drop for ConnectionTicket {
    fn drop(&mut self) {
        self.limits.give_back(self.address);
    }
}

/// The requests that are read but not yet taken up (`queued.max.requests`,
/// `queued.max.request.bytes`). A request that only waits, such as a long poll, no longer counts.
#[derive(Debug)]
pub struct RequestQueue {
    requests: Arc<Semaphore>,
    /// In units of a KiB, so that any limit fits a semaphore.
    kibibytes: Option<(Arc<Semaphore>, u32)>,
}

/// A request's place in the queue.
#[derive(Debug, Default)]
pub struct QueuePlace {
    _request: Option<OwnedSemaphorePermit>,
    _bytes: Option<OwnedSemaphorePermit>,
}

impl RequestQueue {
    /// A queue of at most `most` requests and, if given, `most_bytes` of them.
    pub fn new(most: usize, most_bytes: Option<u64>) -> Self {
        let kibibytes = most_bytes.map(|bytes| {
            let units = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).max(1);
            let permits = (units as usize).min(Semaphore::MAX_PERMITS);
            (Arc::new(Semaphore::new(permits)), units)
        });
        Self { requests: Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))), kibibytes }
    }

    /// A place for a request of `size_bytes`, if there is one now.
    pub fn try_enter(&self, size_bytes: usize) -> Option<QueuePlace> {
        let request = self.requests.clone().try_acquire_owned().ok()?;
        let bytes = match &self.kibibytes {
            None => None,
            Some((units, most)) => {
                let wanted = Self::units(size_bytes).min(*most);
                Some(units.clone().try_acquire_many_owned(wanted).ok()?)
            }
        };
        Some(QueuePlace { _request: Some(request), _bytes: bytes })
    }

    /// Waits for a place. One larger than the whole queue gets in when the queue is empty.
    pub async fn enter(self: Arc<Self>, size_bytes: usize) -> QueuePlace {
        // The semaphores are never closed, so an error cannot come.
        let request = self.requests.clone().acquire_owned().await.ok();
        let bytes = match &self.kibibytes {
            None => None,
            Some((units, most)) => {
                let wanted = Self::units(size_bytes).min(*most);
                units.clone().acquire_many_owned(wanted).await.ok()
            }
        };
        QueuePlace { _request: request, _bytes: bytes }
    }

    fn units(size_bytes: usize) -> u32 {
        u32::try_from(size_bytes.div_ceil(1024)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn connections_are_bounded_in_all_and_by_address() {
        let limits = ConnectionLimits::new(3, 1, BTreeMap::from([(address(9), 2)]));
        let first = limits.admit(address(1));
        assert!(matches!(first, Admittance::Admitted(_)));
        assert!(matches!(limits.admit(address(1)), Admittance::TooManyFromAddress));
        let second = limits.admit(address(9));
        let third = limits.admit(address(9));
        assert!(matches!(limits.admit(address(2)), Admittance::Full));
        drop((first, second, third));
        assert_eq!(limits.open(), 0);
        assert!(matches!(limits.admit(address(1)), Admittance::Admitted(_)));
    }

    #[test]
    fn the_queue_is_bounded_by_count_and_bytes() {
        let queue = RequestQueue::new(2, Some(10 * 1024));
        let first = queue.try_enter(6 * 1024);
        assert!(first.is_some());
        assert!(queue.try_enter(6 * 1024).is_none());
        let second = queue.try_enter(1024);
        assert!(second.is_some());
        assert!(queue.try_enter(1).is_none());
        drop((first, second));
        assert!(queue.try_enter(1 << 30).is_some());
    }
}
