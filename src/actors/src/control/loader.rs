//! The metadata loader: committed records become images, published to all.
//!
//! - Who sends: the raft actor ([`LogNews`]); whoever must act on changes ([`FollowImages`]).
//! - Owns: the newest image; the followers, who get [`NewImage`], one at a time each: a slow one gets one delta over all it
//!   missed. Readers use [`MetadataView`], without a message.
//! - Runs: one a node. Snapshots are written by the raft actor: after `metadata.log.max.record.bytes.between.snapshots`
//!   of records, or `metadata.log.max.snapshot.interval.ms` after the last.
//! - Mailbox: control lane, one outstanding by the raft actor; followers come once each.
//! - Timers: the age of the last snapshot.
//! - Restart: built again from the log. What is published stays until then, and followers outlive it. A committed record
//!   that can't be applied would fail again: it escalates with
//!   [`Exit::MetadataFailed`].
//! - To a client, its crash means a delay of what the controller has decided.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use callboard_metadata::image::{Delta, Image, TransactionalImage};
use callboard_raft::SnapshotId;
use tokio::sync::watch;

use super::raft::{CommittedBatch, LogNews, Raft, Snapshot, Subscribe, WriteSnapshot};
use crate::supervision::{
    Actor, ActorRef, AskError, Context, Exit, Failure, Handler, Message, Recipient, ReplyTo, Spec,
    SupervisorRef,
};

/// How often the age of the last snapshot is looked at.
const SNAPSHOT_CHECK: Duration = Duration::from_secs(10);

/// An image and how far it has read the log.
#[derive(Debug, Clone, Default)]
pub struct Published {
    /// The cluster's metadata.
    pub image: Image,
    /// Offset of the last record read; -1 before the first.
    pub offset: i64,
    /// The epoch that record was written in.
    pub epoch: i32,
    /// When it was appended, in milliseconds since 1970.
    pub timestamp_ms: i64,
}

/// Sent to followers: what changed since the image they had.
#[derive(Debug, Clone)]
pub struct NewImage {
    /// The image the follower was last told of; an empty one at first.
    pub old: Arc<Published>,
    /// The newest image.
    pub new: Arc<Published>,
    /// What differs between them.
    pub delta: Arc<Delta>,
}

impl Message for NewImage {
    type Reply = ();
    const NAME: &'static str = "NewImage";
    // One at a time is outstanding for each follower.
    fn is_control(&self) -> bool {
        true
    }
}

/// Be told of new images. A subscription of the same name is replaced, and begins with an empty image again.
#[derive(Debug)]
pub struct FollowImages {
    /// The follower; one subscription a name.
    pub name: &'static str,
    /// Where images go.
    pub to: Recipient<NewImage>,
}

impl Message for FollowImages {
    type Reply = ();
    const NAME: &'static str = "FollowImages";
}

/// The published metadata, readable from anywhere without a message.
#[derive(Debug, Clone)]
pub struct MetadataView {
    shared: Arc<Shared>,
    position: watch::Receiver<(i64, i32)>,
}

impl MetadataView {
    /// The newest image.
    pub fn current(&self) -> Arc<Published> {
        self.shared.published.load_full()
    }

    /// Offset and epoch of the last record read, and their changes.
    pub fn position(&self) -> watch::Receiver<(i64, i32)> {
        self.position.clone()
    }

    /// Waits until everything up to `offset` is published, and gives the image. `None` once the loader has ended.
    pub async fn published(&self, offset: i64) -> Option<Arc<Published>> {
        let mut position = self.position.clone();
        position.wait_for(|(reached, _)| *reached >= offset).await.ok()?;
        Some(self.current())
    }
}

#[derive(Debug)]
struct Shared {
    published: ArcSwap<Published>,
    followers: Mutex<BTreeMap<&'static str, Follower>>,
}

impl Shared {
    fn followers(&self) -> MutexGuard<'_, BTreeMap<&'static str, Follower>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Follower {
    to: Recipient<NewImage>,
    has: Arc<Published>,
    id: u64,
    busy: bool,
}

/// `metadata.log.*`: when a snapshot is due.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotPolicy {
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub max_record_bytes: u64,
    /// `metadata.log.max.snapshot.interval.ms`; `None` for never.
    pub max_interval_ms: Option<u64>,
}

/// The way to the loader.
#[derive(Debug, Clone)]
pub struct Loader {
    actor: ActorRef<LoaderActor>,
    view: MetadataView,
}

