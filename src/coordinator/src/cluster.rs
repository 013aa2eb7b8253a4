//! What a machine is told about the world around it, with each call.

use callboard_protocol::{ByteString, Uuid};

use crate::settings::Settings;

/// A topic as coordinators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicView {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: ByteString,
    /// How many partitions it has.
    pub partitions: i32,
}

/// The cluster's metadata at one moment, as far as coordinators go by it.
pub trait Cluster {
    /// Offset of the last metadata record behind this view: it only grows.
    fn metadata_offset(&self) -> i64;
    /// A topic by its name.
    fn topic(&self, name: &str) -> Option<TopicView>;
    /// A topic by its id.
    fn topic_by_id(&self, id: Uuid) -> Option<TopicView>;
    /// All topics.
    fn topics(&self) -> Vec<TopicView>;
    /// The racks of the brokers that hold a partition, sorted; those without one are left out.
    fn racks(&self, topic: Uuid, partition: i32) -> Vec<ByteString>;
    /// A group's own setting (resource type GROUP), if it is set.
    fn group_config(&self, group_id: &str, name: &str) -> Option<ByteString>;
    /// The finalized level of a feature; 0 if it has none.
    fn feature_level(&self, _name: &str) -> i16 {
        0
    }
}

/// The circumstances of one call into a machine.
pub struct Circumstances<'a> {
    /// The wall clock, in milliseconds since 1970: for what is written down.
    pub now_ms: i64,
    /// A clock that only ever advances, in milliseconds from some start: for deadlines, so that no jump of the wall clock
    /// ends sessions.
    pub monotonic_ms: i64,
    /// A source of random numbers.
    pub random: &'a mut dyn FnMut() -> u64,
    /// The broker's settings.
    pub settings: &'a Settings,
    /// The cluster's metadata.
    pub cluster: &'a dyn Cluster,
}

impl std::fmt::Debug for Circumstances<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Circumstances").field("now_ms", &self.now_ms).finish_non_exhaustive()
    }
}

impl Circumstances<'_> {
    /// A random id in the form that Java's `UUID.randomUUID().toString()` has: what Kafka appends to a member's name.
    pub fn random_uuid_text(&mut self) -> String {
        let high = ((self.random)() & !0xf000) | 0x4000;
        let low = ((self.random)() & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }
}
