//! Starts shards, and tells them what they lead.
//!
//! - Who sends: nobody; it watches the metadata that this broker has carried out.
//! - Owns: which shards there are and their orders, which outlive it.
//! - Runs: one for each kind of coordinator.
//! - Mailbox: unused.
//! - Timers: none.
//! - Restart: it looks at the present metadata and orders anew; a shard whose orders are the same goes on.
//! - To a client, its crash means nothing but a delay of a change of leadership.

use std::sync::Arc;

use callboard_coordinator::runtime::Coordinator;
use callboard_metadata::image::{Delta, Image, Topic};
use callboard_protocol::ByteString;

use super::shard::{NewOrders, Shard, TopicsChanged};
use super::{Core, Held, Led, Orders};
use crate::control::applied::AppliedMetadata;
use crate::replicas::PartitionId;
use crate::supervision::{Actor, ActorRef, Context, Failure, Spec};

/// The actor.
pub(super) struct Manager<M: Coordinator> {
    core: Arc<Core<M>>,
    /// What it has carried out.
    applied: Option<Arc<AppliedMetadata>>,
}

impl<M: Coordinator> Manager<M> {
    pub(super) const fn new(core: Arc<Core<M>>) -> Self {
        Self { core, applied: None }
    }

    /// Follows the metadata from now on.
    fn watch(&mut self, ctx: &mut Context<Self>) {
        let mut offset = self.core.metadata.offset();
        // What is there now counts as seen: it is carried out first.
        let _ = offset.borrow_and_update();
        self.apply();
        let changing = async move { offset.changed().await };
        ctx.effect("metadata changed", changing, |manager: &mut Self, changed, ctx| {
            // An error means that the node stops.
            if changed.is_ok() {
                manager.watch(ctx);
            }
        });
    }

    fn apply(&mut self) {
        let applied = self.core.metadata.current();
        self.order(&applied.image);
        if let Some(before) = self.applied.replace(Arc::clone(&applied)) {
            self.tell_topics(&before.image, &applied.image);
        }
    }

    /// Gives each shard its orders.
    fn order(&self, image: &Image) {
        let topic = image.topics.by_name(self.core.setup.topic);
        let shards = self.core.shards.load();
        let gone =
            shards.iter().filter(|(number, _)| topic.and_then(|topic| topic.partition(**number)).is_none());
        for (_, held) in gone {
            tell(held, None);
        }
        let Some(topic) = topic else { return };
        for (number, registration) in &topic.partitions {
            let leads = registration.leader == self.core.setup.node_id;
            let led = leads.then(|| led(topic, *number, registration.leader_epoch));
            match shards.get(number) {
                Some(held) => tell(held, led),
                None if leads => self.add(*number, led),
                None => {}
            }
        }
    }

    fn add(&self, number: i32, led: Option<Led>) {
        let Some(supervisor) = self.core.supervisor.get() else { return };
        let orders = Arc::new(Orders::default());
        orders.set(led);
        let (core, for_factory) = (Arc::clone(&self.core), Arc::clone(&orders));
        let factory = move || Shard::new(Arc::clone(&core), Arc::clone(&for_factory));
        let actor: ActorRef<Shard<M>> = supervisor.spawn(Spec::new(format!("shard-{number}"), factory));
        let mut shards = self.core.shards.load().as_ref().clone();
        shards.insert(number, Held { orders, actor });
        self.core.shards.store(Arc::new(shards));
    }

    /// Tells the shards of changed topics, if there are any.
    fn tell_topics(&self, old: &Image, new: &Image) {
        let delta = Delta::between(old, new);
        if delta.topics.is_empty() && delta.configs.is_empty() {
            return;
        }
        let gone = delta.topics.iter().filter(|topic| topic.deleted);
        let deleted: Arc<Vec<ByteString>> = Arc::new(gone.map(|topic| topic.name.clone()).collect());
        for held in self.core.shards.load().values() {
            held.actor.tell(TopicsChanged(Arc::clone(&deleted)));
        }
    }
}

fn led(topic: &Topic, number: i32, leader_epoch: i32) -> Led {
    let id = PartitionId { topic_id: topic.id, topic: topic.name.clone(), partition: number };
    Led { id, leader_epoch }
}

fn tell<M: Coordinator>(held: &Held<M>, led: Option<Led>) {
    if held.orders.set(led) {
        held.actor.tell(NewOrders);
    }
}

impl<M: Coordinator> Actor for Manager<M> {
    fn started(&mut self, ctx: &mut Context<Self>) -> Result<(), Failure> {
        self.watch(ctx);
        Ok(())
    }
}
