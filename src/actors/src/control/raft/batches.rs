//! Batches of metadata records, to and from their bytes.

use bytes::Bytes;
use callboard_metadata::VersionedRecord;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::records::rebuild::Ready;
use callboard_protocol::records::{BatchBuilder, RecordBatch, RecordError, batches};
use callboard_raft::ControlRecord;

use super::messages::{AppendFailed, CommittedBatch};
use super::{LogError, MAX_BATCH_BYTES, control_records};

/// One batch of records, to be given its offset by the log.
pub fn encode(records: &[VersionedRecord], now_ms: i64) -> Result<Ready, AppendFailed> {
    if records.is_empty() {
        return Err(AppendFailed::Invalid("no records".to_owned()));
    }
    let mut builder = BatchBuilder::new(0);
    for VersionedRecord { record, version } in records {
        let value =
            record.encode_frame(*version).map_err(|error| AppendFailed::Invalid(error.to_string()))?;
        builder.append(now_ms, None, Some(&value), &[]);
    }
    let size_bytes = builder.size_bytes();
    if size_bytes > MAX_BATCH_BYTES {
        return Err(AppendFailed::TooLarge { size_bytes });
    }
    ready(builder).map_err(|error| AppendFailed::Invalid(error.to_string()))
}

/// One batch of control records.
pub fn encode_control(records: &[ControlRecord], now_ms: i64) -> Result<Ready, LogError> {
    let mut builder = BatchBuilder::new(0).control(true);
    for record in records {
        control_records::to_wire(record).append_to(&mut builder, now_ms)?;
    }
    Ok(ready(builder)?)
}

fn ready(builder: BatchBuilder) -> Result<Ready, RecordError> {
    let batch = RecordBatch::parse(builder.build()?)?;
    Ok(Ready { header: batch.header, payload: batch.payload() })
}

/// The batches in `bytes` from `from_offset` on. One cut at the end is left out.
pub fn decode(bytes: Bytes, from_offset: i64) -> Result<Vec<CommittedBatch>, LogError> {
    let mut out = Vec::new();
    for batch in batches(bytes) {
        match batch {
            Ok(batch) if batch.header.last_offset() < from_offset => {}
            Ok(batch) => out.push(decode_one(&batch)?),
            Err(RecordError::Truncated { .. }) => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(out)
}

/// One batch.
pub fn decode_one(batch: &RecordBatch) -> Result<CommittedBatch, LogError> {
    let header = &batch.header;
    let records = match header.is_control() {
        true => Vec::new(),
        false => versioned_records(batch)?.into_iter().map(|r| r.record).collect(),
    };
    Ok(CommittedBatch {
        base_offset: header.base_offset,
        last_offset: header.last_offset(),
        epoch: header.partition_leader_epoch,
        append_time_ms: header.max_timestamp,
        size_bytes: batch.bytes.len(),
        records,
    })
}

/// The records of a batch, with the versions they were written at.
pub fn versioned_records(batch: &RecordBatch) -> Result<Vec<VersionedRecord>, LogError> {
    batch.verify_crc()?;
    batch
        .records()?
        .map(|record| {
            let record = record?;
            let value = record.value.unwrap_or_default();
            let (decoded, version) = MetadataRecord::decode_frame(&value)
                .map_err(|error| LogError::Damaged(format!("record at offset {}: {error}", record.offset)))?;
            Ok(VersionedRecord::new(decoded, version))
        })
        .collect()
}
