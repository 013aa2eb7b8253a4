//! Kafka's JSON form of messages (feature `json`): for tests, and for tools that print stored records.

use crate::wire::{EncodeError, Records};
use crate::{ByteString, Uuid};
use bytes::Bytes;
use serde_json::{Map, Number, Value};
use thiserror::Error;

/// Why a JSON value is not a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonError {
    /// A field that the version has is missing.
    #[error("the field {0} is missing")]
    Missing(&'static str),
    /// A value of another type, or out of the type's range.
    #[error("{0} is not {1}")]
    Mismatch(String, &'static str),
}

/// What has a JSON form, at a version of its message.
pub trait JsonForm: Sized {
    /// The JSON form.
    fn to_json(&self, version: i16) -> Result<Value, EncodeError>;
    /// The value of a JSON form.
    fn from_json(value: &Value, version: i16) -> Result<Self, JsonError>;
}

/// What generated code uses.
pub(crate) mod generated {
    pub use super::{JsonError, JsonForm, as_object, put, take, take_or};
    pub use serde_json::Value;
    pub type Object = serde_json::Map<String, Value>;
}

fn mismatch<T>(value: &Value, wanted: &'static str) -> Result<T, JsonError> {
    Err(JsonError::Mismatch(value.to_string(), wanted))
}

/// The fields of an object.
pub fn as_object(value: &Value) -> Result<&Map<String, Value>, JsonError> {
    value.as_object().map_or_else(|| mismatch(value, "an object"), Ok)
}

/// Puts a field into an object.
pub fn put<T: JsonForm>(
    object: &mut Map<String, Value>,
    name: &'static str,
    value: &T,
    version: i16,
) -> Result<(), EncodeError> {
    object.insert(name.to_owned(), value.to_json(version)?);
    Ok(())
}

/// A field that must be there.
pub fn take<T: JsonForm>(
    object: &Map<String, Value>,
    name: &'static str,
    version: i16,
) -> Result<T, JsonError> {
    T::from_json(object.get(name).ok_or(JsonError::Missing(name))?, version)
}

/// A field that may be missing.
pub fn take_or<T: JsonForm>(
    object: &Map<String, Value>,
    name: &'static str,
    version: i16,
    default: T,
) -> Result<T, JsonError> {
    object.get(name).map_or(Ok(default), |value| T::from_json(value, version))
}

macro_rules! integers {
    ($($kind:ty)*) => {$(
        impl JsonForm for $kind {
            fn to_json(&self, _version: i16) -> Result<Value, EncodeError> {
                Ok(Value::from(*self))
            }

            fn from_json(value: &Value, _version: i16) -> Result<Self, JsonError> {
                let number = value.as_i64().and_then(|number| <$kind>::try_from(number).ok());
                number.map_or_else(|| mismatch(value, stringify!($kind)), Ok)
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 u16 u32 }

impl JsonForm for f64 {
    fn to_json(&self, _version: i16) -> Result<Value, EncodeError> {
        Ok(Number::from_f64(*self).map_or(Value::Null, Value::Number))
    }

    fn from_json(value: &Value, _version: i16) -> Result<Self, JsonError> {
        value.as_f64().map_or_else(|| mismatch(value, "a number"), Ok)
    }
}

impl JsonForm for bool {
    fn to_json(&self, _version: i16) -> Result<Value, EncodeError> {
        Ok(Value::Bool(*self))
    }

    fn from_json(value: &Value, _version: i16) -> Result<Self, JsonError> {
        value.as_bool().map_or_else(|| mismatch(value, "a boolean"), Ok)
    }
}

impl JsonForm for ByteString {
    fn to_json(&self, _version: i16) -> Result<Value, EncodeError> {
        Ok(Value::String(self.to_string()))
    }

    fn from_json(value: &Value, _version: i16) -> Result<Self, JsonError> {
        value.as_str().map_or_else(|| mismatch(value, "a string"), |text| Ok(ByteString::from(text)))
    }
}

impl JsonForm for Uuid {
    fn to_json(&self, _version: i16) -> Result<Value, EncodeError> {
        Ok(Value::String(self.to_string()))
    }

    fn from_json(value: &Value, _version: i16) -> Result<Self, JsonError> {
        let uuid = value.as_str().and_then(|text| text.parse().ok());
        uuid.map_or_else(|| mismatch(value, "a UUID"), Ok)
    }
}

impl JsonForm for Bytes {
    fn to_json(&self, _version: i16) -> Result<Value, EncodeError> {
        Ok(Value::String(to_base64(self)))
    }

    fn from_json(value: &Value, _version: i16) -> Result<Self, JsonError> {
        let bytes = value.as_str().and_then(from_base64);
        bytes.map_or_else(|| mismatch(value, "bytes in base64"), |bytes| Ok(Bytes::from(bytes)))
    }
}

impl JsonForm for Records {
    fn to_json(&self, version: i16) -> Result<Value, EncodeError> {
        self.as_bytes().ok_or(EncodeError::External)?.to_json(version)
    }

    fn from_json(value: &Value, version: i16) -> Result<Self, JsonError> {
        Bytes::from_json(value, version).map(Records::Bytes)
    }
}

impl<T: JsonForm> JsonForm for Option<T> {
    fn to_json(&self, version: i16) -> Result<Value, EncodeError> {
        self.as_ref().map_or(Ok(Value::Null), |value| value.to_json(version))
    }

    fn from_json(value: &Value, version: i16) -> Result<Self, JsonError> {
        if value.is_null() { Ok(None) } else { T::from_json(value, version).map(Some) }
    }
}

impl<T: JsonForm> JsonForm for Vec<T> {
    fn to_json(&self, version: i16) -> Result<Value, EncodeError> {
        self.iter().map(|item| item.to_json(version)).collect::<Result<Vec<_>, _>>().map(Value::Array)
    }

    fn from_json(value: &Value, version: i16) -> Result<Self, JsonError> {
        let Some(items) = value.as_array() else { return mismatch(value, "an array") };
        items.iter().map(|item| T::from_json(item, version)).collect()
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let number =
            chunk.iter().fold(0u32, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let value = (number >> (18 - 6 * digit)) & 63;
            text.push(if digit <= chunk.len() { char::from(ALPHABET[value as usize]) } else { '=' });
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for chunk in digits.chunks(4) {
        let mut number = 0u32;
        for digit in chunk {
            number = number << 6 | ALPHABET.iter().position(|c| c == digit)? as u32;
        }
        number <<= 6 * (4 - chunk.len());
        // Two digits hold one byte, three hold two, four hold three.
        let whole = chunk.len().checked_sub(1).filter(|count| *count > 0)?;
        bytes.extend_from_slice(number.to_be_bytes().get(1..=whole)?);
    }
    Some(bytes)
}
