//! The hash of what a group's topics look like (KIP-1101): the group is assigned anew when it changes.
//!
//! The numbers are Kafka's, so that a group moves between the two without a rebalance: XXH3 over little-endian
//! numbers and over texts as UTF-16, each followed by its length.

use callboard_protocol::ByteString;
use twox_hash::XxHash3_64;

use crate::cluster::{Cluster, TopicView};

/// What a topic's bytes start with: the version of this form.
const MAGIC: u8 = 0;

/// The hash of a topic: its id, name, partitions and the racks they are in.
pub fn topic_hash(cluster: &dyn Cluster, topic: &TopicView) -> u64 {
    let mut bytes = vec![MAGIC];
    let id = topic.id.as_u128();
    bytes.extend(((id >> 64) as u64).to_le_bytes());
    bytes.extend((id as u64).to_le_bytes());
    put_text(&mut bytes, &topic.name);
    bytes.extend(topic.partitions.to_le_bytes());
    for partition in 0..topic.partitions {
        bytes.extend(partition.to_le_bytes());
        for rack in cluster.racks(topic.id, partition) {
            put_length(&mut bytes, &rack);
            put_text(&mut bytes, &rack);
        }
    }
    XxHash3_64::oneshot(&bytes)
}

/// The hash of a group's topics, which come in the order of their names. Without topics it is 0.
pub fn group_hash(topic_hashes: impl IntoIterator<Item = u64>) -> i64 {
    let bytes: Vec<u8> = topic_hashes.into_iter().flat_map(u64::to_le_bytes).collect();
    if bytes.is_empty() { 0 } else { XxHash3_64::oneshot(&bytes) as i64 }
}

fn put_text(bytes: &mut Vec<u8>, text: &ByteString) {
    bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    put_length(bytes, text);
}

/// Java's length of a text: in UTF-16 units.
fn put_length(bytes: &mut Vec<u8>, text: &ByteString) {
    bytes.extend((text.encode_utf16().count() as i32).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::consumer::fixture::TestCluster;

    /// What Kafka 4.4.0 wrote for topics with these ids.
    #[test]
    fn the_hashes_are_those_of_kafka() {
        let mut cluster = TestCluster::default();
        cluster.add_as("t", "f_2t0fArT6OD9pUM_T1n8w", 2, &[]);
        cluster.add_as("u", "cTidXGmYR2CdhdQxs8KOzA", 3, &[]);
        cluster.add_as("w", "VHnHEJBmQQmKlmF12tURXg", 4, &[]);
        let hash = |name: &str| topic_hash(&cluster, &cluster.topic(name).unwrap());
        assert_eq!(group_hash([hash("t")]), 3_884_331_716_909_138_161);
        assert_eq!(group_hash([hash("u")]), 7_168_665_381_724_715_307);
        assert_eq!(group_hash([hash("w")]), 8_033_493_908_797_175_594);
        assert_eq!(group_hash([hash("t"), hash("u")]), -8_517_604_280_654_102_095);
        assert_eq!(group_hash([]), 0);
    }

    #[test]
    fn racks_count() {
        let mut cluster = TestCluster::default();
        cluster.add_as("t", "WvOHsFLeSUuE7yIdI1RdhQ", 2, &["rackA"]);
        let hash = topic_hash(&cluster, &cluster.topic("t").unwrap());
        assert_eq!(group_hash([hash]), -6_494_162_254_376_681_743);
    }
}