impl Loader {
    /// Starts the loader.
    pub fn spawn(supervisor: &SupervisorRef, raft: Raft, policy: SnapshotPolicy) -> Self {
        let empty = Published { offset: -1, ..Published::default() };
        let shared = Arc::new(Shared {
            published: ArcSwap::from_pointee(empty),
            followers: Mutex::new(BTreeMap::new()),
        });
        let position = Arc::new(watch::Sender::new((-1, 0)));
        let view = MetadataView { shared: Arc::clone(&shared), position: position.subscribe() };
        let factory = move || LoaderActor {
            raft: raft.clone(),
            policy,
            shared: Arc::clone(&shared),
            position: Arc::clone(&position),
            image: TransactionalImage::default(),
            reached: Reached { offset: -1, ..Reached::default() },
            visible: Reached { offset: -1, ..Reached::default() },
            bytes_since_snapshot: 0,
            snapshot_at_ms: 0,
            writing_snapshot: false,
            next_follower: 0,
        };
        Self { actor: supervisor.spawn(Spec::new("metadata", factory)), view }
    }

    /// What it publishes.
    pub fn view(&self) -> &MetadataView {
        &self.view
    }

    /// Follows images: see [`FollowImages`].
    pub fn follow(&self, name: &'static str, to: Recipient<NewImage>) -> crate::supervision::Ask<()> {
        self.actor.ask(FollowImages { name, to })
    }
}

/// A place in the log.
#[derive(Debug, Clone, Copy, Default)]
struct Reached {
    offset: i64,
    epoch: i32,
    timestamp_ms: i64,
}

/// The metadata loader. See the [module](self).
#[derive(Debug)]
pub struct LoaderActor {
    raft: Raft,
    policy: SnapshotPolicy,
    shared: Arc<Shared>,
    position: Arc<watch::Sender<(i64, i32)>>,
    image: TransactionalImage,
    /// The last record applied.
    reached: Reached,
    /// The last record that readers may see: not within a transaction.
    visible: Reached,
    bytes_since_snapshot: u64,
    snapshot_at_ms: i64,
    writing_snapshot: bool,
    next_follower: u64,
}

type Ctx = Context<LoaderActor>;

