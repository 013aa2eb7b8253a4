//! A cursor over a frame, and the values it reads.

use super::{DecodeError, Element, MAX_ARRAY_ELEMENTS, MAX_INITIAL_CAPACITY, MAX_STRING_BYTES, Structure};
use crate::{ByteString, Uuid};
use bytes::Bytes;

/// A cursor over a frame. Strings and byte fields are slices of the frame: nothing is copied.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    pub(super) frame: &'a Bytes,
    pub(super) rest: &'a [u8],
    /// Where `rest` ends in the frame: before its end while a tagged field is read.
    pub(super) end: usize,
    /// Whether record batches are left in the frame.
    pub(super) in_place: bool,
}

impl<'a> Reader<'a> {
    /// A cursor at the frame's start.
    pub fn new(frame: &'a Bytes) -> Reader<'a> {
        Reader { frame, rest: frame, end: frame.len(), in_place: false }
    }

    /// A cursor at the frame's start that leaves record batches in the frame and says where they are: the message then
    /// needs the frame ([`Records::of_frame`](super::Records::of_frame)), and reading costs no reference for each batch.
    pub fn in_place(frame: &'a Bytes) -> Reader<'a> {
        Reader { in_place: true, ..Reader::new(frame) }
    }

    /// The bytes left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes read, from the frame's start.
    pub fn position(&self) -> usize {
        self.end - self.rest.len()
    }

    /// Takes all that is left, as a slice of the frame.
    pub fn take_rest(&mut self) -> Bytes {
        let rest = self.rest;
        self.rest = &[];
        self.share(rest)
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    #[inline]
    pub(super) fn slice(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// The frame's slice that was just read: shared, not copied.
    #[inline]
    pub(super) fn share(&self, read: &'a [u8]) -> Bytes {
        let end = self.position();
        self.frame.slice(end - read.len()..end)
    }

    /// A boolean: any byte but zero is true.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.fixed::<1>()? != [0])
    }

    /// An `int8`.
    #[inline]
    pub fn i8(&mut self) -> Result<i8, DecodeError> {
        self.fixed().map(i8::from_be_bytes)
    }

    /// An `int16`.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, DecodeError> {
        self.fixed().map(i16::from_be_bytes)
    }

    /// A `uint16`.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.fixed().map(u16::from_be_bytes)
    }

    /// An `int32`.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.fixed().map(i32::from_be_bytes)
    }

