//! The first snapshot of a metadata log: what `storage format` leaves for the first controller.

use bytes::Bytes;
use callboard_metadata::VersionedRecord;
use callboard_metadata::bootstrap::format_records;
use callboard_metadata::config::HostPort;
use callboard_protocol::Uuid;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::voters_record::{Endpoint, KRaftVersionFeature, Voter};
use callboard_protocol::messages::{
    KRaftVersionRecord, Message, SnapshotFooterRecord, SnapshotHeaderRecord, UserScramCredentialRecord,
    VotersRecord,
};
use callboard_protocol::records::BatchBuilder;
use callboard_protocol::records::control::ControlType;

use super::scram::Credential;

/// The file's name: end offset 0, epoch 0.
pub const FILE: &str = "00000000000000000000-0000000000.checkpoint";

/// A voter of the first quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstVoter {
    /// Its node id.
    pub node_id: i32,
    /// The id of its metadata log directory.
    pub directory_id: Uuid,
    /// The name of its controller listener.
    pub listener: String,
    /// Where that listener is.
    pub address: HostPort,
}

/// The raft protocol's part of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Quorum {
    /// Voters are named in the settings: nothing is stored.
    Static,
    /// Voters are stored and can change. None are known yet where they are left out.
    Dynamic(Option<Vec<FirstVoter>>),
}

/// The bytes of the snapshot: a control batch, a batch of records, and the footer.
///
/// # Errors
/// A name or a list is too long for its format.
pub fn encode(quorum: &Quorum, records: &[VersionedRecord], now_ms: i64) -> anyhow::Result<Vec<u8>> {
    let mut controls = vec![(
        ControlType::SnapshotHeader,
        SnapshotHeaderRecord { last_contained_log_timestamp: now_ms, ..Default::default() }.to_bytes(0)?,
    )];
    if let Quorum::Dynamic(voters) = quorum {
        let version = KRaftVersionRecord { k_raft_version: 1, ..Default::default() };
        controls.push((ControlType::KRaftVersion, version.to_bytes(0)?));
        if let Some(voters) = voters {
            controls.push((ControlType::KRaftVoters, voters_record(voters).to_bytes(0)?));
        }
    }
    let mut offset = 0;
    let mut out = Vec::new();
    append_controls(&mut out, &mut offset, &controls, now_ms)?;
    let mut batch = BatchBuilder::new(offset).partition_leader_epoch(0);
    for record in records {
        batch.append(now_ms, None, Some(&record.record.encode_frame(record.version)?), &[]);
        offset += 1;
    }
    out.extend_from_slice(&batch.build()?);
    let footer = [(ControlType::SnapshotFooter, SnapshotFooterRecord::default().to_bytes(0)?)];
    append_controls(&mut out, &mut offset, &footer, now_ms)?;
    Ok(out)
}

fn append_controls(
    out: &mut Vec<u8>,
    offset: &mut i64,
    records: &[(ControlType, Bytes)],
    now_ms: i64,
) -> anyhow::Result<()> {
    let mut batch = BatchBuilder::new(*offset).partition_leader_epoch(0).control(true);
    for (kind, value) in records {
        batch.append(now_ms, Some(&kind.key()), Some(value), &[]);
        *offset += 1;
    }
    out.extend_from_slice(&batch.build()?);
    Ok(())
}

fn voters_record(voters: &[FirstVoter]) -> VotersRecord {
    let voter = |voter: &FirstVoter| Voter {
        voter_id: voter.node_id,
        voter_directory_id: voter.directory_id,
        endpoints: vec![Endpoint {
            name: voter.listener.as_str().into(),
            host: voter.address.host.as_str().into(),
            port: voter.address.port,
            ..Default::default()
        }],
        k_raft_version_feature: KRaftVersionFeature { max_supported_version: 1, ..Default::default() },
        ..Default::default()
    };
    VotersRecord { voters: voters.iter().map(voter).collect(), ..Default::default() }
}

