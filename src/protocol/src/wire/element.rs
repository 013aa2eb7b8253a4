//! The primitive types an array can hold.

use super::{DecodeError, EncodeError, Reader, Writer};
use crate::{ByteString, Uuid};
use bytes::Bytes;

/// A primitive type that arrays can hold.
pub trait Element: Sized {
    /// Reads `len` of them.
    fn read_elements(r: &mut Reader<'_>, len: usize, flexible: bool) -> Result<Vec<Self>, DecodeError>;
    /// Writes them one after the other.
    fn write_elements(items: &[Self], w: &mut Writer, flexible: bool) -> Result<(), EncodeError>;
}

macro_rules! fixed_elements {
    ($($kind:ty, $from:expr, $write:ident;)*) => {$(
        impl Element for $kind {
            fn read_elements(r: &mut Reader<'_>, len: usize, _flexible: bool) -> Result<Vec<Self>, DecodeError> {
                // One check of the length for all: what is allocated is there.
                Ok(r.chunks(len)?.iter().map(|chunk| $from(*chunk)).collect())
            }

            fn write_elements(items: &[Self], w: &mut Writer, _flexible: bool) -> Result<(), EncodeError> {
                items.iter().for_each(|item| w.$write(*item));
                Ok(())
            }
        }
    )*};
}

fixed_elements! {
    i8, i8::from_be_bytes, i8;
    i16, i16::from_be_bytes, i16;
    i32, i32::from_be_bytes, i32;
    i64, i64::from_be_bytes, i64;
    u16, u16::from_be_bytes, u16;
    Uuid, Uuid::from_bytes, uuid;
}

impl Element for ByteString {
    fn read_elements(r: &mut Reader<'_>, len: usize, flexible: bool) -> Result<Vec<Self>, DecodeError> {
        r.collect(len, |r| r.string(flexible))
    }

    fn write_elements(items: &[Self], w: &mut Writer, flexible: bool) -> Result<(), EncodeError> {
        items.iter().try_for_each(|item| w.string(item, flexible))
    }
}

impl Element for Bytes {
    fn read_elements(r: &mut Reader<'_>, len: usize, flexible: bool) -> Result<Vec<Self>, DecodeError> {
        r.collect(len, |r| r.bytes(flexible))
    }

    fn write_elements(items: &[Self], w: &mut Writer, flexible: bool) -> Result<(), EncodeError> {
        items.iter().try_for_each(|item| w.bytes(item, flexible))
    }
}
