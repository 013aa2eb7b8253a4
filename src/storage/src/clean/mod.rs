//! Compaction: keeping the last record of each key.
//!
//! A round over a log ([`Cleaning`]) first walks the part that was never compacted and notes the last offset of each
//! key ([`map`]), then rewrites all segments up to there, a few small ones into one ([`writer`]), without the records
//! that a later one replaces ([`filter`]), and puts each in place of those it stands for ([`swap`]). It works in steps,
//! so that whoever drives it can pause, slow it down or stop.

mod filter;
mod map;
mod plan;
mod round;
mod swap;
mod transactions;
mod writer;

pub use filter::LastOfProducer;
pub use plan::Cleanable;
pub use round::{CleanReport, Cleaning, CleaningOptions, Step};
pub use swap::CleanedSegment;
pub(crate) use swap::finish_swaps;
