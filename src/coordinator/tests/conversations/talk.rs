//! A shard, its time and its log, and short words for what is said to it.

use std::collections::BTreeMap;

use bytes::Bytes;
use callboard_coordinator::group::{
    Caller, DeleteGroup, DescribeGroup, FetchOffsets, GroupOutcome, GroupRecord, GroupRequest, GroupShard,
    Reply, classic,
};
use callboard_coordinator::runtime::{Coordinator, Entry, Machine, Ticket};
use callboard_coordinator::{Circumstances, Cluster, Settings, TopicView};
use callboard_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use callboard_protocol::messages::leave_group_request::MemberIdentity;
use callboard_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use callboard_protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use callboard_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use callboard_protocol::messages::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, OffsetCommitRequest,
    SyncGroupRequest, SyncGroupResponse,
};
use callboard_protocol::{ByteString, ErrorCode, Uuid};

/// The group of most conversations.
pub const GROUP: &str = "g";
/// What members say unless they say otherwise.
pub const SESSION_MS: i32 = 10_000;
pub const REBALANCE_MS: i32 = 60_000;

struct NoCluster;

impl Cluster for NoCluster {
    fn metadata_offset(&self) -> i64 {
        0
    }
    fn topic(&self, _: &str) -> Option<TopicView> {
        None
    }
    fn topic_by_id(&self, _: Uuid) -> Option<TopicView> {
        None
    }
    fn topics(&self) -> Vec<TopicView> {
        Vec::new()
    }
    fn racks(&self, _: Uuid, _: i32) -> Vec<ByteString> {
        Vec::new()
    }
    fn group_config(&self, _: &str, _: &str) -> Option<ByteString> {
        None
    }
}

/// A shard whose log never refuses: what it says is heard at once.
pub struct Talk {
    pub shard: GroupShard,
    pub settings: Settings,
    pub log: Vec<GroupRecord>,
    pub now_ms: i64,
    heard: BTreeMap<Ticket, Reply>,
    next_ticket: u64,
    random: u64,
}

impl Talk {
    /// A shard without groups that does not wait for more members.
    pub fn new() -> Self {
        let mut settings = Settings::default();
        settings.classic.initial_rebalance_delay_ms = 0;
        Self {
            shard: GroupShard::default(),
            settings,
            log: Vec::new(),
            now_ms: 1_000_000,
            heard: BTreeMap::new(),
            next_ticket: 0,
            random: 0,
        }
    }

    fn run(&mut self, work: impl FnOnce(&mut GroupShard, &mut Circumstances<'_>) -> GroupOutcome) {
        let random = &mut self.random;
        let mut next = || {
            *random += 1;
            *random
        };
        let mut cx = Circumstances {
            now_ms: self.now_ms,
            monotonic_ms: self.now_ms,
            random: &mut next,
            settings: &self.settings,
            cluster: &NoCluster,
        };
        let outcome = work(&mut self.shard, &mut cx);
        self.log.extend(outcome.records);
        for (ticket, reply) in outcome.replies {
            assert!(self.heard.insert(ticket, reply).is_none(), "{ticket:?} is answered once");
        }
    }

    /// Asks something; the answer may come later.
    pub fn ask(&mut self, version: i16, request: impl GroupRequest) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let caller = Caller { client_id: "client".into(), client_host: "/127.0.0.1".into(), version };
        let request = request.into_request();
        self.run(|shard, cx| shard.handle(ticket, (caller, request), cx));
        self.on_time();
        ticket
    }

    fn on_time(&mut self) {
        if self.shard.next_deadline_ms().is_some_and(|at| at <= self.now_ms) {
            self.run(|shard, cx| shard.on_time(cx));
        }
    }

    /// Time passes, and what is due on the way happens when it is.
    pub fn wait(&mut self, ms: i64) {
        let until = self.now_ms + ms;
        while let Some(at) = self.shard.next_deadline_ms().filter(|at| *at <= until) {
            self.now_ms = at.max(self.now_ms);
            self.run(|shard, cx| shard.on_time(cx));
        }
        self.now_ms = until;
    }

    /// Another coordinator takes over.
    pub fn fail_over(&mut self) {
        let mut shard = GroupShard::default();
        for record in &self.log {
            shard.replay(&Entry::Record(record.clone(), None)).expect("own record");
        }
        self.shard = shard;
        self.run(|shard, cx| shard.loaded(cx));
    }

    /// Topics are deleted.
    pub fn delete_topic(&mut self, name: &'static str) {
        self.run(|shard, cx| shard.metadata_changed(&[ByteString::from_static(name)], cx));
    }

    /// What a request was told, if anything yet.
    pub fn hears<Q: GroupRequest>(&mut self, ticket: Ticket) -> Option<Q::Response> {
        self.heard.remove(&ticket).map(|reply| Q::response(reply).expect("an answer of the request's kind"))
    }

    /// Asks something that is answered at once.
    pub fn tell<Q: GroupRequest>(&mut self, version: i16, request: Q) -> Q::Response {
        let ticket = self.ask(version, request);
        self.hears::<Q>(ticket).expect("an answer at once")
    }

    /// What a join was told, which must have come.
    pub fn joined(&mut self, ticket: Ticket) -> JoinGroupResponse {
        self.hears::<JoinGroupRequest>(ticket).expect("the join is answered")
    }

