//! Compressing and decompressing the records of a batch, in Kafka's framings.
//!
//! Decompression streams and has a limit: no length from outside decides how much memory is taken.

use std::cell::RefCell;
use std::io::{self, Read, Write};

use bytes::Bytes;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use zstd::zstd_safe::{DCtx, ResetDirective};

use super::snappy::{self, SnappyReader};
use super::{Compression, RecordError, lz4};

/// The most that [`decompress`] lets records grow to unless told otherwise, in bytes.
pub const DEFAULT_DECOMPRESSED_LIMIT_BYTES: usize = 1 << 30;

/// A thread's zstd context is dropped after a batch that made it larger than this, in bytes.
const ZSTD_CONTEXT_KEPT_BYTES: usize = 8 << 20;

thread_local! {
    static ZSTD_READING: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
    static ZSTD_WRITING: RefCell<Option<(i32, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
}

/// How hard each codec tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionLevels {
    /// 1 to 9, or -1 for the codec's default (6).
    pub gzip: i32,
    /// 1 to 17. Accepted as Kafka does and without effect: the encoder used has one level, a fast one.
    pub lz4: i32,
    /// -131072 to 22.
    pub zstd: i32,
}

impl Default for CompressionLevels {
    /// Kafka's defaults: gzip -1, lz4 9, zstd 3.
    fn default() -> Self {
        Self { gzip: -1, lz4: 9, zstd: 3 }
    }
}

/// Compresses `input`. For [`Compression::None`] it is copied.
///
/// # Errors
/// The encoder fails, which it does for lack of memory only.
pub fn compress(codec: Compression, levels: CompressionLevels, input: &[u8]) -> Result<Vec<u8>, RecordError> {
    let out = match codec {
        Compression::None => Ok(input.to_vec()),
        Compression::Gzip => {
            let level = u32::try_from(levels.gzip).map_or_else(
                |_| flate2::Compression::default(),
                |level| flate2::Compression::new(level.min(9)),
            );
            let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(input.len() / 2), level);
            encoder.write_all(input).and_then(|()| encoder.finish())
        }
        Compression::Snappy => snappy::compress(input),
        Compression::Lz4 => {
            let frame = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
            let mut encoder = FrameEncoder::with_frame_info(frame, Vec::with_capacity(input.len() / 2));
            encoder.write_all(input).and_then(|()| encoder.finish().map_err(io::Error::from))
        }
        Compression::Zstd => compress_zstd(levels.zstd, input),
    };
    out.map_err(|error| failed(codec, &error))
}

fn compress_zstd(level: i32, input: &[u8]) -> io::Result<Vec<u8>> {
    ZSTD_WRITING.with_borrow_mut(|slot| {
        let (set, encoder) = match slot {
            Some(kept) => kept,
            None => slot.insert((level, zstd::bulk::Compressor::new(level)?)),
        };
        if *set != level {
            encoder.set_compression_level(level)?;
            *set = level;
        }
        encoder.compress(input)
    })
}

/// Decompresses all of `payload`; more than `limit_bytes` is an error. Without compression nothing is copied.
///
/// # Errors
/// The bytes are not the codec's, or grow past the limit.
pub fn decompress(codec: Compression, payload: &Bytes, limit_bytes: usize) -> Result<Bytes, RecordError> {
    if codec == Compression::None {
        return Ok(payload.clone());
    }
    decompress_from(codec, payload, limit_bytes, false)
}

/// [`decompress`], and for magic 0 with the wrong header checksum that old clients wrote into LZ4 frames.
pub(super) fn decompress_from(
    codec: Compression,
    payload: &[u8],
    limit_bytes: usize,
    broken_lz4_checksum: bool,
) -> Result<Bytes, RecordError> {
    let mended;
    let payload = if codec == Compression::Lz4 && broken_lz4_checksum {
        mended = mend_lz4_header(payload);
        &mended[..]
    } else {
        payload
    };
    with_reader(codec, payload, |reader| {
        let mut out = Vec::with_capacity(payload.len().saturating_mul(3).min(limit_bytes).min(1 << 20));
        let most = limit_bytes as u64;
        reader.take(most.saturating_add(1)).read_to_end(&mut out).map_err(|error| failed(codec, &error))?;
        if out.len() as u64 > most {
            return Err(RecordError::TooLarge { limit_bytes });
        }
        Ok(out.into())
    })
}

/// Calls `work` with a reader of what `payload` decompresses to.
pub(super) fn with_reader<T>(
    codec: Compression,
    payload: &[u8],
    work: impl FnOnce(&mut dyn Read) -> Result<T, RecordError>,
) -> Result<T, RecordError> {
    match codec {
        Compression::None => work(&mut { payload }),
        Compression::Gzip => work(&mut flate2::bufread::MultiGzDecoder::new(payload)),
        Compression::Snappy => work(&mut SnappyReader::new(payload)),
        Compression::Lz4 => lz4::with_reader(payload, work),
        Compression::Zstd => ZSTD_READING.with_borrow_mut(|slot| {
            let context = match slot {
                Some(context) => context,
                None => {
                    let context = DCtx::try_create().ok_or_else(|| RecordError::Decompress {
                        codec,
                        reason: "no memory for a context".into(),
                    })?;
                    slot.insert(context)
                }
            };
            let result = context
                .reset(ResetDirective::SessionOnly)
                .map_err(|_| RecordError::Decompress { codec, reason: "context can't be reset".into() })
                .and_then(|_| work(&mut zstd::stream::read::Decoder::with_context(payload, context)));
            if context.sizeof() > ZSTD_CONTEXT_KEPT_BYTES {
                *slot = None;
            }
            result
        }),
    }
}

/// Old clients hashed the LZ4 frame's magic number with its header; this sets the checksum that belongs there.
fn mend_lz4_header(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let has_content_size = frame.get(4).is_some_and(|flags| flags & 0x08 != 0);
    let checksum_at = if has_content_size { 14 } else { 6 };
    if let Some(descriptor) = frame.get(4..checksum_at) {
        let checksum = (twox_hash::XxHash32::oneshot(0, descriptor) >> 8) as u8;
        if let Some(at) = frame.get_mut(checksum_at) {
            *at = checksum;
        }
    }
    frame
}

pub(super) fn failed(codec: Compression, error: &io::Error) -> RecordError {
    RecordError::Decompress { codec, reason: error.to_string() }
}
