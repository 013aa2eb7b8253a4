//! The output of encoding.

use super::{
    Element, EncodeError, Encoded, MAX_ARRAY_ELEMENTS, MAX_STRING_BYTES, MAX_TAGGED_FIELDS, Payload,
    RawTaggedField, Records, Splice, Structure,
};
use crate::{ByteString, Uuid};
use bytes::Bytes;

/// Byte fields of this size or more become splices: they are shared, not copied.
const SPLICE_BYTES: usize = 1024;
/// The most room taken on a guess.
const MAX_RESERVED_BYTES: usize = 256 * 1024;
/// Room for a small message, taken once.
const INITIAL_BYTES: usize = 512;

/// The output of encoding: a head of all that is small, and splices of what is large.
#[derive(Debug)]
pub struct Writer {
    head: Vec<u8>,
    splices: Vec<Splice>,
    spliced_bytes: usize,
    splice_from: usize,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer::new()
    }
}

impl Writer {
    /// An empty output; large byte fields become splices.
    pub fn new() -> Writer {
        Writer::with_capacity(INITIAL_BYTES)
    }

    /// An empty output with room for a head of `size_bytes`.
    pub fn with_capacity(size_bytes: usize) -> Writer {
        Writer {
            head: Vec::with_capacity(size_bytes),
            splices: Vec::new(),
            spliced_bytes: 0,
            splice_from: SPLICE_BYTES,
        }
    }

    /// An empty output that copies all byte fields into the head.
    pub fn contiguous() -> Writer {
        Writer { splice_from: usize::MAX, ..Writer::new() }
    }

    /// The size of what was written.
    pub fn size_bytes(&self) -> usize {
        self.head.len() + self.spliced_bytes
    }

    /// What was written.
    pub fn finish(self) -> Encoded {
        Encoded { head: Bytes::from(self.head), splices: self.splices }
    }

    /// Overwrites four bytes of the head at `at`, written before; nothing if they are not there.
    pub fn patch_i32(&mut self, at: usize, value: i32) {
        if let Some(place) = self.head.get_mut(at..at + 4) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Bytes as they are, copied into the head.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.head.extend_from_slice(bytes);
    }

    /// `N` bytes that `fill` sets: several small fields at once.
    #[inline]
    pub fn fixed<const N: usize>(&mut self, fill: impl FnOnce(&mut [u8; N])) {
        self.head.extend_from_slice(&[0; N]);
        if let Some(place) = self.head.last_chunk_mut() {
            fill(place);
        }
    }

