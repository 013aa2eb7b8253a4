//! The metadata as this broker has carried it out, and the actor that does.
//!
//! - Who sends: the metadata loader ([`NewImage`]), one at a time.
//! - Owns: the order of things: first the replicas follow a new image, then handlers see it. So no client hears of a
//!   leader here before it serves.
//! - Runs: one on a node with the broker role.
//! - Mailbox: control lane only; one image is outstanding.
//! - Timers: none; the wait for logs to open is bounded.
//! - Restart: it is told everything again from an empty image; what handlers see stays meanwhile.
//! - To a client, its crash means nothing but a delay of what the controller has decided.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use callboard_metadata::config::Settings;
use callboard_metadata::image::{ConfigResource, Image};
use tokio::sync::watch;

use super::loader::{Loader, NewImage};
use crate::replicas::messages::{ApplyChanges, AwaitOpen};
use crate::replicas::{PartitionHandle, Replicas, Viewpoint};
use crate::supervision::{Actor, ActorRef, Context, Failure, Handler, ReplyTo, Spec, SupervisorRef};

/// How long an image waits for the logs that it begins here. A log that needs longer answers NOT_LEADER_OR_FOLLOWER
/// until it is open.
const MAX_OPEN_WAIT: Duration = Duration::from_secs(5);
/// How long to wait after the replicas manager crashed over a change.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The metadata at one offset, carried out on this broker.
#[derive(Debug, Clone)]
pub struct AppliedMetadata {
    /// The cluster's metadata.
    pub image: Arc<Image>,
    /// Offset of the last record it contains; -1 before the first.
    pub offset: i64,
    /// The broker's settings, with the dynamic ones of this image.
    pub settings: Arc<Settings>,
}

/// What handlers read, without a message.
#[derive(Debug, Clone)]
pub struct BrokerMetadata {
    current: Arc<ArcSwap<AppliedMetadata>>,
    offset: watch::Receiver<i64>,
}

impl BrokerMetadata {
    /// Starts the actor: it follows the loader's images from now on.
    pub fn spawn(
        supervisor: &SupervisorRef,
        loader: &Loader,
        replicas: &Replicas,
        node_id: i32,
        settings: Settings,
    ) -> Self {
        let settings = Arc::new(settings);
        let empty = AppliedMetadata { image: Arc::default(), offset: -1, settings: Arc::clone(&settings) };
        let current = Arc::new(ArcSwap::from_pointee(empty));
        let (publish, offset) = watch::channel(-1);
        let (loader, replicas) = (loader.clone(), replicas.clone());
        let for_factory = Arc::clone(&current);
        let factory = move || Applier {
            node_id,
            static_settings: Arc::clone(&settings),
            loader: loader.clone(),
            replicas: replicas.clone(),
            current: Arc::clone(&for_factory),
            offset: publish.clone(),
            begun: false,
        };
        let _: ActorRef<Applier> = supervisor.spawn(Spec::new("applied-metadata", factory));
        Self { current, offset }
    }

    /// The metadata as carried out now.
    pub fn current(&self) -> Arc<AppliedMetadata> {
        self.current.load_full()
    }

    /// The offset up to which metadata is carried out, and its changes.
    pub fn offset(&self) -> watch::Receiver<i64> {
        self.offset.clone()
    }

    /// Waits until everything up to an offset of the metadata log is carried out here. False if the node stops first.
    pub async fn reached(&self, offset: i64) -> bool {
        self.offset.clone().wait_for(|reached| *reached >= offset).await.is_ok()
    }
}

/// The actor. See the [module](self).
pub struct Applier {
    node_id: i32,
    static_settings: Arc<Settings>,
    loader: Loader,
    replicas: Replicas,
    current: Arc<ArcSwap<AppliedMetadata>>,
    offset: watch::Sender<i64>,
    /// Whether the first image was carried out.
    begun: bool,
}

