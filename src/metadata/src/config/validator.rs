//! What a value may be.

use super::error::ConfigError;
use super::value::Value;

/// The rule a value must keep.
#[derive(Debug, Clone, PartialEq)]
pub enum Validator {
    /// Anything of the type.
    Any,
    /// A number within bounds, both included. `Display` of the bounds is their text in the table.
    Range {
        /// The least allowed.
        min: Option<Bound>,
        /// The most allowed.
        max: Option<Bound>,
    },
    /// From 1 to 9, or -1 for the library's default.
    GzipLevel,
    /// One of these texts.
    OneOf(Vec<&'static str>),
    /// One of these texts in any case.
    OneOfIgnoringCase(Vec<&'static str>),
    /// A text with at least one character.
    NonEmpty,
    /// A list without an empty entry. (Repeated ones are dropped when it is read.)
    Entries {
        /// Whether the list itself may be empty.
        may_be_empty: bool,
        /// What the entries may be; empty when they may be anything.
        entries: Vec<&'static str>,
    },
    /// `*`, or pairs of partition and broker.
    ThrottledReplicas,
    /// `latest`, `earliest` or `by_duration:` with an ISO-8601 duration that is not negative.
    OffsetReset,
    /// Entries `{id}@{host}:{port}`.
    Voters,
    /// Entries `{host}:{port}`.
    HostPorts,
}

/// A bound of a range: the number, and its text in the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    value: f64,
    text: &'static str,
}

impl Bound {
    fn parse(text: &'static str) -> Option<Self> {
        Some(Self { value: text.parse().ok()?, text })
    }
}

impl Validator {
    /// Reads the rule from its form in a table.
    pub(crate) fn parse(text: &'static str) -> Option<Self> {
        Some(match text {
            "" | "non-null string" => Self::Any,
            "[1,...,9] or -1" => Self::GzipLevel,
            "non-empty string" => Self::NonEmpty,
            "throttled replicas" => Self::ThrottledReplicas,
            "offset reset" => Self::OffsetReset,
            "voters" => Self::Voters,
            "host:port list" => Self::HostPorts,
            _ if text.contains(",...") => parse_range(text)?,
            _ => {
                if let Some(rest) = text.strip_prefix("list") {
                    let (may_be_empty, rest) = match rest.strip_prefix(" non-empty") {
                        Some(rest) => (false, rest),
                        None => (true, rest),
                    };
                    Self::Entries { may_be_empty, entries: parse_choices(rest) }
                } else if let Some(rest) = text.strip_prefix("(case insensitive) ") {
                    Self::OneOfIgnoringCase(parse_choices(rest))
                } else {
                    Self::OneOf(parse_choices(text))
                }
            }
        })
    }

    /// Checks a value.
    pub(crate) fn check(&self, name: &str, value: &Value) -> Result<(), ConfigError> {
        match (self, value) {
            (Self::Any, _) => Ok(()),
            (Self::Range { min, max }, value) => check_range(name, value, *min, *max),
            (Self::GzipLevel, value) => check_gzip_level(name, value),
            (Self::Entries { may_be_empty, entries }, Value::List(list)) => {
                check_entries(name, list, *may_be_empty, entries)
            }
            (Self::ThrottledReplicas, Value::List(list)) => check_throttled(name, list),
            (Self::Voters, Value::List(list)) => check_each(list, |entry| {
                super::listener::parse_voter(entry)
                    .map(|_| ())
                    .ok_or_else(|| ConfigError::Voter { name: name.to_owned() })
            }),
            (Self::HostPorts, Value::List(list)) => check_each(list, |entry| {
                super::listener::parse_host_port(entry)
                    .map(|_| ())
                    .ok_or_else(|| ConfigError::HostPort { name: name.to_owned(), entry: entry.to_owned() })
            }),
            (rule, Value::Text(text)) => rule.check_text(name, text),
            (_, _) => Ok(()),
        }
    }

