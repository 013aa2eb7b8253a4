//! Why a request of a consumer group's member is refused. The texts are Kafka's: clients log them.

use callboard_protocol::{ByteString, ErrorCode};
use thiserror::Error;

/// A refusal, with what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// A field of the request is not as it must be.
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// The assignor is none of `group.consumer.assignors`.
    #[error("ServerAssignor {assignor} is not supported. Supported assignors: {supported}.")]
    UnsupportedAssignor {
        /// What was asked for.
        assignor: ByteString,
        /// What there is.
        supported: String,
    },
    /// There is no such group.
    #[error("Group {0} not found.")]
    GroupNotFound(ByteString),
    /// There is no such group to go on with.
    #[error("Consumer group {0} not found.")]
    ConsumerGroupNotFound(ByteString),
    /// The group is of another kind.
    #[error("Group {0} is not a consumer group.")]
    NotAConsumerGroup(ByteString),
    /// The classic group can't become a consumer group.
    #[error("Group {group_id} can't be converted to a consumer group: {reason}")]
    NoUpgrade {
        /// The group.
        group_id: ByteString,
        /// Why.
        reason: &'static str,
    },
    /// The group is full.
    #[error("The consumer group has reached its maximum capacity of {0} members.")]
    MaxSizeReached(usize),
    /// The member is not in the group.
    #[error("Member {member_id} is not a member of group {group_id}.")]
    UnknownMember {
        /// Who.
        member_id: ByteString,
        /// Of what.
        group_id: ByteString,
    },
    /// Nobody has the instance id.
    #[error("Instance id {0} is unknown.")]
    UnknownInstance(ByteString),
    /// Another member has taken over the instance id.
    #[error("Static member {member_id} with instance id {instance_id} was fenced by member {by}.")]
    FencedInstance {
        /// Who asked.
        member_id: ByteString,
        /// The instance id.
        instance_id: ByteString,
        /// Who has it now.
        by: ByteString,
    },
    /// Another member still has the instance id.
    #[error(
        "Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is \
         owned by {owner} member."
    )]
    UnreleasedInstance {
        /// Who asked.
        member_id: ByteString,
        /// The instance id.
        instance_id: ByteString,
        /// Who has it.
        owner: ByteString,
    },
    /// The member's epoch is ahead of the group's knowledge.
    #[error(
        "The consumer group member has a greater member epoch ({received}) than the one known by the group \
         coordinator ({known}). The member must abandon all its partitions and rejoin."
    )]
    EpochAhead {
        /// What the member says.
        received: i32,
        /// What it should be.
        known: i32,
    },
    /// The member's epoch has passed.
    #[error(
        "The consumer group member has a smaller member epoch ({received}) than the one known by the group \
         coordinator ({known}). The member must abandon all its partitions and rejoin."
    )]
    EpochBehind {
        /// What the member says.
        received: i32,
        /// What it should be.
        known: i32,
    },
    /// The pattern is not one.
    #[error("SubscribedTopicRegex `{regex}` is not a valid regular expression: {reason}.")]
    InvalidRegex {
        /// The pattern.
        regex: ByteString,
        /// What is wrong with it.
        reason: String,
    },
}

impl Refusal {
    /// What a client sees.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::InvalidRequest(_) => ErrorCode::InvalidRequest,
            Self::UnsupportedAssignor { .. } => ErrorCode::UnsupportedAssignor,
            Self::GroupNotFound(_)
            | Self::ConsumerGroupNotFound(_)
            | Self::NotAConsumerGroup(_)
            | Self::NoUpgrade { .. } => ErrorCode::GroupIdNotFound,
            Self::MaxSizeReached(_) => ErrorCode::GroupMaxSizeReached,
            Self::UnknownMember { .. } | Self::UnknownInstance(_) => ErrorCode::UnknownMemberId,
            Self::FencedInstance { .. } => ErrorCode::FencedInstanceId,
            Self::UnreleasedInstance { .. } => ErrorCode::UnreleasedInstanceId,
            Self::EpochAhead { .. } | Self::EpochBehind { .. } => ErrorCode::FencedMemberEpoch,
            Self::InvalidRegex { .. } => ErrorCode::InvalidRegularExpression,
        }
    }
}
