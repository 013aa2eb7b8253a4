//! Snappy in the framing of xerial's snappy-java, which Kafka uses; a raw block is read too.

use std::io::{self, Read};

/// Magic, then the format's version and the lowest compatible one (big-endian).
const HEADER: &[u8; 16] = b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01";
const MAGIC: &[u8] = b"\x82SNAPPY\x00";
/// Bytes that one block of the frame holds, uncompressed.
const BLOCK_SIZE: usize = 32 << 10;
/// A two-byte copy gives at most 64 bytes, so no honest block grows more than this.
const MOST_GROWTH: usize = 32;

/// The whole input as a frame of blocks.
pub(super) fn compress(input: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = snap::raw::Encoder::new();
    let mut out = Vec::with_capacity(input.len() / 2 + HEADER.len());
    out.extend_from_slice(HEADER);
    let mut scratch = vec![0; snap::raw::max_compress_len(BLOCK_SIZE.min(input.len()))];
    for block in input.chunks(BLOCK_SIZE) {
        let size = encoder.compress(block, &mut scratch).map_err(io::Error::from)?;
        out.extend_from_slice(&u32::try_from(size).map_err(io::Error::other)?.to_be_bytes());
        out.extend_from_slice(scratch.get(..size).unwrap_or_default());
    }
    Ok(out)
}

/// Reads a frame of blocks, or one raw block, block by block.
pub(super) struct SnappyReader<'a> {
    rest: &'a [u8],
    framed: bool,
    block: Vec<u8>,
    taken: usize,
}

impl<'a> SnappyReader<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        let framed = input.starts_with(MAGIC);
        let rest = if framed { input.get(HEADER.len()..).unwrap_or_default() } else { input };
        Self { rest, framed, block: Vec::new(), taken: 0 }
    }

    /// Decompresses the next block into `block`.
    fn next_block(&mut self) -> io::Result<()> {
        let compressed = if self.framed {
            let bad = || io::Error::from(io::ErrorKind::UnexpectedEof);
            let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(bad)?;
            let (block, rest) =
                rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(bad)?;
            self.rest = rest;
            block
        } else {
            std::mem::take(&mut self.rest)
        };
        let size = snap::raw::decompress_len(compressed).map_err(io::Error::from)?;
        if size > compressed.len().saturating_mul(MOST_GROWTH) {
            return Err(io::Error::other("a block claims to grow more than snappy can"));
        }
        self.block.resize(size, 0);
        self.taken = 0;
        snap::raw::Decoder::new().decompress(compressed, &mut self.block).map_err(io::Error::from)?;
        Ok(())
    }
}

impl Read for SnappyReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.block.len() {
            if self.rest.is_empty() {
                return Ok(0);
            }
            self.next_block()?;
        }
        let ready = self.block.get(self.taken..).unwrap_or_default();
        let count = ready.len().min(out.len());
        let (Some(from), Some(to)) = (ready.get(..count), out.get_mut(..count)) else { return Ok(0) };
        to.copy_from_slice(from);
        self.taken += count;
        Ok(count)
    }
}
