//! Time as actors see it: wall-clock milliseconds for records, and a coarse stamp for ages.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// The wall clock. A simulated one moves with the runtime's time only, so a run repeats exactly.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// Starts at a given time and follows the runtime's (paused or simulated) time.
    Simulated {
        /// The runtime's time at the start.
        origin: Instant,
        /// Milliseconds since 1970 at the start.
        origin_ms: i64,
    },
}

impl Clock {
    /// A clock that stands at `origin_ms` now and moves with the runtime's time.
    pub fn simulated(origin_ms: i64) -> Self {
        Self::Simulated { origin: Instant::now(), origin_ms }
    }

    /// Milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        let millis = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        match self {
            Self::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis),
            Self::Simulated { origin, origin_ms } => {
                origin_ms.saturating_add(millis(Instant::now().saturating_duration_since(*origin)))
            }
        }
    }
}

/// Nanoseconds on a clock that only ever advances, to a few milliseconds. Reading it costs a few
/// nanoseconds: it stamps every message. Zero means "no stamp".
pub(super) fn coarse_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos).max(1)
}
