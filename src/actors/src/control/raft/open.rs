//! Opening the metadata log: what the directory says of the quorum, and the machine built from it.

use std::path::{Path, PathBuf};

use callboard_metadata::VersionedRecord;
use callboard_protocol::Uuid;
use callboard_protocol::records::{RecordError, batches};
use callboard_raft::{ElectionState, LogView, Machine, ReplicaKey, SnapshotId, VoterSet, VotersOrigin};
use callboard_storage::{Durability, EpochCache, Log, LogConfig, LogReader, OpenOptions, PartitionMetadata};

use super::control_records::QuorumRecords;
use super::options::RaftOptions;
use super::{LogError, READ_BYTES, snapshot};

/// The directory of the log, in the metadata log directory.
pub const LOG_DIR: &str = "__cluster_metadata-0";
/// The election's file.
pub const QUORUM_STATE: &str = "quorum-state";
/// Where older versions of `storage format` leave a cluster's first records.
const BOOTSTRAP: &str = "bootstrap.checkpoint";

/// The metadata log, opened.
pub struct Opened {
    /// Its directory.
    pub dir: PathBuf,
    /// The log.
    pub log: Log,
    /// The machine, not started yet.
    pub machine: Machine,
    /// The snapshots, oldest first.
    pub snapshots: Vec<SnapshotId>,
}

/// Opens the log and what lies beside it.
pub fn open(options: &RaftOptions, now_ms: i64) -> Result<Opened, LogError> {
    let dir = options.metadata_log_dir.join(LOG_DIR);
    std::fs::create_dir_all(&dir)?;
    let mut snapshots = snapshot::list(&dir)?;
    let newest = snapshots.last().copied();
    let mut log = open_log(&dir, options, newest, now_ms)?;
    let start = start_of(&mut log, &mut snapshots, &dir)?;
    if PartitionMetadata::read(&dir)?.is_none() {
        PartitionMetadata { topic_id: Uuid::METADATA_TOPIC_ID }.write(&dir, Durability::Synced)?;
    }
    let mut quorum = match newest {
        Some(id) => snapshot::read(&dir, id)?.1,
        None => QuorumRecords::default(),
    };
    let known_after = newest.map_or(0, |id| id.end_offset);
    let bootstrap = known_after == 0 && quorum.voters.is_some();
    let in_log = scan_control_records(&log.reader(), known_after.max(start.end_offset))?;
    let origin = match (&in_log.voters, bootstrap) {
        (None, true) => VotersOrigin::Bootstrap,
        _ => VotersOrigin::Log,
    };
    quorum.kraft_version = in_log.kraft_version.or(quorum.kraft_version);
    quorum.voters = in_log.voters.or(quorum.voters);
    let (voters, origin) = settle_voters(options, &quorum, origin)?;
    let epochs: Vec<(i32, i64)> =
        EpochCache::read(&dir)?.entries().iter().map(|e| (e.epoch, e.start_offset)).collect();
    let view = LogView::new(start, epochs, log.log_end_offset());
    let election = read_election(&dir)?;
    let machine = Machine::new(options.machine_config(), voters, origin, election, view, known_after);
    Ok(Opened { dir, log, machine, snapshots })
}

fn open_log(
    dir: &Path,
    options: &RaftOptions,
    newest: Option<SnapshotId>,
    now_ms: i64,
) -> Result<Log, LogError> {
    let committed = newest.map_or(0, |id| id.end_offset);
    let config = LogConfig {
        segment_bytes: u64::from(options.log.segment_bytes),
        segment_ms: i64::try_from(options.log.segment_ms).unwrap_or(i64::MAX),
        ..LogConfig::default()
    };
    // Nothing says that the log was closed in order, so all behind the newest snapshot is looked at, as Kafka does.
    // What the snapshot covers was synced before it was committed.
    let open = OpenOptions { config, recovery_point: committed, now_ms, ..OpenOptions::default() };
    let (mut log, report) = Log::open(dir, open)?;
    if let Some(reason) = &report.truncation_reason {
        tracing::warn!(bytes = report.truncated_bytes, %reason, "cut off the metadata log's torn end");
    }
    if log.log_end_offset() < committed {
        tracing::warn!(
            end_offset = log.log_end_offset(),
            committed,
            "the metadata log ends before its snapshot"
        );
        log.restart_at(committed, now_ms)?;
    }
    Ok(log)
}

