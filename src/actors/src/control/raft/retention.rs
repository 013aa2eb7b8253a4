//! Which snapshots, and how much of the log behind them, may go.

use callboard_raft::SnapshotId;

/// A snapshot as retention sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Which.
    pub id: SnapshotId,
    /// Size of its file.
    pub size_bytes: u64,
    /// When its file was written, in milliseconds since 1970.
    pub written_ms: i64,
}

/// `metadata.max.retention.bytes` and `.ms`; `None` is without limit.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of the log and all snapshots.
    pub size_bytes: Option<u64>,
    /// Age of a snapshot.
    pub age_ms: Option<u64>,
}

/// The snapshot the log should start behind, if older ones are to go. The newest always stays.
///
/// `snapshots` are oldest first; `log_size_bytes` is the whole log's.
pub fn start_behind(
    snapshots: &[Kept],
    log_size_bytes: u64,
    limits: Limits,
    now_ms: i64,
) -> Option<SnapshotId> {
    let mut total = log_size_bytes + snapshots.iter().map(|s| s.size_bytes).sum::<u64>();
    let mut start = None;
    for pair in snapshots.windows(2) {
        let [old, next] = pair else { break };
        let too_large = limits.size_bytes.is_some_and(|limit| total > limit);
        let age_ms = u64::try_from(now_ms - old.written_ms).unwrap_or(0);
        let too_old = limits.age_ms.is_some_and(|limit| age_ms > limit);
        if !too_large && !too_old {
            break;
        }
        total -= old.size_bytes;
        start = Some(next.id);
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(end_offset: i64, size_bytes: u64, written_ms: i64) -> Kept {
        Kept { id: SnapshotId { end_offset, epoch: 1 }, size_bytes, written_ms }
    }

    #[test]
    fn the_oldest_go_first_and_the_newest_stays() {
        let all = [kept(0, 10, 0), kept(50, 10, 100), kept(90, 10, 200)];
        let start = |size, age, now| {
            let limits = Limits { size_bytes: size, age_ms: age };
            start_behind(&all, 70, limits, now).map(|id| id.end_offset)
        };
        assert_eq!(start(None, None, 1 << 40), None);
        assert_eq!(start(Some(100), None, 0), None);
        assert_eq!(start(Some(99), None, 0), Some(50));
        assert_eq!(start(Some(1), None, 0), Some(90));
        assert_eq!(start(None, Some(150), 200), Some(50));
        assert_eq!(start(None, Some(1), 9000), Some(90));
    }
}
