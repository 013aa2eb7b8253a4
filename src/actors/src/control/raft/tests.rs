//! The actor over real files: a new cluster, restarts, Kafka's own directory, snapshots.

use std::path::Path;
use std::time::Duration;

use callboard_metadata::bootstrap::{activation_records, default_features, format_records};
use callboard_metadata::config::{MetadataLogConfig, QuorumConfig};
use callboard_protocol::Uuid;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{BeginTransactionRecord, EndTransactionRecord, NoOpRecord, TopicRecord};
use callboard_raft::{Endpoint, ReplicaKey, SnapshotId, Voter, VoterSet};

use super::control_records::QuorumRecords;
use super::*;
use crate::control::loader::{Loader, MetadataView, NewImage, SnapshotPolicy};
use crate::supervision::{
    Actor, ActorRef, Clock, Context, Exit, Handler, ReplyTo, Shards, Spec, Strategy, Tree, faults,
};

const NODE: i32 = 1;

fn directory_id() -> Uuid {
    "yVjPJkQUJB3vkhLEBiOGWQ".parse().unwrap()
}

fn options(dir: &Path) -> RaftOptions {
    RaftOptions {
        node_id: NODE,
        directory_id: directory_id(),
        metadata_log_dir: dir.to_owned(),
        static_voters: vec![],
        quorum: QuorumConfig {
            election_timeout_ms: 1000,
            election_backoff_max_ms: 1000,
            fetch_timeout_ms: 2000,
            request_timeout_ms: 2000,
            retry_backoff_ms: 20,
            append_linger_ms: 25,
        },
        log: MetadataLogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 1 << 40,
            max_record_bytes_between_snapshots: 1 << 30,
            max_snapshot_interval_ms: None,
            max_idle_interval_ms: None,
            max_retention_bytes: None,
            max_retention_ms: None,
        },
    }
}

/// Formats a directory as `storage format --standalone` does.
fn format(dir: &Path) {
    let log_dir = dir.join(LOG_DIR);
    std::fs::create_dir_all(&log_dir).unwrap();
    let voter = Voter {
        key: ReplicaKey::new(NODE, directory_id()),
        endpoints: vec![Endpoint { name: "CONTROLLER".into(), host: "localhost".into(), port: 27193 }],
        min_kraft_version: 0,
        max_kraft_version: 1,
    };
    let quorum = QuorumRecords { kraft_version: Some(1), voters: Some(VoterSet::new([voter]).unwrap()) };
    let snapshot = Snapshot {
        id: SnapshotId::default(),
        last_contained_log_timestamp_ms: 5,
        records: format_records(&default_features(), []),
    };
    snapshot::write(&log_dir, &snapshot, &quorum, 7).unwrap();
}

struct TestNode {
    tree: Tree,
    raft: Raft,
    loader: Loader,
    view: MetadataView,
}

impl TestNode {
    fn start(options: RaftOptions, snapshot_bytes: u64) -> Self {
        let shards = Shards::local(Clock::simulated(1_000_000));
        let tree = Tree::new("node", Strategy::OneForOne, &shards, 42);
        let raft = Raft::spawn(tree.root(), options);
        let policy = SnapshotPolicy { max_record_bytes: snapshot_bytes, max_interval_ms: None };
        let loader = Loader::spawn(tree.root(), raft.clone(), policy);
        let view = loader.view().clone();
        Self { tree, raft, loader, view }
    }

    async fn leader_epoch(&self) -> i32 {
        let mut changes = self.raft.leader_changes();
        changes.wait_for(|hint| hint.leader_id == Some(NODE)).await.unwrap().epoch
    }

    async fn append(&self, records: Vec<VersionedRecord>) -> AppendedRange {
        let epoch = self.leader_epoch().await;
        self.raft.append(records, epoch, None).await.unwrap().unwrap()
    }

    async fn stop(self) {
        assert_eq!(self.tree.shutdown(Duration::from_secs(5)).await, Exit::Clean);
    }
}

fn simulate(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

fn topic(name: &str, number: u8) -> VersionedRecord {
    let record =
        TopicRecord { name: name.into(), topic_id: Uuid::from_bytes([number; 16]), ..Default::default() };
    VersionedRecord::new(MetadataRecord::TopicRecord(record), 0)
}

fn no_op() -> VersionedRecord {
    VersionedRecord::new(MetadataRecord::NoOpRecord(NoOpRecord::default()), 0)
}

fn copy_fixture(to: &Path, without: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka_metadata_log");
    let log_dir = to.join(LOG_DIR);
    std::fs::create_dir_all(&log_dir).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        if file.file_name().to_str() != Some(without) {
            std::fs::copy(file.path(), log_dir.join(file.file_name())).unwrap();
        }
    }
}