/// The snapshot the log starts behind. Older ones are left from an unfinished clean-up and go.
fn start_of(log: &mut Log, snapshots: &mut Vec<SnapshotId>, dir: &Path) -> Result<SnapshotId, LogError> {
    let base = log.log_start_offset();
    if base == 0 {
        return Ok(SnapshotId::default());
    }
    let Some(at) = snapshots.iter().position(|id| id.end_offset >= base) else {
        return Err(LogError::Damaged(format!(
            "the log starts at offset {base}, and no snapshot holds what was before"
        )));
    };
    for old in snapshots.drain(..at) {
        snapshot::remove(dir, old)?;
    }
    let start = snapshots.first().copied().unwrap_or_default();
    log.set_log_start_offset(start.end_offset)?;
    Ok(start)
}

/// What the control records from an offset on say.
fn scan_control_records(log: &LogReader, from_offset: i64) -> Result<QuorumRecords, LogError> {
    let mut found = QuorumRecords::default();
    let (mut offset, end) = (from_offset, log.log_end_offset());
    while offset < end {
        let bytes = log.load(&log.read(offset, READ_BYTES, end, true)?)?;
        let before = offset;
        for batch in batches(bytes) {
            match batch {
                Ok(batch) => {
                    found.note(&batch)?;
                    offset = offset.max(batch.header.next_offset());
                }
                Err(RecordError::Truncated { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if offset == before {
            return Err(LogError::Damaged(format!("no batch at offset {offset}")));
        }
    }
    Ok(found)
}

/// The voters: those stored, or else those of the settings. This node must be the only one.
fn settle_voters(
    options: &RaftOptions,
    quorum: &QuorumRecords,
    origin: VotersOrigin,
) -> Result<(VoterSet, VotersOrigin), LogError> {
    let local = ReplicaKey::new(options.node_id, options.directory_id);
    let (voters, origin) = match &quorum.voters {
        Some(voters) => (voters.clone(), origin),
        None if !options.static_voters.is_empty() => {
            (VoterSet::new(options.static_voters.iter().cloned())?, VotersOrigin::Static)
        }
        None => {
            return Err(LogError::Refused(
                "no voters are known: format the directory with --standalone, or set controller.quorum.voters"
                    .to_owned(),
            ));
        }
    };
    if !voters.is_only_voter(&local) {
        let ids: Vec<i32> = voters.ids().collect();
        return Err(LogError::Refused(format!(
            "the quorum's voters are {ids:?}; node {} with directory {} must be the only one: quorums of several \
             nodes are not served yet",
            local.id, local.directory_id
        )));
    }
    Ok((voters, origin))
}

fn read_election(dir: &Path) -> Result<ElectionState, LogError> {
    match std::fs::read_to_string(dir.join(QUORUM_STATE)) {
        Ok(text) => Ok(ElectionState::from_json(&text)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(ElectionState::default()),
        Err(error) => Err(error.into()),
    }
}

/// The records the node was formatted with: those of snapshot 0-0, or of `bootstrap.checkpoint`.
pub fn read_bootstrap(metadata_log_dir: &Path) -> Result<Vec<VersionedRecord>, LogError> {
    let first = SnapshotId::default();
    let files = [snapshot::path(&metadata_log_dir.join(LOG_DIR), first), metadata_log_dir.join(BOOTSTRAP)];
    for file in files {
        if file.exists() {
            let (snapshot, _) = snapshot::read_file(&file, first)?;
            if !snapshot.records.is_empty() {
                return Ok(snapshot.records);
            }
        }
    }
    Ok(Vec::new())
}
