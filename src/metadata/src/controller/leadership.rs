//! Leaders and in-sync replicas when a broker comes or goes.

use callboard_protocol::Uuid;

use super::Controller;
use super::partition_change::{Election, PartitionChange};
use crate::image::{ConfigResource, NO_LEADER, PartitionRegistration, Topic};
use crate::record::VersionedRecord;

/// What happened to a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BrokerEvent<'a> {
    /// It may lead no more: fenced, gone, or shutting down.
    Leaves(i32),
    /// Its earlier run ended without a clean shutdown, so it may lack records that it had acknowledged.
    MayHaveLost(i32),
    /// It may lead again.
    Joins(i32),
    /// It lost log directories, and what they hold.
    LostDirectories(i32, &'a [Uuid]),
}

impl Controller {
    /// The changes of all partitions that an event of a broker asks for.
    pub(super) fn leadership_changes(&self, event: BrokerEvent<'_>) -> Vec<VersionedRecord> {
        let mut out = Vec::new();
        for topic in self.image().topics.iter() {
            for (number, partition) in &topic.partitions {
                if let Some(record) = self.change_for_event(topic, *number, partition, event) {
                    out.push(record);
                }
            }
        }
        out
    }

    fn change_for_event(
        &self,
        topic: &Topic,
        number: i32,
        partition: &PartitionRegistration,
        event: BrokerEvent<'_>,
    ) -> Option<VersionedRecord> {
        let cluster = &self.image().cluster;
        let active = |id: i32| cluster.is_active(id);
        let (removed, unclean_shutdown) = match event {
            BrokerEvent::Leaves(id) => (Some(id), None),
            BrokerEvent::MayHaveLost(id) => (Some(id), Some(id)),
            BrokerEvent::LostDirectories(id, lost) => {
                if !partition.directory(id).is_some_and(|dir| lost.contains(&dir)) {
                    return None;
                }
                (Some(id), None)
            }
            BrokerEvent::Joins(_) => (None, None),
        };
        let affected = match event {
            BrokerEvent::Joins(id) => partition.leader == NO_LEADER && partition.replicas.contains(&id),
            BrokerEvent::Leaves(id) | BrokerEvent::LostDirectories(id, _) => {
                partition.isr.contains(&id) || partition.leader == id
            }
            BrokerEvent::MayHaveLost(id) => partition.isr.contains(&id) || partition.elr.contains(&id),
        };
        if !affected {
            return None;
        }
        let may_lead = |id: i32| match event {
            BrokerEvent::Joins(joined) => id == joined || active(id),
            _ => Some(id) != removed && active(id),
        };
        self.partition_change(topic, partition, &may_lead, self.failover_election(topic), unclean_shutdown)
            .without(removed)
            .build(topic.id, number)
    }

    /// A change that starts from the partition as it is.
    pub(super) fn partition_change<'a>(
        &self,
        topic: &Topic,
        partition: &'a PartitionRegistration,
        may_lead: &'a dyn Fn(i32) -> bool,
        election: Election,
        unclean_shutdown: Option<i32>,
    ) -> PartitionChange<'a> {
        PartitionChange {
            partition,
            isr: partition.isr.clone(),
            unclean_shutdown,
            may_lead,
            election,
            min_insync_replicas: self.min_insync_replicas(&topic.name),
            elr_enabled: self.elr_enabled(),
        }
    }

    /// How a leader is replaced: `unclean.leader.election.enable` of the topic decides.
    fn failover_election(&self, topic: &Topic) -> Election {
        match self.topic_setting(&topic.name, "unclean.leader.election.enable").as_deref() {
            Some("true") => Election::Unclean,
            _ => Election::Online,
        }
    }

    fn min_insync_replicas(&self, topic: &str) -> usize {
        let text = self.topic_setting(topic, "min.insync.replicas");
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(1)
    }

    /// A setting that topics and brokers share the name of: the topic's own, the cluster's, or the file's.
    fn topic_setting(&self, topic: &str, name: &str) -> Option<String> {
        let configs = &self.image().configs;
        let own = configs.value(&ConfigResource::topic(topic), name);
        own.or_else(|| configs.value(&ConfigResource::all_brokers(), name))
            .map(|text| text.to_string())
            .or_else(|| self.settings.static_settings.text(name).map(str::to_owned))
    }
}

impl PartitionChange<'_> {
    /// The same without a broker among those in sync.
    pub(super) fn without(mut self, broker: Option<i32>) -> Self {
        self.isr.retain(|id| Some(*id) != broker);
        self
    }
}
