//! A member, as clients are written: it joins, syncs, beats, commits what it owns, and takes errors as it should.

use std::collections::BTreeMap;

use bytes::Bytes;
use callboard_coordinator::group::{Reply, Request};
use callboard_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use callboard_protocol::messages::leave_group_request::MemberIdentity;
use callboard_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use callboard_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use callboard_protocol::messages::{
    HeartbeatRequest, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, OffsetCommitRequest,
    SyncGroupRequest,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::world::{GROUP, PARTITIONS, TOPIC};

const SESSION_MS: i32 = 10_000;
const BEAT_MS: i64 = 3_000;

#[derive(Debug, Clone, PartialEq)]
enum State {
    Out,
    /// It knows its generation, and for a leader who is in it.
    Joined {
        leader: Option<Vec<ByteString>>,
    },
    In {
        owned: Vec<i32>,
        last_beat_ms: i64,
    },
}

/// What a member asks, in a version.
pub struct Wants {
    pub version: i16,
    pub request: Request,
}

#[derive(Debug)]
pub struct Member {
    number: usize,
    instance: Option<ByteString>,
    running: bool,
    waiting: bool,
    /// An answer that comes while it is down, or to its former life, means nothing to it.
    deaf: bool,
    id: ByteString,
    generation: i32,
    state: State,
    committing: BTreeMap<i32, i64>,
}

impl Member {
    pub fn new(number: usize, is_static: bool) -> Self {
        Self {
            number,
            instance: is_static.then(|| format!("instance-{number}").into()),
            running: true,
            waiting: false,
            deaf: false,
            id: ByteString::new(),
            generation: -1,
            state: State::Out,
            committing: BTreeMap::new(),
        }
    }

    /// A crash loses everything; its requests are answered to nobody.
    pub fn set_running(&mut self, running: bool) {
        if !running && self.running {
            self.deaf = self.waiting;
            self.forget();
        }
        self.running = running;
    }

    fn forget(&mut self) {
        self.id = ByteString::new();
        self.generation = -1;
        self.state = State::Out;
    }

    pub const fn is_waiting(&self) -> bool {
        self.waiting
    }

    pub const fn is_static(&self) -> bool {
        self.instance.is_some()
    }

    pub fn identity(&self) -> (ByteString, i32) {
        (self.id.clone(), self.generation)
    }

    pub fn committing(&self, partition: i32) -> i64 {
        self.committing.get(&partition).copied().unwrap_or(-1)
    }

    pub fn owned(&self) -> Vec<i32> {
        match &self.state {
            State::In { owned, .. } => owned.clone(),
            _ => Vec::new(),
        }
    }

    pub fn wants(
        &mut self,
        now_ms: i64,
        choice: u64,
        may_leave: bool,
        next_offset: &mut i64,
    ) -> Option<Wants> {
        if !self.running || self.waiting {
            return None;
        }
        let (version, request) = match &self.state {
            State::Out => (if choice.is_multiple_of(4) { 3 } else { 9 }, self.join()),
            State::Joined { leader } => (5, self.sync(leader.as_deref())),
            State::In { .. } if may_leave && choice.is_multiple_of(23) => (5, self.leave()),
            State::In { owned, .. } if choice.is_multiple_of(3) && !owned.is_empty() => {
                (9, self.commit(owned.clone(), choice, next_offset))
            }
            State::In { last_beat_ms, .. } if *last_beat_ms + BEAT_MS <= now_ms => (4, self.beat()),
            State::In { .. } => return None,
        };
        self.waiting = true;
        Some(Wants { version, request })
    }

    fn join(&self) -> Request {
        let protocol = |name: &'static str| JoinGroupRequestProtocol {
            name: ByteString::from_static(name),
            metadata: Bytes::from(format!("{name} of {}", self.number)),
            ..Default::default()
        };
        let protocols = match self.number % 2 {
            0 => vec![protocol("range"), protocol("roundrobin")],
            _ => vec![protocol("roundrobin"), protocol("range")],
        };
        Request::JoinGroup(JoinGroupRequest {
            group_id: ByteString::from_static(GROUP),
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: 2 * SESSION_MS,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: ByteString::from_static("consumer"),
            protocols,
            ..Default::default()
        })
    }

    /// A leader deals the partitions out one by one.
    fn sync(&self, leader: Option<&[ByteString]>) -> Request {
        let members = leader.unwrap_or_default();
        let part = |(at, id): (usize, &ByteString)| SyncGroupRequestAssignment {
            member_id: id.clone(),
            assignment: (0..PARTITIONS as u8).filter(|p| usize::from(*p) % members.len() == at).collect(),
            ..Default::default()
        };
        Request::SyncGroup(SyncGroupRequest {
            group_id: ByteString::from_static(GROUP),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            assignments: members.iter().enumerate().map(part).collect(),
            ..Default::default()
        })
    }

    fn beat(&self) -> Request {
        Request::Heartbeat(HeartbeatRequest {
            group_id: ByteString::from_static(GROUP),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            ..Default::default()
        })
    }

    fn leave(&self) -> Request {
        let member = MemberIdentity {
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            ..Default::default()
        };
        let group_id = ByteString::from_static(GROUP);
        Request::LeaveGroup(LeaveGroupRequest { group_id, members: vec![member], ..Default::default() })
    }

    fn commit(&mut self, owned: Vec<i32>, choice: u64, next_offset: &mut i64) -> Request {
        let partition_index = owned[(choice / 3) as usize % owned.len()];
        *next_offset += 1;
        self.committing.insert(partition_index, *next_offset);
        let partition = OffsetCommitRequestPartition {
            partition_index,
            committed_offset: *next_offset,
            committed_leader_epoch: -1,
            ..Default::default()
        };
        let topic = OffsetCommitRequestTopic {
            name: ByteString::from_static(TOPIC),
            partitions: vec![partition],
            ..Default::default()
        };
        Request::OffsetCommit(OffsetCommitRequest {
            group_id: ByteString::from_static(GROUP),
            generation_id_or_member_epoch: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            retention_time_ms: -1,
            topics: vec![topic],
            ..Default::default()
        })
    }

    /// No answer but that the coordinator has gone: it asks again, and hears how things stand.
    pub fn failed(&mut self) {
        self.waiting = false;
        if std::mem::take(&mut self.deaf) {
            return;
        }
        if matches!(self.state, State::Joined { .. }) {
            self.state = State::Out;
        }
    }

    pub fn told(&mut self, now_ms: i64, reply: Reply) {
        self.waiting = false;
        if std::mem::take(&mut self.deaf) {
            return;
        }
        match reply {
            Reply::JoinGroup(response) => self.joined(response),
            Reply::SyncGroup(response) => match ErrorCode::from(response.error_code) {
                ErrorCode::None => {
                    let owned = response.assignment.iter().map(|byte| i32::from(*byte)).collect();
                    self.state = State::In { owned, last_beat_ms: now_ms };
                }
                error => self.refused(error),
            },
            Reply::Heartbeat(response) => match ErrorCode::from(response.error_code) {
                ErrorCode::None => {
                    if let State::In { last_beat_ms, .. } = &mut self.state {
                        *last_beat_ms = now_ms;
                    }
                }
                error => self.refused(error),
            },
            Reply::LeaveGroup(_) => self.forget(),
            Reply::OffsetCommit(response) => {
                for partition in response.topics.iter().flat_map(|topic| &topic.partitions) {
                    match ErrorCode::from(partition.error_code) {
                        ErrorCode::None | ErrorCode::RebalanceInProgress => {}
                        error => self.refused(error),
                    }
                }
            }
            other => panic!("nobody asked for {other:?}"),
        }
    }

    fn joined(&mut self, response: JoinGroupResponse) {
        match ErrorCode::from(response.error_code) {
            ErrorCode::None => {
                self.generation = response.generation_id;
                self.id = response.member_id.clone();
                let leads = response.leader == response.member_id && !response.skip_assignment;
                let members = response.members.iter().map(|member| member.member_id.clone());
                self.state = State::Joined { leader: leads.then(|| members.collect()) };
            }
            ErrorCode::MemberIdRequired => self.id = response.member_id,
            error => self.refused(error),
        }
    }

    fn refused(&mut self, error: ErrorCode) {
        match error {
            ErrorCode::RebalanceInProgress => self.state = State::Out,
            ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration | ErrorCode::FencedInstanceId => {
                self.forget()
            }
            other => panic!("member {} is told {other:?} in {:?}", self.number, self.state),
        }
    }
}
