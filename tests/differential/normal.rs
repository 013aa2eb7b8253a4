//! The normal form of an answer: what two brokers can't share is replaced by names.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use callboard_protocol::json::JsonForm as _;
use callboard_protocol::records::{self, Compression};
use callboard_protocol::{ApiKey, Uuid};
use serde_json::{Value, json};

use crate::broker::Broker;

/// How far from now a time may be to count as the broker's own.
const NOW_WINDOW_MS: i64 = 600_000;

/// What one broker calls things that the other calls otherwise.
#[derive(Clone, Debug)]
pub struct Names {
    texts: Vec<(String, String)>,
    producers: Vec<i64>,
    port: u16,
}

impl Names {
    /// The names of a broker that nothing is known of but its ports.
    pub fn new(broker: &Broker) -> Self {
        let port = broker.address.1;
        let texts = [(port, "<port>"), (port + 1, "<controller port>")];
        let texts = texts.map(|(port, name)| (format!("localhost:{port}"), format!("localhost:{name}")));
        let mut texts = texts.to_vec();
        texts.extend(broker.log_dir.iter().map(|dir| (dir.clone(), "<log dir>".to_owned())));
        Self { texts, producers: Vec::new(), port }
    }

    /// Names a topic id.
    pub fn add_topic(&mut self, id: Uuid, topic: &str) {
        if id != Uuid::ZERO {
            self.texts.push((id.to_string(), format!("<id of {topic}>")));
        }
    }

    /// Learns what an answer gave out: ids of topics that it names, and producer ids of InitProducerId.
    pub fn learn(&mut self, answer: &Value) {
        if let (Some(id), Some(_)) = (answer["producerId"].as_i64(), answer.get("producerEpoch"))
            && id >= 0
            && !self.producers.contains(&id)
        {
            self.producers.push(id);
        }
        for topic in answer["topics"].as_array().into_iter().flatten() {
            if let (Some(id), Some(name)) = (topic["topicId"].as_str(), topic["name"].as_str())
                && let Ok(id) = id.parse()
            {
                self.add_topic(id, name);
            }
        }
    }

    fn text(&self, text: &str) -> String {
        let replaced = |text: String, (from, to): &(String, String)| text.replace(from, to);
        name_times(&self.texts.iter().fold(text.to_owned(), replaced))
    }
}

/// What is done with a field.
enum Rule {
    /// It is random, or counts what goes on in the broker: only whether it is set is compared.
    Own,
    /// The order is that of a hash map in Kafka, or of what was done first: sorted by what items are called.
    Unordered,
}

/// Fields that can't be equal, by API (none: all) and name.
const RULES: &[(Option<ApiKey>, &str, Rule)] = &[
    (None, "clusterId", Rule::Own),
    (None, "sessionId", Rule::Own),
    (None, "logDir", Rule::Own),
    (None, "totalBytes", Rule::Own),
    (None, "usableBytes", Rule::Own),
    // Callboard has its own words.
    (Some(ApiKey::DescribeConfigs), "documentation", Rule::Own),
    (None, "finalizedFeatures", Rule::Unordered),
    (None, "supportedFeatures", Rule::Unordered),
    (Some(ApiKey::CreatePartitions), "results", Rule::Unordered),
    (Some(ApiKey::DeleteTopics), "responses", Rule::Unordered),
    (Some(ApiKey::DeleteRecords), "topics", Rule::Unordered),
    (Some(ApiKey::DeleteRecords), "partitions", Rule::Unordered),
    (Some(ApiKey::DescribeConfigs), "configs", Rule::Unordered),
    (Some(ApiKey::DescribeLogDirs), "topics", Rule::Unordered),
    (Some(ApiKey::DescribeLogDirs), "partitions", Rule::Unordered),
    (Some(ApiKey::ListConfigResources), "configResources", Rule::Unordered),
    (Some(ApiKey::ListOffsets), "topics", Rule::Unordered),
    (Some(ApiKey::ListOffsets), "partitions", Rule::Unordered),
    (Some(ApiKey::Metadata), "topics", Rule::Unordered),
    (Some(ApiKey::Produce), "responses", Rule::Unordered),
    (Some(ApiKey::Produce), "partitionResponses", Rule::Unordered),
    // The metadata log holds other records before and between.
    (Some(ApiKey::ApiVersions), "finalizedFeaturesEpoch", Rule::Own),
    (Some(ApiKey::DescribeQuorum), "highWatermark", Rule::Own),
    (Some(ApiKey::DescribeQuorum), "leaderEpoch", Rule::Own),
    (Some(ApiKey::DescribeQuorum), "logEndOffset", Rule::Own),
    (Some(ApiKey::DescribeQuorum), "replicaDirectoryId", Rule::Own),
];

