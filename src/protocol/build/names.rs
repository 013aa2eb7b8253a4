//! Names: Kafka's CamelCase to Rust's snake_case and JSON's camelCase.

/// `TopicId` → `topic_id`, `V3AndBelowTopics` → `v3_and_below_topics`, `KRaftVersion` → `k_raft_version`.
pub fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, c) in chars.iter().enumerate() {
        if c.is_uppercase() && i > 0 {
            let after_lower = !chars[i - 1].is_uppercase();
            let before_lower = chars.get(i + 1).is_some_and(|next| next.is_lowercase());
            if after_lower || before_lower {
                out.push('_');
            }
        }
        out.extend(c.to_lowercase());
    }
    match out.as_str() {
        "type" | "match" | "move" | "ref" | "use" | "where" => format!("r#{out}"),
        _ => out,
    }
}

/// `TopicId` → `topicId`: the name in Kafka's JSON form.
pub fn camel(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// `UNKNOWN_TOPIC_ID` → `UnknownTopicId`.
pub fn pascal(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let mut chars = word.chars();
            chars.next().map(|c| c.to_string() + &chars.as_str().to_lowercase()).unwrap_or_default()
        })
        .collect()
}
