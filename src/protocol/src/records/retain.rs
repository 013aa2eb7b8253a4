//! What compaction leaves of a batch: some of its records, or none.
//!
//! Base offset, last offset, producer, sequence and leader epoch stay the whole batch's, so that neither offsets nor a
//! producer's sequence are lost.

use bytes::Bytes;

use super::builder::assemble;
use super::codec::{CompressionLevels, compress};
use super::{BatchBuilder, BatchHeader, Compression, Record, RecordBatch, RecordError, TimestampType};

/// A batch with those of its records that are kept, which must be in order. With a delete horizon, the batch's base
/// timestamp is the time in milliseconds from which its tombstones may go (KIP-534).
///
/// # Errors
/// A record does not belong into the batch, or compression fails.
pub fn retain(
    header: &BatchHeader,
    records: &[Record],
    delete_horizon_ms: Option<i64>,
) -> Result<Bytes, RecordError> {
    let mut builder = BatchBuilder::new(header.base_offset).base_timestamp(delete_horizon_ms);
    for record in records {
        builder.append_record(record)?;
    }
    let plain = RecordBatch::parse(builder.build()?)?;
    let mut header = *header;
    header.record_count = plain.header.record_count;
    header.base_timestamp = plain.header.base_timestamp;
    header.set_delete_horizon(delete_horizon_ms.is_some());
    if header.timestamp_type() == TimestampType::CreateTime {
        header.max_timestamp = plain.header.max_timestamp;
    }
    match header.compression()? {
        Compression::None => assemble(header, &plain.payload()),
        codec => assemble(header, &compress(codec, CompressionLevels::default(), &plain.payload())?),
    }
}

/// A batch without its records: it keeps the place of the last offset and the producer's last sequence.
///
/// # Errors
/// None in practice.
pub fn emptied(header: &BatchHeader) -> Result<Bytes, RecordError> {
    let mut header = *header;
    header.set_compression(Compression::None);
    header.set_delete_horizon(false);
    header.base_timestamp = -1;
    header.record_count = 0;
    assemble(header, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(codec: Compression) -> RecordBatch {
        let mut builder = BatchBuilder::new(100)
            .producer(7, 2, 40)
            .partition_leader_epoch(3)
            .compression(codec, CompressionLevels::default());
        builder.append(1_000, Some(b"a"), Some(b"1"), &[(b"h", Some(b"v"))]);
        builder.append(2_000, Some(b"b"), None, &[]);
        builder.append(1_500, Some(b"c"), Some(b"3"), &[]);
        RecordBatch::parse(builder.build().unwrap()).unwrap()
    }

    fn records(batch: &RecordBatch) -> Vec<Record> {
        batch.records().unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn the_rest_of_a_batch_keeps_its_place() {
        for codec in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let whole = batch(codec);
            let kept: Vec<_> = records(&whole).into_iter().filter(|record| record.offset != 102).collect();
            let rest = RecordBatch::parse(retain(&whole.header, &kept, None).unwrap()).unwrap();
            rest.verify_crc().unwrap();
            assert_eq!(records(&rest), kept);
            let (old, new) = (whole.header, rest.header);
            assert_eq!((new.base_offset, new.last_offset(), new.record_count), (100, 102, 2));
            assert_eq!((new.producer_id, new.last_sequence()), (old.producer_id, old.last_sequence()));
            assert_eq!((new.partition_leader_epoch, new.compression().unwrap()), (3, codec));
            assert_eq!((new.base_timestamp, new.max_timestamp), (1_000, 2_000));
            assert!(!new.has_delete_horizon());
        }
    }

    #[test]
    fn a_horizon_is_set_and_times_stay() {
        let whole = batch(Compression::None);
        let all = records(&whole);
        let marked = RecordBatch::parse(retain(&whole.header, &all, Some(9_000_000)).unwrap()).unwrap();
        assert_eq!(marked.header.delete_horizon_ms(), Some(9_000_000));
        assert_eq!(records(&marked), all);
        assert_eq!(marked.header.max_timestamp, 2_000);
        let without = RecordBatch::parse(retain(&marked.header, &all[..1], None).unwrap()).unwrap();
        assert_eq!((without.header.delete_horizon_ms(), without.header.base_timestamp), (None, 1_000));
    }

    #[test]
    fn an_emptied_batch_is_a_header() {
        let whole = batch(Compression::Gzip);
        let rest = RecordBatch::parse(emptied(&whole.header).unwrap()).unwrap();
        rest.verify_crc().unwrap();
        assert_eq!(rest.bytes.len(), super::super::HEADER_SIZE);
        assert_eq!((rest.header.last_offset(), rest.header.last_sequence()), (102, 42));
        assert_eq!((rest.header.max_timestamp, rest.header.record_count), (2_000, 0));
        assert_eq!(records(&rest), []);
    }
}
