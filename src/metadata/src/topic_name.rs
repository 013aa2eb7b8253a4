//! Rules for topic names.

/// The log of the quorum. It's no topic: nobody may create or delete it.
pub const CLUSTER_METADATA_TOPIC: &str = "__cluster_metadata";

/// The longest name, so that `name-partition` plus a suffix still fits a file name.
const MAX_LENGTH: usize = 249;

/// Whether a topic belongs to the brokers themselves.
pub fn is_internal(name: &str) -> bool {
    matches!(name, "__consumer_offsets" | "__transaction_state" | "__share_group_state")
}

/// Checks a topic's name. The error is the text Kafka gives with INVALID_TOPIC_EXCEPTION.
pub fn validate(name: &str) -> Result<(), String> {
    let reason = if name.is_empty() {
        "the empty string is not allowed".to_string()
    } else if name == "." || name == ".." {
        format!("'{name}' is not allowed")
    } else if name.chars().count() > MAX_LENGTH {
        format!("the length of '{name}' is longer than the max allowed length {MAX_LENGTH}")
    } else if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')) {
        format!("'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'")
    } else {
        return Ok(());
    };
    Err(format!("Topic name is invalid: {reason}"))
}

/// Two names that differ only in dots and underscores collide: they would give metrics of one name.
pub(crate) fn may_collide(name: &str) -> bool {
    name.contains(['.', '_'])
}

/// Whether two names collide.
pub(crate) fn collide(a: &str, b: &str) -> bool {
    a.len() == b.len()
        && a.bytes().zip(b.bytes()).all(|(a, b)| {
            let unify = |c| if c == b'.' { b'_' } else { c };
            unify(a) == unify(b)
        })
}
