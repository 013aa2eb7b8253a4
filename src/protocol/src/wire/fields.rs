//! Reading the fields of generated structs into their places.
//!
//! A field that is built elsewhere and then moved costs more than it takes to read it, so these fill the place.

use super::{
    DecodeError, Element, MAX_INITIAL_CAPACITY, MAX_TAGGED_FIELDS, RawTaggedField, Reader, Records,
    Structure, UnknownTaggedFields,
};
use crate::ByteString;
use bytes::Bytes;

impl<'a> Reader<'a> {
    /// Reads a string.
    #[inline]
    pub fn read_string(&mut self, place: &mut ByteString, flexible: bool) -> Result<(), DecodeError> {
        let text = self.text(flexible)?.ok_or(DecodeError::Null)?;
        place.read(text).map_err(|_| DecodeError::Utf8)
    }

    /// Reads a string that may be null.
    #[inline]
    pub fn read_nullable_string(
        &mut self,
        place: &mut Option<ByteString>,
        flexible: bool,
    ) -> Result<(), DecodeError> {
        match self.text(flexible)? {
            Some(text) => place.insert(ByteString::new()).read(text).map_err(|_| DecodeError::Utf8),
            None => {
                *place = None;
                Ok(())
            }
        }
    }

    /// Reads bytes.
    #[inline]
    pub fn read_bytes(&mut self, place: &mut Bytes, flexible: bool) -> Result<(), DecodeError> {
        let blob = self.blob(flexible)?.ok_or(DecodeError::Null)?;
        *place = self.share(blob);
        Ok(())
    }

    /// Reads bytes that may be null.
    #[inline]
    pub fn read_nullable_bytes(
        &mut self,
        place: &mut Option<Bytes>,
        flexible: bool,
    ) -> Result<(), DecodeError> {
        match self.blob(flexible)? {
            Some(blob) => *place = Some(self.share(blob)),
            None => *place = None,
        }
        Ok(())
    }

    /// Reads record batches that may be null.
    #[inline]
    pub fn read_nullable_records(
        &mut self,
        place: &mut Option<Records>,
        flexible: bool,
    ) -> Result<(), DecodeError> {
        match self.blob(flexible)? {
            Some(blob) if self.in_place => {
                let end = self.position();
                *place = Some(Records::InFrame(end - blob.len()..end));
            }
            Some(blob) => *place = Some(Records::Bytes(self.share(blob))),
            None => *place = None,
        }
        Ok(())
    }

    /// Reads an array of a primitive type.
    #[inline]
    pub fn read_array<T: Element>(&mut self, place: &mut Vec<T>, flexible: bool) -> Result<(), DecodeError> {
        *place = self.array(flexible)?;
        Ok(())
    }

    /// Reads an array of a primitive type that may be null.
    #[inline]
    pub fn read_nullable_array<T: Element>(
        &mut self,
        place: &mut Option<Vec<T>>,
        flexible: bool,
    ) -> Result<(), DecodeError> {
        match self.array_len(flexible)? {
            Some(len) => *place = Some(T::read_elements(self, len, flexible)?),
            None => *place = None,
        }
        Ok(())
    }

    /// Reads an array of structs.
    pub fn read_structures<T: Structure>(
        &mut self,
        place: &mut Vec<T>,
        version: i16,
        flexible: bool,
    ) -> Result<(), DecodeError> {
        let len = self.array_len(flexible)?.ok_or(DecodeError::Null)?;
        self.fill(place, len, version)
    }

    /// Reads an array of structs that may be null.
    pub fn read_nullable_structures<T: Structure>(
        &mut self,
        place: &mut Option<Vec<T>>,
        version: i16,
        flexible: bool,
    ) -> Result<(), DecodeError> {
        match self.array_len(flexible)? {
            Some(len) => self.fill(place.insert(Vec::new()), len, version),
            None => {
                *place = None;
                Ok(())
            }
        }
    }

    /// Reads `len` structs, in steps, so that no more room is taken than the bytes have shown they need.
    fn fill<T: Structure>(
        &mut self,
        items: &mut Vec<T>,
        len: usize,
        version: i16,
    ) -> Result<(), DecodeError> {
        *items = Vec::with_capacity(len.min(MAX_INITIAL_CAPACITY));
        while items.len() < len {
            let from = items.len();
            items.resize_with(len.min(from + MAX_INITIAL_CAPACITY), T::default);
            items.iter_mut().skip(from).try_for_each(|item| item.read(self, version))?;
        }
        Ok(())
    }

    /// Reads the tagged fields of a struct that knows none.
    #[inline]
    pub fn read_unknown_tagged_fields(
        &mut self,
        unknown: &mut UnknownTaggedFields,
    ) -> Result<(), DecodeError> {
        self.read_tagged_fields(unknown, |_, _| Ok(false))
    }

    /// Reads the tagged fields of a struct. `known` reads a field it knows and says so; the others are kept.
    #[inline]
    pub fn read_tagged_fields(
        &mut self,
        unknown: &mut UnknownTaggedFields,
        known: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        match self.uvarint()? {
            0 => Ok(()),
            count => self.read_some_tagged_fields(count, unknown, known),
        }
    }

    #[inline(never)]
    fn read_some_tagged_fields(
        &mut self,
        count: u32,
        unknown: &mut UnknownTaggedFields,
        mut known: impl FnMut(u32, &mut Reader<'a>) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if count as usize > MAX_TAGGED_FIELDS {
            return Err(DecodeError::TooManyTaggedFields(count));
        }
        for _ in 0..count {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let slice = self.slice(size)?;
            let mut field = Reader { rest: slice, end: self.position(), ..*self };
            if !known(tag, &mut field)? {
                unknown.push(RawTaggedField { tag, data: self.share(slice) });
            } else if field.remaining() > 0 {
                return Err(DecodeError::TaggedFieldSize);
            }
        }
        Ok(())
    }
}
