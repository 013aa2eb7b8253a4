//! A cursor over a frame.

use super::{
    DecodeError, Element, MAX_ARRAY_ELEMENTS, MAX_INITIAL_CAPACITY, MAX_STRING_BYTES, MAX_TAGGED_FIELDS,
    RawTaggedField, Records, Structure,
};
use crate::{ByteString, Uuid};
use bytes::Bytes;

/// A cursor over a frame. Strings and byte fields are slices of the frame: nothing is copied.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    frame: &'a Bytes,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the frame's start.
    pub fn new(frame: &'a Bytes) -> Reader<'a> {
        Reader { frame, rest: frame }
    }

    /// The bytes left.
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// The bytes read.
    pub fn position(&self) -> usize {
        self.frame.len() - self.rest.len()
    }

    /// Takes all that is left, as a slice of the frame.
    pub fn take_rest(&mut self) -> Bytes {
        let rest = self.frame.slice_ref(self.rest);
        self.rest = &[];
        rest
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    #[inline]
    fn slice(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(head)
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
        let [first] = self.fixed::<1>()?;
        if first < 0x80 { Ok(u32::from(first)) } else { self.long_uvarint(first) }
    }

    fn long_uvarint(&mut self, first: u8) -> Result<u32, DecodeError> {
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

    /// A string that may be null.
    #[inline]
    pub fn nullable_string(&mut self, flexible: bool) -> Result<Option<ByteString>, DecodeError> {
        let len = if flexible { self.compact_len()? } else { usize::try_from(self.i16()?).ok() };
        let Some(len) = len else { return Ok(None) };
        if len > MAX_STRING_BYTES {
            return Err(DecodeError::StringTooLong(len as u32));
        }
        let slice = self.slice(len)?;
        ByteString::try_from(self.frame.slice_ref(slice)).map(Some).map_err(|_| DecodeError::Utf8)
    }

    /// A string.
    #[inline]
    pub fn string(&mut self, flexible: bool) -> Result<ByteString, DecodeError> {
        self.nullable_string(flexible)?.ok_or(DecodeError::Null)
    }

    /// Bytes that may be null.
    #[inline]
    pub fn nullable_bytes(&mut self, flexible: bool) -> Result<Option<Bytes>, DecodeError> {
        let len = if flexible { self.compact_len()? } else { usize::try_from(self.i32()?).ok() };
        let Some(len) = len else { return Ok(None) };
        let slice = self.slice(len)?;
        Ok(Some(self.frame.slice_ref(slice)))
    }

    /// Bytes.
    #[inline]
    pub fn bytes(&mut self, flexible: bool) -> Result<Bytes, DecodeError> {
        self.nullable_bytes(flexible)?.ok_or(DecodeError::Null)
    }

    /// Record batches that may be null.
    #[inline]
    pub fn nullable_records(&mut self, flexible: bool) -> Result<Option<Records>, DecodeError> {
        Ok(self.nullable_bytes(flexible)?.map(Records::Bytes))
    }

    /// Record batches.
    #[inline]
    pub fn records(&mut self, flexible: bool) -> Result<Records, DecodeError> {
        self.bytes(flexible).map(Records::Bytes)
    }

    /// The length of an array, checked against the limits: none for null.
    fn array_len(&mut self, flexible: bool) -> Result<Option<usize>, DecodeError> {
        let len = if flexible { self.compact_len()? } else { usize::try_from(self.i32()?).ok() };
        match len {
            // Every element takes a byte at least, so a longer array can't be whole.
            Some(len) if len > MAX_ARRAY_ELEMENTS || len > self.rest.len() => {
                Err(DecodeError::TooManyElements(len as u32))
            }
            len => Ok(len),
        }
    }

    #[inline]
    fn collect<T>(
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

    /// An array of a primitive type that may be null.
    pub fn nullable_array<T: Element>(&mut self, flexible: bool) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(len) = self.array_len(flexible)? else { return Ok(None) };
        self.collect(len, |r| T::read_element(r, flexible)).map(Some)
    }

    /// An array of a primitive type.
    pub fn array<T: Element>(&mut self, flexible: bool) -> Result<Vec<T>, DecodeError> {
        self.nullable_array(flexible)?.ok_or(DecodeError::Null)
    }

    /// An array of structs that may be null.
    pub fn nullable_structures<T: Structure>(
        &mut self,
        version: i16,
        flexible: bool,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(len) = self.array_len(flexible)? else { return Ok(None) };
        self.collect(len, |r| T::read(r, version)).map(Some)
    }

    /// An array of structs.
    pub fn structures<T: Structure>(&mut self, version: i16, flexible: bool) -> Result<Vec<T>, DecodeError> {
        self.nullable_structures(version, flexible)?.ok_or(DecodeError::Null)
    }

    /// A struct that may be null: a negative `int8` says so.
    pub fn nullable_structure<T: Structure>(&mut self, version: i16) -> Result<Option<T>, DecodeError> {
        if self.i8()? < 0 { Ok(None) } else { T::read(self, version).map(Some) }
    }

    /// A struct in a tagged field that may be null: a zero says so.
    pub fn nullable_tagged_structure<T: Structure>(
        &mut self,
        version: i16,
    ) -> Result<Option<T>, DecodeError> {
        if self.uvarint()? == 0 { Ok(None) } else { T::read(self, version).map(Some) }
    }

    /// The tagged fields of a struct that knows none.
    #[inline]
    pub fn unknown_tagged_fields(&mut self) -> Result<Vec<RawTaggedField>, DecodeError> {
        self.tagged_fields(|_, _| Ok(false))
    }

    /// The tagged fields of a struct. `known` reads a field it knows and says so; the others are returned.
    #[inline]
    pub fn tagged_fields(
        &mut self,
        known: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, DecodeError>,
    ) -> Result<Vec<RawTaggedField>, DecodeError> {
        match self.uvarint()? {
            0 => Ok(Vec::new()),
            count => self.some_tagged_fields(count, known),
        }
    }

    #[inline(never)]
    fn some_tagged_fields(
        &mut self,
        count: u32,
        mut known: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, DecodeError>,
    ) -> Result<Vec<RawTaggedField>, DecodeError> {
        if count as usize > MAX_TAGGED_FIELDS {
            return Err(DecodeError::TooManyTaggedFields(count));
        }
        let mut unknown = Vec::new();
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let slice = self.slice(size)?;
            let mut field = Reader { frame: self.frame, rest: slice };
            if !known(tag, &mut field)? {
                unknown.push(RawTaggedField { tag, data: self.frame.slice_ref(slice) });
            } else if field.remaining() > 0 {
                return Err(DecodeError::TaggedFieldSize);
            }
        }
        Ok(unknown)
    }
}
