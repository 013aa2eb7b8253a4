//! A whole node on one thread, in a directory of its own, and a client that speaks frames.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use callboard_actors::node::Node;
use callboard_actors::supervision::{Clock, Shards};
use callboard_metadata::config::BrokerConfig;
use callboard_protocol::ByteString;
use callboard_protocol::header;
use callboard_protocol::messages::create_topics_request::CreatableTopic;
use callboard_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use callboard_protocol::messages::{CreateTopicsRequest, ProduceRequest, Request};
use callboard_protocol::records::BatchBuilder;
use callboard_protocol::wire::Records;
use callboard_storage::MetaProperties;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CLUSTER: &str = "W16FM93SQ4Oz9hbnJvaSGA";
const LIMIT: Duration = Duration::from_secs(30);

/// Runs a test against a fresh node.
pub fn with_node<F: Future<Output = ()>>(test: impl FnOnce(SocketAddr) -> F) {
    let dir = tempfile::tempdir().unwrap();
    with_node_in(dir.path(), async |_, address| test(address).await);
}

/// Runs a test against a node whose data is in `dir`: what an earlier node left there, if one did.
pub fn with_node_in(dir: &Path, test: impl AsyncFnOnce(&Node, SocketAddr)) {
    if !dir.join("meta.properties").exists() {
        let meta = MetaProperties { cluster_id: CLUSTER.into(), node_id: 1, directory_id: None };
        meta.write(dir).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let node = Node::start_on(config(dir), Shards::local(Clock::System), 7).await.unwrap();
        tokio::time::timeout(LIMIT, node.ready()).await.expect("ready in time").unwrap();
        let address = node.listeners().iter().find(|(name, _)| name == "PLAINTEXT").unwrap().1;
        tokio::time::timeout(LIMIT, test(&node, address)).await.expect("the test ends in time");
        node.shutdown().await;
    });
}

fn config(dir: &std::path::Path) -> BrokerConfig {
    let dir = dir.display().to_string();
    let properties = [
        ("process.roles", "broker,controller"),
        ("node.id", "1"),
        ("listeners", "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"),
        ("controller.listener.names", "CONTROLLER"),
        // Never dialled: the node is the only voter.
        ("controller.quorum.voters", "1@127.0.0.1:1"),
        ("log.dirs", &dir),
        ("offsets.topic.replication.factor", "1"),
        ("offsets.topic.num.partitions", "3"),
        ("transaction.state.log.replication.factor", "1"),
        ("transaction.state.log.min.isr", "1"),
        ("transaction.state.log.num.partitions", "3"),
        ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "10"),
        ("group.initial.rebalance.delay.ms", "0"),
    ];
    let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned()));
    BrokerConfig::from_properties(properties).unwrap().0
}

/// A connection that a test sends requests over.
pub struct Client {
    stream: TcpStream,
    correlation_id: i32,
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), correlation_id: 0 }
    }

    /// Sends a request without waiting for its answer.
    pub async fn send<Q: Request>(&mut self, request: &Q, version: i16) {
        self.correlation_id += 1;
        let name = ByteString::from_static("test");
        let frame = header::encode_request(self.correlation_id, Some(&name), version, request).unwrap();
        self.stream.write_all(&frame.into_bytes().unwrap()).await.unwrap();
    }

    /// The next answer; none once the node has closed the connection.
    pub async fn receive(&mut self) -> Option<Bytes> {
        let size = self.stream.read_u32().await.ok()? as usize;
        let mut frame = BytesMut::zeroed(size);
        self.stream.read_exact(&mut frame).await.ok()?;
        Some(frame.freeze())
    }

    /// The next answer, which must be to the last request sent.
    pub async fn answer<Q: Request>(&mut self, version: i16) -> Option<Q::Response> {
        let frame = self.receive().await?;
        let (correlation_id, response) = header::decode_response::<Q>(&frame, version).unwrap();
        assert_eq!(correlation_id, self.correlation_id);
        Some(response)
    }

    /// Sends a request and waits for its answer.
    pub async fn ask<Q: Request>(&mut self, request: &Q, version: i16) -> Q::Response {
        self.send(request, version).await;
        let answer = self.answer::<Q>(version).await;
        answer.unwrap_or_else(|| panic!("{} version {version}: the connection was closed", Q::NAME))
    }

    /// Makes a topic.
    pub async fn create_topic(&mut self, name: &'static str, num_partitions: i32) {
        let topic = CreatableTopic {
            name: ByteString::from_static(name),
            num_partitions,
            replication_factor: 1,
            ..Default::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 5000, ..Default::default() };
        let response = self.ask(&request, 7).await;
        assert_eq!(response.topics[0].error_code, 0, "{:?}", response.topics[0].error_message);
    }
}

/// A batch of one record.
pub fn batch(value: &'static str) -> Bytes {
    let mut batch = BatchBuilder::new(0);
    batch.append(1_000, None, Some(value.as_bytes()), &[]);
    batch.build().unwrap()
}

/// A produce request for one partition, by name.
pub fn produce(topic: &'static str, index: i32, acks: i16, records: Bytes) -> ProduceRequest {
    let data = PartitionProduceData { index, records: Some(Records::Bytes(records)), ..Default::default() };
    let topic = TopicProduceData {
        name: ByteString::from_static(topic),
        partition_data: vec![data],
        ..Default::default()
    };
    ProduceRequest { acks, timeout_ms: 5000, topic_data: vec![topic], ..Default::default() }
}
