//! The replicas manager.
//!
//! - Who sends: the metadata loader (`ApplyChanges`), partitions (`DirectoryFailed`, `PartitionFailed`,
//!   `RemoveLater`).
//! - Owns: the registry of partitions, the checkpoint files, the clean-shutdown markers.
//! - Runs: one on a node.
//! - Mailbox: a change at a time; the loader waits for the answer.
//! - Timers: checkpoints; removal of deleted directories.
//! - Restart: it finds the registry as it was, partitions go on meanwhile. A change under way is told Crashed
//!   and sent again.
//! - To a client, its crash means nothing but a delay of what the controller has decided.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callboard_protocol::Uuid;
use callboard_storage::{CleanShutdown, DirKind, StorageError, TopicPartition, partition_dir_name};

use super::directories::{self, Checkpoints, Found, Inventory, LogDirectory};
use super::logs::{CleanerOptions, Upkeep};
use super::messages::{
    ApplyChanges, DeletePartition, DirectoryFailed, GoOffline, PartitionFailed, Reassigned, Wanted,
};
use super::partition::{OpenPlan, Partition, Surroundings, rename_if_there};
use super::purgatory::Purgatories;
use super::registry::Registry;
use super::view::{Orders, PartitionHandle, Shared, Status};
use crate::supervision::{
    Actor, AskError, Context, Exit, Failure, Handler, Lifetime, Message, ReplyTo, Spec, SupervisorRef,
};

/// Messages and bytes a partition's mailbox holds before producers wait.
const PARTITION_MAILBOX: (usize, usize) = (1024, 64 * 1024 * 1024);
/// How often a deletion is sent again to a partition that crashed over it.
const DELETE_ATTEMPTS: usize = 5;

/// What the replicas of a node go by.
#[derive(Debug, Clone)]
pub struct ReplicasSetup {
    /// `node.id`.
    pub node_id: i32,
    /// `log.dirs`, in that order.
    pub directories: Arc<Vec<LogDirectory>>,
    /// `log.flush.offset.checkpoint.interval.ms`.
    pub checkpoint_interval: Duration,
    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub high_watermark_interval: Duration,
    /// How often the logs are looked after.
    pub upkeep: Upkeep,
    /// How they are compacted.
    pub cleaners: CleanerOptions,
    /// The broker's epoch, for the clean-shutdown marker; -1 until it has one.
    pub broker_epoch: Arc<AtomicI64>,
}

/// What outlives the manager's crashes.
#[derive(Debug)]
pub(super) struct Core {
    pub setup: ReplicasSetup,
    pub registry: Arc<Registry>,
    pub purgatories: Purgatories,
    /// Set right after the manager was started, before anybody can tell it anything.
    pub partitions: OnceLock<SupervisorRef>,
    pub inventory: Inventory,
    pub next_serial: AtomicU64,
    pub shards: usize,
}

/// A deleted partition's directory, to be removed for good after a while.
#[derive(Debug)]
pub(super) struct RemoveLater {
    pub path: PathBuf,
    pub delay: Duration,
}

impl Message for RemoveLater {
    type Reply = ();
    const NAME: &'static str = "RemoveLater";
}

/// The actor.
pub struct Manager {
    core: Arc<Core>,
    written: Vec<Checkpoints>,
    writing: bool,
    busy: bool,
    queue: VecDeque<(ApplyChanges, ReplyTo<()>)>,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Manager")
    }
}

impl Manager {
    pub(super) fn new(core: Arc<Core>) -> Self {
        let written = core.setup.directories.iter().map(|_| Checkpoints::default()).collect();
        Self { core, written, writing: false, busy: false, queue: VecDeque::new() }
    }

    fn next_change(&mut self, ctx: &mut Context<Self>) {
        if self.busy {
            return;
        }
        let Some((changes, reply)) = self.queue.pop_front() else { return };
        self.busy = true;
        let gone = self.gone(&changes);
        let deleting = gone
            .iter()
            .filter_map(|(topic_id, partition)| self.core.registry.partition(*topic_id, *partition));
        let deleting: Vec<PartitionHandle> = deleting.collect();
        self.core.registry.remove_all(&gone);
        // A topic of the same name may come next: its directories must be free.
        let directories = Arc::clone(&self.core.setup.directories);
        let deleted = async move {
            let mut left_over = Vec::new();
            for handle in deleting {
                delete(&handle).await;
                left_over.extend(directories::set_offline_aside(&handle, &directories));
            }
            left_over
        };
        ctx.effect("deleted", deleted, move |manager: &mut Self, left_over, ctx| {
            left_over.into_iter().for_each(|path| Self::remove_later(path, Duration::ZERO, ctx));
            manager.create(changes, ctx);
            manager.busy = false;
            reply.send(());
            manager.next_change(ctx);
        });
    }

