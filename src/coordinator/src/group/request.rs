//! What a shard is asked, and what it answers.

use callboard_protocol::ByteString;
use callboard_protocol::messages::describe_groups_response::DescribedGroup;
use callboard_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use callboard_protocol::messages::offset_fetch_response::OffsetFetchResponseGroup;
use callboard_protocol::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatRequest, HeartbeatResponse,
    JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse, OffsetCommitRequest,
    OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse, SyncGroupRequest, SyncGroupResponse,
    TxnOffsetCommitRequest, TxnOffsetCommitResponse, consumer_group_describe_response,
    delete_groups_response, list_groups_response,
};

use crate::runtime::Producer;

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// What the client calls itself; empty if it says nothing.
    pub client_id: ByteString,
    /// Where it connects from, as `/1.2.3.4`.
    pub client_host: ByteString,
    /// The request's version.
    pub version: i16,
}

/// Asks what a group has committed.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchOffsets {
    /// The group, and its topics by name; all that it has if there are none.
    pub group: OffsetFetchRequestGroup,
    /// Whether a partition with a commit in an open transaction is an error.
    pub require_stable: bool,
}

/// Asks for a group as DescribeGroups shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeGroup {
    /// Which.
    pub group_id: ByteString,
}

/// Asks for a group as ConsumerGroupDescribe shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribeConsumerGroup {
    /// Which.
    pub group_id: ByteString,
}

/// Deletes a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteGroup {
    /// Which.
    pub group_id: ByteString,
}

/// Tells that a transaction has ended in this shard's log: its marker is written. It belongs to no group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndTransaction {
    /// Whose.
    pub producer: Producer,
    /// Whether it is committed.
    pub committed: bool,
}

/// Asks for the groups of this shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListGroups {
    /// Only those in one of these states, by name in any case; in any state if empty.
    pub states: Vec<ByteString>,
    /// Only those of one of these types, by name in any case; of any type if empty.
    pub types: Vec<ByteString>,
}

/// A request with the type of its answer.
pub trait GroupRequest: Sized {
    /// What answers it.
    type Response;
    /// The request as one of all.
    fn into_request(self) -> Request;
    /// The answer out of all; `None` if it answers another kind of request.
    fn response(reply: Reply) -> Option<Self::Response>;
}

/// One line a request: its name, its type, and the type of its answer.
macro_rules! requests {
    ($($name:ident($request:ty) -> $response:ty,)*) => {
        /// Any request.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Request {
            $(#[doc = concat!("See [`", stringify!($request), "`].")] $name($request),)*
        }

        /// Any answer.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Reply {
            $(#[doc = concat!("Answers [`", stringify!($request), "`].")] $name($response),)*
        }

        $(impl GroupRequest for $request {
            type Response = $response;
            fn into_request(self) -> Request {
                Request::$name(self)
            }
            fn response(reply: Reply) -> Option<$response> {
                match reply {
                    Reply::$name(response) => Some(response),
                    _ => None,
                }
            }
        })*
    };
}

requests! {
    JoinGroup(JoinGroupRequest) -> JoinGroupResponse,
    SyncGroup(SyncGroupRequest) -> SyncGroupResponse,
    Heartbeat(HeartbeatRequest) -> HeartbeatResponse,
    LeaveGroup(LeaveGroupRequest) -> LeaveGroupResponse,
    OffsetCommit(OffsetCommitRequest) -> OffsetCommitResponse,
    TxnOffsetCommit(TxnOffsetCommitRequest) -> TxnOffsetCommitResponse,
    EndTransaction(EndTransaction) -> (),
    FetchOffsets(FetchOffsets) -> OffsetFetchResponseGroup,
    OffsetDelete(OffsetDeleteRequest) -> OffsetDeleteResponse,
    DescribeGroup(DescribeGroup) -> DescribedGroup,
    DeleteGroup(DeleteGroup) -> delete_groups_response::DeletableGroupResult,
    ListGroups(ListGroups) -> Vec<list_groups_response::ListedGroup>,
    ConsumerGroupHeartbeat(ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse,
    DescribeConsumerGroup(DescribeConsumerGroup) -> consumer_group_describe_response::DescribedGroup,
}
