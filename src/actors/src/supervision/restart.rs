//! When to restart, how soon, and whom: the supervisor's decisions, as plain values.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use tokio::time::Instant;

use super::random::Random;

/// Which of a supervisor's children are restarted when one fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// Only the one that failed.
    #[default]
    OneForOne,
    /// The one that failed, and those started after it.
    RestForOne,
    /// All of them.
    OneForAll,
}

impl Strategy {
    /// The places (in start order) of the children to restart when the one at `failed` of `count` fails.
    pub fn affected(self, failed: usize, count: usize) -> Range<usize> {
        match self {
            Self::OneForOne => failed..failed.saturating_add(1).min(count),
            Self::RestForOne => failed.min(count)..count,
            Self::OneForAll => 0..count,
        }
    }
}

/// Whether a child comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lifetime {
    /// Always restarted, also after it stopped of itself.
    #[default]
    Permanent,
    /// Restarted after a failure only.
    Transient,
    /// Never restarted (a connection).
    Temporary,
}

/// How often a child may be restarted, and how long to wait before each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartPolicy {
    /// At most this many restarts in a window; the next failure goes to the parent.
    pub max_restarts: usize,
    /// The window's length.
    pub window: Duration,
    /// The delay before the first restart in a window. It doubles with each further one.
    pub first_delay: Duration,
    /// The longest delay, before jitter.
    pub max_delay: Duration,
}

impl Default for RestartPolicy {
    /// Twenty restarts in five seconds, after 5 ms doubling to 200 ms: a crash loop escalates after some
    /// four seconds, single crashes never do.
    fn default() -> Self {
        Self {
            max_restarts: 20,
            window: Duration::from_secs(5),
            first_delay: Duration::from_millis(5),
            max_delay: Duration::from_millis(200),
        }
    }
}

/// What to do about one more failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Restart after this delay.
    Restart(Duration),
    /// Too many: the failure goes to the parent.
    GiveUp,
}

/// The recent restarts of one child.
#[derive(Debug, Default)]
pub struct History {
    restarts: VecDeque<Instant>,
}

impl History {
    /// Takes note of a failure and decides. Jitter takes up to half of the delay away, so that children
    /// that failed together do not come back together.
    pub fn failed(&mut self, policy: &RestartPolicy, now: Instant, random: &mut Random) -> Decision {
        while self.restarts.front().is_some_and(|at| now.saturating_duration_since(*at) >= policy.window) {
            self.restarts.pop_front();
        }
        if self.restarts.len() >= policy.max_restarts {
            return Decision::GiveUp;
        }
        let doublings = u32::try_from(self.restarts.len()).unwrap_or(u32::MAX).min(30);
        let delay = policy.first_delay.saturating_mul(1 << doublings).min(policy.max_delay);
        self.restarts.push_back(now);
        let half_us = u64::try_from(delay.as_micros() / 2).unwrap_or(u64::MAX);
        let jitter = Duration::from_micros(random.below(half_us.saturating_add(1)));
        Decision::Restart(delay.saturating_sub(jitter))
    }

    /// Forgets the past, as after the parent itself was restarted.
    pub fn clear(&mut self) {
        self.restarts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RestartPolicy = RestartPolicy {
        max_restarts: 3,
        window: Duration::from_secs(10),
        first_delay: Duration::from_millis(100),
        max_delay: Duration::from_millis(250),
    };

    #[test]
    fn gives_up_past_the_intensity_and_forgives_after_the_window() {
        let (mut history, mut random, start) = (History::default(), Random::new(1), Instant::now());
        for _ in 0..3 {
            assert!(matches!(history.failed(&POLICY, start, &mut random), Decision::Restart(_)));
        }
        assert_eq!(history.failed(&POLICY, start + Duration::from_secs(9), &mut random), Decision::GiveUp);
        let later = start + Duration::from_secs(10);
        assert!(matches!(history.failed(&POLICY, later, &mut random), Decision::Restart(_)));
    }

    #[test]
    fn delays_double_to_the_longest_with_at_most_half_taken_by_jitter() {
        for seed in 0..50 {
            let (mut history, mut random, now) = (History::default(), Random::new(seed), Instant::now());
            for full_ms in [100_u64, 200, 250] {
                let Decision::Restart(delay) = history.failed(&POLICY, now, &mut random) else {
                    panic!("gave up early");
                };
                let full = Duration::from_millis(full_ms);
                assert!(delay <= full && delay >= full / 2, "{delay:?} of {full:?}");
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_delays() {
        let delays = |seed| {
            let (mut history, mut random, now) = (History::default(), Random::new(seed), Instant::now());
            [(); 3].map(|()| history.failed(&POLICY, now, &mut random))
        };
        assert_eq!(delays(9), delays(9));
        assert_ne!(delays(9), delays(10));
    }

    #[test]
    fn strategies_name_who_is_restarted() {
        assert_eq!(Strategy::OneForOne.affected(1, 4), 1..2);
        assert_eq!(Strategy::RestForOne.affected(1, 4), 1..4);
        assert_eq!(Strategy::OneForAll.affected(1, 4), 0..4);
    }
}
