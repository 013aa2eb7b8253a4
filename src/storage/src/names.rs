//! Names of files and directories, as Kafka's.

use std::fmt;

use crate::error::StorageError;

/// A topic's name and a partition's number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic's name.
    pub topic: String,
    /// The partition's number.
    pub partition: i32,
}

impl TopicPartition {
    /// A topic partition of these parts.
    pub fn new(topic: impl Into<String>, partition: i32) -> TopicPartition {
        TopicPartition { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// What a partition's directory is there for, told by its name's ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirKind {
    /// The partition's log: `topic-0`.
    Current,
    /// To be deleted: `topic-0.<32 hex digits>-delete`.
    Delete,
    /// A copy under way from another log directory: `…-future`.
    Future,
    /// A log of a partition that is not this broker's: `…-stray`.
    Stray,
}

/// The longest name a directory may have.
const MAX_NAME_BYTES: usize = 255;

impl DirKind {
    fn suffix(self) -> &'static str {
        match self {
            DirKind::Current => "",
            DirKind::Delete => "-delete",
            DirKind::Future => "-future",
            DirKind::Stray => "-stray",
        }
    }
}

/// The name of a partition's directory. `unique`, random, sets renamed directories of one partition apart.
pub fn partition_dir_name(tp: &TopicPartition, kind: DirKind, unique: [u8; 16]) -> String {
    if kind == DirKind::Current {
        return tp.to_string();
    }
    let hex: String = unique.iter().map(|byte| format!("{byte:02x}")).collect();
    let ending = format!("-{}.{hex}{}", tp.partition, kind.suffix());
    // A long topic name is cut, as the name serves only to be unique and to show what it was.
    let room = MAX_NAME_BYTES.saturating_sub(ending.len());
    let topic: String = tp.topic.chars().take(room).collect();
    topic + &ending
}

/// The partition and kind of a directory's name.
pub fn parse_partition_dir(name: &str) -> Result<(TopicPartition, DirKind), StorageError> {
    let bad = || StorageError::BadDirectoryName { name: name.to_owned() };
    let parsed = [DirKind::Delete, DirKind::Future, DirKind::Stray].into_iter().find_map(|kind| {
        let (rest, unique) = name.strip_suffix(kind.suffix())?.rsplit_once('.')?;
        let is_hex = unique.len() == 32 && unique.bytes().all(|b| b.is_ascii_hexdigit());
        is_hex.then_some((rest, kind))
    });
    let (stem, kind) = parsed.unwrap_or((name, DirKind::Current));
    let (topic, partition) = stem.rsplit_once('-').ok_or_else(bad)?;
    let digits = !partition.is_empty() && partition.bytes().all(|b| b.is_ascii_digit());
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    if topic.is_empty() || !topic.bytes().all(legal) || !digits {
        return Err(bad());
    }
    Ok((TopicPartition::new(topic, partition.parse().map_err(|_| bad())?), kind))
}

/// The endings of a segment's files.
pub(crate) const LOG: &str = "log";
pub(crate) const OFFSET_INDEX: &str = "index";
pub(crate) const TIME_INDEX: &str = "timeindex";
pub(crate) const TXN_INDEX: &str = "txnindex";
pub(crate) const SNAPSHOT: &str = "snapshot";
/// Added to the name of a file that compaction writes.
pub(crate) const CLEANED: &str = ".cleaned";
/// Added to the name of a compacted file that is about to take the place of others.
pub(crate) const SWAP: &str = ".swap";
/// Added to the name of a file that is to be deleted.
pub(crate) const DELETED: &str = ".deleted";

/// `00000000000000000042.log`
pub(crate) fn segment_file(base_offset: i64, ending: &str) -> String {
    format!("{base_offset:020}.{ending}")
}

/// The offset in a name such as `00000000000000000042.log`, if it has this ending.
pub(crate) fn offset_of(name: &str, ending: &str) -> Option<i64> {
    let digits = name.strip_suffix(ending)?.strip_suffix('.')?;
    (digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_round() {
        let tp = TopicPartition::new("a.b-7", 3);
        for kind in [DirKind::Current, DirKind::Delete, DirKind::Future, DirKind::Stray] {
            let name = partition_dir_name(&tp, kind, [0; 16]);
            assert_eq!(parse_partition_dir(&name).unwrap(), (tp.clone(), kind), "{name}");
        }
        let long = TopicPartition::new("x".repeat(249), 12);
        assert_eq!(partition_dir_name(&long, DirKind::Delete, [0; 16]).len(), 255);
    }

    #[test]
    fn kafkas_own_name_and_bad_ones() {
        let (tp, kind) = parse_partition_dir("gone-0.ff6c00f5fdc74a4e85d05bb620760b7f-delete").unwrap();
        assert_eq!((tp, kind), (TopicPartition::new("gone", 0), DirKind::Delete));
        // A topic may itself end as a kind does.
        let (tp, kind) = parse_partition_dir("my-delete-0").unwrap();
        assert_eq!((tp, kind), (TopicPartition::new("my-delete", 0), DirKind::Current));
        for name in ["", "x", "x-", "-0", "x-0a", "x-99999999999", "x y-0", "lost+found"] {
            assert!(parse_partition_dir(name).is_err(), "{name}");
        }
    }

    #[test]
    fn offsets_in_names() {
        assert_eq!(offset_of(&segment_file(42, LOG), LOG), Some(42));
        for name in ["42.log", "00000000000000000042.index", "0000000000000000004x.log", ".log", "log"] {
            assert_eq!(offset_of(name, LOG), None, "{name}");
        }
    }
}
