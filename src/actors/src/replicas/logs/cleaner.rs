//! Compacts logs, one after the other: always the one with the largest part not compacted yet.
//!
//! - Who sends: nobody; it goes by its timer.
//! - Owns: the round it is amid. What is known of all logs is on the [`Board`], which outlives it.
//! - Runs: `log.cleaner.threads` of them on a node. Reading and writing go to the blocking pool, a few megabytes at a
//!   time; only putting a compacted segment in its place is asked of the partition.
//! - Mailbox: empty but for effects.
//! - Timers: `log.cleaner.backoff.ms` when there is nothing to do; pauses to stay below
//!   `log.cleaner.io.max.bytes.per.second`.
//! - Restart: the round is forgotten, its files are overwritten or removed later, and the log is chosen again.
//! - To a client, its crash means nothing: old records stay a little longer.

use std::sync::Arc;
use std::time::Duration;

use callboard_storage::{Cleaning, CleaningOptions, Step, StorageError};

use super::board::{Board, Chosen};
use crate::replicas::manager::Manager;
use crate::replicas::messages::{DirectoryFailed, LastOfProducers, SwapIn, Swapped};
use crate::replicas::registry::Registry;
use crate::replicas::view::{PartitionHandle, Status};
use crate::supervision::{Actor, ActorRef, Context, Failure};

/// How the cleaners go about it: `log.cleaner.*`.
#[derive(Debug, Clone, Copy)]
pub struct CleanerOptions {
    /// `log.cleaner.enable`.
    pub enabled: bool,
    /// `log.cleaner.threads`.
    pub threads: usize,
    /// `log.cleaner.backoff.ms`.
    pub backoff: Duration,
    /// `log.cleaner.dedupe.buffer.size`, for all together.
    pub dedupe_buffer_bytes: u64,
    /// `log.cleaner.io.buffer.load.factor`.
    pub load_factor: f64,
    /// `log.cleaner.io.max.bytes.per.second`, for all together.
    pub max_bytes_per_second: f64,
}

/// The actor. See the top of its file.
pub struct Cleaner {
    index: usize,
    options: CleanerOptions,
    board: Arc<Board>,
    registry: Arc<Registry>,
    manager: ActorRef<Manager>,
}

impl std::fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cleaner({})", self.index)
    }
}

/// A round under way.
struct Round {
    handle: PartitionHandle,
    cleaning: Cleaning,
}

impl Cleaner {
    pub(super) fn new(
        index: usize,
        options: CleanerOptions,
        board: &Arc<Board>,
        registry: &Arc<Registry>,
        manager: &ActorRef<Manager>,
    ) -> Self {
        let (board, registry, manager) = (Arc::clone(board), Arc::clone(registry), manager.clone());
        Self { index, options, board, registry, manager }
    }

    fn rest(&self, ctx: &mut Context<Self>) {
        ctx.after("log.cleaner.backoff.ms", self.options.backoff, |cleaner: &mut Self, ctx| {
            cleaner.choose(ctx)
        });
    }

    fn choose(&self, ctx: &mut Context<Self>) {
        let (board, registry, index) = (Arc::clone(&self.board), Arc::clone(&self.registry), self.index);
        let now_ms = ctx.now_ms();
        let work = move || board.choose(index, &registry, now_ms);
        ctx.blocking("choose a log", work, |cleaner: &mut Self, chosen, ctx| match chosen {
            Some(chosen) => cleaner.begin(chosen, ctx),
            None => cleaner.rest(ctx),
        });
    }

    fn begin(&self, chosen: Chosen, ctx: &mut Context<Self>) {
        let asking = chosen.handle.actor().ask(LastOfProducers);
        ctx.effect("last of producers", asking, move |cleaner: &mut Self, answer, ctx| {
            let Chosen { handle, cleanable } = chosen;
            let (Ok(Some(producers)), Some(reader)) = (answer, handle.view().reader()) else {
                return cleaner.give_up(ctx);
            };
            let options = CleaningOptions {
                config: handle.shared().orders().settings.log.clone(),
                cleanable,
                producers,
                map_bytes: cleaner.options.dedupe_buffer_bytes / cleaner.options.threads.max(1) as u64,
                load_factor: cleaner.options.load_factor,
                now_ms: ctx.now_ms(),
            };
            let cleaning = Cleaning::new(&reader, options);
            cleaner.step(Box::new(Round { handle, cleaning }), ctx);
        });
    }

