//! The control plane: the quorum's log, the controller over it, the broker that registers and follows.

#![allow(clippy::unwrap_used, clippy::panic)]

mod controller;
mod life;
mod node;
