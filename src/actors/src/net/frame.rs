//! Requests as they come off a socket: a length, then that many bytes.

use bytes::buf::Limit;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// What a first read asks for, in bytes: enough for any small request.
const SMALL_READ_BYTES: usize = 4 * 1024;
/// The most that one read asks for beyond a frame already begun, in bytes.
const LARGE_READ_BYTES: usize = 128 * 1024;
/// How far the buffer runs ahead of what has come of a large frame, in bytes.
/// A client that only claims a large frame so gets no large buffer.
const AHEAD_BYTES: usize = 1024 * 1024;
/// The length in front of a frame, in bytes.
const LENGTH_BYTES: usize = 4;

/// Why the bytes of a connection are no frame.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is below zero.
    #[error("a frame claims {0} bytes")]
    Negative(i32),
    /// The length is above `socket.request.max.bytes`.
    #[error("a frame claims {claimed} bytes, the limit is {limit}")]
    TooLarge {
        /// What the frame claims, in bytes.
        claimed: usize,
        /// `socket.request.max.bytes`.
        limit: usize,
    },
}

/// A read buffer that gives out whole frames without copying them.
///
/// It owns no memory while nothing is pending, grows as the reads fill it,
/// and leaves a large frame's memory to the frame itself.
#[derive(Debug)]
pub struct FrameReader {
    buffer: BytesMut,
    limit_bytes: usize,
    next_read_bytes: usize,
    asked_bytes: usize,
}

impl FrameReader {
    /// A reader of frames of at most `limit_bytes`.
    pub fn new(limit_bytes: usize) -> Self {
        Self { buffer: BytesMut::new(), limit_bytes, next_read_bytes: SMALL_READ_BYTES, asked_bytes: 0 }
    }

    /// The buffer to read into, with room for at least one byte.
    ///
    /// A read that ends a large frame takes no more than the length of the next one: what it took of the next would
    /// have to be moved to the memory that the next gets.
    pub fn room(&mut self) -> Limit<&mut BytesMut> {
        let missing = self.missing_bytes();
        let large = missing >= self.next_read_bytes / 2;
        let wanted = if large { (missing + LENGTH_BYTES).min(AHEAD_BYTES) } else { self.next_read_bytes };
        let least = if large { wanted } else { missing.max(SMALL_READ_BYTES / 4) };
        if self.buffer.capacity() - self.buffer.len() < least {
            self.buffer.reserve(wanted);
        }
        let spare = self.buffer.capacity() - self.buffer.len();
        self.asked_bytes = if large { wanted } else { spare };
        (&mut self.buffer).limit(self.asked_bytes)
    }

    /// Says how much the last read brought: full reads make the next one larger.
    pub fn filled(&mut self, read_bytes: usize) {
        if read_bytes >= self.asked_bytes {
            self.next_read_bytes = (self.next_read_bytes * 4).min(LARGE_READ_BYTES);
        } else if read_bytes < self.next_read_bytes / 8 {
            self.next_read_bytes = (self.next_read_bytes / 2).max(SMALL_READ_BYTES);
        }
    }

    /// How many bytes the frame now begun still lacks; 0 if none is begun.
    fn missing_bytes(&self) -> usize {
        match self.claimed() {
            Some(claimed) => {
                (LENGTH_BYTES + usize::try_from(claimed).unwrap_or(0)).saturating_sub(self.buffer.len())
            }
            None => 0,
        }
    }

    fn claimed(&self) -> Option<i32> {
        let length = self.buffer.first_chunk::<LENGTH_BYTES>()?;
        Some(i32::from_be_bytes(*length))
    }

    /// The next whole frame, without its length, if it has come.
    ///
    /// # Errors
    /// The length is negative or above the limit. The check comes before any
    /// memory is taken for the frame.
    pub fn next_frame(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(claimed) = self.claimed() else {
            self.release_if_empty();
            return Ok(None);
        };
        let length = usize::try_from(claimed).map_err(|_| FrameError::Negative(claimed))?;
        if length > self.limit_bytes {
            return Err(FrameError::TooLarge { claimed: length, limit: self.limit_bytes });
        }
        if self.buffer.len() - LENGTH_BYTES < length {
            return Ok(None);
        }
        self.buffer.advance(LENGTH_BYTES);
        let frame = self.buffer.split_to(length).freeze();
        Ok(Some(frame))
    }

    /// Gives the buffer back when nothing is pending in it.
    fn release_if_empty(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = BytesMut::new();
        }
    }

    /// The memory held for frames not yet whole, in bytes.
    #[cfg(test)]
    fn held_bytes(&self) -> usize {
        self.buffer.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(reader: &mut FrameReader, bytes: &[u8]) {
        reader.room().put_slice(bytes);
        reader.filled(bytes.len());
    }

    #[test]
    fn frames_come_out_whole_and_in_order() {
        let mut reader = FrameReader::new(100);
        put(&mut reader, &[0, 0, 0, 2, 7]);
        assert_eq!(reader.next_frame(), Ok(None));
        put(&mut reader, &[8, 0, 0, 0, 0, 0, 0, 0, 1, 9]);
        assert_eq!(reader.next_frame(), Ok(Some(Bytes::from_static(&[7, 8]))));
        assert_eq!(reader.next_frame(), Ok(Some(Bytes::new())));
        assert_eq!(reader.next_frame(), Ok(Some(Bytes::from_static(&[9]))));
        assert_eq!(reader.next_frame(), Ok(None));
    }

    #[test]
    fn an_idle_reader_holds_no_memory() {
        let mut reader = FrameReader::new(1 << 20);
        put(&mut reader, &[0, 0, 0, 1, 5]);
        assert!(reader.held_bytes() > 0);
        assert!(reader.next_frame().is_ok_and(|frame| frame.is_some()));
        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!(reader.held_bytes(), 0);
    }

    #[test]
    fn lengths_are_checked_before_memory_is_taken() {
        let mut reader = FrameReader::new(1000);
        put(&mut reader, &1001_i32.to_be_bytes());
        let held = reader.held_bytes();
        assert_eq!(reader.next_frame(), Err(FrameError::TooLarge { claimed: 1001, limit: 1000 }));
        assert_eq!(reader.held_bytes(), held);
        let mut reader = FrameReader::new(1000);
        put(&mut reader, &(-1_i32).to_be_bytes());
        assert_eq!(reader.next_frame(), Err(FrameError::Negative(-1)));
    }

    #[test]
    fn a_read_that_ends_a_large_frame_takes_only_the_next_length() {
        let mut reader = FrameReader::new(1 << 20);
        put(&mut reader, &[&50_000_i32.to_be_bytes()[..], &[7; 1000]].concat());
        assert_eq!(reader.next_frame(), Ok(None));
        assert_eq!(reader.room().remaining_mut(), 49_000 + LENGTH_BYTES);
        put(&mut reader, &[&[7; 49_000][..], &2_i32.to_be_bytes()].concat());
        assert!(reader.next_frame().is_ok_and(|frame| frame.is_some_and(|frame| frame.len() == 50_000)));
        assert_eq!(reader.next_frame(), Ok(None));
        put(&mut reader, &[8, 9]);
        assert_eq!(reader.next_frame(), Ok(Some(Bytes::from_static(&[8, 9]))));
    }

    #[test]
    fn a_claim_alone_takes_little_memory() {
        let mut reader = FrameReader::new(100 << 20);
        put(&mut reader, &(100_i32 << 20).to_be_bytes());
        assert_eq!(reader.next_frame(), Ok(None));
        assert!(reader.room().into_inner().capacity() <= 2 * AHEAD_BYTES);
    }
}
