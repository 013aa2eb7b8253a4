//! Record batches: what producers send, logs keep and consumers read.
//!
//! A set of records is a row of batches. Each batch has a [`BatchHeader`] of 61 bytes, then its records,
//! which may be compressed as one block. [`batches`] and [`RecordBatch::records`] read, [`BatchBuilder`]
//! writes, [`validate`] holds a producer's batch against the broker's rules and [`rebuild`] makes it what
//! the topic wants. Old formats are read by [`legacy`].

mod batch;
mod builder;
mod codec;
mod compression;
pub mod control;
mod error;
mod header;
pub mod legacy;
mod lz4;
pub mod rebuild;
mod record;
mod refusal;
mod retain;
mod snappy;
pub mod validate;
mod varint;
mod walk;

pub use batch::{Batches, RecordBatch, batches};
pub use builder::BatchBuilder;
pub use codec::{CompressionLevels, DEFAULT_DECOMPRESSED_LIMIT_BYTES, compress, decompress};
pub use compression::Compression;
pub use error::RecordError;
pub use header::{
    BatchHeader, CRC_POSITION, CRC_START, HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION, TimestampType,
    add_sequence, patch_header, peek_magic,
};
pub use record::{Record, RecordHeader, RecordIter};
pub use retain::{emptied, retain};
