//! Every message of the protocol and every stored record, generated from `schemas/`.
//!
//! Each message has a module of its snake_cased name with its structs; the message itself is also here by its
//! name. A struct has Kafka's fields, snake_cased, and defaults as the schema gives them.

use crate::ApiKey;
use crate::wire::{DecodeError, EncodeError, Reader, Structure, Writer};
use bytes::Bytes;
use std::fmt::Debug;

/// A whole message: a request, a response, or a stored record.
#[cfg(not(feature = "json"))]
pub trait MessageBase: Structure + Clone + Debug + PartialEq {}
#[cfg(not(feature = "json"))]
impl<T: Structure + Clone + Debug + PartialEq> MessageBase for T {}

/// What every message is; with the feature `json` it has a JSON form too.
#[cfg(feature = "json")]
pub trait MessageBase: Structure + crate::json::JsonForm + Clone + Debug + PartialEq {}
#[cfg(feature = "json")]
impl<T: Structure + crate::json::JsonForm + Clone + Debug + PartialEq> MessageBase for T {}

/// A whole message: a request, a response, or a stored record.
pub trait Message: MessageBase {
    /// Kafka's name of the message.
    const NAME: &'static str;
    /// The API key of a request or response; the record type of a stored record.
    const API_KEY: Option<i16>;
    /// The lowest version there is.
    const MIN_VERSION: i16;
    /// The highest version there is; below `MIN_VERSION` if none is left.
    const MAX_VERSION: i16;

    /// Whether the version has compact lengths and tagged fields.
    fn is_flexible(version: i16) -> bool;

    /// Reads the message. What follows it is left in the reader.
    fn decode(r: &mut Reader<'_>, version: i16) -> Result<Self, DecodeError> {
        if version < Self::MIN_VERSION || version > Self::MAX_VERSION {
            return Err(DecodeError::UnsupportedVersion(version));
        }
        r.structure(version)
    }

    /// Writes the message. A value that the version has no field for is an error unless it can be ignored.
    fn encode(&self, w: &mut Writer, version: i16) -> Result<(), EncodeError> {
        if version < Self::MIN_VERSION || version > Self::MAX_VERSION {
            return Err(EncodeError::UnsupportedVersion { message: Self::NAME, version });
        }
        self.write(w, version)
    }

    /// Reads the message from the start of `bytes`.
    fn from_bytes(bytes: &Bytes, version: i16) -> Result<Self, DecodeError> {
        Self::decode(&mut Reader::new(bytes), version)
    }

    /// The message as contiguous bytes.
    fn to_bytes(&self, version: i16) -> Result<Bytes, EncodeError> {
        let mut w = Writer::contiguous();
        self.encode(&mut w, version)?;
        w.finish().into_bytes().ok_or(EncodeError::External)
    }
}

/// A request, and what answers it.
pub trait Request: Message {
    /// The response.
    type Response: Message;
    /// The API.
    const KEY: ApiKey;
}

/// What every generated module uses.
mod generated {
    pub use super::{Message, Request};
    pub use crate::wire::{
        DecodeError, EncodeError, Reader, Records, Structure, UnknownTaggedFields, Writer,
    };
    pub use crate::{ApiKey, ByteString, Uuid};
    pub use bytes::Bytes;
}

/// The frame version of metadata records.
const FRAME_VERSION: u32 = 1;

/// An enum over records that travel in a frame: uvarint 1, uvarint type, uvarint version, message.
macro_rules! frame_record {
    ($name:ident, $about:literal, $($message:ident = $key:literal,)*) => {
        #[doc = concat!("A record of ", $about, ".")]
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $(#[doc = concat!("Record type ", $key, ".")] $message($message),)*
        }

        impl $name {
            /// The record's type.
            pub fn api_key(&self) -> i16 {
                match self { $(Self::$message(_) => $key,)* }
            }

            /// Kafka's name of the record.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$message(_) => $message::NAME,)* }
            }

            /// The highest version of the record.
            pub fn max_version(&self) -> i16 {
                match self { $(Self::$message(_) => $message::MAX_VERSION,)* }
            }

            /// Reads the record and its version from a record's value.
            pub fn decode_frame(bytes: &Bytes) -> Result<(Self, i16), DecodeError> {
                let mut r = Reader::new(bytes);
                let (key, version) = read_frame_start(&mut r)?;
                let record = match key {
                    $($key => Self::$message($message::decode(&mut r, version)?),)*
                    _ => return Err(DecodeError::UnknownRecord(key.into())),
                };
                Ok((record, version))
            }

            /// The record as a record's value, at a version.
            pub fn encode_frame(&self, version: i16) -> Result<Bytes, EncodeError> {
                let mut w = Writer::contiguous();
                write_frame_start(&mut w, self.api_key(), version);
                match self { $(Self::$message(message) => message.encode(&mut w, version)?,)* }
                w.finish().into_bytes().ok_or(EncodeError::External)
            }

            /// The record in Kafka's JSON form.
            #[cfg(feature = "json")]
            pub fn to_json(&self, version: i16) -> Result<serde_json::Value, EncodeError> {
                use crate::json::JsonForm;
                match self { $(Self::$message(message) => message.to_json(version),)* }
            }
        }

        $(impl From<$message> for $name {
            fn from(message: $message) -> Self {
                Self::$message(message)
            }
        })*
    };
}

