//! The cluster as a client sees it: metadata, and a connection to each broker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::{MetadataRequest, Request, metadata_request::MetadataRequestTopic};

use tokio::time::Instant;

use crate::{ClientError, Connection, Metadata};

/// What all of a client's parts share.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Brokers to ask first, as `host:port`.
    pub bootstrap: Vec<String>,
    /// The name that brokers log and meter by.
    pub client_id: String,
    /// How long to wait for a connection, and for an answer.
    pub request_timeout: Duration,
    /// Pause before a request is tried again.
    pub retry_backoff: Duration,
    /// How long an operation is tried again before its error is given back.
    pub operation_timeout: Duration,
    /// Whether asking for an unknown topic may create it.
    pub allow_auto_create: bool,
}

impl ClientOptions {
    /// Defaults: 30 s for an answer, 100 ms between tries, 60 s for an operation, no creation.
    pub fn new(bootstrap: impl Into<String>) -> Self {
        Self {
            bootstrap: vec![bootstrap.into()],
            client_id: "callboard-client".into(),
            request_timeout: Duration::from_secs(30),
            retry_backoff: Duration::from_millis(100),
            operation_timeout: Duration::from_secs(60),
            allow_auto_create: false,
        }
    }
}

/// A client of one cluster. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: ClientOptions,
    known: Mutex<Known>,
    connections: tokio::sync::Mutex<BTreeMap<String, Connection>>,
    unanswered: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Known {
    metadata: Arc<Metadata>,
    /// Topics that were asked for: every refresh asks for all of them.
    wanted: BTreeSet<String>,
}

impl Client {
    /// Connects to one of the bootstrap brokers and asks it for the cluster's brokers.
    ///
    /// # Errors
    /// None of them answers.
    pub async fn connect(options: ClientOptions) -> Result<Self, ClientError> {
        let inner = Inner {
            options,
            known: Mutex::default(),
            connections: tokio::sync::Mutex::default(),
            unanswered: Arc::default(),
        };
        let client = Self { inner: Arc::new(inner) };
        client.refresh(&[]).await?;
        Ok(client)
    }

    /// The options it was made with.
    pub fn options(&self) -> &ClientOptions {
        &self.inner.options
    }

    /// How many requests got no answer in time, though their connection stood. Most were tried again.
    pub fn unanswered(&self) -> u64 {
        self.inner.unanswered.load(Ordering::Relaxed)
    }

