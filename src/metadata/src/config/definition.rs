//! The tables of settings: name, type, default, what is allowed, and how a setting may change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::LazyLock;

use super::error::ConfigError;
use super::validator::Validator;
use super::value::{self, Value};

/// The type of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigType {
    /// `true` or `false`, in any case.
    Boolean,
    /// Free text.
    String,
    /// 32-bit integer.
    Int,
    /// 16-bit integer.
    Short,
    /// 64-bit integer.
    Long,
    /// 64-bit floating point.
    Double,
    /// Texts separated by commas.
    List,
    /// The name of a Java class; kept as text.
    Class,
    /// A secret: never shown, never logged.
    Password,
}

impl ConfigType {
    /// The number that stands for the type in a DescribeConfigs response.
    pub fn wire_code(self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::String => 2,
            Self::Int => 3,
            Self::Short => 4,
            Self::Long => 5,
            Self::Double => 6,
            Self::List => 7,
            Self::Class => 8,
            Self::Password => 9,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "BOOLEAN" => Self::Boolean,
            "STRING" => Self::String,
            "INT" => Self::Int,
            "SHORT" => Self::Short,
            "LONG" => Self::Long,
            "DOUBLE" => Self::Double,
            "LIST" => Self::List,
            "CLASS" => Self::Class,
            "PASSWORD" => Self::Password,
            _ => return None,
        })
    }
}

impl fmt::Display for ConfigType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Int => "INT",
            Self::Short => "SHORT",
            Self::Long => "LONG",
            Self::Double => "DOUBLE",
            Self::List => "LIST",
            Self::Class => "CLASS",
            Self::Password => "PASSWORD",
        })
    }
}

/// How much a setting matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Importance {
    /// Most users set it.
    High,
    /// Some users set it.
    Medium,
    /// Few users set it.
    Low,
}

/// How a broker setting may change while the broker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpdateMode {
    /// Only in the file, before a start.
    ReadOnly,
    /// For one broker at a time.
    PerBroker,
    /// For one broker, or for all as a default.
    ClusterWide,
}

/// The value a setting has when nobody set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultValue {
    /// It must be set.
    Required,
    /// No value.
    Null,
    /// This value, in its text form.
    Text(&'static str),
}

/// One setting.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: ConfigType,
    /// Its default.
    pub default: DefaultValue,
    /// What is allowed.
    pub validator: Validator,
    /// How much it matters.
    pub importance: Importance,
    /// How it may change at run time. Topic and group settings always may.
    pub update_mode: UpdateMode,
    /// The broker setting that gives the default of a topic or group setting.
    pub broker_synonym: Option<&'static str>,
    /// Hidden from descriptions until somebody sets it.
    pub internal: bool,
}

impl Definition {
    /// Whether the value is a secret.
    pub fn is_sensitive(&self) -> bool {
        self.kind == ConfigType::Password
    }

    /// Reads and checks a value.
    ///
    /// # Errors
    /// [`ConfigError`] with the setting, the value and what is allowed.
    pub fn parse(&self, text: &str) -> Result<Value, ConfigError> {
        let mut value = value::parse(self.name, self.kind, text)?;
        if let (Value::List(list), Validator::Entries { .. }) = (&mut value, &self.validator) {
            // An entry that is there again counts once.
            let mut seen = BTreeSet::new();
            list.retain(|entry| seen.insert(entry.clone()));
        }
        self.validator.check(self.name, &value)?;
        Ok(value)
    }

    /// The default as a value; `None` when it is null or must be given.
    pub fn default_value(&self) -> Option<Value> {
        match self.default {
            DefaultValue::Text(text) => value::parse(self.name, self.kind, text).ok(),
            DefaultValue::Null | DefaultValue::Required => None,
        }
    }
}

/// One table of settings, by name.
#[derive(Debug)]
pub struct Definitions {
    table: &'static str,
    by_name: BTreeMap<&'static str, Definition>,
}

impl Definitions {
    fn load(table: &'static str, sources: &[&'static str]) -> Self {
        let lines = sources.iter().flat_map(|source| source.lines());
        let by_name = lines
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .filter_map(parse_line)
            .map(|definition| (definition.name, definition))
            .collect();
        Self { table, by_name }
    }

    /// The setting of that name.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        self.by_name.get(name)
    }

    /// The setting of that name.
    ///
    /// # Errors
    /// [`ConfigError::Unknown`] when there is none.
    pub fn require(&self, name: &str) -> Result<&Definition, ConfigError> {
        self.get(name).ok_or_else(|| {
            let name = name.to_owned();
            match self.table {
                "client metrics" => ConfigError::UnknownClientMetrics { name },
                table => ConfigError::Unknown { table, name },
            }
        })
    }

    /// All settings in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Definition> {
        self.by_name.values()
    }
}

