//! One connection to a broker: requests are pipelined, answers come in order.

use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use callboard_protocol::messages::{ApiVersionsRequest, Request};
use callboard_protocol::{ApiKey, ByteString, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::ClientError;

/// The largest answer that is believed, in bytes.
const LARGEST_RESPONSE_BYTES: usize = 512 << 20;
/// Frames joined into one write, in bytes.
const WRITE_BYTES: usize = 256 << 10;

/// A connection, with the versions its broker speaks. Cheap to clone; closes when the last clone is gone.
#[derive(Debug, Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    client_id: ByteString,
    timeout: Duration,
    unanswered: Arc<AtomicU64>,
    outgoing: mpsc::UnboundedSender<Bytes>,
    waiting: Arc<Waiting>,
    versions: OnceLock<BTreeMap<i16, (i16, i16)>>,
}

/// Requests on the wire whose answers are awaited, oldest first.
#[derive(Debug)]
struct Waiting {
    address: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next_correlation_id: i32,
    queue: VecDeque<(i32, oneshot::Sender<Result<Bytes, ClientError>>)>,
    broken: Option<ClientError>,
}

impl Waiting {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, reason: impl ToString) -> ClientError {
        ClientError::Connection { address: self.address.clone(), reason: reason.to_string() }
    }

    /// Fails all that wait, and all to come.
    fn fail(&self, reason: impl ToString) {
        let error = self.error(reason);
        let queue = {
            let mut state = self.state();
            state.broken.get_or_insert_with(|| error.clone());
            std::mem::take(&mut state.queue)
        };
        for (_, answer) in queue {
            let _ = answer.send(Err(error.clone()));
        }
    }
}

/// An answer that is on its way.
#[derive(Debug)]
pub struct Reply<R> {
    answer: oneshot::Receiver<Result<Bytes, ClientError>>,
    version: i16,
    timeout: Duration,
    deadline: Instant,
    unanswered: Arc<AtomicU64>,
    request: PhantomData<fn() -> R>,
}

impl<R: Request> Reply<R> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// The connection breaks, time is up, or the answer can't be decoded.
    pub async fn receive(self) -> Result<R::Response, ClientError> {
        let bytes = match timeout_at(self.deadline, self.answer).await {
            Ok(Ok(answer)) => answer?,
            Ok(Err(_)) => return Err(ClientError::Closed),
            Err(_) => {
                self.unanswered.fetch_add(1, Ordering::Relaxed);
                return Err(ClientError::Timeout(millis(self.timeout)));
            }
        };
        header::decode_response::<R>(&bytes, self.version)
            .map(|(_, response)| response)
            .map_err(|error| ClientError::Codec { message: R::NAME, reason: error.to_string() })
    }
}

impl Connection {
    /// Connects and asks for the broker's versions. `timeout` bounds this and the wait for each answer.
    ///
    /// # Errors
    /// No connection, or the broker's answer to ApiVersions is an error.
    pub async fn open(address: &str, client_id: &str, timeout: Duration) -> Result<Self, ClientError> {
        Self::open_counting(address, client_id, timeout, Arc::default()).await
    }

    /// [`Self::open`], counting the requests whose answer did not come in time.
    pub(crate) async fn open_counting(
        address: &str,
        client_id: &str,
        timeout: Duration,
        unanswered: Arc<AtomicU64>,
    ) -> Result<Self, ClientError> {
        let waiting = Arc::new(Waiting { address: address.to_owned(), state: Mutex::default() });
        let stream = match tokio::time::timeout(timeout, TcpStream::connect(address)).await {
            Ok(stream) => stream.map_err(|error| waiting.error(error))?,
            Err(_) => return Err(ClientError::Timeout(millis(timeout))),
        };
        stream.set_nodelay(true).map_err(|error| waiting.error(error))?;
        let (read, write) = stream.into_split();
        let (outgoing, frames) = mpsc::unbounded_channel();
        tokio::spawn(write_frames(write, frames, waiting.clone()));
        tokio::spawn(read_frames(read, waiting.clone()));
        let inner = Inner {
            client_id: client_id.into(),
            timeout,
            unanswered,
            outgoing,
            waiting,
            versions: OnceLock::new(),
        };
        let connection = Self { inner: Arc::new(inner) };
        connection.negotiate().await?;
        Ok(connection)
    }

