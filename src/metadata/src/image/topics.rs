//! Topics and their partitions.

use std::sync::Arc;

use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord};
use callboard_protocol::{ByteString, Uuid};
use imbl::OrdMap;

use crate::error::ReplayError;
use crate::record::{PARTITION_VERSION, VersionedRecord};

/// No broker leads the partition.
pub const NO_LEADER: i32 = -1;
/// In a change record: the leader stays.
pub const NO_LEADER_CHANGE: i32 = -2;
/// A replica's directory while the broker has not chosen one.
pub const UNASSIGNED_DIRECTORY: Uuid = Uuid::ZERO;

/// Whether the leader was elected without losing records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LeaderRecoveryState {
    /// The usual state.
    #[default]
    Recovered,
    /// The leader came from outside the in-sync replicas and has not told yet that it is done recovering.
    Recovering,
}

impl LeaderRecoveryState {
    /// The value in records and requests.
    pub fn value(self) -> i8 {
        match self {
            Self::Recovered => 0,
            Self::Recovering => 1,
        }
    }

    /// From the value in records and requests.
    pub fn from_value(value: i8) -> Option<Self> {
        match value {
            0 => Some(Self::Recovered),
            1 => Some(Self::Recovering),
            _ => None,
        }
    }
}

/// One partition as the controller decided it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartitionRegistration {
    /// The brokers that hold a copy; the first is the preferred leader.
    pub replicas: Vec<i32>,
    /// The log directory of each replica, in the same order.
    pub directories: Vec<Uuid>,
    /// The in-sync replicas.
    pub isr: Vec<i32>,
    /// Replicas that a reassignment takes away.
    pub removing_replicas: Vec<i32>,
    /// Replicas that a reassignment adds.
    pub adding_replicas: Vec<i32>,
    /// Replicas out of sync that still have every committed record.
    pub elr: Vec<i32>,
    /// Who to fall back on when neither in-sync nor eligible replicas are left.
    pub last_known_elr: Vec<i32>,
    /// The leader, or [`NO_LEADER`].
    pub leader: i32,
    /// How the leader was elected.
    pub leader_recovery_state: LeaderRecoveryState,
    /// Grows with each election.
    pub leader_epoch: i32,
    /// Grows with each change.
    pub partition_epoch: i32,
}

impl PartitionRegistration {
    /// Whether a reassignment is under way.
    pub fn is_reassigning(&self) -> bool {
        !self.removing_replicas.is_empty() || !self.adding_replicas.is_empty()
    }

    /// The directory of a replica, if the broker is one.
    pub fn directory(&self, broker_id: i32) -> Option<Uuid> {
        let at = self.replicas.iter().position(|r| *r == broker_id)?;
        self.directories.get(at).copied()
    }

    fn from_record(record: &PartitionRecord) -> Result<Self, ReplayError> {
        let mut directories = record.directories.clone();
        directories.resize(record.replicas.len(), UNASSIGNED_DIRECTORY);
        Ok(Self {
            replicas: record.replicas.clone(),
            directories,
            isr: record.isr.clone(),
            removing_replicas: record.removing_replicas.clone(),
            adding_replicas: record.adding_replicas.clone(),
            elr: record.eligible_leader_replicas.clone().unwrap_or_default(),
            last_known_elr: record.last_known_elr.clone().unwrap_or_default(),
            leader: record.leader,
            leader_recovery_state: recovery_state("PartitionRecord", record.leader_recovery_state)?,
            leader_epoch: record.leader_epoch,
            partition_epoch: record.partition_epoch,
        })
    }

    /// This partition as a full record.
    pub fn to_record(&self, topic_id: Uuid, partition_id: i32) -> PartitionRecord {
        PartitionRecord {
            partition_id,
            topic_id,
            replicas: self.replicas.clone(),
            isr: self.isr.clone(),
            removing_replicas: self.removing_replicas.clone(),
            adding_replicas: self.adding_replicas.clone(),
            leader: self.leader,
            leader_recovery_state: self.leader_recovery_state.value(),
            leader_epoch: self.leader_epoch,
            partition_epoch: self.partition_epoch,
            directories: self.directories.clone(),
            eligible_leader_replicas: (!self.elr.is_empty()).then(|| self.elr.clone()),
            last_known_elr: (!self.last_known_elr.is_empty()).then(|| self.last_known_elr.clone()),
            ..Default::default()
        }
    }