impl fmt::Debug for Applier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applier").field("node_id", &self.node_id).finish_non_exhaustive()
    }
}

impl Applier {
    fn settings(&self, image: &Image) -> Settings {
        let cluster = image.configs.of(&ConfigResource::all_brokers());
        let own = image.configs.of(&ConfigResource::broker(self.node_id));
        fn pairs(values: &callboard_metadata::image::ConfigValues) -> impl Iterator<Item = (&str, &str)> {
            values.iter().map(|(name, value)| (&**name, &**value))
        }
        self.static_settings.with_dynamic(pairs(&cluster), pairs(&own))
    }

    fn changes(&self, news: &NewImage, settings: &Settings) -> Option<ApplyChanges> {
        let expiration = settings.value("producer.id.expiration.ms").and_then(|value| value.as_i64());
        let view = Viewpoint {
            node_id: self.node_id,
            broker: settings,
            producer_id_expiration_ms: expiration.unwrap_or(i64::MAX),
        };
        if self.begun {
            view.difference(&news.old.image, &news.new.image, &news.delta)
        } else {
            Some(view.everything(&news.new.image))
        }
    }

    fn publish(&mut self, news: &NewImage, settings: Arc<Settings>) {
        self.begun = true;
        // An actor built again begins with an old image: what handlers see never goes back.
        if news.new.offset >= self.current.load().offset {
            let image = Arc::new(news.new.image.clone());
            self.current.store(Arc::new(AppliedMetadata { image, offset: news.new.offset, settings }));
            self.offset.send_replace(news.new.offset);
        }
    }
}

impl Actor for Applier {
    fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), Failure> {
        let following = self.loader.follow("applied-metadata", ctx.me().recipient());
        ctx.effect("follow", following, |_: &mut Self, answer, ctx| {
            if let Err(error) = answer {
                ctx.fail(Failure::restart(format!("could not follow the metadata: {error}")));
            }
        });
        Ok(())
    }
}

impl Handler<NewImage> for Applier {
    fn handle(&mut self, news: NewImage, reply: ReplyTo<()>, ctx: &mut Context<Self>) {
        let settings = Arc::new(self.settings(&news.new.image));
        let Some(changes) = self.changes(&news, &settings) else {
            self.publish(&news, settings);
            return reply.send(());
        };
        let replicas = self.replicas.clone();
        let node_id = self.node_id;
        let applying = async move { apply(&replicas, node_id, changes).await };
        ctx.effect("apply", applying, move |applier: &mut Self, applied, ctx| {
            if !applied {
                return ctx.fail(Failure::restart("the replicas manager crashed over a change"));
            }
            applier.publish(&news, settings);
            reply.send(());
        });
    }
}

/// Has the replicas follow, and waits until what this broker is to lead serves. False if the manager crashed.
async fn apply(replicas: &Replicas, node_id: i32, changes: ApplyChanges) -> bool {
    let led = |wanted: &crate::replicas::messages::Wanted| wanted.assignment.leader == node_id;
    let begun: Vec<_> = changes.wanted.iter().filter(|wanted| led(wanted)).map(|w| w.id.clone()).collect();
    if replicas.manager.ask(changes).await.is_err() {
        tokio::time::sleep(RETRY_PAUSE).await;
        return false;
    }
    let held = replicas.registry.held();
    let handles = begun.iter().filter_map(|id| held.partition(id.topic_id, id.partition));
    let opening: Vec<PartitionHandle> = handles.cloned().collect();
    let all_open = async {
        for handle in &opening {
            // A partition that crashes is opened again; whoever asks it meanwhile is told to try again.
            let _ = handle.actor().ask(AwaitOpen).await;
        }
    };
    if tokio::time::timeout(MAX_OPEN_WAIT, all_open).await.is_err() {
        tracing::warn!(partitions = opening.len(), "logs take long to open; the metadata goes ahead");
    }
    true
}