    /// What a sync was told, which must have come.
    pub fn synced(&mut self, ticket: Ticket) -> SyncGroupResponse {
        self.hears::<SyncGroupRequest>(ticket).expect("the sync is answered")
    }

    /// A dynamic member joins, handshake included.
    pub fn join(&mut self) -> Ticket {
        let first = self.tell(9, join(""));
        assert_eq!(first.error_code, ErrorCode::MemberIdRequired as i16);
        self.ask(9, join(&first.member_id))
    }

    /// A group of so many members in a stable generation, the leader first.
    pub fn stable(&mut self, members: usize) -> Vec<JoinGroupResponse> {
        let mut joins = vec![self.join()];
        for _ in 1..members {
            if let Some(first) = self.hears::<JoinGroupRequest>(joins[0]) {
                let newcomer = self.join();
                joins = vec![self.ask(9, join(&first.member_id)), newcomer];
            } else {
                joins.push(self.join());
            }
        }
        let mut joined: Vec<_> = joins.into_iter().map(|ticket| self.joined(ticket)).collect();
        joined.sort_by_key(|response| response.leader != response.member_id);
        let assignments: Vec<_> = joined.iter().map(|member| (member.member_id.clone(), "part")).collect();
        for member in &joined {
            let assignments =
                if member.leader == member.member_id { assignments.clone() } else { Vec::new() };
            assert_eq!(self.tell(5, sync(member, &assignments)).error_code, 0);
        }
        joined
    }

    pub fn beat(&mut self, member: &JoinGroupResponse) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: GROUP.into(),
            generation_id: member.generation_id,
            member_id: member.member_id.clone(),
            ..Default::default()
        };
        self.tell(4, request).error_code.into()
    }

    pub fn leave(&mut self, member_id: &str) -> ErrorCode {
        let members = vec![MemberIdentity { member_id: member_id.into(), ..Default::default() }];
        let request = LeaveGroupRequest { group_id: GROUP.into(), members, ..Default::default() };
        self.tell(5, request).members[0].error_code.into()
    }

    pub fn commit(&mut self, request: OffsetCommitRequest) -> ErrorCode {
        self.tell(9, request).topics[0].partitions[0].error_code.into()
    }

    /// What the group has committed for partition 0 of a topic, or the error.
    pub fn committed(&mut self, topic: &str) -> Result<i64, ErrorCode> {
        let topics = vec![OffsetFetchRequestTopics {
            name: topic.into(),
            partition_indexes: vec![0],
            ..Default::default()
        }];
        let group = OffsetFetchRequestGroup {
            group_id: GROUP.into(),
            topics: Some(topics),
            member_epoch: -1,
            ..Default::default()
        };
        let answer = self.tell(9, FetchOffsets { group, require_stable: true });
        let partition = &answer.topics[0].partitions[0];
        match ErrorCode::from(partition.error_code) {
            ErrorCode::None => Ok(partition.committed_offset),
            error => Err(error),
        }
    }

    pub fn state(&mut self) -> String {
        self.tell(6, DescribeGroup { group_id: GROUP.into() }).group_state.to_string()
    }

    pub fn delete_group(&mut self) -> ErrorCode {
        self.tell(2, DeleteGroup { group_id: GROUP.into() }).error_code.into()
    }

    pub fn group(&self) -> &classic::ClassicGroup {
        self.shard.classic(GROUP).expect("the group is there")
    }
}

/// A join that offers range and roundrobin.
pub fn join(member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: GROUP.into(),
        session_timeout_ms: SESSION_MS,
        rebalance_timeout_ms: REBALANCE_MS,
        member_id: member_id.into(),
        protocol_type: "consumer".into(),
        protocols: protocols(&["range", "roundrobin"]),
        ..Default::default()
    }
}

/// A join of a static member.
pub fn join_as(instance: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest { group_instance_id: Some(instance.into()), ..join(member_id) }
}

pub fn protocols(names: &[&'static str]) -> Vec<JoinGroupRequestProtocol> {
    let offer = |name: &&'static str| JoinGroupRequestProtocol {
        name: ByteString::from_static(name),
        metadata: Bytes::from_static(name.as_bytes()),
        ..Default::default()
    };
    names.iter().map(offer).collect()
}

pub fn sync(member: &JoinGroupResponse, assignments: &[(ByteString, &'static str)]) -> SyncGroupRequest {
    let assignments = assignments.iter().map(|(member_id, part)| SyncGroupRequestAssignment {
        member_id: member_id.clone(),
        assignment: Bytes::from_static(part.as_bytes()),
        ..Default::default()
    });
    SyncGroupRequest {
        group_id: GROUP.into(),
        generation_id: member.generation_id,
        member_id: member.member_id.clone(),
        assignments: assignments.collect(),
        ..Default::default()
    }
}

/// A commit from outside the group.
pub fn commit(topic: &str, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition {
        partition_index: 0,
        committed_offset: offset,
        committed_leader_epoch: -1,
        ..Default::default()
    };
    OffsetCommitRequest {
        group_id: GROUP.into(),
        generation_id_or_member_epoch: -1,
        retention_time_ms: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: topic.into(),
            partitions: vec![partition],
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// A commit of a member.
pub fn commit_as(member: &JoinGroupResponse, topic: &str, offset: i64) -> OffsetCommitRequest {
    OffsetCommitRequest {
        generation_id_or_member_epoch: member.generation_id,
        member_id: member.member_id.clone(),
        ..commit(topic, offset)
    }
}