    fn gone(&self, changes: &ApplyChanges) -> Vec<(Uuid, i32)> {
        let held = self.core.registry.held();
        let mut gone = changes.unwanted.clone();
        for topic_id in &changes.unwanted_topics {
            let numbers = held.topic(*topic_id).into_iter().flat_map(|topic| topic.partitions.keys());
            gone.extend(numbers.map(|number| (*topic_id, *number)));
        }
        gone
    }

    fn create(&self, changes: ApplyChanges, ctx: &mut Context<Self>) {
        let held = self.core.registry.held();
        if changes.complete {
            self.set_strays_aside(&changes.wanted);
        }
        // A new topic with settings of its own is named once for each: the last word counts.
        let wanted: BTreeMap<_, Wanted> = changes
            .wanted
            .into_iter()
            .map(|wanted| ((wanted.id.topic_id, wanted.id.partition), wanted))
            .collect();
        let mut created = Vec::new();
        for wanted in wanted.into_values() {
            match held.partition(wanted.id.topic_id, wanted.id.partition) {
                Some(handle) => reassign(handle, wanted),
                None => created.extend(self.start(wanted, created.len(), ctx)),
            }
        }
        self.core.registry.insert_all(created);
    }

    /// Starts one partition's actor.
    fn start(&self, wanted: Wanted, started: usize, ctx: &mut Context<Self>) -> Option<PartitionHandle> {
        let core = &self.core;
        let key = (wanted.id.topic_id, wanted.id.partition);
        let found = core.inventory.partitions.get(&key).cloned();
        let found = found.or_else(|| self.place(&wanted, started))?;
        let orders = Orders { assignment: wanted.assignment, settings: wanted.settings };
        let serial = core.next_serial.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::new(Shared::new(wanted.id, serial, found.directory, orders, core.shards));
        let plan = OpenPlan {
            path: found.path,
            recovery_point: found.recovery_point,
            log_start_offset: found.log_start_offset,
            clean_shutdown: found.clean_shutdown,
        };
        let around = Surroundings {
            node_id: core.setup.node_id,
            purgatories: core.purgatories.clone(),
            manager: ctx.me(),
            directories: Arc::clone(&core.setup.directories),
        };
        let (seen, purgatories) = (Arc::clone(&shared), core.purgatories.clone());
        let name = shared.id.to_string();
        let for_factory = Arc::clone(&shared);
        let factory = move || Partition::new(Arc::clone(&for_factory), around.clone(), plan.clone());
        let spec = Spec::new(name, factory)
            .lifetime(Lifetime::Transient)
            .mailbox(PARTITION_MAILBOX.0, PARTITION_MAILBOX.1)
            .on_failure(move |_| {
                if matches!(seen.view.status(), Status::Leader | Status::Follower) {
                    seen.view.set_status(Status::Opening);
                }
                purgatories.changed_wholly(&seen);
            });
        let actor = core.partitions.get()?.spawn(spec);
        Some(PartitionHandle::new(shared, actor))
    }

    /// A place for a new partition: the directory the controller names, else the one with the fewest.
    fn place(&self, wanted: &Wanted, started: usize) -> Option<Found> {
        let directories = &self.core.setup.directories;
        let named = directories.iter().position(|d| d.id == wanted.directory && !d.is_failed());
        let only =
            (directories.len() == 1).then_some(0).filter(|_| directories.iter().all(|d| !d.is_failed()));
        let directory = named.or(only).or_else(|| {
            let held = self.core.registry.held();
            let mut counts = vec![0_usize; directories.len()];
            for handle in held.partitions() {
                if let Some(count) = counts.get_mut(handle.shared().directory) {
                    *count += 1;
                }
            }
            let working = directories.iter().enumerate().filter(|(_, d)| !d.is_failed());
            // Those just started are not in the registry yet: take turns.
            let working: Vec<usize> = working.map(|(index, _)| index).collect();
            let turn = started.checked_rem(working.len())?;
            let rotated = working.iter().cycle().skip(turn).take(working.len());
            rotated.min_by_key(|index| counts.get(**index).copied().unwrap_or(0)).copied()
        })?;
        let root = directories.get(directory)?;
        let path =
            root.path.join(partition_dir_name(&topic_partition(&wanted.id), DirKind::Current, [0; 16]));
        Some(Found { directory, path, recovery_point: 0, log_start_offset: 0, clean_shutdown: false })
    }

