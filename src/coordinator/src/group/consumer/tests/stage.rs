//! A shard with its clock and cluster. After each step it is compared with what its log says.

use std::collections::BTreeMap;

use callboard_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use callboard_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use callboard_protocol::{ByteString, ErrorCode, Uuid};

use crate::group::consumer::fixture::TestCluster;
use crate::group::consumer::{ConsumerGroup, LookUp};
use crate::group::{Caller, Done, Effect, Group, GroupOutcome, GroupRecord, GroupRequest, GroupShard};
use crate::runtime::{Coordinator, Entry, Machine, Ticket};
use crate::{Circumstances, Settings};

/// Everything a conversation needs.
#[derive(Default)]
pub struct Stage {
    pub shard: GroupShard,
    pub cluster: TestCluster,
    pub settings: Settings,
    /// What was written.
    pub log: Vec<GroupRecord>,
    /// What another broker makes of that.
    follower: GroupShard,
    /// Answers that nobody has asked for yet.
    pub replies: BTreeMap<Ticket, crate::group::Reply>,
    /// Patterns to look up.
    pub look_ups: Vec<LookUp>,
    pub now_ms: i64,
    next_ticket: u64,
    random: u64,
}

/// The answer to a heartbeat in short: the error or the epoch, and the assignment if it is told.
pub type Told = (Result<i32, ErrorCode>, Option<Vec<(Uuid, Vec<i32>)>>);

impl Stage {
    pub fn new() -> Self {
        Self { now_ms: 1_000_000, ..Self::default() }
    }

    pub fn run(
        &mut self,
        work: impl FnOnce(&mut GroupShard, Ticket, &mut Circumstances<'_>) -> GroupOutcome,
    ) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let random = &mut self.random;
        let mut cx = Circumstances {
            now_ms: 1_700_000_000_000 + self.now_ms,
            monotonic_ms: self.now_ms,
            random: &mut || {
                *random += 1;
                *random
            },
            settings: &self.settings,
            cluster: &self.cluster,
        };
        let outcome = work(&mut self.shard, ticket, &mut cx);
        outcome.records.iter().for_each(|record| take_in(&mut self.follower, record));
        self.log.extend(outcome.records);
        self.replies.extend(outcome.replies);
        self.look_ups.extend(outcome.effects.into_iter().map(|Effect::LookUp(look_up)| look_up));
        self.check();
        ticket
    }

    /// Sends a request; its answer may come later.
    pub fn send<R: GroupRequest>(&mut self, version: i16, request: R) -> Ticket {
        let caller = Caller { client_id: "client".into(), client_host: "/127.0.0.1".into(), version };
        self.run(|shard, ticket, cx| shard.handle(ticket, (caller, request.into_request()), cx))
    }

    /// The answer, if there is one by now.
    pub fn answer<R: GroupRequest>(&mut self, ticket: Ticket) -> Option<R::Response> {
        Some(R::response(self.replies.remove(&ticket)?).expect("the answer is of the request's kind"))
    }

    /// Sends a request that is answered at once.
    pub fn ask<R: GroupRequest>(&mut self, version: i16, request: R) -> R::Response {
        let ticket = self.send(version, request);
        self.answer::<R>(ticket).expect("it is answered at once")
    }

    pub fn advance(&mut self, ms: i64) {
        self.now_ms += ms;
        self.run(|shard, _, cx| shard.on_time(cx));
    }

    /// Does the look-ups that the shard asked for.
    pub fn look_up(&mut self) {
        for look_up in std::mem::take(&mut self.look_ups) {
            let done = GroupShard::perform(Effect::LookUp(look_up));
            assert!(matches!(done, Done::Found(_)));
            self.run(|shard, _, cx| shard.performed(done, cx));
        }
    }

    /// Another broker takes the shard over: all it has is the log.
    pub fn fail_over(&mut self) {
        self.shard = GroupShard::default();
        self.log.iter().for_each(|record| take_in(&mut self.shard, record));
        self.run(|shard, _, cx| shard.loaded(cx));
    }

    /// Memory is what the log says, and no partition has two owners.
    fn check(&self) {
        let consumer_groups = |shard: &GroupShard| -> Vec<ConsumerGroup> {
            let groups = shard.groups.values();
            let durable = groups.filter_map(|group| match group {
                Group::Consumer(group) => {
                    Some(ConsumerGroup { soft: Default::default(), ..(**group).clone() })
                }
                Group::Classic(_) => None,
            });
            durable.collect()
        };
        let groups = consumer_groups(&self.shard);
        assert_eq!(groups, consumer_groups(&self.follower), "memory is what the log says");
        groups.iter().for_each(check_owners);
    }