#[test]
fn a_new_cluster_starts_as_kafkas_does() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    simulate(async {
        let node = TestNode::start(options(dir.path()), 1 << 30);
        assert_eq!(node.leader_epoch().await, 1);
        let bootstrap = node.raft.actor().ask(ReadBootstrap).await.unwrap().unwrap();
        assert_eq!(bootstrap, format_records(&default_features(), []));
        let range = node.append(activation_records(bootstrap, 1)).await;
        assert_eq!((range.base_offset, range.last_offset), (3, 11));
        let published = node.view.published(11).await.unwrap();
        assert_eq!(published.image.features.level("metadata.version"), 33);
        assert_eq!((published.offset, published.epoch), (11, 1));
        let info = node.raft.actor().ask(DescribeQuorum).await.unwrap().unwrap();
        assert_eq!(info.status.high_watermark, 12);
        assert_eq!(info.status.voters[0].log_end_offset, 12);
        node.stop().await;
    });
    let log_dir = dir.path().join(LOG_DIR);
    let state = std::fs::read_to_string(log_dir.join(QUORUM_STATE)).unwrap();
    assert_eq!(
        state,
        r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#
    );
    assert_eq!(without_times(&read_log(&log_dir)), without_times(&kafkas_log()[..504]));
}

fn read_log(log_dir: &Path) -> Vec<u8> {
    std::fs::read(log_dir.join("00000000000000000000.log")).unwrap()
}

fn kafkas_log() -> Vec<u8> {
    read_log(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka_metadata_log"))
}

/// Batches with their times and checksums set to 0.
fn without_times(log: &[u8]) -> Vec<u8> {
    let mut log = log.to_vec();
    let mut at = 0;
    while at + 61 <= log.len() {
        let size = 12 + u32::from_be_bytes(log[at + 8..at + 12].try_into().unwrap()) as usize;
        log[at + 17..at + 21].fill(0);
        log[at + 27..at + 43].fill(0);
        at += size;
    }
    log
}

#[test]
fn what_was_published_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    simulate(async {
        let node = TestNode::start(options(dir.path()), 1 << 30);
        let range = node.append(vec![topic("a", 1), topic("b", 2)]).await;
        node.view.published(range.last_offset).await.unwrap();
        node.stop().await;
        let node = TestNode::start(options(dir.path()), 1 << 30);
        assert_eq!(node.leader_epoch().await, 2);
        let published = node.view.published(range.last_offset + 1).await.unwrap();
        assert!(published.image.topics.by_name("b").is_some());
        node.stop().await;
    });
}

#[test]
fn appends_of_another_epoch_or_place_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    simulate(async {
        let node = TestNode::start(options(dir.path()), 1 << 30);
        let epoch = node.leader_epoch().await;
        let refused = node.raft.append(vec![no_op()], epoch + 1, None).await.unwrap();
        assert_eq!(refused, Err(AppendFailed::NotLeader { expected_epoch: epoch + 1 }));
        let refused = node.raft.append(vec![no_op()], epoch, Some(9)).await.unwrap();
        assert_eq!(refused, Err(AppendFailed::UnexpectedOffset { expected_offset: 9, end_offset: 3 }));
        let refused = node.raft.append(vec![], epoch, None).await.unwrap();
        assert!(matches!(refused, Err(AppendFailed::Invalid(_))));
        let large = vec![topic(&"x".repeat(30_000), 1); 300];
        let refused = node.raft.append(large, epoch, None).await.unwrap();
        assert!(matches!(refused, Err(AppendFailed::TooLarge { .. })));
        assert_eq!(node.append(vec![no_op()]).await.base_offset, 3);
        node.stop().await;
    });
}

#[test]
fn a_resigned_leader_comes_back_in_a_new_epoch() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    simulate(async {
        let node = TestNode::start(options(dir.path()), 1 << 30);
        assert_eq!(node.leader_epoch().await, 1);
        node.raft.actor().ask(Resign).await.unwrap();
        let mut changes = node.raft.leader_changes();
        changes.wait_for(|hint| hint.epoch == 2 && hint.leader_id == Some(NODE)).await.unwrap();
        node.append(vec![no_op()]).await;
        node.stop().await;
    });
}

