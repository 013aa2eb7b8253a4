//! Connections over real sockets, answered by a dispatcher that the test steers.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use callboard_protocol::wire::Encoded;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::*;

/// Frames begin with a letter: `n` for one that must be alone, `p` for one that may overlap,
/// `s` for one without an answer, `x` for one that cannot be answered.
/// Each is answered by its own bytes once the test lets it.
#[derive(Debug, Default)]
struct Steered {
    begun: Mutex<Vec<Bytes>>,
    gates: Mutex<BTreeMap<Bytes, oneshot::Receiver<()>>>,
}

struct Always(bool);

impl Progress for Always {
    fn is_submitted(&self) -> bool {
        self.0
    }
}

impl Steered {
    /// Holds back the answer to `frame` until the sender is used or dropped.
    fn hold(&self, frame: &'static [u8]) -> oneshot::Sender<()> {
        let (open, gate) = oneshot::channel();
        self.gates.lock().expect("no panic").insert(Bytes::from_static(frame), gate);
        open
    }

    fn begun(&self) -> Vec<Bytes> {
        self.begun.lock().expect("no panic").clone()
    }
}

impl Dispatch for Steered {
    fn may_overlap(&self, frame: &[u8]) -> bool {
        frame.starts_with(b"p")
    }

    fn begin(&self, _: &Arc<ConnectionInfo>, frame: Bytes, place: QueuePlace) -> Result<Begun, CloseReason> {
        self.begun.lock().expect("no panic").push(frame.clone());
        if frame.starts_with(b"x") {
            return Err(CloseReason::Request("x".into()));
        }
        let gate = self.gates.lock().expect("no panic").remove(&frame);
        let progress = Arc::new(Always(true));
        let answering = Box::pin(async move {
            if let Some(gate) = gate {
                let _ = gate.await;
            }
            drop(place);
            if frame.starts_with(b"s") {
                return Reply::Silent;
            }
            let head = [&u32::try_from(frame.len()).expect("small").to_be_bytes(), &frame[..]].concat();
            let encoded = Encoded { head: head.into(), splices: Vec::new() };
            Reply::Send(Outgoing { encoded, regions: Vec::new() })
        });
        Ok(Begun { progress, answering })
    }
}

fn bounds() -> ConnectionBounds {
    ConnectionBounds {
        max_request_bytes: 1 << 20,
        max_idle: None,
        queue: Arc::new(RequestQueue::new(500, None)),
    }
}

/// Runs a listener and a test against it.
async fn with<F: Future<Output = io::Result<()>>>(
    dispatch: Arc<Steered>,
    bounds: ConnectionBounds,
    limits: Arc<ConnectionLimits>,
    test: impl FnOnce(SocketAddr) -> F,
) {
    let local = LocalSet::new();
    let info = ListenerInfo { name: "PLAINTEXT".into(), kind: ListenerKind::Broker };
    let listener = bind(info, "127.0.0.1", 0, 50).expect("a port");
    let address = listener.address;
    local.spawn_local(async move {
        let spawn = |pending: PendingConnection| drop(tokio::task::spawn_local(pending.serve()));
        serve(listener, dispatch, limits, bounds, spawn).await.expect("a listener");
    });
    let run = async { tokio::time::timeout(Duration::from_secs(5), test(address)).await };
    local.run_until(run).await.expect("in time").expect("no input or output error");
}

fn unlimited() -> Arc<ConnectionLimits> {
    ConnectionLimits::new(usize::MAX, usize::MAX, BTreeMap::new())
}

async fn send(stream: &mut TcpStream, frames: &[&[u8]]) -> io::Result<()> {
    let mut bytes = Vec::new();
    for frame in frames {
        bytes.extend_from_slice(&u32::try_from(frame.len()).expect("small").to_be_bytes());
        bytes.extend_from_slice(frame);
    }
    stream.write_all(&bytes).await
}

async fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let size = stream.read_u32().await?;
    let mut frame = vec![0; size as usize];
    stream.read_exact(&mut frame).await?;
    Ok(frame)
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn answers_come_in_order_though_requests_overlap() {
    let dispatch = Arc::new(Steered::default());
    let (first, third) = (dispatch.hold(b"p1"), dispatch.hold(b"p3"));
    with(dispatch.clone(), bounds(), unlimited(), async |address| {
        let mut client = TcpStream::connect(address).await?;
        send(&mut client, &[b"p1", b"p2", b"p3", b"n4", b"p5"]).await?;
        until(|| dispatch.begun().len() == 3).await;
        first.send(()).expect("a waiting request");
        assert_eq!(receive(&mut client).await?, b"p1");
        assert_eq!(receive(&mut client).await?, b"p2");
        // The fourth must be alone, so it waits for the third.
        assert_eq!(dispatch.begun().len(), 3);
        third.send(()).expect("a waiting request");
        for wanted in [b"p3", b"n4", b"p5"] {
            assert_eq!(receive(&mut client).await?, wanted);
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_request_without_an_answer_holds_nobody_up() {
    let dispatch = Arc::new(Steered::default());
    with(dispatch, bounds(), unlimited(), async |address| {
        let mut client = TcpStream::connect(address).await?;
        send(&mut client, &[b"s1", b"s2", b"n3"]).await?;
        assert_eq!(receive(&mut client).await?, b"n3");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_bad_request_closes_its_connection_after_the_answers_before_it() {
    let dispatch = Arc::new(Steered::default());
    with(dispatch.clone(), bounds(), unlimited(), async |address| {
        let mut other = TcpStream::connect(address).await?;
        let mut client = TcpStream::connect(address).await?;
        send(&mut client, &[b"n1"]).await?;
        assert_eq!(receive(&mut client).await?, b"n1");
        send(&mut client, &[b"x2", b"n3"]).await?;
        assert!(receive(&mut client).await.is_err());
        client = TcpStream::connect(address).await?;
        client.write_all(&[0xff; 8]).await?;
        assert!(receive(&mut client).await.is_err());
        send(&mut other, &[b"n4"]).await?;
        assert_eq!(receive(&mut other).await?, b"n4");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn requests_wait_for_a_place_in_the_queue() {
    let dispatch = Arc::new(Steered::default());
    let first = dispatch.hold(b"n1");
    let bounds = ConnectionBounds { queue: Arc::new(RequestQueue::new(1, None)), ..bounds() };
    with(dispatch.clone(), bounds, unlimited(), async |address| {
        let mut one = TcpStream::connect(address).await?;
        let mut two = TcpStream::connect(address).await?;
        send(&mut one, &[b"n1"]).await?;
        until(|| dispatch.begun().len() == 1).await;
        send(&mut two, &[b"n2"]).await?;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(dispatch.begun().len(), 1);
        first.send(()).expect("a waiting request");
        assert_eq!(receive(&mut one).await?, b"n1");
        assert_eq!(receive(&mut two).await?, b"n2");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn one_address_has_only_so_many_connections() {
    let limits = ConnectionLimits::new(usize::MAX, 1, BTreeMap::new());
    with(Arc::default(), bounds(), limits.clone(), async |address| {
        let mut one = TcpStream::connect(address).await?;
        send(&mut one, &[b"n1"]).await?;
        assert_eq!(receive(&mut one).await?, b"n1");
        let mut two = TcpStream::connect(address).await?;
        assert!(receive(&mut two).await.is_err());
        drop(one);
        until(|| limits.open() == 0).await;
        let mut three = TcpStream::connect(address).await?;
        send(&mut three, &[b"n3"]).await?;
        assert_eq!(receive(&mut three).await?, b"n3");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let bounds = ConnectionBounds { max_idle: Some(Duration::from_millis(50)), ..bounds() };
    with(Arc::default(), bounds, unlimited(), async |address| {
        let mut client = TcpStream::connect(address).await?;
        assert_eq!(client.read(&mut [0]).await?, 0);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_large_request_comes_through_whole() {
    let dispatch = Arc::new(Steered::default());
    with(dispatch, bounds(), unlimited(), async |address| {
        let mut client = TcpStream::connect(address).await?;
        let (mut read, mut write) = client.split();
        let large: Vec<u8> = std::iter::once(b'p').chain((0..1_000_000_u32).map(|n| n as u8)).collect();
        let size = u32::try_from(large.len()).expect("small");
        let sending = async {
            for _ in 0..3 {
                write.write_u32(size).await?;
                write.write_all(&large).await?;
            }
            io::Result::Ok(())
        };
        let receiving = async {
            for _ in 0..3 {
                assert_eq!(read.read_u32().await?, size);
                let mut got = vec![0; large.len()];
                read.read_exact(&mut got).await?;
                assert!(got == large);
            }
            io::Result::Ok(())
        };
        tokio::try_join!(sending, receiving)?;
        Ok(())
    })
    .await;
}

#[test]
fn names_of_closed_connections_tell_the_reason() {
    let reason = CloseReason::from(FrameError::Negative(-1));
    assert_eq!(reason.to_string(), "bad frame: a frame claims -1 bytes");
    let _: OnceLock<()> = OnceLock::new();
}