    /// What becomes of it under a change record.
    pub fn merged(&self, change: &PartitionChangeRecord) -> Result<Self, ReplayError> {
        let mut next = self.clone();
        if let Some(replicas) = &change.replicas {
            next.directories =
                replicas.iter().map(|r| self.directory(*r).unwrap_or(UNASSIGNED_DIRECTORY)).collect();
            next.replicas = replicas.clone();
        }
        if let Some(directories) = &change.directories {
            next.directories = directories.clone();
            next.directories.resize(next.replicas.len(), UNASSIGNED_DIRECTORY);
        }
        let set = |to: &mut Vec<i32>, from: &Option<Vec<i32>>| {
            if let Some(from) = from {
                to.clone_from(from);
            }
        };
        set(&mut next.isr, &change.isr);
        set(&mut next.removing_replicas, &change.removing_replicas);
        set(&mut next.adding_replicas, &change.adding_replicas);
        set(&mut next.elr, &change.eligible_leader_replicas);
        set(&mut next.last_known_elr, &change.last_known_elr);
        if change.leader != NO_LEADER_CHANGE {
            next.leader = change.leader;
            next.leader_epoch = self.leader_epoch.wrapping_add(1);
        }
        if change.leader_recovery_state != -1 {
            next.leader_recovery_state =
                recovery_state("PartitionChangeRecord", change.leader_recovery_state)?;
        }
        next.partition_epoch = self.partition_epoch.wrapping_add(1);
        Ok(next)
    }
}

fn recovery_state(record: &'static str, value: i8) -> Result<LeaderRecoveryState, ReplayError> {
    LeaderRecoveryState::from_value(value).ok_or(ReplayError::BadValue {
        record,
        field: "leaderRecoveryState",
        value: i64::from(value),
    })
}

/// A topic and its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    /// The name.
    pub name: ByteString,
    /// The id, unique over the cluster's whole life.
    pub id: Uuid,
    /// Partitions by number.
    pub partitions: OrdMap<i32, Arc<PartitionRegistration>>,
}

impl Topic {
    /// One partition.
    pub fn partition(&self, number: i32) -> Option<&PartitionRegistration> {
        self.partitions.get(&number).map(Arc::as_ref)
    }
}

/// All topics, by id and by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicsImage {
    by_id: OrdMap<Uuid, Arc<Topic>>,
    by_name: OrdMap<ByteString, Uuid>,
}

impl TopicsImage {
    /// How many topics there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// A topic by its id.
    pub fn by_id(&self, id: Uuid) -> Option<&Topic> {
        self.by_id.get(&id).map(Arc::as_ref)
    }

    /// A topic by its name.
    pub fn by_name(&self, name: &str) -> Option<&Topic> {
        self.by_id(self.id(name)?)
    }

    /// The id of a name.
    pub fn id(&self, name: &str) -> Option<Uuid> {
        self.by_name.get(name).copied()
    }

    /// The name of an id.
    pub fn name(&self, id: Uuid) -> Option<&ByteString> {
        self.by_id(id).map(|topic| &topic.name)
    }

    /// A partition by topic name and number.
    pub fn partition(&self, name: &str, number: i32) -> Option<&PartitionRegistration> {
        self.by_name(name)?.partition(number)
    }

    /// All topics in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// All topics in the order of their names.
    pub fn iter_by_name(&self) -> impl Iterator<Item = &Topic> {
        self.by_name.values().filter_map(|id| self.by_id(*id))
    }

    /// Topics in the order of their names, from a name on (included).
    pub fn iter_from<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a Topic> {
        self.by_name.range(ByteString::from(name)..).filter_map(|(_, id)| self.by_id(*id))
    }

