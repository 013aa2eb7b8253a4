//! Conversations with a shard, as clients have them, and a simulation of many.

mod conversations;
mod migration;
mod mixed;
mod patterns;
mod simulation;
mod stage;