const COLUMNS: usize = 8;

/// Reads one line of a table; `None` when it is malformed, which a test rules out.
fn parse_line(line: &'static str) -> Option<Definition> {
    let columns: [&'static str; COLUMNS] = line.split('\t').collect::<Vec<_>>().try_into().ok()?;
    let [name, kind, default, validator, importance, update_mode, synonym, internal] = columns;
    Some(Definition {
        name,
        kind: ConfigType::parse(kind)?,
        default: match default {
            "(required)" => DefaultValue::Required,
            "null" => DefaultValue::Null,
            text => DefaultValue::Text(text),
        },
        validator: Validator::parse(validator)?,
        importance: match importance {
            "high" => Importance::High,
            "medium" => Importance::Medium,
            "low" => Importance::Low,
            _ => return None,
        },
        update_mode: match update_mode {
            "read-only" => UpdateMode::ReadOnly,
            "per-broker" => UpdateMode::PerBroker,
            "cluster-wide" | "" => UpdateMode::ClusterWide,
            _ => return None,
        },
        broker_synonym: (!synonym.is_empty()).then_some(synonym),
        internal: internal == "internal",
    })
}

const BROKER_TABLE: &str = include_str!("../../config/broker.tsv");
const BROKER_OWN_TABLE: &str = include_str!("../../config/broker-own.tsv");
const TOPIC_TABLE: &str = include_str!("../../config/topic.tsv");
const TOPIC_OWN_TABLE: &str = include_str!("../../config/topic-own.tsv");
const GROUP_TABLE: &str = include_str!("../../config/group.tsv");
const CLIENT_METRICS_TABLE: &str = include_str!("../../config/client-metrics.tsv");

/// The settings of a broker or controller, Kafka's and our own.
pub fn broker() -> &'static Definitions {
    static TABLE: LazyLock<Definitions> =
        LazyLock::new(|| Definitions::load("broker", &[BROKER_TABLE, BROKER_OWN_TABLE]));
    &TABLE
}

/// The settings of a topic, Kafka's and our own.
pub fn topic() -> &'static Definitions {
    static TABLE: LazyLock<Definitions> =
        LazyLock::new(|| Definitions::load("topic", &[TOPIC_TABLE, TOPIC_OWN_TABLE]));
    &TABLE
}

/// The settings of a group.
pub fn group() -> &'static Definitions {
    static TABLE: LazyLock<Definitions> = LazyLock::new(|| Definitions::load("group", &[GROUP_TABLE]));
    &TABLE
}

/// The settings of a client metrics subscription.
pub fn client_metrics() -> &'static Definitions {
    static TABLE: LazyLock<Definitions> =
        LazyLock::new(|| Definitions::load("client metrics", &[CLIENT_METRICS_TABLE]));
    &TABLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_table_is_read() {
        let tables: [(&Definitions, &[&str]); 4] = [
            (broker(), &[BROKER_TABLE, BROKER_OWN_TABLE]),
            (topic(), &[TOPIC_TABLE, TOPIC_OWN_TABLE]),
            (group(), &[GROUP_TABLE]),
            (client_metrics(), &[CLIENT_METRICS_TABLE]),
        ];
        for (table, sources) in tables {
            let lines: Vec<_> =
                sources.iter().flat_map(|s| s.lines()).filter(|l| !l.starts_with('#')).collect();
            for line in &lines {
                assert!(parse_line(line.to_string().leak()).is_some(), "{line}");
            }
            assert_eq!(table.iter().count(), lines.len());
        }
    }

    #[test]
    fn every_default_is_a_value_of_its_type_and_every_synonym_exists() {
        for definition in broker().iter().chain(topic().iter()).chain(group().iter()) {
            if let DefaultValue::Text(text) = definition.default {
                let value = value::parse(definition.name, definition.kind, text).unwrap();
                assert_eq!(value.to_string(), text, "{}", definition.name);
            }
            if let Some(synonym) = definition.broker_synonym {
                assert!(broker().get(synonym).is_some(), "{synonym}");
            }
        }
    }
}