fn read_frame_start(r: &mut Reader<'_>) -> Result<(i16, i16), DecodeError> {
    let frame = r.uvarint()?;
    if frame != FRAME_VERSION {
        return Err(DecodeError::UnknownFrame(frame as i32));
    }
    let (key, version) = (r.uvarint()?, r.uvarint()?);
    let key = i16::try_from(key).map_err(|_| DecodeError::UnknownRecord(key as i32))?;
    Ok((key, i16::try_from(version).map_err(|_| DecodeError::UnsupportedVersion(i16::MAX))?))
}

fn write_frame_start(w: &mut Writer, key: i16, version: i16) {
    w.uvarint(FRAME_VERSION);
    w.uvarint(key as u32);
    w.uvarint(version as u32);
}

/// An enum over the keys of a coordinator's log: an int16 type, then the message at version 0.
macro_rules! coordinator_key {
    ($name:ident, $about:literal, $($message:ident = $key:literal,)*) => {
        #[doc = concat!("A record's key in ", $about, ".")]
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $(#[doc = concat!("Record type ", $key, ".")] $message($message),)*
        }

        impl $name {
            /// The record's type.
            pub fn api_key(&self) -> i16 {
                match self { $(Self::$message(_) => $key,)* }
            }

            /// Reads a record's key.
            pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
                let mut r = Reader::new(bytes);
                match r.i16()? {
                    $($key => Ok(Self::$message($message::decode(&mut r, $message::MAX_VERSION)?)),)*
                    key => Err(DecodeError::UnknownRecord(key.into())),
                }
            }

            /// The record's key as bytes.
            pub fn encode(&self) -> Result<Bytes, EncodeError> {
                let mut w = Writer::contiguous();
                w.i16(self.api_key());
                match self { $(Self::$message(message) => message.encode(&mut w, $message::MAX_VERSION)?,)* }
                w.finish().into_bytes().ok_or(EncodeError::External)
            }

            /// The key in Kafka's JSON form.
            #[cfg(feature = "json")]
            pub fn to_json(&self) -> Result<serde_json::Value, EncodeError> {
                use crate::json::JsonForm;
                match self { $(Self::$message(message) => message.to_json($message::MAX_VERSION),)* }
            }
        }

        $(impl From<$message> for $name {
            fn from(message: $message) -> Self {
                Self::$message(message)
            }
        })*
    };
}

/// An enum over the values of a coordinator's log: an int16 version, then the message.
macro_rules! coordinator_value {
    ($name:ident, $about:literal, $($message:ident = $key:literal,)*) => {
        #[doc = concat!("A record's value in ", $about, ".")]
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name {
            $(#[doc = concat!("Record type ", $key, ".")] $message($message),)*
        }

        impl $name {
            /// The record's type: what its key starts with.
            pub fn api_key(&self) -> i16 {
                match self { $(Self::$message(_) => $key,)* }
            }

            /// The highest version of the value.
            pub fn max_version(&self) -> i16 {
                match self { $(Self::$message(_) => $message::MAX_VERSION,)* }
            }

            /// Reads the value and its version, of a record whose key has the type `api_key`.
            pub fn decode(api_key: i16, bytes: &Bytes) -> Result<(Self, i16), DecodeError> {
                let mut r = Reader::new(bytes);
                let version = r.i16()?;
                let value = match api_key {
                    $($key => Self::$message($message::decode(&mut r, version)?),)*
                    key => return Err(DecodeError::UnknownRecord(key.into())),
                };
                Ok((value, version))
            }

            /// The value as bytes, at a version.
            pub fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
                let mut w = Writer::contiguous();
                w.i16(version);
                match self { $(Self::$message(message) => message.encode(&mut w, version)?,)* }
                w.finish().into_bytes().ok_or(EncodeError::External)
            }

            /// The value in Kafka's JSON form.
            #[cfg(feature = "json")]
            pub fn to_json(&self, version: i16) -> Result<serde_json::Value, EncodeError> {
                use crate::json::JsonForm;
                match self { $(Self::$message(message) => message.to_json(version),)* }
            }
        }

        $(impl From<$message> for $name {
            fn from(message: $message) -> Self {
                Self::$message(message)
            }
        })*
    };
}

include!(concat!(env!("OUT_DIR"), "/messages.rs"));
