//! Responses on their way to a socket: bytes in vectored writes, file regions by `sendfile`.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use callboard_protocol::wire::{Encoded, Payload};
use rustix::net::{SendAncillaryBuffer, SendFlags};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// The most buffers that one vectored write takes.
const MAX_VECTORS: usize = 64;
/// The most bytes that one `sendfile` is asked for, so that a large fetch shares the shard.
const MAX_SENDFILE_BYTES: usize = 1024 * 1024;
/// Regions up to this size are read and go with the vectored write: one
/// `pread` costs less than ending the write and calling `sendfile`.
const INLINE_REGION_BYTES: u32 = 8 * 1024;

/// A part of a file that a response carries.
#[derive(Debug, Clone)]
pub struct FileRegion {
    /// The segment.
    pub file: Arc<File>,
    /// Where the region begins in the file, in bytes.
    pub position: u64,
    /// How long it is, in bytes.
    pub size_bytes: u32,
}

/// A response ready to be written: its bytes, and the regions that its external payloads name by index.
#[derive(Debug)]
pub struct Outgoing {
    /// The encoded response with its length in front.
    pub encoded: Encoded,
    /// The file regions, by token.
    pub regions: Vec<FileRegion>,
}

#[derive(Debug)]
enum Part {
    Bytes(Bytes),
    Region(FileRegion),
}

/// The queue of what one connection still has to write.
#[derive(Debug, Default)]
pub struct Outbox {
    parts: VecDeque<Part>,
    pending_bytes: usize,
}

impl Outbox {
    /// Whether all has been written.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// How much is still to be written, in bytes.
    pub fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Appends a response.
    ///
    /// # Errors
    /// A payload names no region or one of another size, or a small region cannot be read.
    pub fn push(&mut self, outgoing: Outgoing) -> io::Result<()> {
        let Outgoing { encoded, regions } = outgoing;
        let mut head = encoded.head;
        let mut taken = 0;
        for splice in encoded.splices {
            let before = splice.at.checked_sub(taken).filter(|before| *before <= head.len());
            let before = before.ok_or_else(|| io::Error::other("a splice lies outside its response"))?;
            taken = splice.at;
            self.push_bytes(head.split_to(before));
            match splice.payload {
                Payload::Bytes(bytes) => self.push_bytes(bytes),
                Payload::External { token, size_bytes } => {
                    let region = usize::try_from(token).ok().and_then(|token| regions.get(token));
                    let region = region.filter(|region| region.size_bytes == size_bytes);
                    let region = region
                        .ok_or_else(|| io::Error::other("a response names a region it does not carry"))?;
                    self.push_region(region.clone())?;
                }
            }
        }
        self.push_bytes(head);
        Ok(())
    }

