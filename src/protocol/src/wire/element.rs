//! The primitive types an array can hold.

use super::{DecodeError, EncodeError, Reader, Writer};
use crate::{ByteString, Uuid};
use bytes::Bytes;

/// A primitive type that arrays can hold.
pub trait Element: Sized {
    /// Reads one.
    fn read_element(r: &mut Reader<'_>, flexible: bool) -> Result<Self, DecodeError>;
    /// Writes one.
    fn write_element(&self, w: &mut Writer, flexible: bool) -> Result<(), EncodeError>;
}

macro_rules! fixed_elements {
    ($($kind:ty, $method:ident;)*) => {$(
        impl Element for $kind {
            fn read_element(r: &mut Reader<'_>, _flexible: bool) -> Result<Self, DecodeError> {
                r.$method()
            }

            fn write_element(&self, w: &mut Writer, _flexible: bool) -> Result<(), EncodeError> {
                w.$method(*self);
                Ok(())
            }
        }
    )*};
}

fixed_elements! {
    i8, i8;
    i16, i16;
    i32, i32;
    i64, i64;
    u16, u16;
    u32, u32;
    f64, f64;
    bool, bool;
    Uuid, uuid;
}

impl Element for ByteString {
    fn read_element(r: &mut Reader<'_>, flexible: bool) -> Result<Self, DecodeError> {
        r.string(flexible)
    }

    fn write_element(&self, w: &mut Writer, flexible: bool) -> Result<(), EncodeError> {
        w.string(self, flexible)
    }
}

impl Element for Bytes {
    fn read_element(r: &mut Reader<'_>, flexible: bool) -> Result<Self, DecodeError> {
        r.bytes(flexible)
    }

    fn write_element(&self, w: &mut Writer, flexible: bool) -> Result<(), EncodeError> {
        w.bytes(self, flexible)
    }
}
