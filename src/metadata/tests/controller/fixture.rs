//! A controller with brokers, driven as its actor drives it.

use callboard_metadata::config::Settings;
use callboard_metadata::controller::{Context, Controller, ControllerSettings, Outcome};
use callboard_metadata::image::{Image, PartitionRegistration};
use callboard_metadata::{VersionedRecord, bootstrap, features};
use callboard_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use callboard_protocol::messages::{
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest, BrokerRegistrationResponse,
    CreateTopicsRequest, CreateTopicsResponse, broker_registration_request,
};
use callboard_protocol::{ByteString, Uuid};

pub const CLUSTER: &str = "W16FM93SQ4Oz9hbnJvaSGA";

pub struct Cluster {
    pub controller: Controller,
    pub now_ms: i64,
    pub next_offset: i64,
    random: u64,
    /// The records of the last decision.
    pub last: Vec<VersionedRecord>,
}

impl Cluster {
    /// A cluster right after its first activation, with no broker.
    pub fn new(properties: &[(&str, &str)]) -> Self {
        let own = properties.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let all = [("node.id".to_string(), "1".to_string())].into_iter().chain(own);
        let (static_settings, _) = Settings::from_properties(all).unwrap();
        let settings = ControllerSettings { node_id: 1, cluster_id: CLUSTER.into(), static_settings };
        let mut cluster = Self {
            controller: Controller::new(settings, Image::default(), 0),
            now_ms: 1_000_000,
            next_offset: 3,
            random: 7,
            last: Vec::new(),
        };
        let format = bootstrap::format_records(&bootstrap::default_features(), []);
        cluster.commit(bootstrap::activation_records(format, 1));
        cluster
    }

    /// A cluster of active brokers 1 to `count`, in racks if given.
    pub fn with_brokers(count: i32, racks: &[&str]) -> Self {
        let mut cluster = Self::new(&[]);
        for id in 1..=count {
            let rack = racks.get(id as usize - 1).map(|rack| ByteString::from(*rack));
            cluster.start_broker(id, rack);
        }
        cluster
    }

    /// One active broker, the usual test bed.
    pub fn one() -> Self {
        Self::with_brokers(1, &[])
    }

    pub fn commit(&mut self, records: Vec<VersionedRecord>) {
        for record in &records {
            self.controller.replay(&record.record).unwrap();
        }
        self.next_offset += records.len() as i64;
        self.last = records;
    }

    /// Decides, commits the records, gives the reply.
    pub fn run<R>(&mut self, decide: impl FnOnce(&mut Controller, &mut Context<'_>) -> Outcome<R>) -> R {
        let mut seed = self.random;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed
        };
        let mut ctx = Context { now_ms: self.now_ms, next_offset: self.next_offset, random: &mut random };
        let outcome = decide(&mut self.controller, &mut ctx);
        self.random = seed;
        self.commit(outcome.records);
        outcome.reply
    }

    pub fn register(&mut self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse {
        self.run(|controller, ctx| controller.register_broker(&request, ctx))
    }

    pub fn start_broker(&mut self, id: i32, rack: Option<ByteString>) -> i64 {
        let reply = self.register(BrokerRegistrationRequest { rack, ..registration(id, 1) });
        assert_eq!(reply.error_code, 0);
        let beat = self.heartbeat(id, |_| {});
        assert!(!beat.is_fenced && beat.is_caught_up);
        reply.broker_epoch
    }

    pub fn epoch(&self, id: i32) -> i64 {
        self.image().cluster.broker(id).unwrap().epoch
    }

    pub fn heartbeat(
        &mut self,
        id: i32,
        change: impl FnOnce(&mut BrokerHeartbeatRequest),
    ) -> BrokerHeartbeatResponse {
        let mut request = BrokerHeartbeatRequest {
            broker_id: id,
            broker_epoch: self.epoch(id),
            current_metadata_offset: self.next_offset,
            ..Default::default()
        };
        change(&mut request);
        self.run(|controller, ctx| controller.heartbeat(&request, ctx))
    }

    pub fn image(&self) -> &Image {
        self.controller.image()
    }

    pub fn partition(&self, topic: &str, number: i32) -> &PartitionRegistration {
        self.image().topics.partition(topic, number).unwrap()
    }

    pub fn create(&mut self, topics: Vec<CreatableTopic>) -> CreateTopicsResponse {
        let request = CreateTopicsRequest { topics, ..Default::default() };
        self.run(|controller, ctx| controller.create_topics(&request, ctx))
    }

    /// Creates a topic that must succeed.
    pub fn topic(&mut self, name: &str, partitions: i32, factor: i16) -> Uuid {
        let reply = self.create(vec![topic(name, partitions, factor)]);
        let result = &reply.topics[0];
        assert_eq!(result.error_code, 0, "{:?}", result.error_message);
        result.topic_id
    }
}

pub fn registration(id: i32, run: u128) -> BrokerRegistrationRequest {
    BrokerRegistrationRequest {
        broker_id: id,
        cluster_id: CLUSTER.into(),
        incarnation_id: Uuid::from_u128(u128::from(id as u32) * 1_000 + run),
        listeners: vec![broker_registration_request::Listener {
            name: "PLAINTEXT".into(),
            host: "localhost".into(),
            port: 9092,
            security_protocol: 0,
            ..Default::default()
        }],
        features: features::SUPPORTED
            .iter()
            .map(|(name, range)| broker_registration_request::Feature {
                name: (*name).into(),
                min_supported_version: range.min,
                max_supported_version: range.max,
                ..Default::default()
            })
            .collect(),
        log_dirs: vec![log_dir(id)],
        ..Default::default()
    }
}

pub fn log_dir(id: i32) -> Uuid {
    Uuid::from_u128(0xd1_0000 + u128::from(id as u32))
}

pub fn topic(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic { name: name.into(), num_partitions, replication_factor, ..Default::default() }
}

pub fn with_configs(mut topic: CreatableTopic, configs: &[(&str, Option<&str>)]) -> CreatableTopic {
    topic.configs = configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig {
            name: (*name).into(),
            value: value.map(ByteString::from),
            ..Default::default()
        })
        .collect();
    topic
}

pub fn assigned(name: &str, assignments: &[(i32, &[i32])]) -> CreatableTopic {
    let assignments = assignments
        .iter()
        .map(|(partition_index, ids)| CreatableReplicaAssignment {
            partition_index: *partition_index,
            broker_ids: ids.to_vec(),
            ..Default::default()
        })
        .collect();
    CreatableTopic { assignments, ..topic(name, -1, -1) }
}
