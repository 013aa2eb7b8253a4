//! What an encoded message is: a head, and the large parts that belong inside it.

use bytes::{BufMut, Bytes, BytesMut};
use std::ops::Range;

/// An encoded message. The bytes on the wire are `head` with each splice put in at its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Encoded {
    /// Everything small, contiguous.
    pub head: Bytes,
    /// The large parts, ordered by place.
    pub splices: Vec<Splice>,
}

/// A large part of an encoded message.
#[derive(Clone, Debug, PartialEq)]
pub struct Splice {
    /// The position in `head` where the part belongs.
    pub at: usize,
    /// The part.
    pub payload: Payload,
}

/// The content of a splice.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// Bytes in memory, shared and not copied.
    Bytes(Bytes),
    /// A region elsewhere (a file), which whoever sends the message knows by its token.
    External {
        /// The sender's name for the region.
        token: u32,
        /// The region's size.
        size_bytes: u32,
    },
}

impl Payload {
    /// The part's size.
    pub fn size_bytes(&self) -> usize {
        match self {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::External { size_bytes, .. } => *size_bytes as usize,
        }
    }
}

impl Encoded {
    /// The size of the whole message.
    pub fn size_bytes(&self) -> usize {
        self.head.len() + self.splices.iter().map(|splice| splice.payload.size_bytes()).sum::<usize>()
    }

    /// The message as contiguous bytes; none if a part is not in memory.
    pub fn into_bytes(self) -> Option<Bytes> {
        if self.splices.is_empty() {
            return Some(self.head);
        }
        let mut whole = BytesMut::with_capacity(self.size_bytes());
        let mut from = 0;
        for splice in &self.splices {
            let Payload::Bytes(bytes) = &splice.payload else { return None };
            whole.put_slice(self.head.get(from..splice.at)?);
            whole.put_slice(bytes);
            from = splice.at;
        }
        whole.put_slice(self.head.get(from..)?);
        Some(whole.freeze())
    }
}

/// The content of a field of record batches.
#[derive(Clone, Debug, PartialEq)]
pub enum Records {
    /// Batches in memory. Decoding gives these, as a slice of the frame.
    Bytes(Bytes),
    /// Batches that were left in the frame ([`Reader::in_place`](super::Reader::in_place)), and where they are in it.
    InFrame(Range<usize>),
    /// Batches elsewhere (a file): only written, as an external splice.
    External {
        /// The sender's name for the region.
        token: u32,
        /// The region's size.
        size_bytes: u32,
    },
}

impl Records {
    /// The size of the batches.
    pub fn size_bytes(&self) -> usize {
        match self {
            Records::Bytes(bytes) => bytes.len(),
            Records::InFrame(range) => range.len(),
            Records::External { size_bytes, .. } => *size_bytes as usize,
        }
    }

    /// The batches, where they are in memory.
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match self {
            Records::Bytes(bytes) => Some(bytes),
            Records::InFrame(_) | Records::External { .. } => None,
        }
    }

    /// The batches of a message that was read from `frame`; none if they are not in memory.
    pub fn within<'a>(&'a self, frame: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Records::Bytes(bytes) => Some(bytes),
            Records::InFrame(range) => frame.get(range.clone()),
            Records::External { .. } => None,
        }
    }

    /// As [`within`](Self::within), as a slice that keeps the frame.
    pub fn of_frame(&self, frame: &Bytes) -> Option<Bytes> {
        match self {
            Records::Bytes(bytes) => Some(bytes.clone()),
            _ => self.within(frame).map(|slice| frame.slice_ref(slice)),
        }
    }
}

impl From<Bytes> for Records {
    fn from(bytes: Bytes) -> Records {
        Records::Bytes(bytes)
    }
}
