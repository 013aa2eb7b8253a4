//! DescribeQuorum and UpdateFeatures.

use callboard_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use callboard_protocol::messages::update_features_request::FeatureUpdateKey;
use callboard_protocol::messages::{ApiVersionsRequest, DescribeQuorumRequest, UpdateFeaturesRequest};

use crate::stage::Stage;

/// A topic's name, and some of its partitions.
type Partitions<'a> = (&'a str, &'a [i32]);

fn quorum_of(topics: &[Partitions<'_>]) -> DescribeQuorumRequest {
    let topics = topics.iter().map(|(name, partitions)| TopicData {
        topic_name: (*name).to_owned().into(),
        partitions: partitions
            .iter()
            .map(|partition_index| PartitionData { partition_index: *partition_index, ..Default::default() })
            .collect(),
        ..Default::default()
    });
    DescribeQuorumRequest { topics: topics.collect(), ..Default::default() }
}

/// The quorum, asked of both listeners, and partitions that have none.
pub fn quorum(s: &mut Stage<'_>) {
    for at in ["broker", "controller"] {
        if at == "controller" {
            s.visit_controller();
        }
        let topic = "__cluster_metadata";
        let cases: [(&str, &[Partitions<'_>]); 9] = [
            ("the quorum", &[(topic, &[0])]),
            ("nothing", &[]),
            ("no partition", &[(topic, &[])]),
            ("another partition", &[(topic, &[1])]),
            ("two partitions", &[(topic, &[0, 1])]),
            ("a partition twice", &[(topic, &[0, 0])]),
            ("another topic", &[("other", &[0])]),
            ("an empty name", &[("", &[0])]),
            ("two topics", &[(topic, &[0]), ("other", &[0])]),
        ];
        for (note, topics) in cases {
            s.send(&format!("{at}: {note}"), &quorum_of(topics));
        }
    }
}

fn update(updates: &[(&str, i16, i8)]) -> UpdateFeaturesRequest {
    let updates = updates.iter().map(|(feature, max_version_level, upgrade_type)| FeatureUpdateKey {
        feature: (*feature).to_owned().into(),
        max_version_level: *max_version_level,
        upgrade_type: *upgrade_type,
        ..Default::default()
    });
    UpdateFeaturesRequest { timeout_ms: 10_000, feature_updates: updates.collect(), ..Default::default() }
}

/// Levels that are there already, and levels and features that are not.
pub fn features(s: &mut Stage<'_>) {
    let cases: [&[(&str, i16, i8)]; 30] = [
        &[],
        &[("metadata.version", 33, 1)],
        &[("metadata.version", 34, 1)],
        &[("metadata.version", 32, 1)],
        &[("metadata.version", 32, 2)],
        &[("metadata.version", 7, 2)],
        &[("metadata.version", 6, 3)],
        &[("metadata.version", 0, 3)],
        &[("metadata.version", -1, 1)],
        &[("transaction.version", 2, 1)],
        &[("transaction.version", 3, 1)],
        &[("transaction.version", 1, 1)],
        &[("group.version", 2, 1)],
        &[("kraft.version", 1, 1)],
        &[("kraft.version", 0, 2)],
        &[("kraft.version", 2, 1)],
        &[("no.such.feature", 1, 1)],
        &[("no.such.feature", 0, 2)],
        &[("no.such.feature", 0, 1)],
        &[("no.such.feature", 0, 3)],
        &[("no.such.feature", 1, 2)],
        &[("", 1, 1)],
        &[("transaction.version", 2, 0)],
        &[("transaction.version", 2, 4)],
        &[("transaction.version", 2, 2)],
        &[("transaction.version", 2, 3)],
        &[("transaction.version", 2, 1), ("transaction.version", 2, 1)],
        &[("transaction.version", 2, 1), ("no.such.feature", 1, 1)],
        &[("eligible.leader.replicas.version", 2, 1)],
        &[("streams.version", -2, 2)],
    ];
    for updates in cases {
        let mut request = update(updates);
        s.send(&format!("{updates:?}"), &request);
        request.validate_only = true;
        s.send(&format!("{updates:?}, only checked"), &request);
    }
    let mut older = update(&[("transaction.version", 1, 1)]);
    older.feature_updates[0].allow_downgrade = true;
    older.validate_only = true;
    s.send("a downgrade that is allowed, as version 0 says it", &older);
    for timeout_ms in [0, -1] {
        let request = UpdateFeaturesRequest { timeout_ms, ..update(&[("transaction.version", 2, 1)]) };
        s.send(&format!("timeout {timeout_ms}"), &request);
    }
    s.visit_controller();
    s.send("on the controller", &update(&[("transaction.version", 2, 1)]));
    s.send("on the controller, bad", &update(&[("transaction.version", 3, 1)]));
    s.see("levels", &ApiVersionsRequest::default());
}

/// Levels that change, and change back.
pub fn feature_changes(s: &mut Stage<'_>) {
    let levels = |answer: &callboard_protocol::messages::ApiVersionsResponse, level: i16| {
        let feature = answer.finalized_features.iter().find(|feature| feature.name == "streams.version");
        feature.map_or(0, |feature| feature.max_version_level) == level
    };
    let asked = ApiVersionsRequest {
        client_software_name: "differential".into(),
        client_software_version: "1".into(),
        ..Default::default()
    };
    s.send("down", &update(&[("streams.version", 0, 2)]));
    s.settle(&asked, |answer| levels(answer, 0));
    s.see("down: seen", &asked);
    s.send("down again", &update(&[("streams.version", 0, 2)]));
    s.send("up", &update(&[("streams.version", 1, 1)]));
    s.settle(&asked, |answer| levels(answer, 1));
    s.see("up: seen", &asked);
}
