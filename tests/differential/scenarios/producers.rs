//! InitProducerId without a transactional id, DescribeProducers, DescribeLogDirs.

use callboard_protocol::ByteString;
use callboard_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use callboard_protocol::messages::describe_producers_request::TopicRequest;
use callboard_protocol::messages::{DescribeLogDirsRequest, DescribeProducersRequest, InitProducerIdRequest};

use super::bad_names;
use crate::records::{batch, sequenced, store};
use crate::stage::Stage;

fn init(producer_id: i64, producer_epoch: i16) -> InitProducerIdRequest {
    InitProducerIdRequest { transaction_timeout_ms: 1000, producer_id, producer_epoch, ..Default::default() }
}

/// New ids, and ids that clients name.
pub fn ids(s: &mut Stage<'_>) {
    s.send("new", &init(-1, -1));
    s.send("another", &init(-1, -1));
    for transaction_timeout_ms in [0, -1, i32::MAX] {
        let request = InitProducerIdRequest { transaction_timeout_ms, ..init(-1, -1) };
        s.send(&format!("timeout {transaction_timeout_ms}"), &request);
    }
    for (id, epoch) in [(5, 0), (5, -1), (-1, 0), (-2, -2), (0, 0), (i64::MAX, i16::MAX)] {
        s.send(&format!("id {id}, epoch {epoch}"), &init(id, epoch));
    }
    let empty = InitProducerIdRequest { transactional_id: Some(ByteString::new()), ..init(-1, -1) };
    s.send("an empty transactional id", &empty);
    s.send("prepared transactions kept", &InitProducerIdRequest { keep_prepared_txn: true, ..init(-1, -1) });
}

/// Active producers of partitions.
pub fn active(s: &mut Stage<'_>) {
    let id = s.create("a", 2);
    let a = s.topic("a");
    let of = |name: &ByteString, partitions: &[i32]| {
        let topic =
            TopicRequest { name: name.clone(), partition_indexes: partitions.to_vec(), ..Default::default() };
        DescribeProducersRequest { topics: vec![topic], ..Default::default() }
    };
    s.send("none", &DescribeProducersRequest::default());
    s.send("no partition", &of(&a, &[]));
    s.send("nobody", &of(&a, &[0, 1]));
    store(s, id, 0, &[sequenced(77, 3, 0, &["a", "b"]), sequenced(77, 3, 2, &["c"])]);
    s.send("one", &of(&a, &[0]));
    store(s, id, 1, &[sequenced(78, 0, 9, &["d"])]);
    s.send("one in each", &of(&a, &[0, 1]));
    s.send("a partition twice", &of(&a, &[0, 0]));
    s.send("partitions that are not there", &of(&a, &[2, -1]));
    s.send("a missing topic", &of(&s.topic("missing"), &[0]));
    for (what, name) in bad_names() {
        s.send(what, &of(&name, &[0]));
    }
    let mut two = of(&a, &[0]);
    two.topics.extend(of(&s.topic("missing"), &[0, 1]).topics);
    s.send("one and a missing one", &two);
}

fn sizes(topics: Option<&[(&ByteString, &[i32])]>) -> DescribeLogDirsRequest {
    let topics = topics.map(|topics| {
        let topics = topics.iter().map(|(topic, partitions)| DescribableLogDirTopic {
            topic: (*topic).clone(),
            partitions: partitions.to_vec(),
            ..Default::default()
        });
        topics.collect()
    });
    DescribeLogDirsRequest { topics, ..Default::default() }
}

/// Sizes of some partitions.
pub fn log_dirs(s: &mut Stage<'_>) {
    let id = s.create("a", 2);
    let a = s.topic("a");
    store(s, id, 0, &[batch(&["a", "b"])]);
    s.send("none", &sizes(Some(&[])));
    s.send("one", &sizes(Some(&[(&a, &[0])])));
    s.send("two", &sizes(Some(&[(&a, &[1, 0])])));
    s.send("no partition", &sizes(Some(&[(&a, &[])])));
    s.send("twice", &sizes(Some(&[(&a, &[0, 0])])));
    s.send("a topic twice", &sizes(Some(&[(&a, &[0]), (&a, &[1])])));
    s.send("partitions that are not there", &sizes(Some(&[(&a, &[2, -1])])));
    s.send("a missing topic", &sizes(Some(&[(&s.topic("missing"), &[0])])));
    for (what, name) in bad_names() {
        s.send(what, &sizes(Some(&[(&name, &[0])])));
    }
}

/// Sizes of all partitions.
pub fn all_log_dirs(s: &mut Stage<'_>) {
    s.send("all", &sizes(None));
}
