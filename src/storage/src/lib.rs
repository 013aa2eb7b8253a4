//! One partition's log on disk: segments, indexes, producer state, recovery. All in Kafka's formats.
//!
//! A [`Log`] has one owner, who appends and truncates. A [`LogReader`] reads from any thread without asking the owner:
//! it finds the [`Region`] of a file that answers a fetch. Nothing here is async, and the time comes as an argument.

mod append;
pub mod checkpoint;
mod clean;
mod config;
mod directory;
mod epoch_cache;
mod error;
mod files;
mod flush;
mod fs;
mod index;
mod inspect;
mod log;
mod lookup;
mod names;
mod open;
mod producer;
mod reader;
mod recovery;
mod retention;
mod scan;
mod segment;
mod truncate;

pub use append::Appended;
pub use clean::{CleanReport, Cleanable, CleanedSegment, Cleaning, CleaningOptions, LastOfProducer, Step};
pub use config::{LogConfig, OpenOptions, RecoveryReport};
pub use directory::{CleanShutdown, DirectoryLock, MetaProperties, PartitionMetadata};
pub use epoch_cache::{EpochCache, EpochEntry};
pub use error::{AppendError, ReadError, StorageError};
pub use files::{delete_dir, delete_files};
pub use flush::FlushHandle;
pub use fs::{Durability, write_atomically};
pub use index::AbortedTxn;
pub use inspect::{DumpMode, DumpOptions, Dumper, Finding, VerifyReport, verify_dir};
pub use log::Log;
pub use lookup::TimestampOffset;
pub use names::{DirKind, TopicPartition, parse_partition_dir, partition_dir_name};
pub use producer::{Origin, ProducerBatch, ProducerEntry};
pub use reader::{LogReader, Region};
pub use retention::{Due, Removed};
