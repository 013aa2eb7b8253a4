//! Topics that come to be by being asked for.

use callboard_metadata::config::Settings;
use callboard_metadata::topic_name;
use callboard_protocol::messages::CreateTopicsRequest;
use callboard_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use callboard_protocol::{ByteString, ErrorCode};

use super::{RequestContext, controlled};

/// The version of CreateTopics that this broker speaks to the controller.
const CREATE_TOPICS_VERSION: i16 = 7;

/// Has the controller create topics, without waiting for it. Gives the error that clients see meanwhile for each.
pub(super) fn create(cx: &RequestContext, names: &[ByteString]) -> Vec<ErrorCode> {
    let settings = cx.services.metadata.current().settings.clone();
    let mut topics = Vec::new();
    let mut errors = Vec::with_capacity(names.len());
    for name in names {
        if topic_name::validate(name).is_err() {
            errors.push(ErrorCode::InvalidTopicException);
        } else {
            topics.push(topic(name, &settings));
            errors.push(ErrorCode::UnknownTopicOrPartition);
        }
    }
    if !topics.is_empty() {
        let request = CreateTopicsRequest { topics, ..Default::default() };
        cx.services.controller.submit(request, CREATE_TOPICS_VERSION);
    }
    errors
}

/// Has the controller create an internal topic, and waits until it is there.
///
/// # Errors
/// Why it can't be created.
pub(super) async fn create_internal(cx: &RequestContext, name: &'static str) -> Result<(), ErrorCode> {
    cx.leave_queue();
    let settings = cx.services.metadata.current().settings.clone();
    let topics = vec![topic(&ByteString::from_static(name), &settings)];
    let request = CreateTopicsRequest { topics, ..Default::default() };
    let response = controlled::decide_untimed(cx, request, CREATE_TOPICS_VERSION).await?;
    match response.topics.first().map_or(ErrorCode::UnknownServerError, |topic| topic.error_code.into()) {
        // Somebody else was quicker.
        ErrorCode::None | ErrorCode::TopicAlreadyExists => Ok(()),
        error => Err(error),
    }
}

fn topic(name: &ByteString, settings: &Settings) -> CreatableTopic {
    let text = |setting: &str| settings.text(setting).unwrap_or_default().to_owned();
    let internal = |count: &str, factor: &str, configs: Vec<(&str, String)>| CreatableTopic {
        name: name.clone(),
        num_partitions: text(count).trim().parse().unwrap_or(-1),
        replication_factor: text(factor).trim().parse().unwrap_or(-1),
        configs: configs
            .into_iter()
            .map(|(name, value)| CreatableTopicConfig {
                name: name.into(),
                value: Some(value.into()),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    };
    let fixed = |name, value: &str| (name, value.to_owned());
    match &**name {
        "__consumer_offsets" => internal(
            "offsets.topic.num.partitions",
            "offsets.topic.replication.factor",
            vec![
                fixed("compression.type", "producer"),
                fixed("cleanup.policy", "compact"),
                ("segment.bytes", text("offsets.topic.segment.bytes")),
            ],
        ),
        "__transaction_state" => internal(
            "transaction.state.log.num.partitions",
            "transaction.state.log.replication.factor",
            vec![
                fixed("compression.type", "uncompressed"),
                fixed("unclean.leader.election.enable", "false"),
                fixed("cleanup.policy", "compact"),
                ("min.insync.replicas", text("transaction.state.log.min.isr")),
                ("segment.bytes", text("transaction.state.log.segment.bytes")),
            ],
        ),
        _ => CreatableTopic {
            name: name.clone(),
            num_partitions: -1,
            replication_factor: -1,
            ..Default::default()
        },
    }
}
