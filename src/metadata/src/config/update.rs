//! Checks of changes while the cluster runs: brokers, groups and client metrics subscriptions. Topics are in
//! [`validate_topic`](super::validate_topic).

use super::broker::BrokerConfig;
use super::definition::{self, UpdateMode};
use super::error::ConfigError;
use super::settings::{Layer, Settings, base_name};
use super::value::Value;

/// Whose settings a change of broker settings touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One broker's.
    OneBroker,
    /// The default of all brokers.
    Cluster,
}

/// Settings whose new value must be between half and double the one in force.
const THREAD_COUNTS: [&str; 5] = [
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
];

/// Checks all dynamic values of a broker, or of the cluster's default, as they would be after a change. Names that no
/// table has are accepted, as plugins may know them.
///
/// # Errors
/// [`ConfigError`] with the text Kafka gives (error code INVALID_REQUEST).
pub fn validate_broker<'a>(
    current: &Settings,
    scope: Scope,
    values: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), ConfigError> {
    let values: Vec<_> = values.into_iter().collect();
    let names = |keep: &dyn Fn(&str, UpdateMode) -> bool| -> Vec<String> {
        let known = values.iter().filter_map(|(name, _)| {
            let definition = definition::broker().get(base_name(name))?;
            keep(name, definition.update_mode).then(|| (*name).to_owned())
        });
        known.collect()
    };
    let read_only = names(&|_, mode| mode == UpdateMode::ReadOnly);
    if !read_only.is_empty() {
        return Err(ConfigError::ReadOnly { names: read_only });
    }
    let without_listener = names(&|name, mode| mode == UpdateMode::PerBroker && name.starts_with("ssl."));
    if !without_listener.is_empty() {
        return Err(ConfigError::PerListenerOnly { names: without_listener });
    }
    for (name, text) in &values {
        if let Some(definition) = definition::broker().get(base_name(name)) {
            definition.parse(text)?;
            check_in_force(current, name, text)?;
        }
    }
    if scope == Scope::Cluster {
        let per_broker =
            names(&|name, mode| mode == UpdateMode::PerBroker || name.starts_with("listener.name."));
        if !per_broker.is_empty() {
            return Err(ConfigError::PerBrokerOnly { names: per_broker });
        }
    }
    check_together(current, scope, &values)
}

/// Checks that a broker would still start with the new values. Nothing is judged where its own settings are not known.
fn check_together(current: &Settings, scope: Scope, values: &[(&str, &str)]) -> Result<(), ConfigError> {
    if BrokerConfig::from_settings(current.clone()).is_err() {
        return Ok(());
    }
    let pairs = |layer: &Layer| -> Vec<(String, String)> {
        layer.iter().map(|(name, text)| (name.clone(), text.clone())).collect()
    };
    let (cluster, broker) = (pairs(&current.cluster), pairs(&current.broker));
    let cluster = cluster.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let broker = broker.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let after = match scope {
        Scope::Cluster => current.with_dynamic(values.iter().copied(), broker),
        Scope::OneBroker => current.with_dynamic(cluster, values.iter().copied()),
    };
    match BrokerConfig::from_settings(after) {
        Err(ConfigError::Conflict(reason)) => {
            Err(ConfigError::Conflict(format!("requirement failed: {reason}")))
        }
        other => other.map(|_| ()),
    }
}