    /// Renames directories of partitions that the cluster knows nothing of.
    fn set_strays_aside(&self, wanted: &[Wanted]) {
        let known: std::collections::HashSet<(Uuid, i32)> =
            wanted.iter().map(|wanted| (wanted.id.topic_id, wanted.id.partition)).collect();
        for ((topic_id, number), found) in &self.core.inventory.partitions {
            if known.contains(&(*topic_id, *number)) {
                continue;
            }
            let Some(name) = found.path.file_name().and_then(|name| name.to_str()) else { continue };
            let Ok((partition, _)) = callboard_storage::parse_partition_dir(name) else { continue };
            let to = found.path.with_file_name(partition_dir_name(
                &partition,
                DirKind::Stray,
                *topic_id.as_bytes(),
            ));
            tracing::warn!(from = name, to = to.display().to_string(), "a stray partition is set aside");
            if let Err(error) = rename_if_there(&found.path, &to) {
                tracing::error!("{error}");
            }
        }
    }

    fn checkpoints(&self) -> Vec<Checkpoints> {
        let mut all: Vec<Checkpoints> =
            self.core.setup.directories.iter().map(|_| Checkpoints::default()).collect();
        for handle in self.core.registry.held().partitions() {
            let shared = handle.shared();
            let (Some(checkpoints), Some(reader)) = (all.get_mut(shared.directory), shared.view.reader())
            else {
                continue;
            };
            let partition = topic_partition(&shared.id);
            let durable = shared.durable_offset.load(Ordering::SeqCst);
            checkpoints.recovery_points.insert(partition.clone(), durable);
            checkpoints.high_watermarks.insert(partition.clone(), shared.view.high_watermark());
            // As Kafka: only a start that no segment's name tells.
            let start = reader.log_start_offset();
            if reader.segments().first().is_some_and(|(base, _)| start > *base) {
                checkpoints.log_starts.insert(partition, start);
            }
        }
        all
    }

    /// Writes what has changed of the checkpoints, in the blocking pool. `all` is false for the high
    /// watermarks alone.
    fn write_checkpoints(&mut self, all: bool, ctx: &mut Context<Self>) {
        if self.writing {
            return;
        }
        let mut now = self.checkpoints();
        if !all {
            for (now, written) in now.iter_mut().zip(&self.written) {
                now.recovery_points = written.recovery_points.clone();
                now.log_starts = written.log_starts.clone();
            }
        }
        if now == self.written {
            return;
        }
        self.writing = true;
        let (directories, last) = (Arc::clone(&self.core.setup.directories), self.written.clone());
        ctx.blocking(
            "write checkpoints",
            move || (write_all(&directories, &now, &last), now),
            |manager: &mut Self, (outcomes, now), ctx| {
                manager.writing = false;
                manager.written = now;
                for (directory, error) in outcomes {
                    if error.takes_directory() {
                        manager.directory_failed(directory, &error.to_string(), ctx);
                    } else {
                        // They are of use, not of need; the next round writes them again.
                        tracing::error!("no checkpoint: {error}");
                        manager.forget_written(directory);
                    }
                }
            },
        );
    }

    fn forget_written(&mut self, directory: usize) {
        if let Some(written) = self.written.get_mut(directory) {
            *written = Checkpoints::default();
        }
    }

    /// Looks whether a directory is still there: a whole one that was removed shows as missing files of its partitions.
    fn probe(&self, index: usize, ctx: &mut Context<Self>) {
        let Some(path) = self.core.setup.directories.get(index).map(|directory| directory.path.clone())
        else {
            return;
        };
        ctx.blocking(
            "probe directory",
            move || std::fs::read_dir(path).map(drop),
            move |manager: &mut Self, outcome, ctx| {
                if let Err(error) = outcome {
                    manager.directory_failed(index, &error.to_string(), ctx);
                }
            },
        );
    }

    fn directory_failed(&self, index: usize, reason: &str, ctx: &mut Context<Self>) {
        let directories = &self.core.setup.directories;
        let Some(directory) = directories.get(index) else { return };
        if !directory.set_failed() {
            return;
        }
        tracing::error!(directory = directory.path.display().to_string(), "goes offline: {reason}");
        for handle in self.core.registry.held().partitions() {
            if handle.shared().directory == index && handle.view().status() != Status::Offline {
                handle.actor().tell(GoOffline);
            }
        }
        if directories.iter().all(LogDirectory::is_failed) {
            let failure = Failure::escalate("no log directory is left").with_exit(Exit::LogDirectoriesFailed);
            ctx.fail(failure);
        }
    }

    fn remove_later(path: PathBuf, delay: Duration, ctx: &mut Context<Self>) {
        ctx.after("remove directory", delay, move |_: &mut Self, ctx| {
            ctx.blocking(
                "remove directory",
                move || callboard_storage::delete_dir(&path),
                |_: &mut Self, outcome, _| {
                    if let Err(error) = outcome {
                        tracing::warn!("{error}");
                    }
                },
            );
        });
    }
}

