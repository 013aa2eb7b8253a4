//! Looks after the logs of this broker: retention, producers that have gone silent, and the room on the disks.
//!
//! - Who sends: nobody; it goes by its timers.
//! - Owns: nothing durable. It decides by what partitions publish, and asks a partition only where there is something
//!   to do, one at a time, so that a broker of many idle partitions is not kept busy.
//! - Runs: one on a node.
//! - Mailbox: empty but for effects.
//! - Timers: `log.retention.check.interval.ms` and `producer.id.expiration.check.interval.ms`, the first round after
//!   `log.initial.task.delay.ms`.
//! - Restart: it begins anew with its first round; nothing is lost.
//! - To a client, its crash means nothing: old records stay a little longer.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::replicas::directories::LogDirectory;
use crate::replicas::messages::{ExpireProducers, RemoveDueSegments};
use crate::replicas::registry::Registry;
use crate::replicas::view::{PartitionHandle, Status};
use crate::supervision::{Actor, Context, Failure};

/// How often the logs are looked after.
#[derive(Debug, Clone, Copy)]
pub struct Upkeep {
    /// `log.initial.task.delay.ms`.
    pub initial_delay: Duration,
    /// `log.retention.check.interval.ms`.
    pub retention_interval: Duration,
    /// `producer.id.expiration.check.interval.ms`.
    pub producer_expiration_interval: Duration,
    /// `callboard.disk.reserve.bytes`: room on each disk that appends leave alone, to delete and to start again with.
    pub disk_reserve_bytes: u64,
}

/// How often the free room of the disks is looked at. Appends in between are counted against what was found.
const ROOM_INTERVAL: Duration = Duration::from_secs(1);

/// The actor. See the top of its file.
pub struct Keeper {
    registry: Arc<Registry>,
    directories: Arc<Vec<LogDirectory>>,
    upkeep: Upkeep,
    measuring: bool,
    retaining: bool,
    expiring: bool,
    /// Segments that records from the future keep from going, by their partition's serial: told once each.
    future_segments: HashMap<u64, i64>,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keeper")
    }
}

impl Keeper {
    pub(super) fn new(registry: Arc<Registry>, directories: Arc<Vec<LogDirectory>>, upkeep: Upkeep) -> Self {
        Self {
            registry,
            directories,
            upkeep,
            measuring: false,
            retaining: false,
            expiring: false,
            future_segments: HashMap::new(),
        }
    }

    fn retain(&mut self, ctx: &mut Context<Self>) {
        if self.retaining {
            return;
        }
        let now_ms = ctx.now_ms();
        let mut future = HashMap::new();
        let mut due = Vec::new();
        for handle in self.registry.held().partitions() {
            let (is_due, future_segment) = look_at(handle, now_ms);
            if is_due {
                due.push(handle.clone());
            }
            future.extend(future_segment.map(|base| (handle.shared().serial, base)));
            if let Some(base) = future_segment
                && self.future_segments.get(&handle.shared().serial) != Some(&base)
            {
                let partition = handle.id().to_string();
                tracing::warn!(
                    partition,
                    segment = base,
                    "holds records from the future: retention.ms keeps it, and all segments after it"
                );
            }
        }
        self.future_segments = future;
        if due.is_empty() {
            return;
        }
        self.retaining = true;
        let removing = async move {
            for handle in due {
                // One that crashes or is gone meanwhile is looked at again in the next round.
                let _ = handle.actor().ask(RemoveDueSegments).await;
            }
        };
        ctx.effect("retention", removing, |keeper: &mut Self, (), _| keeper.retaining = false);
    }

    fn measure_room(&mut self, ctx: &mut Context<Self>) {
        if self.measuring {
            return;
        }
        self.measuring = true;
        let (directories, reserve_bytes) = (Arc::clone(&self.directories), self.upkeep.disk_reserve_bytes);
        let work = move || {
            let working = directories.iter().filter(|directory| !directory.is_failed());
            working.for_each(|directory| directory.measure_room(reserve_bytes));
        };
        ctx.blocking("measure room", work, |keeper: &mut Self, (), _| keeper.measuring = false);
    }

    fn expire_producers(&mut self, ctx: &mut Context<Self>) {
        if self.expiring {
            return;
        }
        self.expiring = true;
        let held = self.registry.held();
        let expiring = async move {
            for handle in held.partitions().filter(|handle| handle.view().reader().is_some()) {
                let _ = handle.actor().ask(ExpireProducers).await;
            }
        };
        ctx.effect("expire producers", expiring, |keeper: &mut Self, (), _| keeper.expiring = false);
    }
}

/// Whether a partition has segments to remove, and the segment that only a record from the future keeps.
fn look_at(handle: &PartitionHandle, now_ms: i64) -> (bool, Option<i64>) {
    let view = handle.view();
    let (Status::Leader | Status::Follower, Some(reader)) = (view.status(), view.reader()) else {
        return (false, None);
    };
    let settings = Arc::clone(&handle.shared().orders().settings);
    match reader.retention_due(&settings.log, view.high_watermark(), now_ms) {
        Ok(due) => (due.segments() > 0, due.future_segment),
        Err(error) => {
            tracing::warn!(partition = handle.id().to_string(), "retention: {error}");
            (false, None)
        }
    }
}

impl Actor for Keeper {
    fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), Failure> {
        let Upkeep { initial_delay, retention_interval, producer_expiration_interval, .. } = self.upkeep;
        self.measure_room(ctx);
        ctx.every("measure room", ROOM_INTERVAL, |keeper: &mut Self, ctx| keeper.measure_room(ctx));
        ctx.after("first retention", initial_delay, move |keeper: &mut Self, ctx| {
            keeper.retain(ctx);
            ctx.every("retention", retention_interval, |keeper: &mut Self, ctx| keeper.retain(ctx));
        });
        ctx.every("expire producers", producer_expiration_interval, |keeper: &mut Self, ctx| {
            keeper.expire_producers(ctx);
        });
        Ok(())
    }
}
