//! The tables: API keys, error codes, feature levels.

use crate::emit::Code;
use crate::names::pascal;
use crate::schema::Message;
use serde_json::Value;
use std::error::Error;
use std::path::Path;

fn rows(path: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let value: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    Ok(value.as_array().cloned().unwrap_or_default())
}

fn text<'a>(row: &'a Value, key: &str) -> Result<&'a str, Box<dyn Error>> {
    row.get(key).and_then(Value::as_str).ok_or_else(|| format!("`{key}` is missing in {row}").into())
}

fn number(row: &Value, key: &str) -> Result<i64, Box<dyn Error>> {
    row.get(key).and_then(Value::as_i64).ok_or_else(|| format!("`{key}` is missing in {row}").into())
}

fn flag(row: &Value, key: &str) -> bool {
    row.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// `enum ApiKey` and the table `APIS`.
pub fn api_keys(path: &Path, messages: &[Message]) -> Result<String, Box<dyn Error>> {
    let rows = rows(path)?;
    let mut code = Code::default();
    code.line("api_keys! {");
    for row in &rows {
        let (name, key) = (text(row, "name")?, number(row, "key")?);
        let request = format!("{name}Request");
        if !messages.iter().any(|m| m.name == request && m.api_key == Some(key)) {
            return Err(format!("API {name} has no message {request} of key {key}").into());
        }
        let highest = number(row, "highest")?;
        let unstable = row.get("highestUnstable").and_then(Value::as_i64).unwrap_or(highest);
        let listeners: Vec<&str> = row
            .get("listeners")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        code.line(format!(
            "{name} = {key}, {}, {highest}, {unstable}, {:?}, {:?}, {}, {}, {}, {};",
            number(row, "lowest")?,
            text(row, "requestHeaders")?,
            text(row, "responseHeaders")?,
            listeners.contains(&"broker"),
            listeners.contains(&"controller"),
            flag(row, "clusterAction"),
            flag(row, "forwardable"),
        ));
    }
    code.line("}");
    Ok(code.into_text())
}

/// `enum ErrorCode`.
pub fn error_codes(path: &Path) -> Result<String, Box<dyn Error>> {
    let mut code = Code::default();
    code.line("error_codes! {");
    for row in rows(path)? {
        let name = text(&row, "name")?;
        let (number, retriable) = (number(&row, "code")?, flag(&row, "retriable"));
        code.line(format!(
            "{} = {number}, {name:?}, {retriable}, {:?};",
            pascal(name),
            text(&row, "message")?
        ));
    }
    code.line("}");
    Ok(code.into_text())
}

/// The table `FEATURES`.
pub fn features(path: &Path) -> Result<String, Box<dyn Error>> {
    let mut code = Code::default();
    code.line("/// Every feature and its levels, as Kafka 4.4 has them.");
    code.line("pub static FEATURES: &[Feature] = &[");
    for row in rows(path)? {
        code.line(format!("Feature {{ name: {:?}, levels: &[", text(&row, "feature")?));
        for level in row.get("levels").and_then(Value::as_array).into_iter().flatten() {
            code.line(format!(
                "FeatureLevel {{ level: {}, name: {:?}, metadata_version: {:?} }},",
                number(level, "level")?,
                text(level, "name")?,
                text(level, "metadataVersion")?,
            ));
        }
        code.line("] },");
    }
    code.line("];");
    Ok(code.into_text())
}