/// Deletes a partition, again if it crashes over it.
async fn delete(handle: &PartitionHandle) {
    for _ in 0..DELETE_ATTEMPTS {
        match handle.actor().ask(DeletePartition).await {
            Ok(Ok(())) | Err(AskError::Stopped) => return,
            Ok(Err(error)) => {
                return tracing::error!(
                    partition = handle.id().to_string(),
                    error = error.name(),
                    "not deleted"
                );
            }
            Err(AskError::Crashed | AskError::Busy) => {}
        }
    }
    tracing::error!(partition = handle.id().to_string(), "not deleted: it crashes each time");
}

fn reassign(handle: &PartitionHandle, wanted: Wanted) {
    let orders = Orders { assignment: wanted.assignment, settings: wanted.settings };
    let mut known = handle.shared().orders();
    if *known != orders {
        *known = orders;
        drop(known);
        handle.actor().tell(Reassigned);
    }
}

fn topic_partition(id: &super::view::PartitionId) -> TopicPartition {
    TopicPartition::new(id.topic.to_string(), id.partition)
}

fn write_all(
    directories: &[LogDirectory],
    now: &[Checkpoints],
    last: &[Checkpoints],
) -> Vec<(usize, StorageError)> {
    let each = directories.iter().zip(now.iter().zip(last)).enumerate();
    let working = each.filter(|(_, (directory, _))| !directory.is_failed());
    working
        .filter_map(|(index, (directory, (now, last)))| {
            now.write(&directory.path, last).err().map(|error| (index, error))
        })
        .collect()
}

impl Actor for Manager {
    fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), Failure> {
        let core = Arc::clone(&self.core);
        for (index, reason) in &core.inventory.failed {
            self.directory_failed(*index, reason, ctx);
        }
        for path in &core.inventory.half_deleted {
            Self::remove_later(path.clone(), Duration::ZERO, ctx);
        }
        let setup = &core.setup;
        ctx.every("checkpoint", setup.checkpoint_interval, |manager: &mut Self, ctx| {
            manager.write_checkpoints(true, ctx);
        });
        ctx.every("checkpoint high watermarks", setup.high_watermark_interval, |manager: &mut Self, ctx| {
            manager.write_checkpoints(false, ctx);
        });
        Ok(())
    }

    /// The partitions have stopped before: the last checkpoints, and the marker where all logs are closed.
    fn stopping(&mut self, ctx: &mut Context<Self>) {
        let (now, last) = (self.checkpoints(), std::mem::take(&mut self.written));
        let core = Arc::clone(&self.core);
        let broker_epoch = core.setup.broker_epoch.load(Ordering::SeqCst);
        let mut clean = vec![true; core.setup.directories.len()];
        for handle in core.registry.held().partitions() {
            let shared = handle.shared();
            if !shared.closed.load(Ordering::SeqCst)
                && let Some(clean) = clean.get_mut(shared.directory)
            {
                *clean = false;
            }
        }
        let work = move || {
            let directories = &core.setup.directories;
            let failed = write_all(directories, &now, &last);
            for (index, (directory, clean)) in directories.iter().zip(clean).enumerate() {
                let written = !failed.iter().any(|(at, _)| *at == index);
                if clean
                    && written
                    && !directory.is_failed()
                    && let Err(error) = (CleanShutdown { broker_epoch }).write(&directory.path)
                {
                    tracing::error!("{error}");
                }
            }
            failed
        };
        ctx.blocking("last checkpoints", work, |_: &mut Self, failed, _| {
            for (_, error) in failed {
                tracing::error!("{error}");
            }
        });
    }
}

impl Handler<ApplyChanges> for Manager {
    fn handle(&mut self, changes: ApplyChanges, reply: ReplyTo<()>, ctx: &mut Context<Self>) {
        self.queue.push_back((changes, reply));
        self.next_change(ctx);
    }
}

impl Handler<DirectoryFailed> for Manager {
    fn handle(&mut self, failed: DirectoryFailed, reply: ReplyTo<()>, ctx: &mut Context<Self>) {
        self.directory_failed(failed.directory, &failed.reason, ctx);
        reply.send(());
    }
}

impl Handler<PartitionFailed> for Manager {
    fn handle(&mut self, failed: PartitionFailed, reply: ReplyTo<()>, ctx: &mut Context<Self>) {
        self.probe(failed.directory, ctx);
        reply.send(());
    }
}

impl Handler<RemoveLater> for Manager {
    fn handle(&mut self, RemoveLater { path, delay }: RemoveLater, _: ReplyTo<()>, ctx: &mut Context<Self>) {
        Self::remove_later(path, delay, ctx);
    }
}
