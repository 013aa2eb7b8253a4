//! Crashes on purpose, for tests that show what they cost: `callboard.chaos.crash.interval.ms` and
//! `callboard.chaos.seed`. Off unless set.

use std::time::Duration;

use callboard_metadata::config::BrokerConfig;

use crate::supervision::faults::{self, Victims};
use crate::supervision::{Placement, Tree};

/// Starts to crash a random actor each interval, if the settings say so.
pub(super) fn start(tree: &Tree, config: &BrokerConfig) {
    let number = |name: &str| config.settings.value(name).and_then(|value| value.as_i64()).unwrap_or(0);
    let seed = number("callboard.chaos.seed").cast_unsigned();
    let interval = match u64::try_from(number("callboard.chaos.crash.interval.ms")) {
        Ok(ms) if ms > 0 => Duration::from_millis(ms),
        _ => return,
    };
    tracing::warn!(interval_ms = interval.as_millis(), seed, "actors will be crashed on purpose");
    // Actors only: a crashed task would not come back, this one included.
    let storm = faults::crash_every(tree.clone(), interval, seed, Victims::Actors);
    tree.root().spawn_task("chaos", Placement::WithParent, move || storm);
}
