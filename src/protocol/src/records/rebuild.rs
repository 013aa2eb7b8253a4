//! Making a validated batch what its topic wants: stamped, recompressed.

use bytes::Bytes;

use super::builder::{assemble, batch_length};
use super::codec::{CompressionLevels, compress, decompress};
use super::validate::{Needs, Refusal, Rules, Validated};
use super::{BatchBuilder, BatchHeader, Compression, RecordBatch, RecordError, TimestampType};

/// Codec, timestamp type, transactional, control, delete horizon.
const KNOWN_ATTRIBUTES: i16 = 0x7f;

/// A batch ready for the log: the header to write before the records. Offset and leader epoch are still
/// to be patched in; the checksum does not cover them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The header.
    pub header: BatchHeader,
    /// The records as stored, untouched slices of the request where the batch needed no rebuilding.
    pub payload: Bytes,
}

impl Ready {
    /// Size of the whole batch in bytes.
    pub fn size_bytes(&self) -> usize {
        self.header.size_bytes()
    }

    /// Header and records as one piece; copies the records.
    ///
    /// # Errors
    /// None unless the payload was changed to more than a batch may hold.
    pub fn to_bytes(&self) -> Result<Bytes, RecordError> {
        assemble(self.header, &self.payload)
    }
}

/// Does what [`Validated::needs`] says.
///
/// # Errors
/// The records can't be read or compressed, or the rebuilt batch is larger than `max.message.bytes`.
pub fn ready(
    batch: &RecordBatch,
    validated: &Validated,
    rules: &Rules,
    levels: CompressionLevels,
) -> Result<Ready, Refusal> {
    match validated.needs {
        Needs::Nothing => Ok(Ready { header: batch.header, payload: batch.payload() }),
        Needs::Restamp => {
            let payload = batch.payload();
            let header = restamped(batch.header, validated, rules.timestamp_type, &payload);
            Ok(Ready { header, payload })
        }
        Needs::Rebuild => {
            let ready = rebuilt(batch, validated, rules, levels).map_err(Refusal::Unreadable)?;
            let size_bytes = ready.size_bytes();
            if size_bytes > rules.max_message_bytes {
                return Err(Refusal::TooLarge { size_bytes, limit_bytes: rules.max_message_bytes });
            }
            Ok(ready)
        }
    }
}

fn restamped(
    mut header: BatchHeader,
    validated: &Validated,
    kind: TimestampType,
    payload: &[u8],
) -> BatchHeader {
    // Bits that no format version gives a meaning go when the attributes are written anew, as in Kafka.
    header.attributes &= KNOWN_ATTRIBUTES;
    header.set_timestamp_type(kind);
    header.max_timestamp = validated.max_timestamp;
    header.seal(payload);
    header
}

fn rebuilt(
    batch: &RecordBatch,
    validated: &Validated,
    rules: &Rules,
    levels: CompressionLevels,
) -> Result<Ready, RecordError> {
    let mut header = batch.header;
    let body = if validated.offsets_count_up {
        decompress(header.compression()?, &batch.payload(), rules.max_decompressed_bytes)?
    } else {
        let mut builder = BatchBuilder::new(header.base_offset);
        for (index, record) in (0..).zip(batch.records_within(rules.max_decompressed_bytes)?) {
            let mut record = record?;
            record.offset = header.base_offset + index;
            builder.append_record(&record)?;
        }
        let renumbered = RecordBatch::parse(builder.build()?)?;
        header.base_timestamp = renumbered.header.base_timestamp;
        renumbered.payload()
    };
    let payload = match validated.compression {
        Compression::None => body,
        codec => compress(codec, levels, &body)?.into(),
    };
    header.set_compression(validated.compression);
    header.batch_length = batch_length(payload.len())?;
    Ok(Ready { header: restamped(header, validated, rules.timestamp_type, &payload), payload })
}