/// Checks that need the value in force.
fn check_in_force(current: &Settings, name: &str, text: &str) -> Result<(), ConfigError> {
    let refuse = |reason: String| {
        Err(ConfigError::Conflict(format!(
            "Invalid value org.apache.kafka.common.config.ConfigException: {reason} for configuration Invalid dynamic \
             configuration"
        )))
    };
    if name == "metric.reporters" && !text.trim().is_empty() {
        // Nothing here loads Java classes; Kafka says the same of a class that it can't find.
        return refuse(
            "Validation of dynamic config update of Set(metric.reporters) failed with class class \
             kafka.server.DynamicMetricsReporters"
                .to_owned(),
        );
    }
    if name == "max.connections.per.ip.overrides" {
        return super::broker::parse_ip_overrides(text).map(|_| ());
    }
    let threads = THREAD_COUNTS.contains(&name);
    if !threads && name != "log.cleaner.threads" {
        return Ok(());
    }
    let Ok(new) = text.trim().parse::<i64>() else { return Ok(()) };
    let old = current.i64(name);
    match (threads, new) {
        (true, new) if new > old.saturating_mul(2) => refuse(format!(
            "Dynamic thread count update validation failed for {name}={new}, value should not be greater than double \
             the current value {old}"
        )),
        (true, new) if new < old / 2 => refuse(format!(
            "Dynamic thread count update validation failed for {name}={new}, value should be at least half the \
             current value {old}"
        )),
        (false, new) if new < 1 => refuse("Log cleaner threads should be at least 1".to_owned()),
        (false, new) if new > old.saturating_mul(2) => refuse(format!(
            "Log cleaner threads cannot be increased to more than double the current value {old}"
        )),
        (false, new) if new < old / 2 => {
            refuse(format!("Log cleaner threads cannot be reduced to less than half the current value {old}"))
        }
        _ => Ok(()),
    }
}

/// Group settings and the broker settings that bound them: name, least, most.
const GROUP_BOUNDS: [(&str, Option<&str>, Option<&str>); 15] = {
    const fn both(
        name: &'static str,
        min: &'static str,
        max: &'static str,
    ) -> (&'static str, Option<&'static str>, Option<&'static str>) {
        (name, Some(min), Some(max))
    }
    [
        both(
            "consumer.session.timeout.ms",
            "group.consumer.min.session.timeout.ms",
            "group.consumer.max.session.timeout.ms",
        ),
        both(
            "consumer.heartbeat.interval.ms",
            "group.consumer.min.heartbeat.interval.ms",
            "group.consumer.max.heartbeat.interval.ms",
        ),
        both(
            "consumer.assignment.interval.ms",
            "group.consumer.min.assignment.interval.ms",
            "group.consumer.max.assignment.interval.ms",
        ),
        both(
            "share.session.timeout.ms",
            "group.share.min.session.timeout.ms",
            "group.share.max.session.timeout.ms",
        ),
        both(
            "share.heartbeat.interval.ms",
            "group.share.min.heartbeat.interval.ms",
            "group.share.max.heartbeat.interval.ms",
        ),
        both(
            "share.record.lock.duration.ms",
            "group.share.min.record.lock.duration.ms",
            "group.share.max.record.lock.duration.ms",
        ),
        both(
            "share.delivery.count.limit",
            "group.share.min.delivery.count.limit",
            "group.share.max.delivery.count.limit",
        ),
        both(
            "share.partition.max.record.locks",
            "group.share.min.partition.max.record.locks",
            "group.share.max.partition.max.record.locks",
        ),
        both(
            "share.assignment.interval.ms",
            "group.share.min.assignment.interval.ms",
            "group.share.max.assignment.interval.ms",
        ),
        both(
            "streams.session.timeout.ms",
            "group.streams.min.session.timeout.ms",
            "group.streams.max.session.timeout.ms",
        ),
        both(
            "streams.heartbeat.interval.ms",
            "group.streams.min.heartbeat.interval.ms",
            "group.streams.max.heartbeat.interval.ms",
        ),
        both(
            "streams.assignment.interval.ms",
            "group.streams.min.assignment.interval.ms",
            "group.streams.max.assignment.interval.ms",
        ),
        ("streams.num.standby.replicas", None, Some("group.streams.max.standby.replicas")),
        ("streams.num.warmup.replicas", None, Some("group.streams.max.warmup.replicas")),
        ("streams.task.offset.interval.ms", Some("group.streams.min.task.offset.interval.ms"), None),
    ]
};