    fn check_text(&self, name: &str, text: &str) -> Result<(), ConfigError> {
        match self {
            Self::OneOf(choices) if !choices.contains(&text) => Err(ConfigError::not_allowed(
                name,
                text,
                format!("String must be one of: {}", choices.join(", ")),
            )),
            Self::OneOfIgnoringCase(choices) if !choices.iter().any(|c| c.eq_ignore_ascii_case(text)) => {
                Err(ConfigError::not_allowed(
                    name,
                    text,
                    format!("String must be one of (case insensitive): {}", choices.join(", ")),
                ))
            }
            Self::NonEmpty if text.is_empty() => {
                Err(ConfigError::not_allowed(name, text, "String must be non-empty"))
            }
            Self::OffsetReset if !is_offset_reset(text) => Err(ConfigError::not_allowed(
                name,
                text,
                format!(
                    "Invalid value `{text}` for configuration {name}. The value must be either 'earliest', \
                     'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// `[1,...]`, `[1,...,9]`.
fn parse_range(text: &'static str) -> Option<Validator> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let (min, max) = inner.split_once(",...")?;
    let max = max.strip_prefix(',');
    Some(Validator::Range {
        min: if min.is_empty() { None } else { Some(Bound::parse(min)?) },
        max: max.map(Bound::parse).map_or(Some(None), |bound| bound.map(Some))?,
    })
}

/// `[a, b]`; nothing for an empty text.
fn parse_choices(text: &'static str) -> Vec<&'static str> {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    inner.split(", ").filter(|choice| !choice.is_empty()).collect()
}

#[allow(clippy::cast_precision_loss)] // The bounds are small or the type's own.
fn check_range(name: &str, value: &Value, min: Option<Bound>, max: Option<Bound>) -> Result<(), ConfigError> {
    let number = match value {
        Value::Double(v) => *v,
        other => match other.as_i64() {
            Some(v) => v as f64,
            None => return Ok(()),
        },
    };
    if let Some(min) = min.filter(|min| number < min.value) {
        return Err(ConfigError::not_allowed(name, value, format!("Value must be at least {}", min.text)));
    }
    if let Some(max) = max.filter(|max| number > max.value) {
        return Err(ConfigError::not_allowed(
            name,
            value,
            format!("Value must be no more than {}", max.text),
        ));
    }
    Ok(())
}

fn check_gzip_level(name: &str, value: &Value) -> Result<(), ConfigError> {
    match value.as_i64() {
        Some(-1 | 1..=9) => Ok(()),
        _ => Err(ConfigError::not_allowed(name, value, "Value must be between 1 and 9 or equal to -1")),
    }
}

fn check_entries(
    name: &str,
    list: &[String],
    may_be_empty: bool,
    entries: &[&str],
) -> Result<(), ConfigError> {
    if list.is_empty() && !may_be_empty {
        let allowed = match entries {
            [] => "any non-empty value".to_owned(),
            some => format!("[{}]", some.join(", ")),
        };
        return Err(ConfigError::EmptyList { name: name.to_owned(), allowed });
    }
    check_each(list, |entry| {
        if entry.is_empty() {
            Err(ConfigError::EmptyEntry { name: name.to_owned() })
        } else if !entries.is_empty() && !entries.contains(&entry) {
            let allowed = format!("String must be one of: {}", entries.join(", "));
            Err(ConfigError::not_allowed(name, entry, allowed))
        } else {
            Ok(())
        }
    })
}

fn check_throttled(name: &str, list: &[String]) -> Result<(), ConfigError> {
    // Kafka judges the joined text: lists of nothing but empty entries pass.
    let joined = list.join(",");
    let joined = joined.trim_matches(',');
    let is_pair = |entry: &str| {
        entry.split_once(':').is_some_and(|(partition, broker)| is_digits(partition) && is_digits(broker))
    };
    if joined.is_empty() || joined == "*" || list.iter().all(|entry| is_pair(entry)) {
        return Ok(());
    }
    let allowed = format!(
        "{name} must be the literal '*' or a list of replicas in the following format: \
         [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    );
    Err(ConfigError::not_allowed(name, format!("[{}]", list.join(", ")), allowed))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn check_each(
    list: &[String],
    mut check: impl FnMut(&str) -> Result<(), ConfigError>,
) -> Result<(), ConfigError> {
    list.iter().try_for_each(|entry| check(entry))
}

fn is_offset_reset(text: &str) -> bool {
    match text {
        "latest" | "earliest" => true,
        _ => text.strip_prefix("by_duration:").is_some_and(is_duration),
    }
}

/// Whether the text is an ISO-8601 duration `PnDTnHnMn.nS` that is not negative.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['P', 'p']) else { return false };
    let (days, time) = match rest.split_once(['T', 't']) {
        Some((days, time)) if !time.is_empty() => (days, time),
        Some(_) => return false,
        None => (rest, ""),
    };
    let days_ok = days.is_empty() || days.strip_suffix(['D', 'd']).is_some_and(is_digits);
    if !days_ok || (days.is_empty() && time.is_empty()) {
        return false;
    }
    let mut rest = time;
    for unit in [['H', 'h'], ['M', 'm'], ['S', 's']] {
        if let Some((number, tail)) = rest.split_once(unit) {
            let whole_ok = match number.split_once('.') {
                Some((whole, fraction)) if unit[0] == 'S' => {
                    is_digits(whole) && fraction.len() <= 9 && (fraction.is_empty() || is_digits(fraction))
                }
                _ => is_digits(number),
            };
            if !whole_ok {
                return false;
            }
            rest = tail;
        }
    }
    rest.is_empty()
}
