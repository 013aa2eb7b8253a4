//! Walking the batches of a segment's file.

use std::fs::File;

use bytes::Bytes;
use callboard_protocol::records::{BatchHeader, HEADER_SIZE, peek_magic};

use crate::fs;

/// What a batch's header says, in any format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchInfo {
    pub(crate) position: u64,
    pub(crate) size_bytes: u64,
    /// Offset of the first record; in old formats that of the last.
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) max_timestamp_ms: i64,
    /// The whole header; `None` in formats before 2.
    pub(crate) header: Option<BatchHeader>,
}

impl BatchInfo {
    pub(crate) fn of(header: &BatchHeader, position: u64) -> BatchInfo {
        BatchInfo {
            position,
            size_bytes: header.size_bytes() as u64,
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            max_timestamp_ms: header.max_timestamp,
            header: Some(*header),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.position + self.size_bytes
    }
}

/// Why a walk stopped before the end.
#[derive(Debug)]
pub(crate) enum ScanError {
    Io(std::io::Error),
    /// No whole batch starts here.
    Invalid {
        position: u64,
        reason: String,
    },
}

impl From<std::io::Error> for ScanError {
    fn from(error: std::io::Error) -> Self {
        ScanError::Io(error)
    }
}

/// Bytes read at once when only a few headers are looked for.
pub(crate) const LOOKUP_CHUNK: usize = 4 << 10;
/// Bytes read at once when all batches are read.
pub(crate) const FULL_CHUNK: usize = 1 << 20;

/// Offset, size, checksum, magic, attributes and timestamp: what is read of an old format's message.
const LEGACY_HEADER_SIZE: usize = 26;

/// Walks the batches in `position..end` of a file.
pub(crate) struct Scanner<'a> {
    file: &'a File,
    position: u64,
    end: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
    filled: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(file: &'a File, position: u64, end: u64, chunk: usize) -> Scanner<'a> {
        let chunk = usize::try_from(end.saturating_sub(position)).unwrap_or(chunk).min(chunk);
        Scanner { file, position, end, buffer: vec![0; chunk], buffer_at: 0, filled: 0 }
    }

    /// Up to `size` bytes from `at` on, fewer at the end only.
    fn bytes_at(&mut self, at: u64, size: usize) -> std::io::Result<&[u8]> {
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        let size = size.min(left);
        let inside = at >= self.buffer_at && at + size as u64 <= self.buffer_at + self.filled as u64;
        if !inside {
            if self.buffer.len() < size {
                self.buffer.resize(size, 0);
            }
            let room = self.buffer.len().min(left);
            let buffer = self.buffer.get_mut(..room).unwrap_or_default();
            self.filled = fs::read_at_most(self.file, buffer, at)?;
            self.buffer_at = at;
        }
        let start = usize::try_from(at - self.buffer_at).unwrap_or(usize::MAX);
        let end = start.saturating_add(size).min(self.filled);
        Ok(self.buffer.get(start..end).unwrap_or_default())
    }

    /// The header of the next batch, which lies within the range as a whole; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<BatchInfo>, ScanError> {
        let position = self.position;
        if position >= self.end {
            return Ok(None);
        }
        let end = self.end;
        let bytes = self.bytes_at(position, HEADER_SIZE)?;
        let invalid = |reason: String| ScanError::Invalid { position, reason };
        let info = match peek_magic(bytes) {
            Some(0 | 1) => legacy(bytes, position).ok_or_else(|| invalid("a bad old header".to_owned()))?,
            _ => BatchInfo::of(&BatchHeader::parse(bytes).map_err(|e| invalid(e.to_string()))?, position),
        };
        if info.end() > end {
            return Err(invalid(format!(
                "a batch of {} bytes, {} are there",
                info.size_bytes,
                end - position
            )));
        }
        if info.base_offset < 0 || info.last_offset < info.base_offset {
            return Err(invalid("offsets run backwards".to_owned()));
        }
        self.position = info.end();
        Ok(Some(info))
    }

    /// All bytes of a batch that `next` has given.
    pub(crate) fn batch_bytes(&mut self, info: &BatchInfo) -> Result<&[u8], ScanError> {
        // The size is bounded by that of the file.
        let size = usize::try_from(info.size_bytes).unwrap_or(usize::MAX);
        let bytes = self.bytes_at(info.position, size)?;
        if bytes.len() == size {
            return Ok(bytes);
        }
        let reason = "the file ends within a batch".to_owned();
        Err(ScanError::Invalid { position: info.position, reason })
    }

    /// All bytes of a batch, to keep.
    pub(crate) fn batch(&mut self, info: &BatchInfo) -> Result<Bytes, ScanError> {
        self.batch_bytes(info).map(Bytes::copy_from_slice)
    }
}

fn legacy(bytes: &[u8], position: u64) -> Option<BatchInfo> {
    let bytes = bytes.get(..LEGACY_HEADER_SIZE)?;
    let (offset, rest) = bytes.split_first_chunk::<8>()?;
    let (size, _) = rest.split_first_chunk::<4>()?;
    let size = u64::try_from(i32::from_be_bytes(*size)).ok().filter(|size| *size >= 14)?;
    let offset = i64::from_be_bytes(*offset);
    let magic = peek_magic(bytes)?;
    let timestamp = bytes.last_chunk::<8>()?;
    let max_timestamp_ms = if magic == 1 { i64::from_be_bytes(*timestamp) } else { -1 };
    Some(BatchInfo {
        position,
        size_bytes: 12 + size,
        base_offset: offset,
        last_offset: offset,
        max_timestamp_ms,
        header: None,
    })
}