/// Checks all values of a group as they would be after a change, within the bounds the broker sets.
///
/// # Errors
/// [`ConfigError`] with the text Kafka gives (error code INVALID_CONFIG).
pub fn validate_group<'a>(
    broker: &Settings,
    values: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), ConfigError> {
    let values: Vec<_> = values.into_iter().collect();
    for (name, _) in &values {
        definition::group().require(name)?;
    }
    for (name, text) in &values {
        if *name == "streams.rack.aware.assignment.tags" {
            check_tags(name, text)?;
        }
        let value = definition::group().require(name)?.parse(text)?;
        check_group_bounds(broker, name, &value)?;
    }
    for kind in ["consumer", "share", "streams"] {
        let (session_name, heartbeat_name) =
            (format!("{kind}.session.timeout.ms"), format!("{kind}.heartbeat.interval.ms"));
        let in_force = |name: &str| {
            let own =
                values.iter().find(|(own, _)| *own == name).and_then(|(_, text)| text.trim().parse().ok());
            own.unwrap_or_else(|| broker.i64(&format!("group.{name}")))
        };
        if in_force(&session_name) <= in_force(&heartbeat_name) {
            return Err(ConfigError::Conflict(format!(
                "{session_name} must be greater than {heartbeat_name}"
            )));
        }
    }
    Ok(())
}

fn check_tags(name: &str, text: &str) -> Result<(), ConfigError> {
    let tags: Vec<_> = text.split(',').map(str::trim).collect();
    let distinct: std::collections::BTreeSet<_> = tags.iter().collect();
    if distinct.len() == tags.len() {
        return Ok(());
    }
    Err(ConfigError::Conflict(format!("{name} must not contain duplicate tag keys.")))
}

fn check_group_bounds(broker: &Settings, name: &str, value: &Value) -> Result<(), ConfigError> {
    let Some((_, min, max)) = GROUP_BOUNDS.iter().find(|(bounded, ..)| *bounded == name) else {
        return Ok(());
    };
    let (Some(number), min, max) = (value.as_i64(), min.map(|n| broker.i64(n)), max.map(|n| broker.i64(n)))
    else {
        return Ok(());
    };
    let reason = match (min, max) {
        (Some(min), Some(max)) if number < min || number > max => {
            format!("{name} must be in the range {min} to {max} inclusive.")
        }
        (None, Some(max)) if number > max => format!("{name} must be less than or equal to {max}"),
        (Some(min), None) if number < min => format!("{name} must be greater than or equal to {min}"),
        _ => return Ok(()),
    };
    Err(ConfigError::Conflict(reason))
}

/// The client properties a subscription can match.
const CLIENT_PROPERTIES: [&str; 6] = [
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// Checks all values of a client metrics subscription as they would be after a change.
///
/// # Errors
/// [`ConfigError`]; [`ConfigError::is_invalid_request`] tells the error code.
pub fn validate_client_metrics<'a>(
    values: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<(), ConfigError> {
    for (name, text) in values {
        let value = definition::client_metrics().require(name)?.parse(text)?;
        match (name, &value) {
            ("interval.ms", Value::Int(ms)) if !(100..=3_600_000).contains(ms) => {
                return Err(ConfigError::ClientMetricsInterval { value: i64::from(*ms) });
            }
            ("match", Value::List(patterns)) => {
                if let Some(pattern) = patterns.iter().find(|pattern| !is_client_pattern(pattern)) {
                    return Err(ConfigError::ClientMetricsPattern { pattern: pattern.clone() });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// `property=pattern` with a known property and a regular expression whose groups and classes are closed.
fn is_client_pattern(text: &str) -> bool {
    let Some((property, pattern)) = text.split_once('=') else { return false };
    CLIENT_PROPERTIES.contains(&property.trim()) && !pattern.trim().is_empty() && is_balanced(pattern)
}

fn is_balanced(pattern: &str) -> bool {
    let (mut depth, mut in_class, mut escaped) = (0_u32, false, false);
    for c in pattern.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth = depth.saturating_add(1),
            ')' if !in_class && depth == 0 => return false,
            ')' if !in_class => depth -= 1,
            _ => {}
        }
    }
    depth == 0 && !in_class && !escaped && !pattern.trim_start().starts_with(['*', '+', '?'])
}
