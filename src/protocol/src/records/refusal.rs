//! Why a produced batch is refused, and what the client is told.

use thiserror::Error;

use super::RecordError;
use crate::ErrorCode;

/// How many records a message names.
const RECORDS_IN_MESSAGE: usize = 3;

/// Why a record was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// A compacted topic needs a key.
    NoKey,
    /// The timestamp is too old or too far ahead.
    Timestamp {
        /// The record's timestamp, in milliseconds.
        timestamp: i64,
        /// The earliest allowed now.
        earliest: i64,
        /// The latest allowed now.
        latest: i64,
    },
    /// The producer says that the broker set the timestamps.
    TimestampType,
}

/// One refused record of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedRecord {
    /// Its place in the batch, from 0.
    pub index: i32,
    /// What is wrong with it.
    pub fault: RecordFault,
}

impl RefusedRecord {
    /// The text that Kafka sends with it, for a partition.
    pub fn message(&self, topic: &str, partition: i32) -> String {
        let index = self.index;
        match self.fault {
            RecordFault::NoKey => {
                format!(
                    "Compacted topic cannot accept message without key in topic partition {topic}-{partition}"
                )
            }
            RecordFault::Timestamp { timestamp, earliest, latest } => format!(
                "Timestamp {timestamp} of message with offset {index} is out of range. The timestamp should be within \
                 [{earliest}, {latest}]"
            ),
            RecordFault::TimestampType => format!(
                "Invalid timestamp type in message with offset {index}. Producer should not set timestamp type to \
                 LogAppendTime."
            ),
        }
    }
}

/// Why a batch was refused. [`Refusal::error_code`] is what the client gets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The request's bytes can't be walked over.
    #[error("record batches can't be told apart: {0}")]
    Unwalkable(RecordError),
    /// Not exactly one batch of format version 2.
    #[error("a produce request has exactly one record batch of format version 2 for a partition")]
    NotOneBatch,
    /// zstd in a request older than version 7.
    #[error("zstd needs version 7 of Produce")]
    CodecTooNew,
    /// A codec that nobody knows, in a request older than version 7: its codec is looked at early.
    #[error("unknown codec")]
    CodecUnknown,
    /// A produced batch counts from 0.
    #[error("a produced batch has base offset 0, not {0}")]
    BaseOffset(i64),
    /// Larger than `max.message.bytes`.
    #[error("a batch of {size_bytes} bytes is larger than the {limit_bytes} allowed")]
    TooLarge {
        /// Its size.
        size_bytes: usize,
        /// `max.message.bytes`.
        limit_bytes: usize,
    },
    /// The header or the checksum is wrong.
    #[error("corrupt batch: {0}")]
    Corrupt(RecordError),
    /// Offsets and count don't agree.
    #[error("last offset delta {last_offset_delta} and a count of {record_count} don't agree")]
    Count {
        /// As the header says.
        last_offset_delta: i32,
        /// As the header says.
        record_count: i32,
    },
    /// Control records are the broker's to write.
    #[error("a client can't write control records")]
    Control,
    /// An idempotent producer counts its records from 0.
    #[error("sequence {0} of an idempotent producer")]
    Sequence(i32),
    /// The records can't be walked over.
    #[error("{0}")]
    Unreadable(RecordError),
    /// Records broke a rule; the others are refused with them.
    #[error("{} records break a rule of the topic", .0.len())]
    Records(Vec<RefusedRecord>),
}

impl Refusal {
    /// The error code that Kafka answers with.
    pub fn error_code(&self) -> i16 {
        let code = match self {
            Self::Unwalkable(_) | Self::Corrupt(_) => ErrorCode::CorruptMessage,
            Self::CodecTooNew => ErrorCode::UnsupportedCompressionType,
            Self::TooLarge { .. } => ErrorCode::MessageTooLarge,
            Self::NotOneBatch
            | Self::BaseOffset(_)
            | Self::Count { .. }
            | Self::Control
            | Self::Sequence(_) => ErrorCode::InvalidRecord,
            // What a codec can't read is a surprise to Kafka, and it says so.
            Self::CodecUnknown
            | Self::Unreadable(RecordError::Decompress { .. } | RecordError::UnknownCodec(_)) => {
                ErrorCode::UnknownServerError
            }
            Self::Unreadable(_) => ErrorCode::InvalidRecord,
            Self::Records(refused) => {
                if only_keys_lack(refused) {
                    ErrorCode::InvalidRecord
                } else {
                    ErrorCode::InvalidTimestamp
                }
            }
        };
        code.code()
    }

    /// Whether Kafka names the log's start offset in the answer (-1 otherwise).
    pub fn names_log_start(&self) -> bool {
        match self {
            Self::Unwalkable(_)
            | Self::NotOneBatch
            | Self::CodecTooNew
            | Self::CodecUnknown
            | Self::TooLarge { .. }
            | Self::Corrupt(_) => false,
            Self::BaseOffset(_)
            | Self::Count { .. }
            | Self::Control
            | Self::Sequence(_)
            | Self::Unreadable(_)
            | Self::Records(_) => true,
        }
    }

    /// The text that Kafka sends with the error code (from Produce version 8 on), for a partition.
    pub fn message(&self, topic: &str, partition: i32) -> Option<String> {
        let Self::Records(refused) = self else { return None };
        if !only_keys_lack(refused) {
            return Some("One or more records have been rejected due to invalid timestamp".to_owned());
        }
        let first = refused.iter().take(RECORDS_IN_MESSAGE).map(|record| {
            let message = record.message(topic, partition);
            format!("RecordError(batchIndex={}, message='{message}')", record.index)
        });
        let (count, first) = (refused.len(), first.collect::<Vec<_>>().join(", "));
        Some(format!(
            "One or more records have been rejected due to {count} record errors in total, and only showing the first \
             three errors at most: [{first}]"
        ))
    }

    /// The refused records, to be named one by one (from Produce version 8 on).
    pub fn refused_records(&self) -> &[RefusedRecord] {
        match self {
            Self::Records(refused) => refused,
            _ => &[],
        }
    }
}

fn only_keys_lack(refused: &[RefusedRecord]) -> bool {
    refused.iter().all(|record| record.fault == RecordFault::NoKey)
}
