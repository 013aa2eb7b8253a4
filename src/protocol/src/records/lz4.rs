//! LZ4 in its frame format, as Kafka reads it: blocks that need no others, checksums of header and blocks checked.
//!
//! Read here and not by a library's frame reader because many clients write frames that announce blocks of 4 MiB around
//! a few kilobytes: a reader that makes such a block anew for each batch spends nearly all its time clearing memory.

use std::cell::RefCell;
use std::io::{self, Read};

use lz4_flex::block::decompress_into;
use twox_hash::XxHash32;

const MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
/// Bits of the first flag byte.
const VERSION: u8 = 0xc0;
const VERSION_1: u8 = 0x40;
const INDEPENDENT_BLOCKS: u8 = 0x20;
const BLOCK_CHECKSUMS: u8 = 0x10;
const CONTENT_SIZE: u8 = 0x08;
const CONTENT_CHECKSUM: u8 = 0x04;
/// Reserved, and a dictionary that nobody could know.
const REFUSED_FLAGS: u8 = 0x03;
/// In a block's length: its bytes are not compressed.
const UNCOMPRESSED: u32 = 1 << 31;

thread_local! {
    /// Where blocks are decompressed. Its pages cost memory only once a block has reached them.
    static BLOCK: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with a reader of the frame in `payload`.
pub(super) fn with_reader<T>(payload: &[u8], work: impl FnOnce(&mut dyn Read) -> T) -> T {
    BLOCK.with_borrow_mut(|buffer| {
        work(&mut Lz4Reader { rest: payload, frame: None, buffer, ready: Ready::Decompressed(0, 0) })
    })
}

/// What a frame's header says.
#[derive(Clone, Copy)]
struct Frame {
    most_block_bytes: usize,
    block_checksums: bool,
    content_checksum: bool,
}

/// The part of the present block that was not read yet.
enum Ready<'a> {
    Plain(&'a [u8]),
    /// From here to there in the buffer.
    Decompressed(usize, usize),
}

struct Lz4Reader<'a> {
    rest: &'a [u8],
    /// None until the header was read.
    frame: Option<Frame>,
    buffer: &'a mut Vec<u8>,
    ready: Ready<'a>,
}

impl<'a> Lz4Reader<'a> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(io::ErrorKind::UnexpectedEof)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn slice(&mut self, len: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.rest = rest;
        Ok(taken)
    }

    fn header(&mut self) -> io::Result<Frame> {
        if self.take()? != MAGIC {
            return Err(bad("not an LZ4 frame"));
        }
        let described = self.rest;
        let [flags, sizes] = self.take()?;
        if flags & VERSION != VERSION_1 || flags & REFUSED_FLAGS != 0 {
            return Err(bad("a frame of an unknown kind"));
        }
        if flags & INDEPENDENT_BLOCKS == 0 {
            return Err(bad("blocks that depend on others"));
        }
        let most_block_bytes = match sizes {
            0x40 => 64 << 10,
            0x50 => 256 << 10,
            0x60 => 1 << 20,
            0x70 => 4 << 20,
            _ => return Err(bad("an unknown size of blocks")),
        };
        if flags & CONTENT_SIZE != 0 {
            self.take::<8>()?;
        }
        let described = described.get(..described.len() - self.rest.len()).unwrap_or_default();
        let [checksum] = self.take()?;
        if (XxHash32::oneshot(0, described) >> 8) as u8 != checksum {
            return Err(bad("the header's checksum does not fit"));
        }
        Ok(Frame {
            most_block_bytes,
            block_checksums: flags & BLOCK_CHECKSUMS != 0,
            content_checksum: flags & CONTENT_CHECKSUM != 0,
        })
    }

    /// Makes the next block ready; false at the frame's end, after which nothing is read.
    fn next_block(&mut self, frame: Frame) -> io::Result<bool> {
        // A frame without its end mark is taken as whole: the batch's checksum vouches for it.
        if self.rest.is_empty() {
            return Ok(false);
        }
        let length = u32::from_le_bytes(self.take()?);
        if length == 0 {
            // The content's checksum is passed over, as Kafka does: the batch's covers it.
            self.slice(if frame.content_checksum { 4 } else { 0 })?;
            self.rest = &[];
            return Ok(false);
        }
        let size = (length & !UNCOMPRESSED) as usize;
        if size > frame.most_block_bytes {
            return Err(bad("a block larger than its frame allows"));
        }
        let block = self.slice(size)?;
        if frame.block_checksums && u32::from_le_bytes(self.take()?) != XxHash32::oneshot(0, block) {
            return Err(bad("a block's checksum does not fit"));
        }
        self.ready = if length & UNCOMPRESSED != 0 {
            Ready::Plain(block)
        } else {
            if self.buffer.len() < frame.most_block_bytes {
                *self.buffer = vec![0; frame.most_block_bytes];
            }
            let room = self.buffer.get_mut(..frame.most_block_bytes).unwrap_or_default();
            Ready::Decompressed(0, decompress_into(block, room).map_err(io::Error::other)?)
        };
        Ok(true)
    }
}

