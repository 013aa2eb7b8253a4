//! Looking at logs that no broker has open: printing their files as Kafka's dump-log does, and checking directories.

mod dump;
mod verify;

pub use dump::{DumpMode, DumpOptions, Dumper};
pub use verify::{Finding, VerifyReport, verify_dir};
