//! One pass over a batch's records that looks at their shape and copies nothing.

use std::cell::RefCell;
use std::io::Read;

use super::codec::{failed, with_reader};
use super::varint::{SliceSource, Source};
use super::{BatchHeader, Compression, RecordError, TimestampType};

/// Bytes a compressed batch is read in at a time.
const WINDOW_SIZE: usize = 16 << 10;

thread_local! {
    static WINDOW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What the broker's rules ask of one record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glimpse {
    pub(super) index: i32,
    pub(super) timestamp: i64,
    pub(super) offset_delta: i32,
    pub(super) has_key: bool,
}

/// Passes over the `header.record_count` records in `payload` and shows each to `visit`.
/// Anything but exactly that many well-formed records is an error, and so are more than
/// `limit_bytes` of decompressed ones.
pub(super) fn walk(
    header: &BatchHeader,
    payload: &[u8],
    limit_bytes: usize,
    mut visit: impl FnMut(Glimpse),
) -> Result<(), RecordError> {
    match header.compression()? {
        Compression::None => walk_source(header, &mut SliceSource::new(payload), &mut visit),
        codec => WINDOW.with_borrow_mut(|window| {
            window.resize(WINDOW_SIZE, 0);
            with_reader(codec, payload, |reader| {
                let mut source =
                    StreamSource { codec, reader, window, at: 0, filled: 0, passed: 0, limit_bytes };
                walk_source(header, &mut source, &mut visit)
            })
        }),
    }
}

fn walk_source<S: Source>(
    header: &BatchHeader,
    source: &mut S,
    visit: &mut impl FnMut(Glimpse),
) -> Result<(), RecordError> {
    let stamped = header.timestamp_type() == TimestampType::LogAppendTime;
    for index in 0..header.record_count.max(0) {
        let size = source.varint()?;
        let start = source.taken();
        let _attributes = source.byte()?;
        let timestamp_delta = source.varlong()?;
        let timestamp =
            if stamped { header.max_timestamp } else { header.base_timestamp.wrapping_add(timestamp_delta) };
        let offset_delta = source.varint()?;
        let has_key = skip_field(source)?;
        skip_field(source)?;
        let headers = source.varint()?;
        if headers < 0 {
            return Err(RecordError::Malformed("negative header count"));
        }
        for _ in 0..headers {
            if !skip_field(source)? {
                return Err(RecordError::Malformed("a header without a name"));
            }
            skip_field(source)?;
        }
        if u64::try_from(size) != Ok(source.taken() - start) {
            return Err(RecordError::Malformed("its size is not that of its parts"));
        }
        visit(Glimpse { index, timestamp, offset_delta, has_key });
    }
    if source.is_at_end()? { Ok(()) } else { Err(RecordError::Malformed("bytes left after the last record")) }
}

/// Passes over a length and as many bytes; false for a negative length, which means none.
#[inline]
fn skip_field<S: Source>(source: &mut S) -> Result<bool, RecordError> {
    match usize::try_from(source.varint()?) {
        Ok(size) => source.skip(size).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// A [`Source`] over a decompressor, through a window that is used again and again.
struct StreamSource<'a> {
    codec: Compression,
    reader: &'a mut dyn Read,
    window: &'a mut [u8],
    at: usize,
    filled: usize,
    /// Bytes taken in earlier windows.
    passed: u64,
    limit_bytes: usize,
}

impl StreamSource<'_> {
    /// Reads the next window; false at the end.
    fn fill(&mut self) -> Result<bool, RecordError> {
        self.passed += self.filled as u64;
        if self.passed > self.limit_bytes as u64 {
            return Err(RecordError::TooLarge { limit_bytes: self.limit_bytes });
        }
        (self.at, self.filled) = (0, 0);
        self.filled = self.reader.read(self.window).map_err(|error| failed(self.codec, &error))?;
        Ok(self.filled > 0)
    }
}

impl Source for StreamSource<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, RecordError> {
        if self.at == self.filled && !self.fill()? {
            return Err(RecordError::Truncated { needed: 1, available: 0 });
        }
        let byte = self.window.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, count: usize) -> Result<(), RecordError> {
        let mut left = count;
        while left > self.filled - self.at {
            left -= self.filled - self.at;
            self.at = self.filled;
            if !self.fill()? {
                return Err(RecordError::Truncated { needed: left, available: 0 });
            }
        }
        self.at += left;
        Ok(())
    }

    fn taken(&self) -> u64 {
        self.passed + self.at as u64
    }

    fn is_at_end(&mut self) -> Result<bool, RecordError> {
        Ok(self.at == self.filled && !self.fill()?)
    }
}
