//! Record batches: what producers send, logs keep and consumers read.
//!
//! A set of records is a row of batches. Each batch has a [`BatchHeader`] of 61 bytes, then its records,
//! which may be compressed as one block.

mod batch;
mod compression;
mod error;
mod header;

pub use batch::{Batches, RecordBatch, batches};
pub use compression::Compression;
pub use error::RecordError;
pub use header::{
    BatchHeader, CRC_POSITION, CRC_START, HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION, TimestampType,
    add_sequence, patch_header, peek_magic,
};
