//! Why bytes can't be read, or a message can't be written.

use thiserror::Error;

/// Why bytes are not a message. Small on purpose: it is the error of every read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end before the value does.
    #[error("the bytes end too early")]
    Truncated,
    /// Null where the field can't be null.
    #[error("null in a field that can't be null")]
    Null,
    /// A variable-length integer of more than its 32 or 64 bits.
    #[error("a variable-length integer is too long")]
    Varint,
    /// A string that is not UTF-8.
    #[error("a string is not UTF-8")]
    Utf8,
    /// A string longer than 32,767 bytes.
    #[error("a string of {0} bytes is too long")]
    StringTooLong(u32),
    /// An array of more than a million elements, or of more than there are bytes.
    #[error("an array of {0} elements is too long")]
    TooManyElements(u32),
    /// More than 10,000 tagged fields in one struct.
    #[error("{0} tagged fields are too many")]
    TooManyTaggedFields(u32),
    /// A tagged field whose content is not as long as its size says.
    #[error("a tagged field doesn't fill its size")]
    TaggedFieldSize,
    /// A message version that doesn't exist.
    #[error("version {0} is not supported")]
    UnsupportedVersion(i16),
    /// An API key that doesn't exist.
    #[error("unknown API key {0}")]
    UnknownApiKey(i16),
    /// A record type that doesn't exist.
    #[error("unknown record type {0}")]
    UnknownRecord(i32),
    /// A frame of metadata records with another frame version than 1.
    #[error("unknown frame version {0}")]
    UnknownFrame(i32),
}

impl DecodeError {
    /// Refuses null.
    pub fn not_null<T>(value: &Option<T>) -> Result<(), DecodeError> {
        if value.is_some() { Ok(()) } else { Err(DecodeError::Null) }
    }
}

/// Why a message can't be written at a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The version lacks a field that has a value and can't be ignored.
    #[error("version {version} has no field {field}, which has a value")]
    Absent {
        /// The field, by Kafka's name.
        field: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// Null where the version wants a value.
    #[error("the field {field} can't be null at this version")]
    Null {
        /// The field, by Kafka's name.
        field: &'static str,
    },
    /// Null where no field can be null.
    #[error("records can't be null here")]
    NullRecords,
    /// A string of more than 32,767 bytes.
    #[error("a string of {0} bytes is too long")]
    StringTooLong(usize),
    /// An array, byte field or message longer than its length can say.
    #[error("a length of {0} is too long")]
    TooLong(usize),
    /// Unknown tagged fields out of order, or of a known field's tag.
    #[error("tagged field {0} is out of order")]
    TagOrder(u32),
    /// A message version that doesn't exist.
    #[error("{message} has no version {version}")]
    UnsupportedVersion {
        /// The message's name.
        message: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// A region outside memory where contiguous bytes are wanted.
    #[error("the message has a part that is not in memory")]
    External,
    /// Records that were left in the frame they came in.
    #[error("the records were left in the frame they came in")]
    InFrame,
}

impl EncodeError {
    /// A field with a value that `version` lacks.
    #[cold]
    pub fn absent(field: &'static str, version: i16) -> EncodeError {
        EncodeError::Absent { field, version }
    }

    /// The value of a field that can't be null at the version at hand.
    pub fn required<'a, T>(value: &'a Option<T>, field: &'static str) -> Result<&'a T, EncodeError> {
        value.as_ref().ok_or(EncodeError::Null { field })
    }
}