    pub fn group(&self, id: &str) -> &ConsumerGroup {
        match self.shard.groups.get(id) {
            Some(Group::Consumer(group)) => group,
            other => panic!("{id} is {other:?}"),
        }
    }

    /// A heartbeat in version 1, with what it says beside.
    pub fn beat(
        &mut self,
        member: &str,
        epoch: i32,
        says: impl FnOnce(&mut ConsumerGroupHeartbeatRequest),
    ) -> Told {
        let response = self.beat_in_full(member, epoch, says);
        let result = match ErrorCode::from(response.error_code) {
            ErrorCode::None => Ok(response.member_epoch),
            error => Err(error),
        };
        let told = response.assignment.map(|assignment| {
            assignment.topic_partitions.into_iter().map(|topic| (topic.topic_id, topic.partitions)).collect()
        });
        (result, told)
    }

    pub fn beat_in_full(
        &mut self,
        member: &str,
        epoch: i32,
        says: impl FnOnce(&mut ConsumerGroupHeartbeatRequest),
    ) -> ConsumerGroupHeartbeatResponse {
        let mut request = ConsumerGroupHeartbeatRequest {
            group_id: "g".into(),
            member_id: member.into(),
            member_epoch: epoch,
            ..Default::default()
        };
        says(&mut request);
        self.ask(1, request)
    }
}

/// Takes a record in as it would come from the log.
fn take_in(shard: &mut GroupShard, record: &GroupRecord) {
    let written = GroupShard::encode(record).expect("it can be written");
    let read = GroupShard::decode(&written.key, written.value.as_ref()).expect("it can be read");
    shard.replay(&Entry::Record(read, None)).expect("it can be taken in");
}

fn check_owners(group: &ConsumerGroup) {
    let mut owners: BTreeMap<(Uuid, i32), &ByteString> = BTreeMap::new();
    for member in group.members() {
        for (topic, partition, _) in member.assigned.iter().chain(member.pending_revocation.iter()) {
            if let Some(other) = owners.insert((topic, partition), &member.id) {
                panic!("{topic}-{partition} belongs to {} and to {other}", member.id);
            }
        }
    }
    assert_eq!(owners.len(), group.owners.len(), "the owners are those that members have");
}

/// A member that joins says what it wants, and that it has nothing.
pub fn joins(topics: &[&str]) -> impl FnOnce(&mut ConsumerGroupHeartbeatRequest) {
    let topics: Vec<ByteString> = topics.iter().map(|topic| ByteString::from(*topic)).collect();
    move |request| {
        request.rebalance_timeout_ms = 30_000;
        request.subscribed_topic_names = Some(topics);
        request.topic_partitions = Some(Vec::new());
    }
}

/// The same for a static member.
pub fn joins_as(instance: &str, topics: &[&str]) -> impl FnOnce(&mut ConsumerGroupHeartbeatRequest) {
    let (joins, instance) = (joins(topics), ByteString::from(instance));
    move |request| {
        joins(request);
        request.instance_id = Some(instance);
    }
}

/// A member says what it has of a topic.
pub fn owns(topic: Uuid, partitions: &[i32]) -> impl FnOnce(&mut ConsumerGroupHeartbeatRequest) {
    let partitions = partitions.to_vec();
    move |request| {
        let topic = TopicPartitions { topic_id: topic, partitions, ..Default::default() };
        request.topic_partitions = Some(vec![topic]);
    }
}

pub fn instance(name: &str) -> impl FnOnce(&mut ConsumerGroupHeartbeatRequest) {
    let name = ByteString::from(name);
    move |request| request.instance_id = Some(name)
}

pub fn nothing(_: &mut ConsumerGroupHeartbeatRequest) {}

/// What a member is told that it has of a topic.
pub fn gets(topic: Uuid, partitions: &[i32]) -> Option<Vec<(Uuid, Vec<i32>)>> {
    Some(vec![(topic, partitions.to_vec())])
}

/// A member is told that it has nothing.
pub fn gets_nothing() -> Option<Vec<(Uuid, Vec<i32>)>> {
    Some(Vec::new())
}