impl Read for Lz4Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let frame = match self.frame {
            Some(frame) => frame,
            None => {
                let frame = self.header()?;
                *self.frame.insert(frame)
            }
        };
        loop {
            let ready = match self.ready {
                Ready::Plain(block) => block,
                Ready::Decompressed(from, to) => self.buffer.get(from..to).unwrap_or_default(),
            };
            let count = ready.len().min(out.len());
            if count > 0 || out.is_empty() {
                if let (Some(from), Some(to)) = (ready.get(..count), out.get_mut(..count)) {
                    to.copy_from_slice(from);
                }
                match &mut self.ready {
                    Ready::Plain(block) => *block = block.get(count..).unwrap_or_default(),
                    Ready::Decompressed(from, _) => *from += count,
                }
                return Ok(count);
            }
            if !self.next_block(frame)? {
                return Ok(0);
            }
        }
    }
}

fn bad(what: &'static str) -> io::Error {
    io::Error::other(what)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

    use super::*;

    fn written(info: FrameInfo, content: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(content).expect("memory");
        encoder.finish().expect("memory")
    }

    fn read(frame: &[u8]) -> io::Result<Vec<u8>> {
        with_reader(frame, |reader| {
            let mut out = Vec::new();
            reader.read_to_end(&mut out).map(|_| out)
        })
    }

    /// Text that compresses, then noise that does not.
    fn content() -> Vec<u8> {
        let mut noise = 1u32;
        let mut next = || {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        };
        (0..300_000).map(|at| if at < 150_000 { b"to be or not "[at % 13] } else { next() }).collect()
    }

    #[test]
    fn every_form_of_frame_is_read() {
        let content = content();
        for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
            for checksums in [false, true] {
                let info = FrameInfo::new().block_size(size).block_mode(BlockMode::Independent);
                let info = info.block_checksums(checksums).content_checksum(checksums);
                let frame = written(info.clone(), &content);
                assert_eq!(read(&frame).expect("good"), content);
                assert_eq!(
                    read(&[&frame[..], b"left"].concat()).expect("the rest is no part of it"),
                    content
                );
                let sized = info.content_size(Some(content.len() as u64));
                assert_eq!(read(&written(sized, &content)).expect("good"), content);
            }
        }
        let empty = written(FrameInfo::new().block_mode(BlockMode::Independent), &[]);
        assert!(read(&empty).expect("good").is_empty());
    }

    #[test]
    fn what_kafka_cannot_read_is_refused() {
        let info = FrameInfo::new().block_size(BlockSize::Max64KB);
        let linked = written(info.clone().block_mode(BlockMode::Linked), &content());
        assert_eq!(read(&linked).expect_err("linked").to_string(), "blocks that depend on others");
        let info = info.block_mode(BlockMode::Independent).block_checksums(true);
        let good = written(info, &content());
        for at in [0, 4, 5, 6, 12] {
            let mut frame = good.clone();
            frame[at] ^= 1;
            assert!(read(&frame).is_err(), "byte {at} changed");
        }
        assert!(read(&good[..3]).is_err() && read(&good[..100]).is_err(), "cut");
        // A length beyond the frame's blocks is refused before anything is taken on its word.
        let mut huge = good.clone();
        huge[7..11].copy_from_slice(&(65 * 1024_u32).to_le_bytes());
        assert_eq!(read(&huge).expect_err("huge").to_string(), "a block larger than its frame allows");
    }
}
