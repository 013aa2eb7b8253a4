//! What can be wrong with bytes that claim to be records.

use thiserror::Error;

use super::Compression;

/// Why bytes can't be read as records.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The bytes end before what they announce.
    #[error("records end early: {needed} bytes needed, {available} there")]
    Truncated {
        /// Bytes that were needed.
        needed: usize,
        /// Bytes that were there.
        available: usize,
    },
    /// The format version is not the one expected here.
    #[error("record format (magic) {0} is not readable here")]
    UnsupportedMagic(i8),
    /// A batch claims a length that no batch can have.
    #[error("a batch can't have a length of {0} bytes")]
    BatchLength(i32),
    /// The checksum does not match the bytes.
    #[error("checksum is {stored:#010x}, the bytes give {computed:#010x}")]
    Checksum {
        /// The checksum in the header.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The compression codec's number is unknown.
    #[error("unknown compression codec {0}")]
    UnknownCodec(u8),
    /// The compressed bytes are not what the codec writes.
    #[error("can't decompress {codec}: {reason}")]
    Decompress {
        /// The codec named by the batch.
        codec: Compression,
        /// What the decoder said.
        reason: String,
    },
    /// Decompression gave more bytes than allowed.
    #[error("records decompress to more than {limit_bytes} bytes")]
    TooLarge {
        /// The limit that was passed.
        limit_bytes: usize,
    },
    /// A variable-length number is longer than its type.
    #[error("a variable-length number is too long")]
    Varint,
    /// A record contradicts itself or its batch.
    #[error("malformed record: {0}")]
    Malformed(&'static str),
}