    fn step(&self, mut round: Box<Round>, ctx: &mut Context<Self>) {
        let still_wanted = matches!(round.handle.view().status(), Status::Leader | Status::Follower)
            && round.handle.shared().orders().settings.log.compacts;
        if !still_wanted {
            return self.abandon(round, ctx);
        }
        let work = move || {
            let outcome = round.cleaning.step();
            (round, outcome)
        };
        ctx.blocking("clean", work, |cleaner: &mut Self, (round, outcome), ctx| match outcome {
            Ok(Step::More { bytes }) => cleaner.go_on(round, bytes, ctx),
            Ok(Step::Swap(cleaned)) => {
                let asking = round.handle.actor().ask(SwapIn { cleaned });
                ctx.effect("swap in", asking, move |cleaner: &mut Self, answer, ctx| match answer {
                    Ok(Swapped::Done) => cleaner.step(round, ctx),
                    _ => cleaner.abandon(round, ctx),
                });
            }
            Ok(Step::Done { end_offset }) => cleaner.finish(round, end_offset, ctx),
            Err(error) => cleaner.failed(round, &error, ctx),
        });
    }

    fn go_on(&self, round: Box<Round>, bytes: u64, ctx: &mut Context<Self>) {
        let pause_ms = self.board.pause_ms(bytes, self.options.max_bytes_per_second, ctx.now_ms());
        if pause_ms == 0 {
            return self.step(round, ctx);
        }
        ctx.after("throttle", Duration::from_millis(pause_ms), move |cleaner: &mut Self, ctx| {
            cleaner.step(round, ctx);
        });
    }

    fn finish(&self, round: Box<Round>, end_offset: i64, ctx: &mut Context<Self>) {
        let report = round.cleaning.report();
        tracing::info!(
            partition = round.handle.id().to_string(),
            end_offset,
            keys = report.keys,
            records_kept = report.records_kept,
            bytes_read = report.bytes_read,
            bytes_written = report.bytes_written,
            segments_before = report.segments_before,
            segments_after = report.segments_after,
            "compacted"
        );
        let (board, registry) = (Arc::clone(&self.board), Arc::clone(&self.registry));
        let work = move || {
            let synced = round.handle.view().reader().map_or(Ok(()), |reader| reader.sync_dir());
            synced.and_then(|()| board.done(&round.handle, end_offset, &registry))
        };
        ctx.blocking("checkpoint", work, |cleaner: &mut Self, outcome, ctx| {
            if let Err(error) = outcome {
                tracing::error!("no checkpoint of what is compacted: {error}");
            }
            cleaner.board.release(cleaner.index);
            cleaner.choose(ctx);
        });
    }

    fn failed(&self, round: Box<Round>, error: &StorageError, ctx: &mut Context<Self>) {
        let partition = round.handle.id().to_string();
        if error.takes_directory() {
            let directory = round.handle.shared().directory;
            let reason = format!("compacting {partition}: {error}");
            self.manager.tell(DirectoryFailed { directory, reason });
        } else if error.is_not_found() || error.is_full() {
            // The segments were removed meanwhile, or there is no room: the next round begins with what is there.
            tracing::info!(partition, "compaction is put off: {error}");
        } else {
            tracing::error!(
                partition,
                "can't be compacted, and is left alone until the node starts again: {error}"
            );
            self.board.mark_uncleanable(&round.handle, error.to_string());
        }
        self.abandon(round, ctx);
    }

    fn abandon(&self, round: Box<Round>, ctx: &mut Context<Self>) {
        ctx.blocking(
            "abandon",
            move || round.cleaning.abandon(),
            |cleaner: &mut Self, outcome, ctx| {
                if let Err(error) = outcome {
                    tracing::warn!("{error}");
                }
                cleaner.give_up(ctx);
            },
        );
    }

    fn give_up(&self, ctx: &mut Context<Self>) {
        self.board.release(self.index);
        self.rest(ctx);
    }
}

impl Actor for Cleaner {
    fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), Failure> {
        self.board.release(self.index);
        self.rest(ctx);
        Ok(())
    }
}
