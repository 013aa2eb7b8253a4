//! What is asked of both brokers: one file an API.

mod alter_configs;
mod api_versions;
mod create_partitions;
mod create_topics;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_topic_partitions;
mod fetch;
mod incremental_alter_configs;
mod list_config_resources;
mod metadata;
mod offsets;
mod produce;
mod producers;
mod quorum;
mod shapes;

use callboard_protocol::messages as m;
use callboard_protocol::{ApiKey, ByteString, Uuid};

pub use metadata::named;

use crate::stage::Stage;

/// A conversation that both brokers are to hold alike, at every version of an API.
#[derive(Debug)]
pub struct Scenario {
    /// Its name: the API's, and what it is about.
    pub name: &'static str,
    /// The API whose versions are tried.
    pub api: ApiKey,
    /// Whether it sees or changes what others do too, so that it plays before them, by itself.
    pub alone: bool,
    /// Plays it.
    pub play: fn(&mut Stage<'_>),
}

/// An id that no topic has.
pub const UNKNOWN_ID: Uuid = Uuid::from_bytes([7; 16]);

/// Names that no topic may have, and what is wrong with them.
fn bad_names() -> [(&'static str, ByteString); 6] {
    [
        ("empty", "".into()),
        ("dot", ".".into()),
        ("dots", "..".into()),
        ("a slash", "a/b".into()),
        ("too long", "x".repeat(250).into()),
        ("not ASCII", "caf\u{e9}".into()),
    ]
}

macro_rules! scenarios {
    ($($api:ident $name:literal $([$alone:ident])? $play:path;)*) => {
        /// All of them.
        pub const SCENARIOS: &[Scenario] = &[$(Scenario {
            name: $name,
            api: ApiKey::$api,
            alone: scenarios!(@ $($alone)?),
            play: $play,
        },)*];
    };
    (@) => { false };
    (@ alone) => { true };
}

scenarios! {
    ApiVersions "api-versions" api_versions::answers;
    ApiVersions "api-versions-frames" api_versions::frames;
    Metadata "metadata-all" [alone] metadata::all;
    Metadata "metadata-topics" metadata::topics;
    Metadata "metadata-auto-creation" metadata::auto_creation;
    DescribeTopicPartitions "describe-topic-partitions" describe_topic_partitions::pages;
    DescribeTopicPartitions "describe-topic-partitions-all" [alone] describe_topic_partitions::all;
    DescribeCluster "describe-cluster" describe_cluster::kinds;
    CreateTopics "create-topics" create_topics::good;
    CreateTopics "create-topics-bad" create_topics::bad;
    CreateTopics "create-topics-configs" create_topics::configs;
    DeleteTopics "delete-topics" delete_topics::all;
    CreatePartitions "create-partitions" create_partitions::all;
    DeleteRecords "delete-records" delete_records::all;
    DescribeConfigs "describe-configs" describe_configs::topics;
    DescribeConfigs "describe-configs-broker" [alone] describe_configs::brokers;
    AlterConfigs "alter-configs" alter_configs::topics;
    IncrementalAlterConfigs "incremental-alter-configs" incremental_alter_configs::topics;
    IncrementalAlterConfigs "incremental-alter-configs-bad" incremental_alter_configs::bad;
    IncrementalAlterConfigs "incremental-alter-configs-others" incremental_alter_configs::others;
    IncrementalAlterConfigs "incremental-alter-configs-kept" [alone] incremental_alter_configs::kept;
    ListConfigResources "list-config-resources" [alone] list_config_resources::kinds;
    DescribeQuorum "describe-quorum" quorum::quorum;
    UpdateFeatures "update-features" quorum::features;
    UpdateFeatures "update-features-changes" [alone] quorum::feature_changes;
    Produce "produce" produce::good;
    Produce "produce-stored" produce::stored;
    Produce "produce-bad-batches" produce::bad_batches;
    Produce "produce-bad-requests" produce::bad_requests;
    Produce "produce-idempotent" produce::idempotent;
    Fetch "fetch" fetch::reads;
    Fetch "fetch-waits" fetch::waits;
    Fetch "fetch-sessions" fetch::sessions;
    ListOffsets "list-offsets" offsets::timestamps;
    OffsetForLeaderEpoch "offset-for-leader-epoch" offsets::epochs;
    InitProducerId "init-producer-id" producers::ids;
    DescribeProducers "describe-producers" producers::active;
    DescribeLogDirs "describe-log-dirs" producers::log_dirs;
    DescribeLogDirs "describe-log-dirs-all" [alone] producers::all_log_dirs;
    Metadata "shape-metadata" [alone] shapes::list_first::<m::MetadataRequest>;
    DescribeTopicPartitions "shape-describe-topic-partitions" [alone] shapes::list_first::<m::DescribeTopicPartitionsRequest>;
    DescribeCluster "shape-describe-cluster" shapes::any::<m::DescribeClusterRequest>;
    CreateTopics "shape-create-topics" shapes::list_first::<m::CreateTopicsRequest>;
    DeleteTopics "shape-delete-topics" shapes::list_first::<m::DeleteTopicsRequest>;
    CreatePartitions "shape-create-partitions" shapes::list_first::<m::CreatePartitionsRequest>;
    DeleteRecords "shape-delete-records" shapes::list_first::<m::DeleteRecordsRequest>;
    DescribeConfigs "shape-describe-configs" shapes::list_first::<m::DescribeConfigsRequest>;
    AlterConfigs "shape-alter-configs" shapes::list_first::<m::AlterConfigsRequest>;
    IncrementalAlterConfigs "shape-incremental-alter-configs" shapes::list_first::<m::IncrementalAlterConfigsRequest>;
    ListConfigResources "shape-list-config-resources" [alone] shapes::any::<m::ListConfigResourcesRequest>;
    DescribeQuorum "shape-describe-quorum" shapes::list_first::<m::DescribeQuorumRequest>;
    UpdateFeatures "shape-update-features" shapes::any::<m::UpdateFeaturesRequest>;
    Fetch "shape-fetch" shapes::any::<m::FetchRequest>;
    ListOffsets "shape-list-offsets" shapes::any::<m::ListOffsetsRequest>;
    OffsetForLeaderEpoch "shape-offset-for-leader-epoch" shapes::any::<m::OffsetForLeaderEpochRequest>;
    InitProducerId "shape-init-producer-id" shapes::any::<m::InitProducerIdRequest>;
    DescribeProducers "shape-describe-producers" shapes::list_first::<m::DescribeProducersRequest>;
    DescribeLogDirs "shape-describe-log-dirs" [alone] shapes::list_first::<m::DescribeLogDirsRequest>;
}
