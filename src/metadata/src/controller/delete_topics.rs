//! DeleteTopics.

use std::collections::BTreeSet;

use callboard_protocol::messages::delete_topics_request::DeleteTopicState;
use callboard_protocol::messages::delete_topics_response::DeletableTopicResult;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, RemoveTopicRecord};
use callboard_protocol::{ByteString, ErrorCode, Uuid};

use super::{Controller, Outcome, Refusal};
use crate::image::TopicsImage;
use crate::record::VersionedRecord;

/// What Kafka says with UNKNOWN_TOPIC_OR_PARTITION here.
const NO_SUCH_TOPIC: &str = "This server does not host this topic-partition.";
/// What Kafka says with UNKNOWN_TOPIC_ID.
const NO_SUCH_ID: &str = "This server does not host this topic ID.";

impl Controller {
    /// Deletes topics by name or by id; each gets its own error. Names come in `topics` from version 6 on, in
    /// `topic_names` before.
    pub fn delete_topics(
        &self,
        request: &DeleteTopicsRequest,
        version: i16,
    ) -> Outcome<DeleteTopicsResponse> {
        let by_name = request
            .topic_names
            .iter()
            .map(|name| DeleteTopicState { name: Some(name.clone()), ..Default::default() });
        let asked: Vec<DeleteTopicState> = by_name.chain(request.topics.iter().cloned()).collect();
        let enabled = self.settings.static_settings.text("delete.topic.enable") != Some("false");
        if !enabled {
            return Outcome::reply(disabled(&asked, version));
        }
        let mut deletion = Deletion::new(&asked, &self.image().topics);
        let mut records = Vec::new();
        let mut responses = Vec::new();
        for topic in &asked {
            match self.deletable(topic, &mut deletion) {
                Verdict::Delete(id, name) => {
                    let record = RemoveTopicRecord { topic_id: id, ..Default::default() };
                    records.push(VersionedRecord::new(MetadataRecord::RemoveTopicRecord(record), 0));
                    responses.push(DeletableTopicResult {
                        name: Some(name),
                        topic_id: id,
                        ..Default::default()
                    });
                }
                Verdict::Refuse(refusal) => responses.push(refused(topic, refusal)),
                Verdict::RefuseOfId(topic_id, refusal) => {
                    responses.push(DeletableTopicResult { topic_id, ..refused(topic, refusal) });
                }
                Verdict::Told => {}
            }
        }
        Outcome::atomic(records, DeleteTopicsResponse { responses, ..Default::default() })
    }

    fn deletable(&self, topic: &DeleteTopicState, deletion: &mut Deletion) -> Verdict {
        let refuse = |code, message: &'static str| {
            Verdict::Refuse(Refusal::new(code, ByteString::from_static(message)))
        };
        let topics = &self.image().topics;
        match (&topic.name, topic.topic_id) {
            (None, Uuid::ZERO) => {
                refuse(ErrorCode::InvalidRequest, "Neither topic name nor id were specified.")
            }
            (Some(name), Uuid::ZERO) => {
                if deletion.repeated_names.contains(name) {
                    return match deletion.told.insert(name.clone()) {
                        true => refuse(ErrorCode::InvalidRequest, "Duplicate topic name."),
                        false => Verdict::Told,
                    };
                }
                match topics.id(name) {
                    None => refuse(ErrorCode::UnknownTopicOrPartition, NO_SUCH_TOPIC),
                    Some(id) if deletion.by_id.contains(&id) => {
                        let message = "The provided topic name maps to an ID that was already supplied.";
                        let refusal =
                            Refusal::new(ErrorCode::InvalidRequest, ByteString::from_static(message));
                        Verdict::RefuseOfId(id, refusal)
                    }
                    Some(id) => Verdict::Delete(id, name.clone()),
                }
            }
            (None, id) => {
                if deletion.repeated_ids.contains(&id) {
                    return match deletion.told_ids.insert(id) {
                        true => refuse(ErrorCode::InvalidRequest, "Duplicate topic id."),
                        false => Verdict::Told,
                    };
                }
                if deletion.also_by_name.contains(&id) {
                    return Verdict::Told;
                }
                match topics.name(id) {
                    None => refuse(ErrorCode::UnknownTopicId, NO_SUCH_ID),
                    Some(name) => Verdict::Delete(id, name.clone()),
                }
            }
            (Some(_), _) => {
                refuse(ErrorCode::InvalidRequest, "You may not specify both topic name and topic id.")
            }
        }
    }
}

enum Verdict {
    Delete(Uuid, ByteString),
    Refuse(Refusal),
    /// The same, with an id that the request has elsewhere.
    RefuseOfId(Uuid, Refusal),
    /// A repetition that is answered elsewhere.
    Told,
}

#[derive(Default)]
struct Deletion {
    by_id: BTreeSet<Uuid>,
    /// Ids of topics that are named too; they are refused by their names.
    also_by_name: BTreeSet<Uuid>,
    repeated_names: BTreeSet<ByteString>,
    repeated_ids: BTreeSet<Uuid>,
    told: BTreeSet<ByteString>,
    told_ids: BTreeSet<Uuid>,
}

impl Deletion {
    fn new(asked: &[DeleteTopicState], topics: &TopicsImage) -> Self {
        let mut out = Self::default();
        let mut names = BTreeSet::new();
        for topic in asked {
            match &topic.name {
                Some(name) if topic.topic_id == Uuid::ZERO && !names.insert(name) => {
                    out.repeated_names.insert(name.clone());
                }
                None if topic.topic_id != Uuid::ZERO && !out.by_id.insert(topic.topic_id) => {
                    out.repeated_ids.insert(topic.topic_id);
                }
                _ => {}
            }
        }
        let named = names.into_iter().filter_map(|name| topics.id(name));
        out.also_by_name = named.filter(|id| out.by_id.contains(id)).collect();
        out
    }
}

fn refused(topic: &DeleteTopicState, refusal: Refusal) -> DeletableTopicResult {
    DeletableTopicResult {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        error_code: refusal.code as i16,
        error_message: refusal.message,
        ..Default::default()
    }
}

fn disabled(asked: &[DeleteTopicState], version: i16) -> DeleteTopicsResponse {
    // Versions before 3 do not know the error.
    let code = if version < 3 { ErrorCode::InvalidRequest } else { ErrorCode::TopicDeletionDisabled };
    let responses = asked
        .iter()
        .map(|topic| {
            let message = "Topic deletion is disabled.";
            refused(topic, Refusal::new(code, ByteString::from_static(message)))
        })
        .collect();
    DeleteTopicsResponse { responses, ..Default::default() }
}
