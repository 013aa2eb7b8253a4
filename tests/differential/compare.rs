//! What differs between two transcripts, less what is listed as an exception.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::exceptions::{EXCEPTIONS, Exception};
use crate::stage::Step;

/// One value that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The step's place.
    pub at: usize,
    /// The step's note.
    pub step: String,
    /// Where in the answer.
    pub path: String,
    /// Kafka's value.
    pub kafka: String,
    /// Callboard's value.
    pub callboard: String,
}

/// All differences of two plays of a scenario, and which exceptions covered more.
pub fn compare(scenario: &str, kafka: &[Step], callboard: &[Step]) -> (Vec<Difference>, BTreeSet<usize>) {
    let mut found = Vec::new();
    for at in 0..kafka.len().max(callboard.len()) {
        let (ours, theirs) = (callboard.get(at), kafka.get(at));
        let note = theirs.or(ours).map_or("", |step| &step.note);
        let value = |step: Option<&Step>| step.map_or(Value::Null, |step| step.seen.clone());
        let mut here = Vec::new();
        walk(note, "", &value(theirs), &value(ours), &mut here);
        found.extend(here.into_iter().map(|difference| Difference { at, ..difference }));
    }
    let mut excepted = BTreeSet::new();
    found.retain(|difference| {
        let covers = |exception: &Exception| exception.covers(scenario, &difference.step, &difference.path);
        let exception = EXCEPTIONS.iter().position(covers);
        excepted.extend(exception);
        exception.is_none()
    });
    (found, excepted)
}

fn walk(step: &str, path: &str, kafka: &Value, callboard: &Value, found: &mut Vec<Difference>) {
    match (kafka, callboard) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let of = |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or(Value::Null);
                walk(step, &format!("{path}.{name}"), &of(a), &of(b), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                walk(step, &format!("{path}[{at}]"), a, b, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if named(a) && named(b) => {
            let of = |items: &[Value], name: &str| items.iter().find(|item| item["name"] == name).cloned();
            let names: BTreeSet<&str> = a.iter().chain(b).filter_map(|item| item["name"].as_str()).collect();
            for name in names {
                let (a, b) = (of(a, name).unwrap_or_default(), of(b, name).unwrap_or_default());
                walk(step, &format!("{path}[{name}]"), &a, &b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(Difference {
            at: 0,
            step: step.to_owned(),
            path: path.to_owned(),
            kafka: a.to_string(),
            callboard: b.to_string(),
        }),
    }
}

/// Whether a list's items have names to tell them apart.
fn named(items: &[Value]) -> bool {
    let names: BTreeSet<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
    !items.is_empty() && names.len() == items.len()
}

/// Prints differences, the same of several versions once.
pub fn report(
    scenario: &str,
    by_version: &BTreeMap<i16, Vec<Difference>>,
    prefix_of: impl Fn(i16) -> String,
) {
    let mut versions: BTreeMap<Difference, Vec<i16>> = BTreeMap::new();
    for (version, differences) in by_version {
        for difference in differences {
            let plain = |text: &str| text.replace(&prefix_of(*version), "~");
            let difference = Difference {
                kafka: plain(&difference.kafka),
                callboard: plain(&difference.callboard),
                ..difference.clone()
            };
            versions.entry(difference).or_default().push(*version);
        }
    }
    for (difference, versions) in versions {
        let Difference { step, path, kafka, callboard, .. } = difference;
        println!(
            "DIFFERS {scenario} {versions:?} \"{step}\" {path}\n    kafka:     {kafka}\n    callboard: {callboard}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(seen: Value) -> Vec<Step> {
        vec![Step { note: "asked".to_owned(), seen }]
    }

    #[test]
    fn differences_say_where() {
        let kafka = step(json!({ "errorCode": 3, "topics": [{ "name": "a", "x": 1 }, { "name": "b" }] }));
        let ours = step(json!({ "errorCode": 3, "topics": [{ "name": "a", "x": 2 }] }));
        let (found, _) = compare("none such", &kafka, &ours);
        let paths: Vec<(&str, &str)> =
            found.iter().map(|d| (d.path.as_str(), d.callboard.as_str())).collect();
        assert_eq!(paths, [(".topics[a].x", "2"), (".topics[b]", "null")]);
    }

    #[test]
    fn a_step_that_one_lacks_is_a_difference() {
        assert_eq!(compare("none such", &step(json!(1)), &[]).0.len(), 1);
        assert_eq!(compare("none such", &step(json!(1)), &step(json!(1))).0.len(), 0);
    }
}
