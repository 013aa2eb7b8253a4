//! What DescribeConfigs shows of a resource: each setting with its value and where the value comes from.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::{self, ConfigType, Definition, UpdateMode};
use super::settings::{Layer, Settings, alternatives, base_name};
use super::value::Value;

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The topic's own.
    Topic,
    /// Set on this broker while it runs.
    DynamicBroker,
    /// Set for all brokers while they run.
    DynamicDefaultBroker,
    /// The broker's file, or what overrides it.
    StaticBroker,
    /// The default.
    Default,
    /// The client metrics subscription's own.
    ClientMetrics,
    /// The group's own.
    Group,
}

impl Source {
    /// The number that stands for it in a DescribeConfigs response.
    pub fn wire_code(self) -> i8 {
        match self {
            Self::Topic => 1,
            Self::DynamicBroker => 2,
            Self::DynamicDefaultBroker => 3,
            Self::StaticBroker => 4,
            Self::Default => 5,
            Self::ClientMetrics => 7,
            Self::Group => 8,
        }
    }
}

/// A place where a value was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synonym {
    /// The setting's name there.
    pub name: String,
    /// The value; `None` when it is a secret.
    pub value: Option<String>,
    /// The place.
    pub source: Source,
}

/// One setting of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its value; `None` when it has none or is a secret.
    pub value: Option<String>,
    /// Whether it cannot change while the broker runs.
    pub read_only: bool,
    /// Where the value comes from.
    pub source: Source,
    /// Whether it is a secret.
    pub sensitive: bool,
    /// Every place that gives it a value, the one in force first.
    pub synonyms: Vec<Synonym>,
    /// Its type; `None` for a setting we do not know.
    pub kind: Option<ConfigType>,
}

impl Entry {
    fn new(definition: &Definition, value: Option<String>, read_only: bool, synonyms: Vec<Synonym>) -> Self {
        Self {
            name: definition.name.to_owned(),
            value: value.filter(|_| !definition.is_sensitive()),
            read_only,
            source: synonyms.first().map_or(Source::Default, |first| first.source),
            sensitive: definition.is_sensitive(),
            synonyms,
            kind: Some(definition.kind),
        }
    }

    /// A setting that no table has: shown by name only, since it may be a secret.
    fn unknown(name: &str, synonyms: Vec<Synonym>) -> Self {
        Self {
            name: name.to_owned(),
            value: None,
            read_only: true,
            source: synonyms.first().map_or(Source::Default, |first| first.source),
            sensitive: true,
            synonyms,
            kind: None,
        }
    }
}

/// A topic's settings. `overrides` are its own values.
pub fn describe_topic<'a>(
    broker: &Settings,
    overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<Entry> {
    let overrides: BTreeMap<_, _> = overrides.into_iter().collect();
    let effective = |definition: &Definition| match definition.broker_synonym {
        Some(ms @ ("log.retention.ms" | "log.roll.ms" | "log.roll.jitter.ms" | "log.flush.interval.ms")) => {
            let value = broker.alternative_ms(ms);
            Some(if ms == "log.retention.ms" { value.max(-1) } else { value }.to_string())
        }
        Some(synonym) => broker.value(synonym).map(|value| value.to_string()),
        None => definition.default_value().map(|value| value.to_string()),
    };
    let mut entries = Vec::new();
    for definition in definition::topic().iter() {
        let own = overrides.get(definition.name).map(|text| canonical(definition, text));
        if definition.internal && own.is_none() {
            continue;
        }
        let mut synonyms: Vec<_> = own.iter().map(|v| synonym(definition, v, Source::Topic)).collect();
        if let Some(name) = definition.broker_synonym {
            synonyms.extend(broker_synonyms(broker, name));
        }
        let value = own.or_else(|| effective(definition));
        entries.push(Entry::new(definition, value, false, synonyms));
    }
    entries
}

/// The settings of one broker.
pub fn describe_broker(settings: &Settings) -> Vec<Entry> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    names.extend(definition::broker().iter().filter(|d| !d.internal).map(|d| d.name));
    for layer in [&settings.file, &settings.cluster, &settings.broker] {
        names.extend(layer.keys().map(String::as_str));
    }
    names.into_iter().map(|name| broker_entry(settings, name)).collect()
}

/// The defaults that were set for all brokers while they run.
pub fn describe_cluster_default(settings: &Settings) -> Vec<Entry> {
    let mut entries: Vec<Entry> = settings.cluster.keys().map(|name| broker_entry(settings, name)).collect();
    for entry in &mut entries {
        entry.synonyms.retain(|synonym| synonym.source == Source::DynamicDefaultBroker);
        entry.source = entry.synonyms.first().map_or(Source::Default, |first| first.source);
        if entry.value.is_some() {
            entry.value = entry.synonyms.first().and_then(|first| first.value.clone());
        }
    }
    entries
}

