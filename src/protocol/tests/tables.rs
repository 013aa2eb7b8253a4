//! The tables against what Kafka 4.4 says of itself.

use callboard_protocol::api::APIS;
use callboard_protocol::features::{FEATURES, Feature, METADATA_VERSION};
use callboard_protocol::messages::{self, Message, Request};
use callboard_protocol::{ApiKey, ErrorCode, for_each_message};

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// `LeaderAndIsr` → `LEADER_AND_ISR`.
fn upper(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_uppercase());
    }
    out
}

#[test]
fn apis_are_kafkas() {
    let ours: Vec<Vec<String>> = APIS
        .iter()
        .map(|api| {
            let versions = api.min_version..=api.max_unstable_version;
            let digits = |header: fn(&callboard_protocol::api::ApiInfo, i16) -> i16| -> String {
                versions.clone().map(|version| header(api, version).to_string()).collect()
            };
            let listeners: Vec<&str> = [("BROKER", api.on_broker), ("CONTROLLER", api.on_controller)]
                .into_iter()
                .filter_map(|(name, on)| on.then_some(name))
                .collect();
            vec![
                api.key.code().to_string(),
                upper(api.key.name()),
                api.min_version.to_string(),
                api.max_version.to_string(),
                api.max_unstable_version.to_string(),
                digits(callboard_protocol::api::ApiInfo::request_header_version),
                digits(callboard_protocol::api::ApiInfo::response_header_version),
                format!("[{}]", listeners.join(", ")),
                api.cluster_action.to_string(),
                api.forwardable.to_string(),
            ]
        })
        .collect();
    let kafkas: Vec<Vec<&str>> = rows(include_str!("vectors/apis.tsv")).collect();
    assert_eq!(ours, kafkas);
}

#[test]
fn keys_are_indexes() {
    for (at, api) in APIS.iter().enumerate() {
        assert_eq!(api.key.code(), i16::try_from(at).unwrap());
        assert_eq!(ApiKey::try_from(api.key.code()), Ok(api.key));
        assert_eq!(api.key.info(), api);
    }
    for unknown in [-1, 95, i16::MAX, i16::MIN] {
        assert!(ApiKey::try_from(unknown).is_err(), "{unknown}");
    }
}

#[test]
fn header_versions_beyond_the_range_are_those_of_the_nearest() {
    let versions = ApiKey::ApiVersions.info();
    assert_eq!((versions.request_header_version(99), versions.response_header_version(99)), (2, 0));
    let produce = ApiKey::Produce.info();
    assert_eq!((produce.request_header_version(0), produce.request_header_version(i16::MIN)), (1, 1));
    let gone = ApiKey::LeaderAndIsr.info();
    assert_eq!((gone.request_header_version(0), gone.response_header_version(0)), (1, 0));
    assert!(!gone.has_version(0));
}

/// The versions of a request's schema are those of the API table.
#[test]
fn requests_have_the_tables_versions() {
    macro_rules! ranges {
        ($($name:ident),*) => {
            [$((messages::$name::NAME, messages::$name::API_KEY, messages::$name::MIN_VERSION, messages::$name::MAX_VERSION)),*]
        };
    }
    let ranges = for_each_message!(ranges);
    for api in APIS {
        for suffix in ["Request", "Response"] {
            let name = format!("{}{suffix}", api.key);
            let (_, key, min, max) = ranges.iter().find(|range| range.0 == name).expect("the message");
            assert_eq!(*key, Some(api.key.code()), "{name}");
            assert_eq!((*min, *max), (api.min_version, api.max_unstable_version), "{name}");
        }
    }
    assert_eq!(messages::FetchRequest::KEY, ApiKey::Fetch);
}

#[test]
fn errors_are_kafkas() {
    let ours: Vec<Vec<String>> = ErrorCode::ALL
        .iter()
        .map(|error| {
            vec![error.code().to_string(), error.name().to_owned(), error.is_retriable().to_string()]
        })
        .collect();
    let kafkas: Vec<Vec<&str>> = rows(include_str!("vectors/errors.tsv")).collect();
    assert_eq!(ours, kafkas);
    assert_eq!(ErrorCode::from(3), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(ErrorCode::from(9999), ErrorCode::UnknownServerError);
    assert_eq!(
        ErrorCode::UnknownTopicOrPartition.message(),
        "This server does not host this topic-partition."
    );
}

#[test]
fn features_are_kafkas() {
    let ours: Vec<Vec<String>> = FEATURES
        .iter()
        .flat_map(|feature| feature.levels.iter().map(move |level| (feature, level)))
        .map(|(feature, level)| {
            let number = level.level.to_string();
            vec![feature.name.to_owned(), number, level.name.to_owned(), level.metadata_version.to_owned()]
        })
        .collect();
    let kafkas: Vec<Vec<&str>> = rows(include_str!("vectors/features.tsv")).collect();
    assert_eq!(ours, kafkas);
    let metadata = Feature::by_name(METADATA_VERSION).expect("the feature");
    assert_eq!(metadata.level_by_name("4.4-IV2").map(|level| level.level), Some(33));
    assert_eq!(metadata.level(7).map(|level| level.name), Some("3.3-IV3"));
}
