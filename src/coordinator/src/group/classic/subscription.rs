//! What the members of a consumer group say in their protocol's metadata.

use std::collections::BTreeSet;

use bytes::Bytes;
use callboard_protocol::ByteString;
use callboard_protocol::messages::{ConsumerProtocolSubscription, Message};
use callboard_protocol::wire::Reader;

use super::{ClassicGroup, State};

/// The protocol type of consumers, whose metadata can be read here.
const CONSUMER: &str = "consumer";

impl ClassicGroup {
    /// Whether the members are consumers, so that what they subscribe to can be known.
    pub fn is_of_consumers(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// The topics that the members of a group of consumers subscribe to; `None` if that can't be known.
    pub fn subscribed_topics(&self) -> Option<BTreeSet<ByteString>> {
        if !self.is_of_consumers() {
            return None;
        }
        if self.members.is_empty() {
            return (self.state == State::Empty).then(BTreeSet::new);
        }
        let protocol = self.protocol.as_ref()?;
        let mut topics = BTreeSet::new();
        for member in self.members() {
            topics.extend(topics_of(&member.metadata(protocol))?);
        }
        Some(topics)
    }
}

/// The topics in a member's metadata; `None` if it can't be read. Clients send versions later than ours with more at the
/// end: what is known is read.
fn topics_of(metadata: &Bytes) -> Option<Vec<ByteString>> {
    let mut r = Reader::new(metadata);
    let version = r.i16().ok()?;
    let known = version.min(ConsumerProtocolSubscription::MAX_VERSION);
    let subscription = ConsumerProtocolSubscription::decode(&mut r, known).ok()?;
    Some(subscription.topics)
}
