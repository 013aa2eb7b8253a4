//! Walking the batches of a set of records.

use bytes::Bytes;

use super::{BatchHeader, HEADER_SIZE, RecordError};

/// One batch of format version 2: its header, and all its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBatch {
    /// The header, parsed.
    pub header: BatchHeader,
    /// The whole batch, header included.
    pub bytes: Bytes,
}

impl RecordBatch {
    /// Takes one batch off the start of `bytes`. The checksum is not checked.
    ///
    /// # Errors
    /// The header is bad, or the batch is not whole.
    pub fn parse(bytes: Bytes) -> Result<Self, RecordError> {
        let header = BatchHeader::parse(&bytes)?;
        let size = header.size_bytes();
        if bytes.len() < size {
            return Err(RecordError::Truncated { needed: size, available: bytes.len() });
        }
        Ok(Self { header, bytes: bytes.slice(..size) })
    }

    /// The records as stored: the bytes after the header, compressed if the batch is.
    pub fn payload(&self) -> Bytes {
        self.bytes.slice(HEADER_SIZE.min(self.bytes.len())..)
    }

    /// Checks the checksum.
    ///
    /// # Errors
    /// The bytes don't give the header's checksum.
    pub fn verify_crc(&self) -> Result<(), RecordError> {
        self.header.verify_crc(&self.bytes)
    }
}

/// The batches in `bytes`, one after the other, without copying. Checksums are not checked.
/// After an error the iterator ends. A consumer reads a [`RecordError::Truncated`] at the end of a
/// fetch as its end: brokers may cut the last batch.
pub fn batches(bytes: Bytes) -> Batches {
    Batches { rest: bytes }
}

/// See [`batches`].
#[derive(Debug, Clone)]
pub struct Batches {
    rest: Bytes,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let batch = RecordBatch::parse(self.rest.clone());
        match &batch {
            Ok(batch) => drop(self.rest.split_to(batch.bytes.len())),
            Err(_) => self.rest.clear(),
        }
        Some(batch)
    }
}
