//! The cluster's image and every decision of the controller; pure.
pub mod config;
