//! Records from anywhere: what is written is read back, and nothing from outside does harm.

use bytes::Bytes;
use callboard_protocol::records::legacy::any_batches;
use callboard_protocol::records::validate::{Refusal, Rules, single_batch, validate};
use callboard_protocol::records::{
    BatchBuilder, BatchHeader, Compression, CompressionLevels, HEADER_SIZE, Record, RecordBatch, RecordError,
    RecordHeader, compress, decompress,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

fn blob(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

fn record() -> impl Strategy<Value = Record> {
    let header = (blob(9), option::of(blob(9))).prop_map(|(key, value)| RecordHeader { key, value });
    (any::<i64>(), option::of(blob(40)), option::of(blob(200)), vec(header, 0..3))
        .prop_map(|(timestamp, key, value, headers)| Record { offset: 0, timestamp, key, value, headers })
}

fn batch_of(codec: Compression, body: &[u8], count: i32) -> Bytes {
    let payload = compress(codec, CompressionLevels::default(), body).expect("compressed");
    with_payload(codec, &payload, count)
}

fn with_payload(codec: Compression, payload: &[u8], count: i32) -> Bytes {
    let empty = BatchBuilder::new(0).build().expect("empty");
    let mut header = BatchHeader::parse(&empty).expect("a header");
    header.set_compression(codec);
    header.batch_length = (payload.len() + HEADER_SIZE - 12) as i32;
    (header.record_count, header.last_offset_delta) = (count, count.wrapping_sub(1));
    header.seal(payload);
    [&header.to_bytes()[..], payload].concat().into()
}

/// Reads `bytes` in every way there is.
fn read_all(bytes: &Bytes) {
    if let Ok(batch) = single_batch(bytes, 13) {
        let _ = validate(&batch, &Rules::default(), 0);
        if let Ok(records) = batch.records_within(1 << 20) {
            records.for_each(drop);
        }
    }
    any_batches(bytes.clone()).for_each(drop);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn records_round_trip(records in vec(record(), 1..40), codec in 0_usize..5, base in 0_i64..1 << 40) {
        let codec = CODECS[codec];
        let mut builder = BatchBuilder::new(base).compression(codec, CompressionLevels::default());
        let mut written = Vec::new();
        for (offset, mut record) in (base..).zip(records) {
            record.offset = offset;
            builder.append_record(&record).expect("fits");
            written.push(record);
        }
        let batch = RecordBatch::parse(builder.build().expect("built")).expect("whole");
        batch.verify_crc().expect("sealed");
        let read = batch.records().expect("readable").collect::<Result<Vec<_>, _>>().expect("good");
        prop_assert_eq!(read, written);
    }

    #[test]
    fn codecs_round_trip(body in vec(any::<u8>(), 0..100_000), repeat in 1_usize..4, codec in 0_usize..5,
                         gzip in 1..=9_i32, zstd in -5..=12_i32) {
        let (codec, body) = (CODECS[codec], body.repeat(repeat));
        let levels = CompressionLevels { gzip, zstd, ..CompressionLevels::default() };
        let payload = compress(codec, levels, &body).expect("compressed").into();
        prop_assert_eq!(decompress(codec, &payload, body.len()).expect("read"), body);
    }

    #[test]
    fn noise_is_refused(bytes in vec(any::<u8>(), 0..300)) {
        read_all(&bytes.into());
    }

    #[test]
    fn noise_behind_a_good_header_is_refused(payload in vec(any::<u8>(), 0..300), codec in 0_usize..5, count in any::<i32>()) {
        read_all(&with_payload(CODECS[codec], &payload, count));
        read_all(&batch_of(CODECS[codec], &payload, count));
    }

    #[test]
    fn a_changed_byte_is_noticed_or_harmless(codec in 0_usize..5, at in 0_usize..400, with in any::<u8>()) {
        let mut builder = BatchBuilder::new(0).compression(CODECS[codec], CompressionLevels::default());
        for value in 0..20_u8 {
            builder.append(7, Some(b"key"), Some(&[value; 20]), &[(b"h", None)]);
        }
        let mut bytes = builder.build().expect("built").to_vec();
        if let Some(byte) = bytes.get_mut(at) {
            *byte = with;
        }
        read_all(&bytes.clone().into());
        // And again with a checksum that agrees.
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        read_all(&bytes.into());
    }
}

#[test]
fn a_bomb_is_stopped_at_the_limit() {
    let zeros = vec![0; 32 << 20];
    let limit_bytes = 1 << 20;
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let bomb = compress(codec, CompressionLevels::default(), &zeros).expect("compressed");
        let result = decompress(codec, &bomb.clone().into(), limit_bytes);
        assert_eq!(result, Err(RecordError::TooLarge { limit_bytes }), "{codec}");
        let batch = single_batch(&with_payload(codec, &bomb, 1 << 24), 13).expect("one batch");
        let rules = Rules {
            max_decompressed_bytes: limit_bytes,
            max_message_bytes: 64 << 20,
            timestamp_after_max_ms: i64::MAX,
            ..Rules::default()
        };
        // A record whose value goes on and on: 2^30 bytes of it, says its length.
        let endless =
            [&[0x80, 0x80, 0x80, 0x80, 0x08, 0, 0, 0, 1, 0x80, 0x80, 0x80, 0x80, 0x08][..], &zeros].concat();
        let endless = compress(codec, CompressionLevels::default(), &endless).expect("compressed");
        assert!(matches!(validate(&batch, &rules, 0), Err(Refusal::Unreadable(_))), "{codec}");
        let batch = single_batch(&with_payload(codec, &endless, 1), 13).expect("one batch");
        let too_large = Err(Refusal::Unreadable(RecordError::TooLarge { limit_bytes }));
        assert_eq!(validate(&batch, &rules, 0), too_large, "{codec}");
    }
}

#[test]
fn a_claimed_length_takes_no_memory() {
    // A raw snappy block that says it holds 4 GiB, and a framed one.
    for block in [
        &[0xff, 0xff, 0xff, 0xff, 0x0f, 0][..],
        &[
            0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 6, 0xff, 0xff,
            0xff, 0xff, 0x0f, 0,
        ],
    ] {
        let result = decompress(Compression::Snappy, &Bytes::copy_from_slice(block), 1 << 30);
        assert!(matches!(result, Err(RecordError::Decompress { .. })), "{result:?}");
    }
}

#[test]
fn a_raw_snappy_block_is_read() {
    let raw = snap::raw::Encoder::new().compress_vec(b"hello hello hello").expect("compressed");
    assert_eq!(decompress(Compression::Snappy, &raw.into(), 100).expect("read"), &b"hello hello hello"[..]);
}

#[test]
fn every_cut_of_a_batch_is_an_error() {
    for codec in CODECS {
        let mut builder = BatchBuilder::new(0).compression(codec, CompressionLevels::default());
        for value in 0..50_u8 {
            builder.append(0, Some(&[value]), Some(&[value; 100]), &[]);
        }
        let whole = builder.build().expect("built");
        for size in 0..whole.len() {
            assert!(RecordBatch::parse(whole.slice(..size)).is_err());
        }
        let payload = &whole[HEADER_SIZE..];
        for size in 0..payload.len() - 1 {
            let batch = RecordBatch::parse(with_payload(codec, &payload[..size], 50)).expect("whole");
            let read = batch.records().and_then(|records| records.collect::<Result<Vec<_>, _>>());
            // LZ4 and zstd frames may end in a checksum or an end mark that carries no record.
            assert!(read.is_err() || size > payload.len() - 16, "{codec} {size}");
        }
    }
}
