//! The cluster's image and every decision of the controller; pure.

pub mod bootstrap;
pub mod config;
pub mod controller;
mod error;
pub mod features;
pub mod image;
mod record;
pub mod topic_name;

pub use error::ReplayError;
pub use record::VersionedRecord;