/// Brings an answer into its normal form.
pub fn normalise(api: ApiKey, answer: &mut Value, names: &Names) {
    match answer {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match name.as_str() {
                    "records" => *value = tell_records(value, names),
                    "apiKeys" => *value = tell_apis(value),
                    _ => {}
                }
                normalise(api, value, names);
                if let Some((_, _, rule)) =
                    RULES.iter().find(|(of, field, _)| field == name && of.is_none_or(|of| of == api))
                {
                    apply(rule, name, value);
                }
                if name == "port" {
                    name_port(value, names.port);
                }
                if name == "producerId" {
                    name_producer(value, names);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| normalise(api, item, names)),
        Value::String(text) => *text = names.text(text),
        Value::Number(number) if number.as_i64().is_some_and(is_now) => *answer = json!("<now>"),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn apply(rule: &Rule, name: &str, value: &mut Value) {
    match (rule, value) {
        (Rule::Own, value) => {
            let unset = value.is_null() || *value == json!("") || value.as_i64().is_some_and(|n| n <= 0);
            if !unset && *value != json!(Uuid::ZERO.to_string()) {
                *value = json!(format!("<{name}>"));
            }
        }
        (Rule::Unordered, Value::Array(items)) => items.sort_by_key(identity),
        (Rule::Unordered, _) => {}
    }
}

/// What an item of a list is called, and all of it where that is not enough.
fn identity(item: &Value) -> String {
    let fields =
        ["name", "topicName", "topic", "partitionIndex", "index"].map(|field| item[field].to_string());
    format!("{} {item}", fields.join(" "))
}

fn name_producer(value: &mut Value, names: &Names) {
    let at = value.as_i64().and_then(|id| names.producers.iter().position(|known| *known == id));
    if let Some(at) = at {
        *value = json!(format!("<producer {at}>"));
    }
}

fn name_port(value: &mut Value, port: u16) {
    if *value == json!(port) {
        *value = json!("<port>");
    } else if *value == json!(port + 1) {
        *value = json!("<controller port>");
    }
}

fn is_now(number: i64) -> bool {
    is_near(number, now_ms())
}

fn is_near(number: i64, time_ms: i64) -> bool {
    number.saturating_sub(time_ms).saturating_abs() < NOW_WINDOW_MS
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as i64)
}

/// Replaces the bounds of timestamps in a text, which move with the time, by names.
fn name_times(text: &str) -> String {
    let bounds = [now_ms() + 3_600_000, now_ms() - i64::MAX];
    let words = text.split(' ').map(|word| {
        let digits = word.trim_matches(|c: char| !c.is_ascii_digit() && c != '-');
        match digits.parse() {
            Ok(number) if bounds.iter().any(|bound| is_near(number, *bound)) => {
                word.replace(digits, "<bound>")
            }
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The versions of APIs by their names, so that each can be compared by itself.
fn tell_apis(value: &Value) -> Value {
    let name = |api: &Value| {
        let key = api["apiKey"].as_i64().and_then(|key| ApiKey::try_from(i16::try_from(key).ok()?).ok());
        key.map_or_else(|| api["apiKey"].to_string(), |key| key.name().to_owned())
    };
    let range = |api: &Value| json!(format!("{} to {}", api["minVersion"], api["maxVersion"]));
    value.as_array().into_iter().flatten().map(|api| (name(api), range(api))).collect()
}

/// Batches as what they hold: compressors differ, and a checksum covers times.
fn tell_records(value: &Value, names: &Names) -> Value {
    let Some(bytes) = value.as_str().and_then(|_| Bytes::from_json(value, 0).ok()) else {
        return value.clone();
    };
    let (mut told, mut whole) = (Vec::new(), 0);
    for batch in records::batches(bytes.clone()) {
        let Ok(batch) = batch else { break };
        whole += batch.bytes.len();
        told.push(tell_batch(&batch, names));
    }
    // What is left is the start of a batch that did not fit.
    json!({ "batches": told, "bytesOfNextBatch": bytes.len() - whole })
}

fn tell_batch(batch: &records::RecordBatch, names: &Names) -> Value {
    let header = &batch.header;
    let records: Vec<Value> = match batch.records() {
        Ok(records) => {
            records.map(|record| record.map_or_else(|error| json!(error.to_string()), tell_record)).collect()
        }
        Err(error) => vec![json!(error.to_string())],
    };
    let size =
        header.compression().is_ok_and(|codec| codec == Compression::None).then_some(header.batch_length);
    let mut told = json!({
        "baseOffset": header.base_offset, "size": size, "leaderEpoch": header.partition_leader_epoch,
        "magic": header.magic, "crcIsRight": batch.verify_crc().is_ok(), "attributes": header.attributes,
        "lastOffsetDelta": header.last_offset_delta, "baseTimestamp": header.base_timestamp,
        "maxTimestamp": header.max_timestamp, "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch, "baseSequence": header.base_sequence,
        "count": header.record_count, "records": records,
    });
    name_producer(&mut told["producerId"], names);
    told
}

fn tell_record(record: records::Record) -> Value {
    let text =
        |bytes: &Option<Bytes>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let headers = record
        .headers
        .iter()
        .map(|header| json!([String::from_utf8_lossy(&header.key), text(&header.value)]));
    json!({
        "offset": record.offset, "timestamp": record.timestamp, "key": text(&record.key),
        "value": text(&record.value), "headers": headers.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names::new(&Broker::new("Kafka", "localhost:1000"))
    }

    #[test]
    fn what_brokers_cannot_share_gets_names() {
        let id = Uuid::from_bytes([3; 16]);
        let mut names = names();
        names.add_topic(id, "t");
        names.learn(&json!({ "producerId": 4000, "producerEpoch": 0 }));
        let mut answer = json!({
            "clusterId": "abc", "port": 1000, "topicId": id.to_string(), "producerId": 4000, "sessionId": 0,
            "errorMessage": "on localhost:1001",
        });
        normalise(ApiKey::Fetch, &mut answer, &names);
        let wanted = json!({
            "clusterId": "<clusterId>", "port": "<port>", "topicId": "<id of t>", "producerId": "<producer 0>",
            "sessionId": 0, "errorMessage": "on localhost:<controller port>",
        });
        assert_eq!(answer, wanted);
    }

    #[test]
    fn only_lists_without_an_order_are_sorted() {
        let list = json!([{ "index": 2 }, { "index": 1 }]);
        let mut answer = json!({ "partitionResponses": list, "others": list });
        normalise(ApiKey::Produce, &mut answer, &names());
        assert_eq!(answer, json!({ "partitionResponses": [{ "index": 1 }, { "index": 2 }], "others": list }));
    }

    #[test]
    fn records_are_told_batch_by_batch() {
        let batch = crate::records::batch(&["a", "b"]);
        let bytes: Bytes = [&batch[..], &batch[..10]].concat().into();
        let told = tell_records(&bytes.to_json(0).unwrap(), &names());
        assert_eq!(told["bytesOfNextBatch"], 10);
        assert_eq!(told["batches"][0]["count"], 2);
        assert_eq!(told["batches"][0]["records"][1]["value"], "b");
        assert_eq!(told["batches"][0]["crcIsRight"], true);
    }
}