impl LoaderActor {
    fn load_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        if snapshot.id.end_offset <= self.reached.offset {
            return Ok(());
        }
        let mut image = TransactionalImage::default();
        for record in &snapshot.records {
            image.apply(&record.record).map_err(|e| replay_failure(snapshot.id.end_offset - 1, &e))?;
        }
        self.image = image;
        self.reached = Reached {
            offset: snapshot.id.end_offset - 1,
            epoch: snapshot.id.epoch,
            timestamp_ms: snapshot.last_contained_log_timestamp_ms,
        };
        self.bytes_since_snapshot = 0;
        self.snapshot_at_ms = snapshot.last_contained_log_timestamp_ms;
        Ok(())
    }

    fn apply(&mut self, batch: &CommittedBatch) -> Result<(), Failure> {
        // After a crash of the raft actor batches may come twice.
        if batch.last_offset <= self.reached.offset {
            return Ok(());
        }
        // Sent to this loader's former life, which had read what is before. The subscription of this life brings
        // all of it; without what is before, the image would say that everything else is gone.
        if batch.base_offset > self.reached.offset + 1 {
            return Ok(());
        }
        for (offset, record) in (batch.base_offset..).zip(&batch.records) {
            self.image.apply(record).map_err(|e| replay_failure(offset, &e))?;
        }
        self.reached =
            Reached { offset: batch.last_offset, epoch: batch.epoch, timestamp_ms: batch.append_time_ms };
        self.bytes_since_snapshot += batch.size_bytes as u64;
        Ok(())
    }

    /// Shows readers and followers what was read, unless a transaction is open.
    fn publish(&mut self, ctx: &mut Ctx) {
        if self.image.in_transaction() || self.reached.offset <= self.visible.offset {
            return;
        }
        self.visible = self.reached;
        let Reached { offset, epoch, timestamp_ms } = self.visible;
        // A loader built again goes through the log from its start: what readers see never goes back.
        if offset >= self.shared.published.load().offset {
            let image = self.image.visible().clone();
            self.shared.published.store(Arc::new(Published { image, offset, epoch, timestamp_ms }));
            self.position.send_replace((offset, epoch));
            self.tell_followers(ctx);
        }
    }

    fn tell_followers(&mut self, ctx: &mut Ctx) {
        let new = self.shared.published.load_full();
        let shared = Arc::clone(&self.shared);
        for (&name, follower) in shared.followers().iter_mut().filter(|(_, f)| !f.busy) {
            if new.offset < 0 || follower.has.offset == new.offset {
                continue;
            }
            follower.busy = true;
            let (old, id) = (Arc::clone(&follower.has), follower.id);
            let delta = Arc::new(Delta::between(&old.image, &new.image));
            let asking = follower.to.ask(NewImage { old, new: Arc::clone(&new), delta });
            let taken = Arc::clone(&new);
            ctx.effect("tell", asking, move |actor: &mut Self, answer, ctx| {
                actor.was_told(name, id, taken, answer, ctx);
            });
        }
    }

    fn was_told(
        &mut self,
        name: &'static str,
        id: u64,
        taken: Arc<Published>,
        answer: Result<(), AskError>,
        ctx: &mut Ctx,
    ) {
        let shared = Arc::clone(&self.shared);
        let mut followers = shared.followers();
        let Some(follower) = followers.get_mut(name).filter(|f| f.id == id) else { return };
        match answer {
            Ok(()) => (follower.has, follower.busy) = (taken, false),
            // It will follow again when it is back, and stays busy until then.
            Err(AskError::Crashed | AskError::Busy) => return,
            Err(AskError::Stopped) => drop(followers.remove(name)),
        }
        drop(followers);
        self.tell_followers(ctx);
    }

    fn snapshot_if_due(&mut self, ctx: &mut Ctx) {
        let now_ms = ctx.now_ms();
        let age_ms = u64::try_from(now_ms - self.snapshot_at_ms).unwrap_or(0);
        let is_old = self.policy.max_interval_ms.is_some_and(|limit| limit > 0 && age_ms >= limit);
        let is_due = self.bytes_since_snapshot >= self.policy.max_record_bytes
            || (is_old && self.bytes_since_snapshot > 0);
        if !is_due || self.writing_snapshot || self.image.in_transaction() || self.visible.offset < 0 {
            return;
        }
        let Reached { offset, epoch, timestamp_ms } = self.visible;
        let snapshot = Snapshot {
            id: SnapshotId { end_offset: offset + 1, epoch },
            last_contained_log_timestamp_ms: timestamp_ms,
            records: self.image.visible().to_records(),
        };
        (self.writing_snapshot, self.bytes_since_snapshot, self.snapshot_at_ms) = (true, 0, now_ms);
        let writing = self.raft.actor().ask(WriteSnapshot { snapshot });
        ctx.effect("write snapshot", writing, |actor: &mut Self, _, _| {
            // What failed is in the log; the next one is due as usual.
            actor.writing_snapshot = false;
        });
    }

    fn take(&mut self, news: &LogNews) -> Result<(), Failure> {
        match news {
            LogNews::Snapshot(snapshot) => self.load_snapshot(snapshot),
            LogNews::Batches(batches) => batches.iter().try_for_each(|batch| self.apply(batch)),
            LogNews::Leadership(_) => Ok(()),
        }
    }
}

fn replay_failure(offset: i64, error: &callboard_metadata::ReplayError) -> Failure {
    Failure::escalate(format!("metadata record at offset {offset} can't be applied: {error}"))
        .with_exit(Exit::MetadataFailed)
}

impl Actor for LoaderActor {
    fn started(&mut self, ctx: &mut Ctx) -> Result<(), Failure> {
        for follower in self.shared.followers().values_mut() {
            follower.busy = false;
        }
        self.snapshot_at_ms = ctx.now_ms();
        let to = ctx.me().recipient();
        let subscribing = self.raft.subscribe(Subscribe { name: "metadata", to, from_offset: 0 });
        ctx.effect("subscribe", subscribing, |_: &mut Self, answer, ctx| {
            if let Err(error) = answer {
                ctx.fail(Failure::restart(format!("could not follow the metadata log: {error}")));
            }
        });
        ctx.every("snapshot check", SNAPSHOT_CHECK, |actor, ctx| actor.snapshot_if_due(ctx));
        Ok(())
    }
}

impl Handler<LogNews> for LoaderActor {
    fn handle(&mut self, news: LogNews, reply: ReplyTo<()>, ctx: &mut Ctx) {
        if let Err(failure) = self.take(&news) {
            return ctx.fail(failure);
        }
        self.publish(ctx);
        reply.send(());
        self.snapshot_if_due(ctx);
    }
}

impl Handler<FollowImages> for LoaderActor {
    fn handle(&mut self, follow: FollowImages, reply: ReplyTo<()>, ctx: &mut Ctx) {
        self.next_follower += 1;
        let id = (ctx.generation() << 32) + self.next_follower;
        let has = Arc::new(Published { offset: -1, ..Published::default() });
        let follower = Follower { to: follow.to, has, id, busy: false };
        self.shared.followers().insert(follow.name, follower);
        reply.send(());
        self.tell_followers(ctx);
    }
}
