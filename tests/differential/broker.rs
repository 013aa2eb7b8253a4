//! Raw TCP to one of the two brokers.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;

/// How long a broker may take to answer; far above what any request here asks for.
pub const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// One of the brokers that are compared.
#[derive(Clone, Debug)]
pub struct Broker {
    /// What reports call it.
    pub name: &'static str,
    /// Host and port where clients connect.
    pub address: (String, u16),
    /// Where the controller listens: the port after it, as both brokers are started.
    pub controller: (String, u16),
    /// Its log directory, once it was asked for it.
    pub log_dir: Option<String>,
}

impl Broker {
    /// A broker at `host:port`.
    pub fn new(name: &'static str, address: &str) -> Self {
        let parts = address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port): (&str, u16) = parts.unwrap_or_else(|| panic!("{name}: no host:port: {address}"));
        Self {
            name,
            address: (host.to_owned(), port),
            controller: (host.to_owned(), port + 1),
            log_dir: None,
        }
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A frame, without its size.
    Answer(Bytes),
    /// The broker closed the connection.
    Closed,
    /// Neither within the time.
    Silent,
}

/// A connection to a broker.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
}

impl Connection {
    /// Connects.
    pub fn open(address: &(String, u16)) -> Self {
        let at = (address.0.as_str(), address.1);
        let stream = TcpStream::connect(at).unwrap_or_else(|error| panic!("{at:?}: {error}"));
        stream.set_nodelay(true).expect("a socket takes options");
        Self { stream }
    }

    /// Sends bytes as they are. A connection that is gone shows when the answer is read.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Tells the broker that nothing more comes.
    pub fn end(&mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Waits for one frame.
    pub fn receive(&mut self, limit: Duration) -> Outcome {
        self.stream.set_read_timeout(Some(limit)).expect("a socket takes options");
        let mut size = [0; 4];
        if let Err(outcome) = self.fill(&mut size) {
            return outcome;
        }
        let mut frame = vec![0; u32::from_be_bytes(size) as usize];
        match self.fill(&mut frame) {
            Ok(()) => Outcome::Answer(frame.into()),
            Err(outcome) => outcome,
        }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Outcome> {
        self.stream.read_exact(buffer).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Outcome::Silent,
            _ => Outcome::Closed,
        })
    }
}
