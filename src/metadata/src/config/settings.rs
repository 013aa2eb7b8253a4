//! A broker's settings in their layers: its file, the cluster's dynamic defaults, its own dynamic values.

use std::collections::BTreeMap;

use super::definition::{self, DefaultValue, UpdateMode};
use super::effect;
use super::error::ConfigError;
use super::value::Value;

/// Names and values of one layer.
pub type Layer = BTreeMap<String, String>;

/// The prefix of environment variables that override settings.
pub const ENVIRONMENT_PREFIX: &str = "CALLBOARD_";

/// Settings of which the first that is set gives the value, with what one unit is in milliseconds.
const ALTERNATIVES: [&[(&str, i64)]; 4] = [
    &[("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)],
    &[("log.roll.ms", 1), ("log.roll.hours", 3_600_000)],
    &[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)],
    &[("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)],
];

/// The settings that can give the value of `name`, the strongest first.
pub(crate) fn alternatives(name: &str) -> Vec<(&str, i64)> {
    let found = ALTERNATIVES.iter().find(|group| group.iter().any(|(member, _)| *member == name));
    match found {
        Some(group) => group.to_vec(),
        None => vec![(name, 1)],
    }
}

/// What a user should hear about the settings of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// Names that no setting has.
    pub unknown: Vec<String>,
    /// Settings that are accepted but change nothing yet.
    pub without_effect: Vec<String>,
}

/// A broker's settings in their layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub(crate) file: Layer,
    pub(crate) cluster: Layer,
    pub(crate) broker: Layer,
}

impl Settings {
    /// Settings from a file and its overrides, checked one by one. `node.id` and `broker.id` stand for each other.
    ///
    /// # Errors
    /// [`ConfigError`] for a value that is not allowed, or an unknown name under `callboard.`.
    pub fn from_properties(
        properties: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Self, Remarks), ConfigError> {
        let mut file = Layer::new();
        let mut remarks = Remarks::default();
        for (name, value) in properties {
            let base = base_name(&name);
            match definition::broker().get(base) {
                Some(definition) => {
                    definition.parse(&value)?;
                    if !effect::has_effect(base) {
                        remarks.without_effect.push(name.clone());
                    }
                }
                None if name.starts_with("callboard.") => return Err(unknown_own(name)),
                None => remarks.unknown.push(name.clone()),
            }
            file.insert(name, value);
        }
        for (from, to) in [("node.id", "broker.id"), ("broker.id", "node.id")] {
            if let (Some(id), false) = (file.get(from).cloned(), file.contains_key(to)) {
                file.insert(to.to_owned(), id);
            }
        }
        Ok((Self { file, cluster: Layer::new(), broker: Layer::new() }, remarks))
    }

    /// These settings with other dynamic values, from the metadata log. Values that are not allowed are left out:
    /// they may have been written by another version.
    #[must_use]
    pub fn with_dynamic<'a>(
        &self,
        cluster: impl IntoIterator<Item = (&'a str, &'a str)>,
        broker: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        Self { file: self.file.clone(), cluster: dynamic_layer(cluster), broker: dynamic_layer(broker) }
    }

    /// The text of a setting: the strongest layer that has it, or its default.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.explicit(name).or_else(|| match definition::broker().get(name)?.default {
            DefaultValue::Text(text) => Some(text),
            DefaultValue::Null | DefaultValue::Required => None,
        })
    }

    /// The value of a setting, or `None` when it has none.
    pub fn value(&self, name: &str) -> Option<Value> {
        definition::broker().get(name)?.parse(self.text(name)?).ok()
    }

    /// The text somebody gave a setting, if anybody did. A dynamic value of a stronger setting that means the same
    /// (`log.retention.ms`) hides the weaker ones of the file (`log.retention.hours`).
    pub(crate) fn explicit(&self, name: &str) -> Option<&str> {
        let dynamic = |name: &str| self.broker.get(name).or_else(|| self.cluster.get(name));
        if let Some(text) = dynamic(name) {
            return Some(text);
        }
        let hidden = alternatives(name)
            .iter()
            .take_while(|(stronger, _)| *stronger != name)
            .any(|(stronger, _)| dynamic(stronger).is_some());
        if hidden { None } else { self.file.get(name).map(String::as_str) }
    }

    /// A duration that several settings can give, in milliseconds.
    pub(crate) fn alternative_ms(&self, name: &str) -> i64 {
        let group = alternatives(name);
        let given = group.iter().find(|(member, _)| self.explicit(member).is_some());
        let chosen = given.or_else(|| group.iter().rev().find(|(member, _)| self.value(member).is_some()));
        chosen.map_or(0, |(member, unit)| self.i64(member).saturating_mul(*unit))
    }

    pub(crate) fn i64(&self, name: &str) -> i64 {
        let value = self.value(name).as_ref().and_then(Value::as_i64);
        debug_assert!(value.is_some(), "{name} is a number with a default");
        value.unwrap_or_default()
    }

    pub(crate) fn i32(&self, name: &str) -> i32 {
        let value = self.i64(name);
        i32::try_from(value).unwrap_or(if value < 0 { i32::MIN } else { i32::MAX })
    }

    pub(crate) fn bool(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Boolean(true)))
    }

    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Some(Value::List(list)) => list,
            _ => Vec::new(),
        }
    }

    pub(crate) fn string(&self, name: &str) -> Option<String> {
        match self.value(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// The setting behind a per-listener name such as `listener.name.external.ssl.keystore.location`.
pub(crate) fn base_name(name: &str) -> &str {
    let Some(rest) = name.strip_prefix("listener.name.") else { return name };
    match rest.split_once('.') {
        Some((_, base)) => match base.split_once('.') {
            // SASL settings also name the mechanism: listener.name.<listener>.plain.sasl.jaas.config.
            Some((_, inner)) if definition::broker().get(base).is_none() => inner,
            _ => base,
        },
        None => name,
    }
}

fn dynamic_layer<'a>(values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Layer {
    let allowed = |name: &str, text: &str| match definition::broker().get(base_name(name)) {
        Some(definition) => definition.update_mode != UpdateMode::ReadOnly && definition.parse(text).is_ok(),
        None => true,
    };
    values
        .into_iter()
        .filter(|(name, text)| allowed(name, text))
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect()
}

fn unknown_own(name: String) -> ConfigError {
    let own = definition::broker().iter().map(|d| d.name).filter(|name| name.starts_with("callboard."));
    ConfigError::UnknownOwn { name, known: own.collect::<Vec<_>>().join(", ") }
}

/// Settings given by environment variables: `CALLBOARD_LOG_DIRS` is `log.dirs`. Variables that match no setting are
/// returned apart, by their own name.
pub fn from_environment(
    variables: impl IntoIterator<Item = (String, String)>,
) -> (Vec<(String, String)>, Vec<String>) {
    let by_variable: BTreeMap<String, &str> = definition::broker()
        .iter()
        .flat_map(|d| environment_names(d.name).map(|variable| (variable, d.name)))
        .collect();
    let (mut settings, mut unknown) = (Vec::new(), Vec::new());
    for (variable, value) in variables {
        let Some(upper) = variable.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
        match by_variable.get(upper) {
            Some(name) => settings.push(((*name).to_owned(), value)),
            None => match per_listener_name(upper, &by_variable) {
                Some(name) => settings.push((name, value)),
                None => unknown.push(variable),
            },
        }
    }
    settings.sort();
    unknown.sort();
    (settings, unknown)
}

/// `LOG_DIRS` for `log.dirs`. A setting of our own may leave out the second prefix: `callboard.durability` is
/// `CALLBOARD_CALLBOARD_DURABILITY` or `CALLBOARD_DURABILITY`.
fn environment_names(name: &str) -> [String; 2] {
    let upper = |name: &str| name.to_ascii_uppercase().replace('.', "_");
    [upper(name), upper(name.strip_prefix("callboard.").unwrap_or(name))]
}

/// `LISTENER_NAME_EXTERNAL_SSL_KEYSTORE_LOCATION` for `listener.name.external.ssl.keystore.location`.
fn per_listener_name(upper: &str, by_variable: &BTreeMap<String, &str>) -> Option<String> {
    let rest = upper.strip_prefix("LISTENER_NAME_")?;
    let (at, setting) = by_variable
        .iter()
        .filter_map(|(variable, name)| {
            Some((rest.strip_suffix(variable.as_str())?.strip_suffix('_')?, *name))
        })
        .max_by_key(|(_, name)| name.len())?;
    Some(format!("listener.name.{}.{setting}", at.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let pairs = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Settings::from_properties(pairs).unwrap().0
    }

    #[test]
    fn no_two_settings_share_an_environment_variable() {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for definition in definition::broker().iter() {
            for variable in environment_names(definition.name) {
                let other = seen.insert(variable, definition.name);
                assert!(other.is_none_or(|other| other == definition.name), "{other:?}");
            }
        }
    }

    #[test]
    fn environment_variables_name_settings() {
        let vars = [
            ("CALLBOARD_LOG_DIRS", "/a"),
            ("CALLBOARD_DURABILITY", "fsync"),
            ("CALLBOARD_LISTENER_NAME_EXT_SSL_KEYSTORE_LOCATION", "/k"),
            ("CALLBOARD_NOSUCH", "1"),
            ("PATH", "/bin"),
        ];
        let (known, unknown) = from_environment(vars.map(|(n, v)| (n.to_owned(), v.to_owned())));
        let names: Vec<_> = known.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["callboard.durability", "listener.name.ext.ssl.keystore.location", "log.dirs"]);
        assert_eq!(unknown, ["CALLBOARD_NOSUCH"]);
    }

    #[test]
    fn the_finer_unit_wins_and_a_dynamic_value_wins_over_the_file() {
        let file = settings(&[("log.retention.hours", "5"), ("log.retention.minutes", "7")]);
        assert_eq!(file.alternative_ms("log.retention.ms"), 7 * 60_000);
        assert_eq!(settings(&[]).alternative_ms("log.retention.ms"), 168 * 3_600_000);
        let dynamic = file.with_dynamic([("log.retention.ms", "11")], []);
        assert_eq!(dynamic.alternative_ms("log.retention.ms"), 11);
        assert_eq!(dynamic.explicit("log.retention.hours"), None);
        let both = file.with_dynamic([("log.retention.ms", "11")], [("log.retention.ms", "12")]);
        assert_eq!(both.alternative_ms("log.retention.ms"), 12);
    }

    #[test]
    fn dynamic_values_that_are_not_allowed_are_left_out() {
        let s = settings(&[]).with_dynamic([("log.segment.bytes", "5"), ("log.dirs", "/x")], []);
        assert_eq!(s.text("log.segment.bytes"), Some("1073741824"));
        assert_eq!(s.text("log.dirs"), None);
    }

    #[test]
    fn node_id_and_broker_id_stand_for_each_other() {
        assert_eq!(settings(&[("node.id", "4")]).text("broker.id"), Some("4"));
        assert_eq!(settings(&[("broker.id", "4")]).text("node.id"), Some("4"));
    }

    #[test]
    fn remarks_name_what_is_unknown_or_idle() {
        let pairs = [("nosuch", "1"), ("ssl.protocol", "TLSv1.3"), ("log.dirs", "/x")];
        let (_, remarks) =
            Settings::from_properties(pairs.map(|(n, v)| (n.to_owned(), v.to_owned()))).unwrap();
        assert_eq!(remarks.unknown, ["nosuch"]);
        assert_eq!(remarks.without_effect, ["ssl.protocol"]);
        let own = [("callboard.nosuch".to_owned(), "1".to_owned())];
        let error = Settings::from_properties(own).unwrap_err().to_string();
        assert!(error.contains("callboard.durability"), "{error}");
    }
}
