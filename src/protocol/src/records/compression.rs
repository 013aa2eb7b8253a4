//! The codecs of record batches.

use std::fmt;

use super::RecordError;

/// How the records of a batch are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip (RFC 1952).
    Gzip,
    /// Snappy, in the framing of xerial's snappy-java.
    Snappy,
    /// LZ4's frame format.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// The codec's number in a batch's attributes.
    pub fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// The codec of a number.
    ///
    /// # Errors
    /// A number above 4.
    pub fn from_id(id: u8) -> Result<Self, RecordError> {
        match id {
            0 => Ok(Self::None),
            1 => Ok(Self::Gzip),
            2 => Ok(Self::Snappy),
            3 => Ok(Self::Lz4),
            4 => Ok(Self::Zstd),
            other => Err(RecordError::UnknownCodec(other)),
        }
    }

    /// The codec's name in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
