//! Kafka's messages, record batches, API table and error codes; pure.

pub mod api;
mod error_code;
pub mod features;
pub mod header;
#[cfg(feature = "json")]
pub mod json;
// A message's code may have no use for the version or the output it is given.
#[allow(unused_variables)]
pub mod messages;
pub mod records;
mod text;
mod uuid;
pub mod wire;

pub use api::ApiKey;
pub use error_code::ErrorCode;
pub use text::ByteString;
pub use uuid::{Uuid, UuidError};
