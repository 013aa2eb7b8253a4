//! What can go wrong for a client.

use callboard_protocol::ErrorCode;
use callboard_protocol::records::RecordError;
use thiserror::Error;

/// Why a client's request failed. Cheap to clone: one failed batch tells each of its records.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClientError {
    /// No connection, or it broke. Whether the broker acted on the request is unknown.
    #[error("connection to {address}: {reason}")]
    Connection {
        /// The broker's host and port.
        address: String,
        /// What happened.
        reason: String,
    },
    /// No answer in time. Whether the broker acted on the request is unknown.
    #[error("no answer within {0} ms")]
    Timeout(u64),
    /// The broker answered with an error.
    #[error("{}: {}", .code.name(), .message.as_deref().unwrap_or_default())]
    Broker {
        /// Its code.
        code: ErrorCode,
        /// Its message, if it sent one.
        message: Option<String>,
    },
    /// Client and broker have no version of this request in common.
    #[error("the broker speaks no version of {0} that this client knows")]
    Version(&'static str),
    /// Bytes that are no message.
    #[error("can't encode or decode {message}: {reason}")]
    Codec {
        /// The message.
        message: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Fetched or produced records that are none.
    #[error(transparent)]
    Records(#[from] RecordError),
    /// The partition has no leader now, or does not exist yet.
    #[error("no leader known for {topic}-{partition}")]
    NoLeader {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// The client, producer or consumer was closed.
    #[error("closed")]
    Closed,
}

impl ClientError {
    /// The error of a code; `None` for 0.
    pub(crate) fn from_code(code: i16, message: Option<&str>) -> Option<Self> {
        match ErrorCode::from(code) {
            ErrorCode::None => None,
            code => Some(Self::Broker { code, message: message.map(str::to_owned) }),
        }
    }

    /// `Ok` for code 0.
    pub(crate) fn check(code: i16, message: Option<&str>) -> Result<(), Self> {
        Self::from_code(code, message).map_or(Ok(()), Err)
    }

    /// Whether the same request may succeed later.
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Connection { .. } | Self::Timeout(_) | Self::NoLeader { .. } => true,
            Self::Broker { code, .. } => code.is_retriable(),
            Self::Version(_) | Self::Codec { .. } | Self::Records(_) | Self::Closed => false,
        }
    }

    /// Whether the broker's code is this one.
    pub fn is(&self, wanted: ErrorCode) -> bool {
        matches!(self, Self::Broker { code, .. } if *code == wanted)
    }
}