    async fn negotiate(&self) -> Result<(), ClientError> {
        // Version 3 is the oldest that names the client, and every broker since 2.4 knows it.
        let request = ApiVersionsRequest {
            client_software_name: "callboard-client".into(),
            client_software_version: env!("CARGO_PKG_VERSION").into(),
            ..ApiVersionsRequest::default()
        };
        let response = self.start_at(3, &request)?.receive().await?;
        ClientError::check(response.error_code, None)?;
        let versions = response.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version)));
        let _ = self.inner.versions.set(versions.collect());
        Ok(())
    }

    /// The broker's host and port.
    pub fn address(&self) -> &str {
        &self.inner.waiting.address
    }

    /// Whether the connection still works, as far as is known.
    pub fn is_open(&self) -> bool {
        self.inner.waiting.state().broken.is_none()
    }

    /// The newest version of an API that both sides speak.
    ///
    /// # Errors
    /// There is none.
    pub fn version<R: Request>(&self) -> Result<i16, ClientError> {
        let key: ApiKey = R::KEY;
        let (low, high) = self
            .inner
            .versions
            .get()
            .and_then(|versions| versions.get(&key.code()))
            .ok_or(ClientError::Version(R::NAME))?;
        let version = R::MAX_VERSION.min(*high);
        if version < R::MIN_VERSION.max(*low) { Err(ClientError::Version(R::NAME)) } else { Ok(version) }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// See [`Self::start`] and [`Reply::receive`].
    pub async fn call<R: Request>(&self, request: &R) -> Result<R::Response, ClientError> {
        self.start(request)?.receive().await
    }

    /// Sends a request; requests go out in the order of these calls.
    ///
    /// # Errors
    /// The connection is broken, or the request can't be encoded in a version the broker speaks.
    pub fn start<R: Request>(&self, request: &R) -> Result<Reply<R>, ClientError> {
        self.start_at(self.version::<R>()?, request)
    }

    /// [`Self::start`] at a version of the caller's choice.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_at<R: Request>(&self, version: i16, request: &R) -> Result<Reply<R>, ClientError> {
        let (sender, answer) = oneshot::channel();
        self.send(version, request, Some(sender))?;
        let timeout = self.inner.timeout;
        let deadline = Instant::now() + timeout;
        let unanswered = self.inner.unanswered.clone();
        Ok(Reply { answer, version, timeout, deadline, unanswered, request: PhantomData })
    }

    /// Sends a request that has no answer: Produce with acks 0.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn send_unanswered<R: Request>(&self, request: &R) -> Result<(), ClientError> {
        self.send(self.version::<R>()?, request, None)
    }

    fn send<R: Request>(
        &self,
        version: i16,
        request: &R,
        answer: Option<oneshot::Sender<Result<Bytes, ClientError>>>,
    ) -> Result<(), ClientError> {
        let codec_error = |reason: String| ClientError::Codec { message: R::NAME, reason };
        let mut state = self.inner.waiting.state();
        if let Some(error) = &state.broken {
            return Err(error.clone());
        }
        let id = state.next_correlation_id;
        state.next_correlation_id = id.wrapping_add(1);
        let frame = header::encode_request(id, Some(&self.inner.client_id), version, request)
            .map_err(|error| codec_error(error.to_string()))?
            .into_bytes()
            .ok_or_else(|| codec_error("records outside of memory".into()))?;
        if let Some(answer) = answer {
            state.queue.push_back((id, answer));
        }
        // Still under the lock: frames leave in the order of their ids.
        self.inner.outgoing.send(frame).map_err(|_| ClientError::Closed)
    }
}

/// Writes until the last handle of the connection is gone.
async fn write_frames(
    mut write: OwnedWriteHalf,
    mut frames: mpsc::UnboundedReceiver<Bytes>,
    waiting: Arc<Waiting>,
) {
    let mut joined = BytesMut::new();
    while let Some(frame) = frames.recv().await {
        joined.extend_from_slice(&frame);
        while joined.len() < WRITE_BYTES
            && let Ok(frame) = frames.try_recv()
        {
            joined.extend_from_slice(&frame);
        }
        if let Err(error) = write.write_all(&joined).await {
            return waiting.fail(error);
        }
        joined.clear();
    }
}

/// Reads answers and hands each to the oldest request that waits.
async fn read_frames(read: OwnedReadHalf, waiting: Arc<Waiting>) {
    let mut read = BufReader::with_capacity(64 << 10, read);
    loop {
        let frame = match read_frame(&mut read).await {
            Ok(frame) => frame,
            Err(error) => return waiting.fail(error),
        };
        let next = waiting.state().queue.pop_front();
        let answered = frame.get(..4).map(|mut id| id.get_i32());
        match next {
            Some((id, answer)) if answered == Some(id) => {
                let _ = answer.send(Ok(frame));
            }
            Some((_, answer)) => {
                let _ = answer.send(Err(waiting.error("an answer to another request")));
                return waiting.fail("an answer to another request");
            }
            None => return waiting.fail("an answer that nobody asked for"),
        }
    }
}

async fn read_frame(read: &mut BufReader<OwnedReadHalf>) -> std::io::Result<Bytes> {
    let size = usize::try_from(read.read_i32().await?).unwrap_or(usize::MAX);
    if size > LARGEST_RESPONSE_BYTES {
        return Err(std::io::Error::other("an answer of an impossible size"));
    }
    let mut frame = BytesMut::with_capacity(size.min(1 << 20));
    let mut rest = read.take(size as u64);
    while frame.len() < size {
        if rest.read_buf(&mut frame).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(frame.freeze())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
