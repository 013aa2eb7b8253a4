//! Values: read from text as Kafka reads them, and written back in its form.

use std::fmt;

use super::definition::ConfigType;
use super::error::ConfigError;

/// The value of a setting.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// A BOOLEAN.
    Boolean(bool),
    /// An INT.
    Int(i32),
    /// A SHORT.
    Short(i16),
    /// A LONG.
    Long(i64),
    /// A DOUBLE.
    Double(f64),
    /// A STRING or a CLASS.
    Text(String),
    /// A LIST.
    List(Vec<String>),
    /// A PASSWORD; not shown by `Debug` or `Display`.
    Password(String),
}

impl Value {
    /// The value as a whole number, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Int(v) => Some(i64::from(*v)),
            Self::Short(v) => Some(i64::from(*v)),
            Self::Long(v) => Some(*v),
            _ => None,
        }
    }

    /// The text that is stored in a config record: what `Display` gives, and a secret in clear.
    pub fn to_stored(&self) -> String {
        match self {
            Self::Password(secret) => secret.clone(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(v) => write!(f, "{v}"),
            Self::Int(v) => write!(f, "{v}"),
            Self::Short(v) => write!(f, "{v}"),
            Self::Long(v) => write!(f, "{v}"),
            Self::Double(v) => f.write_str(&format_double(*v)),
            Self::Text(v) => f.write_str(v),
            Self::List(v) => f.write_str(&v.join(",")),
            Self::Password(_) => f.write_str("[hidden]"),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Reads a value of a type. Spaces around it do not count, except in the text of an error.
pub(crate) fn parse(name: &str, kind: ConfigType, text: &str) -> Result<Value, ConfigError> {
    let trimmed = text.trim();
    let not_a_number = || ConfigError::NotANumber { name: name.to_owned(), value: text.to_owned(), kind };
    Ok(match kind {
        ConfigType::Boolean if trimmed.eq_ignore_ascii_case("true") => Value::Boolean(true),
        ConfigType::Boolean if trimmed.eq_ignore_ascii_case("false") => Value::Boolean(false),
        ConfigType::Boolean => {
            return Err(ConfigError::not_allowed(name, text, "Expected value to be either true or false"));
        }
        ConfigType::Int => Value::Int(trimmed.parse().map_err(|_| not_a_number())?),
        ConfigType::Short => Value::Short(trimmed.parse().map_err(|_| not_a_number())?),
        ConfigType::Long => Value::Long(trimmed.parse().map_err(|_| not_a_number())?),
        ConfigType::Double => Value::Double(parse_double(trimmed).ok_or_else(not_a_number)?),
        ConfigType::String | ConfigType::Class => Value::Text(trimmed.to_owned()),
        ConfigType::List => Value::List(parse_list(trimmed)),
        ConfigType::Password => Value::Password(trimmed.to_owned()),
    })
}

fn parse_list(text: &str) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    text.split(',').map(|entry| entry.trim().to_owned()).collect()
}

/// Java's floating-point literals in decimal: `1e3`, `5f`, `1d`, `NaN`, `Infinity`.
fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
    match unsigned {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(sign * f64::INFINITY),
        _ => {}
    }
    // Rust also reads `inf` and `nan`, which Java does not.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let digits = unsigned.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(unsigned);
    digits.parse::<f64>().ok().map(|v| sign * v)
}

/// Java's form of a double: a point always, and an exponent from 10^7 up and below 10^-3.
fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let magnitude = value.abs();
    if magnitude == 0.0 || (1e-3..1e7).contains(&magnitude) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => format!("{mantissa}E{exponent}"),
        Some((mantissa, exponent)) => format!("{mantissa}.0E{exponent}"),
        None => scientific,
    }
}