    /// A `uint32`.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.fixed().map(u32::from_be_bytes)
    }

    /// An `int64`.
    #[inline]
    pub fn i64(&mut self) -> Result<i64, DecodeError> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// A `float64`.
    #[inline]
    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        self.fixed().map(f64::from_be_bytes)
    }

    /// A UUID.
    #[inline]
    pub fn uuid(&mut self) -> Result<Uuid, DecodeError> {
        self.fixed().map(Uuid::from_bytes)
    }

    /// An unsigned variable-length integer of at most 32 bits.
    #[inline]
    pub fn uvarint(&mut self) -> Result<u32, DecodeError> {
        match *self.rest {
            [first @ 0..0x80, ref rest @ ..] => {
                self.rest = rest;
                Ok(u32::from(first))
            }
            [first, second @ 0..0x80, ref rest @ ..] => {
                self.rest = rest;
                Ok(u32::from(first & 0x7f) | u32::from(second) << 7)
            }
            _ => self.long_uvarint(),
        }
    }

    fn long_uvarint(&mut self) -> Result<u32, DecodeError> {
        let [first] = self.fixed::<1>()?;
        let mut value = u32::from(first & 0x7f);
        for shift in [7, 14, 21, 28] {
            let [byte] = self.fixed::<1>()?;
            if shift == 28 && byte > 0x0f {
                return Err(DecodeError::Varint);
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::Varint)
    }

    /// The length of a compact field: none for null.
    #[inline]
    fn compact_len(&mut self) -> Result<Option<usize>, DecodeError> {
        Ok((self.uvarint()? as usize).checked_sub(1))
    }

    /// The bytes of a string: none for null.
    #[inline]
    pub(super) fn text(&mut self, flexible: bool) -> Result<Option<&'a [u8]>, DecodeError> {
        let len = if flexible { self.compact_len()? } else { usize::try_from(self.i16()?).ok() };
        match len {
            None => Ok(None),
            Some(len) if len > MAX_STRING_BYTES => Err(DecodeError::StringTooLong(len as u32)),
            Some(len) => self.slice(len).map(Some),
        }
    }

    #[inline]
    pub(super) fn own_text(read: &[u8]) -> Result<ByteString, DecodeError> {
        let mut text = ByteString::new();
        text.read(read).map_err(|_| DecodeError::Utf8)?;
        Ok(text)
    }

    /// A string that may be null.
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<ByteString>, DecodeError> {
        self.text(flexible)?.map(Self::own_text).transpose()
    }

    /// A string.
    pub fn string(&mut self, flexible: bool) -> Result<ByteString, DecodeError> {
        let text = self.text(flexible)?.ok_or(DecodeError::Null)?;
        Self::own_text(text)
    }

    /// The bytes of a byte field: none for null.
    #[inline]
    pub(super) fn blob(&mut self, flexible: bool) -> Result<Option<&'a [u8]>, DecodeError> {
        let len = if flexible { self.compact_len()? } else { usize::try_from(self.i32()?).ok() };
        len.map(|len| self.slice(len)).transpose()
    }

    /// Bytes.
    pub fn bytes(&mut self, flexible: bool) -> Result<Bytes, DecodeError> {
        let blob = self.blob(flexible)?.ok_or(DecodeError::Null)?;
        Ok(self.share(blob))
    }

    /// The length of an array, checked against the limits: none for null.
    #[inline]
    pub(super) fn array_len(&mut self, flexible: bool) -> Result<Option<usize>, DecodeError> {
        let len = if flexible { self.compact_len()? } else { usize::try_from(self.i32()?).ok() };
        match len {
            // Every element takes a byte at least, so a longer array can't be whole.
            Some(len) if len > MAX_ARRAY_ELEMENTS || len > self.rest.len() => {
                Err(DecodeError::TooManyElements(len as u32))
            }
            len => Ok(len),
        }
    }

    /// `len` values of `N` bytes each, as chunks.
    #[inline]
    pub(super) fn chunks<const N: usize>(&mut self, len: usize) -> Result<&'a [[u8; N]], DecodeError> {
        let bytes = len.checked_mul(N).ok_or(DecodeError::Truncated)?;
        Ok(self.slice(bytes)?.as_chunks().0)
    }

    /// `len` values, one by one.
    pub(super) fn collect<T>(
        &mut self,
        len: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let mut items = Vec::with_capacity(len.min(MAX_INITIAL_CAPACITY));
        for _ in 0..len {
            items.push(read(self)?);
        }
        Ok(items)
    }

    /// An array of a primitive type.
    pub fn array<T: Element>(&mut self, flexible: bool) -> Result<Vec<T>, DecodeError> {
        let len = self.array_len(flexible)?.ok_or(DecodeError::Null)?;
        T::read_elements(self, len, flexible)
    }

    /// A struct.
    #[inline]
    pub fn structure<T: Structure>(&mut self, version: i16) -> Result<T, DecodeError> {
        let mut structure = T::default();
        structure.read(self, version)?;
        Ok(structure)
    }

    /// A struct that may be null: a negative `int8` says so.
    pub fn nullable_structure<T: Structure>(&mut self, version: i16) -> Result<Option<T>, DecodeError> {
        if self.i8()? < 0 { Ok(None) } else { self.structure(version).map(Some) }
    }

    /// A struct in a tagged field that may be null: a zero says so.
    pub fn nullable_tagged_structure<T: Structure>(
        &mut self,
        version: i16,
    ) -> Result<Option<T>, DecodeError> {
        if self.uvarint()? == 0 { Ok(None) } else { self.structure(version).map(Some) }
    }
}