    /// The cluster as last described; asks nobody.
    pub fn metadata(&self) -> Arc<Metadata> {
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner).metadata.clone()
    }

    /// Asks a broker for the cluster, these topics and those asked for before.
    ///
    /// # Errors
    /// No broker answers.
    pub async fn refresh(&self, topics: &[&str]) -> Result<Arc<Metadata>, ClientError> {
        let wanted = {
            let mut known = self.inner.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.wanted.extend(topics.iter().map(|topic| (*topic).to_owned()));
            known.wanted.clone()
        };
        let topics = wanted.iter().map(|name| MetadataRequestTopic {
            name: Some(name.as_str().into()),
            ..MetadataRequestTopic::default()
        });
        let request = MetadataRequest {
            topics: Some(topics.collect()),
            allow_auto_topic_creation: self.inner.options.allow_auto_create,
            ..MetadataRequest::default()
        };
        let metadata = Arc::new(Metadata::from_response(self.call_any(&request).await?));
        let mut known = self.inner.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.metadata = metadata.clone();
        Ok(metadata)
    }

    /// Sends a request to whichever broker answers: connected ones first.
    ///
    /// # Errors
    /// The last broker's error if none answers.
    pub async fn call_any<R: Request>(&self, request: &R) -> Result<R::Response, ClientError> {
        let metadata = self.metadata();
        let addresses =
            metadata.brokers.values().map(|broker| &broker.address).chain(&self.inner.options.bootstrap);
        let mut last = ClientError::Closed;
        for address in addresses {
            let answer = match self.connection_to(address).await {
                Ok(connection) => connection.call(request).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(response) => return Ok(response),
                Err(error @ (ClientError::Connection { .. } | ClientError::Timeout(_))) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// A connection to an address, the one there is or a new one.
    async fn connection_to(&self, address: &str) -> Result<Connection, ClientError> {
        let mut connections = self.inner.connections.lock().await;
        if let Some(connection) = connections.get(address).filter(|connection| connection.is_open()) {
            return Ok(connection.clone());
        }
        let options = &self.inner.options;
        let (timeout, unanswered) = (options.request_timeout, self.inner.unanswered.clone());
        let connection = Connection::open_counting(address, &options.client_id, timeout, unanswered).await?;
        connections.insert(address.to_owned(), connection.clone());
        Ok(connection)
    }

    /// A connection to a broker.
    ///
    /// # Errors
    /// The broker is unknown or can't be reached.
    pub async fn broker(&self, id: i32) -> Result<Connection, ClientError> {
        let metadata = self.metadata();
        let broker = metadata.brokers.get(&id).ok_or_else(|| ClientError::Connection {
            address: format!("broker {id}"),
            reason: "not a broker of the cluster".into(),
        })?;
        self.connection_to(&broker.address).await
    }

    /// A connection to a partition's leader; asks for the topic if it is not known.
    ///
    /// # Errors
    /// No leader now, or it can't be reached: refresh and try again.
    pub async fn leader(&self, topic: &str, partition: i32) -> Result<Connection, ClientError> {
        let mut metadata = self.metadata();
        if metadata.leader(topic, partition).is_none() {
            metadata = self.refresh(&[topic]).await?;
        }
        let no_leader = ClientError::NoLeader { topic: topic.to_owned(), partition };
        self.broker(metadata.leader(topic, partition).ok_or(no_leader)?).await
    }

    /// Tries of one operation, from now until its time is up.
    pub(crate) fn tries(&self) -> Tries<'_> {
        Tries { client: self, end: Instant::now() + self.inner.options.operation_timeout }
    }

    /// The number of a topic's partitions; waits for the topic to appear.
    ///
    /// # Errors
    /// The topic does not appear in time, or can't be seen.
    pub async fn partition_count(&self, topic: &str) -> Result<i32, ClientError> {
        let known = self.metadata().topics.get(topic).map_or(0, |found| found.partitions.len());
        if known > 0 {
            return Ok(i32::try_from(known).unwrap_or(i32::MAX));
        }
        let mut tries = self.tries();
        loop {
            match self.count_partitions(topic).await {
                Ok(count) => return Ok(count),
                Err(error) => tries.again(error).await?,
            }
        }
    }

    async fn count_partitions(&self, topic: &str) -> Result<i32, ClientError> {
        let metadata = self.refresh(&[topic]).await?;
        match metadata.topics.get(topic) {
            Some(found) if found.error != ErrorCode::None => {
                Err(ClientError::Broker { code: found.error, message: None })
            }
            Some(found) if !found.partitions.is_empty() => {
                Ok(i32::try_from(found.partitions.len()).unwrap_or(i32::MAX))
            }
            _ => Err(ClientError::NoLeader { topic: topic.to_owned(), partition: 0 }),
        }
    }
}

/// See [`Client::tries`].
pub(crate) struct Tries<'a> {
    client: &'a Client,
    end: Instant,
}

impl Tries<'_> {
    /// Waits for the next try, with metadata fetched anew.
    ///
    /// # Errors
    /// The error itself, if it won't go away or time is up.
    pub(crate) async fn again(&mut self, error: ClientError) -> Result<(), ClientError> {
        if !error.is_retriable() || Instant::now() >= self.end {
            return Err(error);
        }
        tracing::debug!(%error, "trying again");
        tokio::time::sleep(self.client.options().retry_backoff).await;
        if let Err(error) = self.client.refresh(&[]).await {
            tracing::debug!(%error, "no metadata");
        }
        Ok(())
    }
}