/// The first records: the level of each feature, then the credentials.
pub fn bootstrap_records(levels: &[(&str, i16)], credentials: &[Credential]) -> Vec<VersionedRecord> {
    let record = |credential: &Credential| UserScramCredentialRecord {
        name: credential.name.as_str().into(),
        mechanism: credential.mechanism.code(),
        salt: credential.salt.clone().into(),
        stored_key: credential.stored_key.clone().into(),
        server_key: credential.server_key.clone().into(),
        iterations: i32::try_from(credential.iterations).unwrap_or(i32::MAX),
        ..Default::default()
    };
    format_records(levels, credentials.iter().map(record))
}

/// The records in the form Kafka's storage tool prints them.
pub fn describe(records: &[VersionedRecord], metadata_version: i16) -> String {
    let signed = |bytes: &[u8]| {
        let numbers: Vec<_> = bytes.iter().map(|byte| byte.cast_signed().to_string()).collect();
        format!("[{}]", numbers.join(", "))
    };
    let shown = records.iter().filter_map(|versioned| match &versioned.record {
        MetadataRecord::FeatureLevelRecord(r) => {
            Some(format!("FeatureLevelRecord(name='{}', featureLevel={})", r.name, r.feature_level))
        }
        MetadataRecord::UserScramCredentialRecord(r) => Some(format!(
            "UserScramCredentialRecord(name='{}', mechanism={}, salt={}, storedKey={}, serverKey={}, iterations={})",
            r.name,
            r.mechanism,
            signed(&r.salt),
            signed(&r.stored_key),
            signed(&r.server_key),
            r.iterations
        )),
        _ => None,
    });
    let shown: Vec<_> = shown.map(|record| format!("ApiMessageAndVersion({record} at version 0)")).collect();
    format!(
        "BootstrapMetadata(records=[{}], metadataVersionLevel={metadata_version}, source=format command)",
        shown.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<VersionedRecord> {
        let levels = [
            ("metadata.version", 33),
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("share.version", 2),
            ("streams.version", 1),
            ("transaction.version", 2),
        ];
        bootstrap_records(&levels, &[])
    }

    /// The file Kafka 4.4.0's storage tool wrote, with its times.
    fn kafkas(file: &str) -> Vec<u8> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checkpoints").join(file);
        std::fs::read(path).unwrap()
    }

    /// Kafka's file with all times set to 0, and so with other checksums: set to 0 too.
    fn without_times(file: &[u8]) -> Vec<u8> {
        let mut file = file.to_vec();
        let mut at = 0;
        while at + 61 <= file.len() {
            let size = 12 + u32::from_be_bytes(file[at + 8..at + 12].try_into().unwrap()) as usize;
            file[at + 17..at + 21].fill(0);
            file[at + 27..at + 43].fill(0);
            at += size;
        }
        assert_eq!(at, file.len());
        // The time in the snapshot's header record: after the record's length, attributes, deltas, key and value size.
        file[61 + 12..61 + 20].fill(0);
        file
    }

    fn voter() -> FirstVoter {
        FirstVoter {
            node_id: 1,
            directory_id: "Ojg716LYR3S4QCYhYeB2Wg".parse().unwrap(),
            listener: "CONTROLLER".to_owned(),
            address: HostPort { host: "localhost".to_owned(), port: 9093 },
        }
    }

    #[test]
    fn the_snapshot_is_kafkas_byte_for_byte() {
        for (file, quorum, records) in [
            ("standalone.checkpoint", Quorum::Dynamic(Some(vec![voter()])), records()),
            ("no-initial-controllers.checkpoint", Quorum::Dynamic(None), records()),
            (
                "static-4.0.checkpoint",
                Quorum::Static,
                bootstrap_records(
                    &[("metadata.version", 25), ("group.version", 1), ("transaction.version", 2)],
                    &[],
                ),
            ),
        ] {
            let ours = encode(&quorum, &records, 0).unwrap();
            assert_eq!(without_times(&ours), without_times(&kafkas(file)), "{file}");
        }
    }
}