    /// A boolean.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.head.push(u8::from(value));
    }

    /// An `int8`.
    #[inline]
    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// An `int16`.
    #[inline]
    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// A `uint16`.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// An `int32`.
    #[inline]
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// A `uint32`.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// An `int64`.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// A `float64`.
    #[inline]
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_be_bytes());
    }

    /// A UUID.
    #[inline]
    pub fn uuid(&mut self, value: Uuid) {
        self.raw(value.as_bytes());
    }

    /// An unsigned variable-length integer.
    #[inline]
    pub fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.head.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.head.push(value as u8);
    }

    fn compact_len(&mut self, len: Option<usize>) -> Result<(), EncodeError> {
        let shifted = len.map_or(0, |len| len + 1);
        self.uvarint(u32::try_from(shifted).map_err(|_| EncodeError::TooLong(shifted))?);
        Ok(())
    }

    /// The length of bytes or of an array: none for null.
    #[inline]
    fn len(&mut self, len: Option<usize>, flexible: bool) -> Result<(), EncodeError> {
        if flexible {
            return self.compact_len(len);
        }
        let value = match len {
            Some(len) => i32::try_from(len).map_err(|_| EncodeError::TooLong(len))?,
            None => -1,
        };
        self.i32(value);
        Ok(())
    }

    /// A string.
    #[inline]
    pub fn string(&mut self, value: &ByteString, flexible: bool) -> Result<(), EncodeError> {
        let len = value.len();
        if len > MAX_STRING_BYTES {
            return Err(EncodeError::StringTooLong(len));
        }
        if flexible {
            self.uvarint(len as u32 + 1);
        } else {
            self.i16(len as i16);
        }
        self.raw(value.as_bytes());
        Ok(())
    }

    /// A string that may be null.
    #[inline]
    pub fn nullable_string(&mut self, value: &Option<ByteString>, flexible: bool) -> Result<(), EncodeError> {
        match value {
            Some(value) => return self.string(value, flexible),
            None if flexible => self.uvarint(0),
            None => self.i16(-1),
        }
        Ok(())
    }

    /// Bytes.
    #[inline]
    pub fn bytes(&mut self, value: &Bytes, flexible: bool) -> Result<(), EncodeError> {
        if value.len() >= self.splice_from {
            return self.spliced(value, flexible);
        }
        self.len(Some(value.len()), flexible)?;
        self.raw(value);
        Ok(())
    }

    fn spliced(&mut self, value: &Bytes, flexible: bool) -> Result<(), EncodeError> {
        self.len(Some(value.len()), flexible)?;
        self.splice(Payload::Bytes(value.clone()));
        Ok(())
    }

    /// Bytes that may be null.
    pub fn nullable_bytes(&mut self, value: &Option<Bytes>, flexible: bool) -> Result<(), EncodeError> {
        match value {
            Some(value) => self.bytes(value, flexible),
            None => self.len(None, flexible),
        }
    }

    /// Record batches.
    #[inline]
    pub fn records(&mut self, value: &Records, flexible: bool) -> Result<(), EncodeError> {
        match value {
            Records::Bytes(bytes) => self.bytes(bytes, flexible),
            Records::InFrame(_) => Err(EncodeError::InFrame),
            Records::External { token, size_bytes } => {
                self.len(Some(*size_bytes as usize), flexible)?;
                self.splice(Payload::External { token: *token, size_bytes: *size_bytes });
                Ok(())
            }
        }
    }

    /// Record batches that may be null.
    #[inline]
    pub fn nullable_records(&mut self, value: &Option<Records>, flexible: bool) -> Result<(), EncodeError> {
        match value {
            Some(value) => self.records(value, flexible),
            None => self.len(None, flexible),
        }
    }

    fn splice(&mut self, payload: Payload) {
        self.spliced_bytes += payload.size_bytes();
        self.splices.push(Splice { at: self.head.len(), payload });
    }

    fn array_len(&mut self, len: usize, flexible: bool) -> Result<(), EncodeError> {
        if len > MAX_ARRAY_ELEMENTS {
            return Err(EncodeError::TooLong(len));
        }
        self.len(Some(len), flexible)
    }

    /// An array of a primitive type.
    pub fn array<T: Element>(&mut self, items: &[T], flexible: bool) -> Result<(), EncodeError> {
        self.array_len(items.len(), flexible)?;
        T::write_elements(items, self, flexible)
    }

    /// An array of a primitive type that may be null.
    pub fn nullable_array<T: Element>(
        &mut self,
        items: &Option<Vec<T>>,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        match items {
            Some(items) => self.array(items, flexible),
            None => self.len(None, flexible),
        }
    }

    /// An array of structs.
    pub fn structures<T: Structure>(
        &mut self,
        items: &[T],
        version: i16,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        self.array_len(items.len(), flexible)?;
        let Some((first, others)) = items.split_first() else { return Ok(()) };
        let start = self.head.len();
        first.write(self, version)?;
        // The others are likely as large: room for all at once.
        let likely = (self.head.len() - start).saturating_mul(others.len());
        self.head.reserve(likely.min(MAX_RESERVED_BYTES));
        others.iter().try_for_each(|item| item.write(self, version))
    }

    /// An array of structs that may be null.
    pub fn nullable_structures<T: Structure>(
        &mut self,
        items: &Option<Vec<T>>,
        version: i16,
        flexible: bool,
    ) -> Result<(), EncodeError> {
        match items {
            Some(items) => self.structures(items, version, flexible),
            None => self.len(None, flexible),
        }
    }

    /// A struct that may be null.
    pub fn nullable_structure<T: Structure>(
        &mut self,
        value: &Option<T>,
        version: i16,
    ) -> Result<(), EncodeError> {
        match value {
            Some(value) => {
                self.i8(1);
                value.write(self, version)
            }
            None => {
                self.i8(-1);
                Ok(())
            }
        }
    }

    /// A struct in a tagged field that may be null.
    pub fn nullable_tagged_structure<T: Structure>(
        &mut self,
        value: &Option<T>,
        version: i16,
    ) -> Result<(), EncodeError> {
        self.uvarint(u32::from(value.is_some()));
        value.as_ref().map_or(Ok(()), |value| value.write(self, version))
    }

    /// The tagged fields of a struct that knows none.
    #[inline]
    pub fn unknown_tagged_fields(&mut self, unknown: &[RawTaggedField]) -> Result<(), EncodeError> {
        if unknown.is_empty() {
            self.uvarint(0);
            return Ok(());
        }
        let unknown = self.start_tagged_fields(0, unknown)?;
        self.end_tagged_fields(unknown)
    }

    /// Starts a struct's tagged fields: `known` of them will be written, and the unknown ones among them.
    #[inline]
    pub fn start_tagged_fields<'a>(
        &mut self,
        known: usize,
        unknown: &'a [RawTaggedField],
    ) -> Result<&'a [RawTaggedField], EncodeError> {
        let count = known + unknown.len();
        if count > MAX_TAGGED_FIELDS {
            return Err(EncodeError::TooLong(count));
        }
        self.uvarint(count as u32);
        match unknown.windows(2).find(|pair| matches!(pair, [a, b] if a.tag >= b.tag)) {
            Some(pair) => Err(EncodeError::TagOrder(pair.first().map_or(0, |field| field.tag))),
            None => Ok(unknown),
        }
    }

    /// Writes a known tagged field, after the unknown ones of lower tags.
    pub fn tagged_field(
        &mut self,
        tag: u32,
        unknown: &mut &[RawTaggedField],
        write: impl FnOnce(&mut Writer) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        while let [first, rest @ ..] = *unknown
            && first.tag <= tag
        {
            if first.tag == tag {
                return Err(EncodeError::TagOrder(tag));
            }
            self.raw_tagged_field(first)?;
            *unknown = rest;
        }
        self.uvarint(tag);
        let (at, splices, spliced) = (self.head.len(), self.splices.len(), self.spliced_bytes);
        write(self)?;
        let size = self.head.len() - at + self.spliced_bytes - spliced;
        self.insert_size(at, splices, size)
    }

    /// Puts the size of what was written since `at` before it.
    fn insert_size(&mut self, at: usize, splices: usize, size: usize) -> Result<(), EncodeError> {
        let end = self.head.len();
        self.uvarint(u32::try_from(size).map_err(|_| EncodeError::TooLong(size))?);
        let added = self.head.len() - end;
        if let Some(field) = self.head.get_mut(at..) {
            field.rotate_right(added);
        }
        for splice in self.splices.iter_mut().skip(splices) {
            splice.at += added;
        }
        Ok(())
    }

    /// Writes the unknown tagged fields that are left.
    #[inline]
    pub fn end_tagged_fields(&mut self, unknown: &[RawTaggedField]) -> Result<(), EncodeError> {
        unknown.iter().try_for_each(|field| self.raw_tagged_field(field))
    }

    fn raw_tagged_field(&mut self, field: &RawTaggedField) -> Result<(), EncodeError> {
        let size = field.data.len();
        self.uvarint(field.tag);
        self.uvarint(u32::try_from(size).map_err(|_| EncodeError::TooLong(size))?);
        self.raw(&field.data);
        Ok(())
    }
}
