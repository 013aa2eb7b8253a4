//! Offset checkpoints of a log directory, in Kafka's text format: a version line `0`, a count line, then
//! `topic partition offset` a line.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{IoContext, StorageError};
use crate::fs::{self, Durability};
use crate::names::TopicPartition;

/// Offsets up to which each log is on the device.
pub const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";
/// First offsets, where they differ from the first segment's.
pub const LOG_START_OFFSETS: &str = "log-start-offset-checkpoint";
/// High watermarks.
pub const HIGH_WATERMARKS: &str = "replication-offset-checkpoint";
/// Offsets up to which each log was compacted.
pub const CLEANED_OFFSETS: &str = "cleaner-offset-checkpoint";

/// Reads an offset checkpoint. A file that is missing or empty holds no offsets.
pub fn read_offsets(path: &Path) -> Result<BTreeMap<TopicPartition, i64>, StorageError> {
    read_lines(path, |line| {
        let mut fields = line.split(' ');
        let topic = fields.next().filter(|topic| !topic.is_empty())?;
        let partition = fields.next()?.parse().ok()?;
        let offset = fields.next()?.parse().ok()?;
        fields.next().is_none().then(|| (TopicPartition::new(topic, partition), offset))
    })
    .map(|entries| entries.into_iter().collect())
}

/// Replaces an offset checkpoint as a whole.
pub fn write_offsets<'a>(
    path: &Path,
    offsets: impl IntoIterator<Item = (&'a TopicPartition, i64)>,
    durability: Durability,
) -> Result<(), StorageError> {
    let lines = offsets.into_iter().map(|(tp, offset)| format!("{} {} {offset}", tp.topic, tp.partition));
    write_lines(path, lines, durability)
}

/// Reads the lines of a version 0 checkpoint file.
pub(crate) fn read_lines<T>(path: &Path, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, StorageError> {
    let text = match std::fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            return Err(StorageError::corrupt(path, "not text"));
        }
        result => result.at("read", path)?,
    };
    let mut lines = text.lines();
    let Some(version) = lines.next() else { return Ok(Vec::new()) };
    if version.trim() != "0" {
        return Err(StorageError::corrupt(path, format!("unknown version {version:?}")));
    }
    let count = lines.next().and_then(|line| line.trim().parse::<usize>().ok());
    let count = count.ok_or_else(|| StorageError::corrupt(path, "no count of entries"))?;
    let mut entries = Vec::new();
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        entries.push(parse(line).ok_or_else(|| StorageError::corrupt(path, format!("bad line {line:?}")))?);
    }
    if entries.len() != count {
        let reason = format!("{} entries where {count} are announced", entries.len());
        return Err(StorageError::corrupt(path, reason));
    }
    Ok(entries)
}

/// Writes a version 0 checkpoint file.
pub(crate) fn write_lines(
    path: &Path,
    lines: impl IntoIterator<Item = String>,
    durability: Durability,
) -> Result<(), StorageError> {
    let mut body = String::new();
    let mut count = 0;
    for line in lines {
        body.push_str(&line);
        body.push('\n');
        count += 1;
    }
    fs::write_atomically(path, format!("0\n{count}\n{body}").as_bytes(), durability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_go_round_in_kafkas_format() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(RECOVERY_POINTS);
        assert!(read_offsets(&path).unwrap().is_empty());
        let (a, b) = (TopicPartition::new("a", 1), TopicPartition::new("b.c", 20));
        write_offsets(&path, [(&a, 5), (&b, 70)], Durability::Synced).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n2\na 1 5\nb.c 20 70\n");
        assert_eq!(read_offsets(&path).unwrap(), BTreeMap::from([(a, 5), (b, 70)]));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn damage_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c");
        for text in ["1\n0\n", "0\n", "0\n2\na 1 5\n", "0\n1\na 1\n", "0\n1\na 1 2 3\n", "0\nx\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(read_offsets(&path), Err(StorageError::Corrupt { .. })), "{text:?}");
        }
        std::fs::write(&path, "").unwrap();
        assert!(read_offsets(&path).unwrap().is_empty());
    }
}