/// A group's settings. `overrides` are its own values.
pub fn describe_group<'a>(
    broker: &Settings,
    overrides: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<Entry> {
    let overrides: BTreeMap<_, _> = overrides.into_iter().collect();
    let mut entries = Vec::new();
    for definition in definition::group().iter() {
        let own = overrides.get(definition.name).map(|text| canonical(definition, text));
        if definition.internal && own.is_none() {
            continue;
        }
        let mut synonyms: Vec<_> = own.iter().map(|v| synonym(definition, v, Source::Group)).collect();
        match definition.broker_synonym {
            Some(name) => synonyms.extend(broker_synonyms(broker, name)),
            None => synonyms.extend(
                definition.default_value().map(|v| synonym(definition, &v.to_string(), Source::Default)),
            ),
        }
        let inherited = synonyms.first().and_then(|first| first.value.clone());
        entries.push(Entry::new(definition, own.or(inherited), false, synonyms));
    }
    entries
}

/// A client metrics subscription's settings. `overrides` are its own values.
pub fn describe_client_metrics<'a>(overrides: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Entry> {
    let overrides: BTreeMap<_, _> = overrides.into_iter().collect();
    let describe = |definition: &Definition| {
        let own = overrides.get(definition.name).map(|text| canonical(definition, text));
        let synonyms = own.iter().map(|v| synonym(definition, v, Source::ClientMetrics)).collect();
        let value = own.or_else(|| definition.default_value().map(|v| v.to_string()));
        Entry::new(definition, value, false, synonyms)
    };
    definition::client_metrics().iter().map(describe).collect()
}

fn canonical(definition: &Definition, text: &str) -> String {
    definition.parse(text).map_or_else(|_| text.to_owned(), |value| value.to_stored())
}

fn synonym(definition: &Definition, value: &str, source: Source) -> Synonym {
    let value = (!definition.is_sensitive()).then(|| value.to_owned());
    Synonym { name: definition.name.to_owned(), value, source }
}

fn broker_entry(settings: &Settings, name: &str) -> Entry {
    let synonyms = broker_synonyms(settings, name);
    let Some(definition) = definition::broker().get(base_name(name)) else {
        return Entry::unknown(name, synonyms);
    };
    let value = settings
        .explicit(name)
        .map(|text| canonical(definition, text))
        .or_else(|| settings.value(name).as_ref().map(Value::to_string));
    // A per-listener name counts as read-only in a description, as it is in no table itself.
    let read_only = definition.update_mode == UpdateMode::ReadOnly || name != definition.name;
    Entry { name: name.to_owned(), ..Entry::new(definition, value, read_only, synonyms) }
}

