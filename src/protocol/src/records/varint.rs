//! Variable-length numbers of records: zigzag, seven bits a byte, least significant first.

use bytes::BufMut;

use super::RecordError;

/// Bytes a walk over records takes from: a slice, or a decompressor.
pub(super) trait Source {
    /// The next byte.
    fn byte(&mut self) -> Result<u8, RecordError>;
    /// Passes over `count` bytes.
    fn skip(&mut self, count: usize) -> Result<(), RecordError>;
    /// Bytes taken so far.
    fn taken(&self) -> u64;
    /// Whether nothing is left.
    fn is_at_end(&mut self) -> Result<bool, RecordError>;

    /// A 64-bit number of at most ten bytes.
    #[inline]
    fn varlong(&mut self) -> Result<i64, RecordError> {
        let first = self.byte()?;
        let mut raw = u64::from(first & 0x7f);
        let mut more = first & 0x80 != 0;
        let mut shift = 7;
        while more {
            if shift > 63 {
                return Err(RecordError::Varint);
            }
            let byte = self.byte()?;
            raw |= u64::from(byte & 0x7f) << shift;
            more = byte & 0x80 != 0;
            shift += 7;
        }
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// A 32-bit number of at most five bytes.
    #[inline]
    fn varint(&mut self) -> Result<i32, RecordError> {
        let first = self.byte()?;
        let mut raw = u32::from(first & 0x7f);
        let mut more = first & 0x80 != 0;
        let mut shift = 7;
        while more {
            if shift > 28 {
                return Err(RecordError::Varint);
            }
            let byte = self.byte()?;
            raw |= u32::from(byte & 0x7f) << shift;
            more = byte & 0x80 != 0;
            shift += 7;
        }
        Ok((raw >> 1) as i32 ^ -((raw & 1) as i32))
    }
}

/// A [`Source`] over bytes in memory.
pub(super) struct SliceSource<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> SliceSource<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Source for SliceSource<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, RecordError> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => Err(RecordError::Truncated { needed: self.at + 1, available: self.bytes.len() }),
        }
    }

    #[inline]
    fn skip(&mut self, count: usize) -> Result<(), RecordError> {
        let available = self.bytes.len() - self.at;
        if count > available {
            return Err(RecordError::Truncated { needed: count, available });
        }
        self.at += count;
        Ok(())
    }

    #[inline]
    fn taken(&self) -> u64 {
        self.at as u64
    }

    fn is_at_end(&mut self) -> Result<bool, RecordError> {
        Ok(self.at == self.bytes.len())
    }
}

/// Writes a 64-bit number.
pub(super) fn put_varlong(out: &mut impl BufMut, value: i64) {
    let mut raw = ((value << 1) ^ (value >> 63)) as u64;
    while raw >= 0x80 {
        out.put_u8(raw as u8 | 0x80);
        raw >>= 7;
    }
    out.put_u8(raw as u8);
}

/// Writes a 32-bit number.
pub(super) fn put_varint(out: &mut impl BufMut, value: i32) {
    put_varlong(out, i64::from(value));
}

/// Bytes that a number takes.
pub(super) fn varlong_size(value: i64) -> usize {
    let raw = ((value << 1) ^ (value >> 63)) as u64;
    (64 - (raw | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_sizes_agree() {
        for value in
            [0, -1, 1, 63, 64, -64, -65, i64::from(i32::MAX), i64::from(i32::MIN), i64::MAX, i64::MIN]
        {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            assert_eq!(out.len(), varlong_size(value), "{value}");
            assert_eq!(SliceSource::new(&out).varlong(), Ok(value));
            if let Ok(small) = i32::try_from(value) {
                assert_eq!(SliceSource::new(&out).varint(), Ok(small));
            }
        }
    }

    #[test]
    fn overlong_and_cut_numbers_are_refused() {
        assert_eq!(SliceSource::new(&[0xff; 11]).varlong(), Err(RecordError::Varint));
        assert_eq!(SliceSource::new(&[0xff; 6]).varint(), Err(RecordError::Varint));
        assert!(matches!(SliceSource::new(&[0x80]).varint(), Err(RecordError::Truncated { .. })));
    }
}