#[test]
fn a_directory_of_kafkas_starts() {
    for without in ["", "00000000000000000034-0000000001.checkpoint"] {
        let dir = tempfile::tempdir().unwrap();
        copy_fixture(dir.path(), without);
        simulate(async {
            let node = TestNode::start(options(dir.path()), 1 << 30);
            assert_eq!(node.leader_epoch().await, 2);
            // The log of Kafka ends at 40; our LeaderChange is all that is added.
            let published = node.view.published(40).await.unwrap();
            assert_eq!((published.offset, published.epoch), (40, 2));
            assert_eq!(published.image.cluster.brokers.len(), 1);
            assert_eq!(published.image.features.level("transaction.version"), 2);
            node.stop().await;
        });
    }
}

#[test]
fn snapshots_are_written_loaded_and_cleaned_up() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    let mut small = options(dir.path());
    small.log.segment_bytes = 1000;
    small.log.max_retention_bytes = Some(2000);
    simulate(async {
        let node = TestNode::start(small.clone(), 1500);
        for number in 0..100 {
            let range = node.append(vec![topic(&format!("topic-{number}"), number)]).await;
            node.view.published(range.last_offset).await.unwrap();
        }
        node.stop().await;
    });
    let log_dir = dir.path().join(LOG_DIR);
    let snapshots = snapshot::list(&log_dir).unwrap();
    let newest = *snapshots.last().unwrap();
    assert!(newest.end_offset > 50, "{snapshots:?}");
    assert!(snapshots[0].end_offset > 0, "the first ones are gone: {snapshots:?}");
    assert!(!log_dir.join("00000000000000000000.log").exists(), "so is the log before them");
    let (_, quorum) = snapshot::read(&log_dir, newest).unwrap();
    assert_eq!(quorum.kraft_version, Some(1));
    assert_eq!(quorum.voters.unwrap().count(), 1);
    simulate(async {
        let node = TestNode::start(small, 1 << 30);
        assert_eq!(node.leader_epoch().await, 2);
        let published = node.view.published(103).await.unwrap();
        for number in 0..100 {
            assert!(published.image.topics.by_name(&format!("topic-{number}")).is_some(), "{number}");
        }
        node.stop().await;
    });
}

#[test]
fn a_directory_of_another_quorum_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    let mut other = options(dir.path());
    other.node_id = 7;
    simulate(async {
        let node = TestNode::start(other, 1 << 30);
        assert_eq!(node.tree.ended().await, Exit::Refused);
    });
}

#[test]
fn a_torn_end_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    copy_fixture(dir.path(), "");
    let log = dir.path().join(LOG_DIR).join("00000000000000000000.log");
    let bytes = std::fs::read(&log).unwrap();
    std::fs::write(&log, &bytes[..bytes.len() - 10]).unwrap();
    simulate(async {
        let node = TestNode::start(options(dir.path()), 1 << 30);
        assert_eq!(node.view.published(39).await.unwrap().epoch, 2);
        node.stop().await;
    });
}

#[test]
fn a_transaction_shows_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    simulate(async {
        let node = TestNode::start(options(dir.path()), 1);
        node.view.published(2).await.unwrap();
        let begin = VersionedRecord::new(BeginTransactionRecord::default().into(), 0);
        let range = node.append(vec![begin, topic("a", 1)]).await;
        let mut position = node.view.position();
        let seen = position.wait_for(|(offset, _)| *offset >= range.last_offset);
        assert!(tokio::time::timeout(Duration::from_secs(5), seen).await.is_err());
        assert_eq!(node.view.current().offset, 2);
        let end = VersionedRecord::new(EndTransactionRecord::default().into(), 0);
        let range = node.append(vec![topic("b", 2), end]).await;
        let published = node.view.published(range.last_offset).await.unwrap();
        assert!(published.image.topics.by_name("a").is_some());
        node.stop().await;
    });
}

/// Follows images and the log, and checks that nothing is missed or goes back.
#[derive(Clone, Default)]
struct Witness {
    log_offset: i64,
    image_offset: i64,
    topics: Vec<String>,
    led: Vec<(i32, i64)>,
}

impl Actor for Witness {}

impl Handler<LogNews> for Witness {
    fn handle(&mut self, news: LogNews, reply: ReplyTo<()>, _: &mut Context<Self>) {
        if let LogNews::Leadership(Leadership { epoch, end_offset: Some(end), .. }) = news {
            assert_eq!(end, self.log_offset, "leads before it has told all");
            self.led.push((epoch, end));
        }
        if let LogNews::Batches(batches) = &news {
            for batch in batches {
                if batch.last_offset < self.log_offset {
                    continue;
                }
                assert_eq!(batch.base_offset, self.log_offset, "a gap");
                self.log_offset = batch.last_offset + 1;
            }
        }
        reply.send(());
    }
}

