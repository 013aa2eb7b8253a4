//! Reading a shard's log from its start to its end, in the blocking pool.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use callboard_coordinator::ReplayError;
use callboard_coordinator::runtime::{Entry, Machine, Producer};
use callboard_protocol::records::control::EndTransactionMarker;
use callboard_protocol::records::{Record, RecordBatch, RecordError, batches};
use callboard_protocol::wire::DecodeError;
use callboard_storage::{LogReader, ReadError, StorageError};
use thiserror::Error;

/// How much is read at a time, in bytes.
const READ_BYTES: u32 = 1 << 20;

/// Why a log can't be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It is not wanted any more.
    #[error("not wanted any more")]
    Cancelled,
    /// The log can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The log's files can't be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A batch can't be read.
    #[error("offset {offset}: {error}")]
    Batch {
        /// Where.
        offset: i64,
        /// What is wrong.
        error: RecordError,
    },
    /// A record can't be replayed.
    #[error("offset {offset}: {error}")]
    Replay {
        /// Where.
        offset: i64,
        /// What is wrong.
        error: ReplayError,
    },
}

/// A machine, and what it was loaded from.
#[derive(Debug)]
pub struct Loaded<M> {
    /// The machine.
    pub machine: M,
    /// The offset after the last record.
    pub end_offset: i64,
    /// How many records there were.
    pub records: u64,
    /// How many of them are of a type that this build does not know; they stay in the log.
    pub unknown: u64,
}

/// Reads the log into a new machine. `cancelled` ends it early.
pub fn load<M: Machine + Default>(
    reader: &LogReader,
    cancelled: &AtomicBool,
) -> Result<Loaded<M>, LoadError> {
    let end_offset = reader.log_end_offset();
    let mut loaded = Loaded { machine: M::default(), end_offset, records: 0, unknown: 0 };
    let mut next = reader.log_start_offset();
    while next < end_offset {
        if cancelled.load(Ordering::Relaxed) {
            return Err(LoadError::Cancelled);
        }
        let region = reader.read(next, READ_BYTES, end_offset, true)?;
        let bytes = reader.load(&region)?;
        let before = next;
        for batch in batches(bytes) {
            match batch {
                Ok(batch) => {
                    replay(&batch, next, &mut loaded)?;
                    next = next.max(batch.header.next_offset());
                }
                // The last batch of a read may be cut.
                Err(RecordError::Truncated { .. }) => break,
                Err(error) => return Err(LoadError::Batch { offset: next, error }),
            }
        }
        if next == before {
            return Err(LoadError::Batch { offset: next, error: RecordError::Malformed("no batch here") });
        }
    }
    Ok(loaded)
}

fn replay<M: Machine>(batch: &RecordBatch, from: i64, loaded: &mut Loaded<M>) -> Result<(), LoadError> {
    let header = &batch.header;
    let bad = |error| LoadError::Batch { offset: header.base_offset, error };
    let producer = Producer { id: header.producer_id, epoch: header.producer_epoch };
    for record in batch.records().map_err(bad)? {
        let record = record.map_err(bad)?;
        if record.offset < from {
            continue;
        }
        loaded.records += 1;
        let entry = match header.is_control() {
            true => match EndTransactionMarker::read(&record).map_err(bad)? {
                Some(marker) => Entry::Marker { producer, committed: marker.committed },
                None => continue,
            },
            false => match decode::<M>(&record)? {
                Some(read) => Entry::Record(read, header.is_transactional().then_some(producer)),
                None => {
                    loaded.unknown += 1;
                    continue;
                }
            },
        };
        let replayed = loaded.machine.replay(&entry);
        replayed.map_err(|error| LoadError::Replay { offset: record.offset, error })?;
    }
    Ok(())
}

/// A record of a known type; `None` for one of a later Kafka, which it is no business of ours to judge.
fn decode<M: Machine>(record: &Record) -> Result<Option<M::Record>, LoadError> {
    let empty = Bytes::new();
    match M::decode(record.key.as_ref().unwrap_or(&empty), record.value.as_ref()) {
        Ok(read) => Ok(Some(read)),
        Err(DecodeError::UnknownRecord(_)) => Ok(None),
        Err(error) => Err(LoadError::Replay { offset: record.offset, error: error.into() }),
    }
}