    fn push_bytes(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.pending_bytes += bytes.len();
            self.parts.push_back(Part::Bytes(bytes));
        }
    }

    fn push_region(&mut self, region: FileRegion) -> io::Result<()> {
        if region.size_bytes == 0 {
            return Ok(());
        }
        if region.size_bytes <= INLINE_REGION_BYTES {
            let mut bytes = vec![0; region.size_bytes as usize];
            region.file.read_exact_at(&mut bytes, region.position)?;
            self.push_bytes(bytes.into());
        } else {
            self.pending_bytes += region.size_bytes as usize;
            self.parts.push_back(Part::Region(region));
        }
        Ok(())
    }

    /// Writes as much as the socket takes; ready once all is written.
    ///
    /// # Errors
    /// The peer is gone, or a region's file ended early.
    pub fn poll_flush(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.parts.is_empty() {
            match stream.try_io(Interest::WRITABLE, || self.write_once(stream.as_fd())) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => self.written(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(stream.poll_write_ready(cx))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.release();
        Poll::Ready(Ok(()))
    }

    /// One system call: the buffers up to the next region, or a piece of the region.
    fn write_once(&self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        if let Some(Part::Region(region)) = self.parts.front() {
            let count = (region.size_bytes as usize).min(MAX_SENDFILE_BYTES);
            let mut position = region.position;
            return Ok(rustix::fs::sendfile(socket, region.file.as_fd(), Some(&mut position), count)?);
        }
        let mut vectors = [IoSlice::new(&[]); MAX_VECTORS];
        let mut used = 0;
        for (vector, part) in vectors.iter_mut().zip(&self.parts) {
            let Part::Bytes(bytes) = part else { break };
            *vector = IoSlice::new(bytes);
            used += 1;
        }
        // More follows: let the kernel join the head with what comes after it.
        let more = if used < self.parts.len() { SendFlags::MORE } else { SendFlags::empty() };
        let vectors = vectors.get(..used).unwrap_or_default();
        let mut control = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(socket, vectors, &mut control, SendFlags::NOSIGNAL | more)?)
    }

    fn written(&mut self, mut written: usize) {
        self.pending_bytes = self.pending_bytes.saturating_sub(written);
        while written > 0 {
            let (size, left) = match self.parts.front_mut() {
                None => return,
                Some(Part::Bytes(bytes)) => {
                    let step = bytes.len().min(written);
                    bytes.advance(step);
                    (step, bytes.len())
                }
                Some(Part::Region(region)) => {
                    let step = (region.size_bytes as usize).min(written);
                    region.position += step as u64;
                    // `step` is at most the region's own u32 size.
                    region.size_bytes -= step as u32;
                    (step, region.size_bytes as usize)
                }
            };
            written -= size;
            if left == 0 {
                self.parts.pop_front();
            }
        }
    }

    /// An idle connection keeps no large queue.
    fn release(&mut self) {
        self.pending_bytes = 0;
        if self.parts.capacity() > 16 {
            self.parts = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use callboard_protocol::wire::Splice;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    fn region(file: &Arc<File>, position: u64, size_bytes: u32) -> FileRegion {
        FileRegion { file: file.clone(), position, size_bytes }
    }

    fn external(at: usize, token: u32, size_bytes: u32) -> Splice {
        Splice { at, payload: Payload::External { token, size_bytes } }
    }

    #[tokio::test]
    async fn bytes_and_regions_arrive_in_order() {
        let mut content = Vec::new();
        while content.len() < 3_000_000 {
            content.extend_from_slice(&(content.len() as u64).to_be_bytes());
        }
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&content).expect("its content");
        let file = Arc::new(file);
        let mut outbox = Outbox::default();
        let large = 2_900_000;
        let encoded = Encoded {
            head: Bytes::from_static(b"headmiddleend"),
            splices: vec![
                external(4, 0, large),
                Splice { at: 4, payload: Payload::Bytes(Bytes::from_static(b"<bytes>")) },
                external(10, 1, 10),
            ],
        };
        let regions = vec![region(&file, 16, large), region(&file, 3, 10)];
        outbox.push(Outgoing { encoded, regions }).expect("a good response");

        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut client = TcpStream::connect(address).await.expect("a connection");
        let (server, _) = listener.accept().await.expect("a connection");
        let send = async move {
            std::future::poll_fn(|cx| outbox.poll_flush(&server, cx)).await.expect("a full write");
            assert!(outbox.is_empty());
            assert_eq!(outbox.pending_bytes(), 0);
        };
        let mut got = Vec::new();
        let (_, read) = tokio::join!(send, client.read_to_end(&mut got));
        read.expect("all bytes");
        let wanted =
            [b"head", &content[16..16 + large as usize], b"<bytes>middle", &content[3..13], b"end"].concat();
        assert!(got == wanted, "{} bytes came, {} were sent", got.len(), wanted.len());
    }

    #[test]
    fn a_payload_without_its_region_is_refused() {
        let encoded = Encoded { head: Bytes::from_static(b"head"), splices: vec![external(4, 0, 10)] };
        let outgoing = Outgoing { encoded, regions: Vec::new() };
        assert!(Outbox::default().push(outgoing).is_err());
    }
}