impl Handler<NewImage> for Witness {
    fn handle(&mut self, image: NewImage, reply: ReplyTo<()>, _: &mut Context<Self>) {
        assert!(image.new.offset >= self.image_offset);
        self.image_offset = image.new.offset;
        for topic in image.delta.topics.iter().filter(|t| t.created) {
            self.topics.push(topic.name.to_string());
        }
        reply.send(());
    }
}

struct Report;

impl crate::supervision::Message for Report {
    type Reply = Witness;
    const NAME: &'static str = "Report";
}

impl Handler<Report> for Witness {
    fn handle(&mut self, _: Report, reply: ReplyTo<Witness>, _: &mut Context<Self>) {
        reply.send(self.clone());
    }
}

#[test]
fn crashes_lose_nothing_and_tell_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    simulate(async {
        let node = TestNode::start(options(dir.path()), 1 << 30);
        let witness: ActorRef<Witness> = node.tree.root().spawn(Spec::new("witness", Witness::default));
        let to = witness.recipient();
        node.raft.subscribe(Subscribe { name: "witness", to, from_offset: 0 }).await.unwrap();
        node.loader.follow("witness", witness.recipient()).await.unwrap();
        let mut written = vec![];
        for number in 0..60_u8 {
            if number % 5 == 0 {
                let victim = if number % 10 == 0 { "node/raft" } else { "node/metadata" };
                assert!(faults::crash(&node.tree, victim), "{victim}");
                // Out of the way of the restart policy, which gives up on a storm.
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            let name = format!("topic-{number}");
            // As a controller does: a failed append is no append, and it asks again in the new epoch.
            let range = loop {
                let epoch = node.leader_epoch().await;
                let append = node.raft.append(vec![topic(&name, number)], epoch, None).await;
                if let Ok(Ok(range)) = append {
                    break range;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            };
            node.view.published(range.last_offset).await.unwrap();
            written.push(name);
        }
        let end = node.view.current().offset;
        for name in &written {
            assert!(node.view.current().image.topics.by_name(name).is_some(), "{name}");
        }
        let mut seen = witness.ask(Report).await.unwrap();
        while seen.log_offset <= end || seen.image_offset < end {
            tokio::time::sleep(Duration::from_millis(1)).await;
            seen = witness.ask(Report).await.unwrap();
        }
        assert_eq!(seen.topics, written);
        // Six crashes of the raft actor: seven epochs, each told once.
        let epochs: Vec<i32> = seen.led.iter().map(|led| led.0).collect();
        assert_eq!(epochs, [1, 2, 3, 4, 5, 6, 7]);
        node.stop().await;
    });
}

/// The log's actor comes back first and goes on with the loader's former subscription: what it sends then must not
/// be taken for the whole log.
#[test]
fn an_image_is_whole_when_log_and_loader_crash_together() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    simulate(async {
        let node = TestNode::start(options(dir.path()), 1 << 30);
        node.view.published(2).await.unwrap();
        let range = node.append(vec![topic("kept", 1)]).await;
        node.view.published(range.last_offset).await.unwrap();
        for _ in 0..10 {
            let before = node.view.current().offset;
            for victim in ["node/raft", "node/metadata"] {
                assert!(faults::crash(&node.tree, victim), "{victim}");
            }
            // Each new epoch begins with a record of its own.
            let image = node.view.published(before + 1).await.unwrap();
            assert!(image.image.topics.by_name("kept").is_some(), "at {}", image.offset);
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        node.stop().await;
    });
}

#[test]
fn leadership_is_told_when_it_is_won_and_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    format(dir.path());
    simulate(async {
        let node = TestNode::start(options(dir.path()), 1 << 30);
        let witness: ActorRef<Witness> = node.tree.root().spawn(Spec::new("witness", Witness::default));
        // It subscribes before the first election is over.
        let to = witness.recipient();
        node.raft.subscribe(Subscribe { name: "witness", to, from_offset: 0 }).await.unwrap();
        node.view.published(2).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(witness.ask(Report).await.unwrap().led, [(1, 3)]);
        node.raft.actor().ask(Resign).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(witness.ask(Report).await.unwrap().led, [(1, 3), (2, 4)]);
        node.stop().await;
    });
}
