//! Reading and writing the primitive types of Kafka's protocol, with its limits.

mod element;
mod encoded;
mod error;
mod fields;
mod reader;
mod tagged;
mod writer;

pub use element::Element;
pub use encoded::{Encoded, Payload, Records, Splice};
pub use error::{DecodeError, EncodeError};
pub use reader::Reader;
pub use tagged::{RawTaggedField, UnknownTaggedFields};
pub use writer::Writer;

/// The most elements an array may have, as Kafka 4.4 bounds it.
pub const MAX_ARRAY_ELEMENTS: usize = 1_000_000;
/// The most tagged fields a struct may have, as Kafka 4.4 bounds it.
pub const MAX_TAGGED_FIELDS: usize = 10_000;
/// The longest string, in bytes.
pub const MAX_STRING_BYTES: usize = i16::MAX as usize;
/// The capacity a collection starts with at most, whatever length was announced.
const MAX_INITIAL_CAPACITY: usize = 1_000;

/// A struct of the protocol, at any depth of a message. Versions are the message's, and already checked.
pub trait Structure: Sized + Default {
    /// Reads the struct's fields into a struct of defaults.
    fn read(&mut self, r: &mut Reader<'_>, version: i16) -> Result<(), DecodeError>;
    /// Writes the struct's fields.
    fn write(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError>;
}
