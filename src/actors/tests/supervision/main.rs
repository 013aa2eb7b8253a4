//! Supervision from outside: what an actor's crash costs, and what it does not.

mod admission;
mod barrier;
mod common;
mod fairness;
mod generations;
mod restarts;
mod stopping;
mod tree;
mod watchdog;
