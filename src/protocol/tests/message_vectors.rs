//! Every golden vector, both ways: bytes to message to bytes, message to JSON, and JSON to bytes.

use bytes::Bytes;
use callboard_protocol::for_each_message;
use callboard_protocol::messages::{self, Message};
use callboard_protocol::wire::Reader;
use serde_json::Value;
use std::collections::BTreeSet;

struct Vector {
    message: String,
    version: i16,
    bytes: Bytes,
    value: Value,
}

fn vectors() -> Vec<Vector> {
    let lines = include_str!("vectors/messages.jsonl").lines();
    lines
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("a vector is JSON");
            let hex = line["hex"].as_str().expect("hex");
            let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
            Vector {
                message: line["message"].as_str().expect("name").to_owned(),
                version: line["version"].as_i64().and_then(|v| v.try_into().ok()).expect("version"),
                bytes: (0..hex.len()).step_by(2).map(digits).collect::<Vec<u8>>().into(),
                value: line["value"].clone(),
            }
        })
        .collect()
}

/// The vectors' JSON form leaves out what fields of records hold; the bytes of `hex` have it.
fn without_records(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| match (name.as_str(), field) {
                ("records" | "unalignedRecords", Value::String(_)) => (name.clone(), Value::from("")),
                _ => (name.clone(), without_records(field)),
            })
            .collect(),
        Value::Array(items) => items.iter().map(without_records).collect(),
        other => other.clone(),
    }
}

fn check<M: Message>(vector: &Vector) -> Result<(), String> {
    let Vector { version, bytes, value, .. } = vector;
    let fail = |what: &str, why: String| format!("{} v{version} {what}: {why}", M::NAME);
    let mut reader = Reader::new(bytes);
    let message = M::decode(&mut reader, *version).map_err(|e| fail("decode", e.to_string()))?;
    if reader.remaining() > 0 {
        return Err(fail("decode", format!("{} bytes left", reader.remaining())));
    }
    let again = message.to_bytes(*version).map_err(|e| fail("encode", e.to_string()))?;
    if again != bytes {
        return Err(fail("encode", format!("{again:02x?} is not {bytes:02x?}")));
    }
    let json = message.to_json(*version).map_err(|e| fail("to_json", e.to_string()))?;
    if without_records(&json) != *value {
        return Err(fail("to_json", format!("{json} is not {value}")));
    }
    let read = M::from_json(&json, *version).map_err(|e| fail("from_json", e.to_string()))?;
    if read != message || read.to_bytes(*version).as_ref() != Ok(bytes) {
        return Err(fail("from_json", format!("{read:?} is not {message:?}")));
    }
    Ok(())
}

macro_rules! check_by_name {
    ($($name:ident),*) => {
        fn check_by_name(vector: &Vector) -> Result<(), String> {
            match vector.message.as_str() {
                $(stringify!($name) => check::<messages::$name>(vector),)*
                name => Err(format!("no message {name}")),
            }
        }

        fn all_versions() -> Vec<(&'static str, i16)> {
            let mut all = Vec::new();
            $(all.extend(versions::<messages::$name>().map(|version| (stringify!($name), version)));)*
            all
        }
    };
}

fn versions<M: Message>() -> impl Iterator<Item = i16> {
    M::MIN_VERSION..=M::MAX_VERSION
}

for_each_message!(check_by_name);

#[test]
fn every_vector_goes_both_ways() {
    let failures: Vec<String> = vectors().iter().filter_map(|vector| check_by_name(vector).err()).collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_message_has_vectors_at_every_version() {
    let vectors = vectors();
    let seen: BTreeSet<(&str, i16)> = vectors.iter().map(|v| (v.message.as_str(), v.version)).collect();
    let missing: Vec<_> = all_versions().into_iter().filter(|version| !seen.contains(version)).collect();
    // The vectors lack this one; `tagged_fields` covers it.
    assert_eq!(missing, [("TransactionLogValue", 0)]);
    assert_eq!(vectors.len(), 2972);
}

#[test]
fn no_truncated_vector_decodes_beyond_its_end() {
    macro_rules! decode_by_name {
        ($($name:ident),*) => {
            |vector: &Vector, bytes: &Bytes| match vector.message.as_str() {
                $(stringify!($name) => messages::$name::from_bytes(bytes, vector.version).is_ok(),)*
                _ => true,
            }
        };
    }
    let decodes = for_each_message!(decode_by_name);
    for vector in vectors() {
        for len in 0..vector.bytes.len().min(200) {
            assert!(
                !decodes(&vector, &vector.bytes.slice(..len)),
                "{} v{} cut at {len}",
                vector.message,
                vector.version
            );
        }
    }
}
