//! DescribeTopicPartitions.

use callboard_protocol::ByteString;
use callboard_protocol::messages::DescribeTopicPartitionsRequest;
use callboard_protocol::messages::describe_topic_partitions_request::{Cursor, TopicRequest};

use super::bad_names;
use crate::stage::Stage;

fn request(
    names: &[ByteString],
    limit: i32,
    cursor: Option<(&ByteString, i32)>,
) -> DescribeTopicPartitionsRequest {
    DescribeTopicPartitionsRequest {
        topics: names.iter().map(|name| TopicRequest { name: name.clone(), ..Default::default() }).collect(),
        response_partition_limit: limit,
        cursor: cursor.map(|(topic_name, partition_index)| Cursor {
            topic_name: topic_name.clone(),
            partition_index,
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Some topics, in pages.
pub fn pages(s: &mut Stage<'_>) {
    s.create("a", 3);
    s.create("b", 2);
    let (a, b) = (s.topic("a"), s.topic("b"));
    let both = [b.clone(), a.clone()];
    for limit in [2000, 5, 4, 3, 2, 1, 0, -1, i32::MAX] {
        s.send(&format!("limit {limit}"), &request(&both, limit, None));
    }
    for (topic, partition) in [(&a, 0), (&a, 1), (&a, 2), (&a, 3), (&a, 99), (&b, 0), (&b, 1), (&a, -1)] {
        s.send(&format!("from {topic} {partition}"), &request(&both, 2, Some((topic, partition))));
    }
    let between = s.topic("aa");
    s.send("from a missing topic between", &request(&both, 10, Some((&between, 1))));
    let last = s.topic("z");
    s.send("from beyond the last topic", &request(&both, 10, Some((&last, 0))));
    s.send("from a topic not asked for", &request(std::slice::from_ref(&b), 10, Some((&a, 1))));
    s.send("twice", &request(&[a.clone(), a.clone()], 10, None));
    s.send("a missing one", &request(&[s.topic("missing"), a.clone()], 10, None));
    s.send("a missing one, from it", &request(&[s.topic("missing")], 10, Some((&s.topic("missing"), 0))));
    for (what, name) in bad_names() {
        s.send(what, &request(&[name], 10, None));
    }
}

/// All topics.
pub fn all(s: &mut Stage<'_>) {
    s.send("all", &request(&[], 2000, None));
    s.send("all from a cursor", &request(&[], 2000, Some((&"a".into(), 0))));
    s.send("all, one partition", &request(&[], 1, None));
}