/// Every place that gives a broker setting a value. Weaker settings that mean the same follow only when the setting
/// itself has a value somewhere.
fn broker_synonyms(settings: &Settings, name: &str) -> Vec<Synonym> {
    let names: Vec<&str> = match base_name(name) {
        base if base != name => vec![name, base],
        _ => {
            let group = alternatives(name);
            let weaker = group.iter().skip_while(|(member, _)| *member != name);
            weaker.map(|(member, _)| *member).collect()
        }
    };
    let mut found = Vec::new();
    let layers: [(&Layer, Source); 3] = [
        (&settings.broker, Source::DynamicBroker),
        (&settings.cluster, Source::DynamicDefaultBroker),
        (&settings.file, Source::StaticBroker),
    ];
    for (layer, source) in layers {
        for &name in &names {
            if let Some(text) = layer.get(name) {
                let definition = definition::broker().get(base_name(name));
                let value = definition.filter(|d| !d.is_sensitive()).map(|d| canonical(d, text));
                found.push(Synonym { name: name.to_owned(), value, source });
            }
        }
    }
    for &name in &names {
        let definition = definition::broker().get(name);
        if let Some((definition, value)) = definition.and_then(|d| Some((d, d.default_value()?))) {
            found.push(synonym(definition, &value.to_string(), Source::Default));
        }
    }
    found.into_iter().skip_while(|synonym| synonym.name != name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let pairs = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Settings::from_properties(pairs).unwrap().0
    }

    fn show(entries: &[Entry], name: &str) -> String {
        let entry = entries.iter().find(|entry| entry.name == name).unwrap();
        let synonyms: Vec<_> = entry
            .synonyms
            .iter()
            .map(|s| format!("{:?}:{}={}", s.source, s.name, s.value.as_deref().unwrap_or("null")))
            .collect();
        format!("{} {:?} {}", entry.value.as_deref().unwrap_or("null"), entry.source, synonyms.join(" "))
    }

    // What Kafka 4.4.0 answered for the same settings.
    #[test]
    fn a_topic_shows_its_values_over_the_brokers() {
        let file = settings(&[
            ("log.retention.hours", "5"),
            ("log.roll.hours", "3"),
            ("log.flush.scheduler.interval.ms", "8888"),
        ]);
        let alone = describe_topic(&file, []);
        assert_eq!(show(&alone, "retention.ms"), "18000000 Default ");
        assert!(alone.iter().all(|entry| entry.name != "internal.segment.bytes"));
        let cluster = [("log.retention.ms", "123456"), ("min.insync.replicas", "2")];
        let broker = [
            ("log.retention.ms", "-7"),
            ("log.roll.ms", "5555"),
            ("log.flush.interval.ms", "4444"),
            ("message.max.bytes", "2000000"),
        ];
        let running = file.with_dynamic(cluster, broker);
        let own = [("retention.ms", " 777 "), ("min.cleanable.dirty.ratio", "0.70"), ("flush.ms", "99")];
        let topic = describe_topic(&running, own);
        for (name, expected) in [
            (
                "retention.ms",
                "777 Topic Topic:retention.ms=777 DynamicBroker:log.retention.ms=-7 \
                 DynamicDefaultBroker:log.retention.ms=123456 StaticBroker:log.retention.hours=5 \
                 Default:log.retention.hours=168",
            ),
            (
                "segment.ms",
                "5555 DynamicBroker DynamicBroker:log.roll.ms=5555 StaticBroker:log.roll.hours=3 \
                 Default:log.roll.hours=168",
            ),
            (
                "flush.ms",
                "99 Topic Topic:flush.ms=99 DynamicBroker:log.flush.interval.ms=4444 \
                 StaticBroker:log.flush.scheduler.interval.ms=8888 \
                 Default:log.flush.scheduler.interval.ms=9223372036854775807",
            ),
            ("segment.jitter.ms", "0 Default "),
            (
                "min.cleanable.dirty.ratio",
                "0.7 Topic Topic:min.cleanable.dirty.ratio=0.7 Default:log.cleaner.min.cleanable.ratio=0.5",
            ),
            (
                "min.insync.replicas",
                "2 DynamicDefaultBroker DynamicDefaultBroker:min.insync.replicas=2 Default:min.insync.replicas=1",
            ),
            (
                "max.message.bytes",
                "2000000 DynamicBroker DynamicBroker:message.max.bytes=2000000 Default:message.max.bytes=1048588",
            ),
        ] {
            assert_eq!(show(&topic, name), expected, "{name}");
        }
        let described = describe_broker(&running);
        assert_eq!(
            show(&described, "log.roll.hours"),
            "168 StaticBroker StaticBroker:log.roll.hours=3 Default:log.roll.hours=168"
        );
    }

    #[test]
    fn secrets_and_unknown_settings_show_no_value() {
        let file = settings(&[("ssl.key.password", "x"), ("some.plugin.key", "y")]);
        let broker = [("listener.name.external.ssl.keystore.password", "z")];
        let entries = describe_broker(&file.with_dynamic([], broker));
        for name in ["ssl.key.password", "some.plugin.key", "listener.name.external.ssl.keystore.password"] {
            let entry = entries.iter().find(|entry| entry.name == name).unwrap();
            assert!(entry.sensitive && entry.value.is_none(), "{name}");
            assert!(entry.synonyms.iter().all(|synonym| synonym.value.is_none()));
        }
    }

    #[test]
    fn the_cluster_default_shows_what_was_set_there() {
        let s = settings(&[]).with_dynamic([("log.retention.ms", "5")], [("log.retention.ms", "6")]);
        let entries = describe_cluster_default(&s);
        assert_eq!(entries.len(), 1);
        assert_eq!(
            show(&entries, "log.retention.ms"),
            "5 DynamicDefaultBroker DynamicDefaultBroker:log.retention.ms=5"
        );
    }

    #[test]
    fn groups_and_subscriptions_show_theirs() {
        let group = describe_group(&settings(&[]), [("consumer.session.timeout.ms", "50000")]);
        assert_eq!(
            show(&group, "consumer.session.timeout.ms"),
            "50000 Group Group:consumer.session.timeout.ms=50000 Default:group.consumer.session.timeout.ms=45000"
        );
        assert_eq!(
            show(&group, "share.auto.offset.reset"),
            "latest Default Default:share.auto.offset.reset=latest"
        );
        let subscription = describe_client_metrics([("metrics", "")]);
        assert_eq!(show(&subscription, "metrics"), " ClientMetrics ClientMetrics:metrics=");
        assert_eq!(show(&subscription, "interval.ms"), "300000 Default ");
    }
}
