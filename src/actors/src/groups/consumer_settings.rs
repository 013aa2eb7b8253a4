//! What of the broker's settings consumer groups go by.

use callboard_coordinator::ConsumerSettings;
use callboard_coordinator::group::consumer::assignor::Assignor;
use callboard_coordinator::group::consumer::{BoundedMs, MigrationPolicy};
use callboard_metadata::config::{Settings, Value};

/// Reads them.
pub(super) fn read(settings: &Settings) -> ConsumerSettings {
    let int = |name: &str| settings.value(name).and_then(|value| value.as_i64()).unwrap_or(0);
    let small = |name: &str| i32::try_from(int(name)).unwrap_or(i32::MAX);
    let bounded = |what: &str| BoundedMs {
        default_ms: small(&format!("group.consumer.{what}.ms")),
        min_ms: small(&format!("group.consumer.min.{what}.ms")),
        max_ms: small(&format!("group.consumer.max.{what}.ms")),
    };
    ConsumerSettings {
        session_timeout: bounded("session.timeout"),
        heartbeat_interval: bounded("heartbeat.interval"),
        assignment_interval: bounded("assignment.interval"),
        max_size: usize::try_from(int("group.consumer.max.size")).unwrap_or(usize::MAX),
        assignors: assignors(settings),
        migration_policy: match settings.value("group.consumer.migration.policy") {
            Some(Value::Text(name)) => MigrationPolicy::from_name(&name).unwrap_or_default(),
            _ => MigrationPolicy::default(),
        },
        regex_refresh_interval_ms: int("group.consumer.regex.refresh.interval.ms"),
    }
}

/// The assignors by preference. Kafka also takes Java classes: of those only its own have a counterpart here.
fn assignors(settings: &Settings) -> Vec<Assignor> {
    let Some(Value::List(names)) = settings.value("group.consumer.assignors") else { return Vec::new() };
    let known = |name: &String| {
        let assignor = match name.strip_prefix("org.apache.kafka.coordinator.group.assignor.") {
            Some("UniformAssignor") => Some(Assignor::Uniform),
            Some("RangeAssignor") => Some(Assignor::Range),
            _ => Assignor::from_name(name),
        };
        if assignor.is_none() {
            tracing::warn!(assignor = %name, "group.consumer.assignors names an assignor that is not here; it is left out");
        }
        assignor
    };
    names.iter().filter_map(known).collect()
}
