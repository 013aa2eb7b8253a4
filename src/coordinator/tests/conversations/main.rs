//! Conversations with a group shard, as Kafka 4.4 leads them: what is asked, and what each member hears.

// What must not be is a failure of the test.
#![allow(clippy::panic)]

mod classic;
mod offsets;
mod talk;