    pub(crate) fn ids(&self) -> &OrdMap<Uuid, Arc<Topic>> {
        &self.by_id
    }

    pub(crate) fn create(&mut self, record: &TopicRecord) {
        // A name that comes again under another id replaces the topic, as in Kafka.
        if let Some(old) = self.by_name.insert(record.name.clone(), record.topic_id) {
            self.by_id.remove(&old);
        }
        let topic = Topic { name: record.name.clone(), id: record.topic_id, partitions: OrdMap::new() };
        self.by_id.insert(record.topic_id, Arc::new(topic));
    }

    /// Removes a topic and tells its name.
    pub(crate) fn remove(&mut self, record: &RemoveTopicRecord) -> Result<ByteString, ReplayError> {
        let topic_id = record.topic_id;
        let Some(topic) = self.by_id.remove(&topic_id) else {
            return Err(ReplayError::UnknownTopicId { record: "RemoveTopicRecord", topic_id });
        };
        self.by_name.remove(&topic.name);
        Ok(topic.name.clone())
    }

    pub(crate) fn set_partition(&mut self, record: &PartitionRecord) -> Result<(), ReplayError> {
        let registration = PartitionRegistration::from_record(record)?;
        let topic = self.topic_mut("PartitionRecord", record.topic_id)?;
        topic.partitions.insert(record.partition_id, Arc::new(registration));
        Ok(())
    }

    pub(crate) fn change_partition(&mut self, record: &PartitionChangeRecord) -> Result<(), ReplayError> {
        const NAME: &str = "PartitionChangeRecord";
        let topic = self.topic_mut(NAME, record.topic_id)?;
        let Some(partition) = topic.partitions.get(&record.partition_id) else {
            return Err(ReplayError::UnknownPartition {
                record: NAME,
                topic_id: record.topic_id,
                partition: record.partition_id,
            });
        };
        let next = partition.merged(record)?;
        topic.partitions.insert(record.partition_id, Arc::new(next));
        Ok(())
    }

    /// Forgets the eligible leader replicas of one topic, or of all when the name is empty.
    pub(crate) fn clear_elr(&mut self, name: &str) -> Result<(), ReplayError> {
        let ids = if name.is_empty() {
            self.by_id.keys().copied().collect()
        } else {
            match self.id(name) {
                Some(id) => vec![id],
                None => {
                    let name = name.to_string();
                    return Err(ReplayError::UnknownTopicName { record: "ClearElrRecord", name });
                }
            }
        };
        for id in ids {
            let affected: Vec<i32> = self
                .by_id(id)
                .into_iter()
                .flat_map(|topic| topic.partitions.iter())
                .filter(|(_, p)| !p.elr.is_empty() || !p.last_known_elr.is_empty())
                .map(|(number, _)| *number)
                .collect();
            if affected.is_empty() {
                continue;
            }
            let topic = self.topic_mut("ClearElrRecord", id)?;
            for number in affected {
                if let Some(partition) = topic.partitions.get_mut(&number) {
                    let partition = Arc::make_mut(partition);
                    partition.elr.clear();
                    partition.last_known_elr.clear();
                }
            }
        }
        Ok(())
    }

    fn topic_mut(&mut self, record: &'static str, topic_id: Uuid) -> Result<&mut Topic, ReplayError> {
        match self.by_id.get_mut(&topic_id) {
            Some(topic) => Ok(Arc::make_mut(topic)),
            None => Err(ReplayError::UnknownTopicId { record, topic_id }),
        }
    }

    pub(crate) fn to_records(&self, out: &mut Vec<VersionedRecord>) {
        for topic in self.iter() {
            let record = TopicRecord { name: topic.name.clone(), topic_id: topic.id, ..Default::default() };
            out.push(VersionedRecord::new(MetadataRecord::TopicRecord(record), 0));
            for (number, partition) in &topic.partitions {
                let record = MetadataRecord::PartitionRecord(partition.to_record(topic.id, *number));
                out.push(VersionedRecord::new(record, PARTITION_VERSION));
            }
        }
    }
}
