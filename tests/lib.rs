//! What whole-node tests share.
