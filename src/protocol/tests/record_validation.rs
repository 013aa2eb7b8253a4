//! The broker's rules for produced batches, row by row as Kafka 4.4 answers them.

use bytes::{BufMut, Bytes, BytesMut};
use callboard_protocol::records::rebuild::ready;
use callboard_protocol::records::validate::{
    Needs, Refusal, Rules, Validated, first_is_transactional, single_batch, validate,
};
use callboard_protocol::records::{
    BatchBuilder, BatchHeader, Compression, CompressionLevels, HEADER_SIZE, Record, RecordBatch, RecordError,
    TimestampType, compress, patch_header,
};

const NOW: i64 = 1_760_000_000_000;
const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// Timestamp, key and value.
type Row<'a> = (i64, Option<&'a [u8]>, &'a [u8]);

fn built(codec: Compression, records: &[Row<'_>]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(0).compression(codec, CompressionLevels::default());
    for (timestamp, key, value) in records {
        builder.append(*timestamp, *key, Some(value), &[]);
    }
    builder.build().expect("built").to_vec()
}

fn three() -> Vec<u8> {
    built(Compression::None, &[(NOW, None, b"a"), (NOW, None, b"b"), (NOW, None, b"c")])
}

fn patched(mut batch: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

fn with_attributes(batch: Vec<u8>, bits: i16) -> Vec<u8> {
    let attributes = i16::from_be_bytes([batch[21], batch[22]]) | bits;
    patched(batch, 21, &attributes.to_be_bytes())
}

fn producer(id: i64, epoch: i16, sequence: i32) -> Vec<u8> {
    let batch = patched(three(), 43, &id.to_be_bytes());
    patched(patched(batch, 51, &epoch.to_be_bytes()), 53, &sequence.to_be_bytes())
}

fn gzip_three() -> Vec<u8> {
    built(Compression::Gzip, &[(NOW, None, b"a"), (NOW, None, b"b"), (NOW, None, b"c")])
}

fn produce(bytes: Vec<u8>, rules: &Rules) -> Result<(RecordBatch, Validated), Refusal> {
    let batch = single_batch(&bytes.into(), 13)?;
    let validated = validate(&batch, rules, NOW)?;
    Ok((batch, validated))
}

/// Code, and whether the log's start offset is named: from golden case C018.
fn answer(bytes: Vec<u8>) -> (i16, bool) {
    match produce(bytes, &Rules::default()) {
        Ok(_) => (0, true),
        Err(refusal) => (refusal.error_code(), refusal.names_log_start()),
    }
}

fn be32(value: i32) -> [u8; 4] {
    value.to_be_bytes()
}

#[test]
fn a_request_is_looked_over_for_transactions_and_broken_lengths() {
    let transactional = with_attributes(three(), 0x10);
    let length = |length: i32| [&[0; 8][..], &be32(length)].concat();
    let mut old = transactional.clone();
    old[16] = 1;
    for (name, records, want) in [
        ("plain", three(), Some(false)),
        ("transactional", transactional.clone(), Some(true)),
        ("transactional after another", [three(), transactional.clone()].concat(), Some(false)),
        ("cut", transactional[..transactional.len() - 1].to_vec(), Some(false)),
        ("the bit means nothing in magic 1", old, Some(false)),
        ("nothing", vec![], Some(false)),
        ("a length and no more", length(14), Some(false)),
        ("a length too small for any format", length(13), None),
        ("a negative length", length(-1), None),
        ("an unknown format", patched(three(), 16, &[3]), None),
        ("an unknown format after a good batch", [three(), patched(three(), 16, &[3])].concat(), Some(false)),
    ] {
        assert_eq!(first_is_transactional(&records).ok(), want, "{name}");
    }
}

#[test]
fn a_broken_rule_gets_kafkas_answer() {
    let good = (0, true);
    let (invalid_before, invalid, corrupt) = ((87, false), (87, true), (2, false));
    let mut magic_1 = three();
    magic_1[16] = 1;
    for (name, batch, want) in [
        ("good", three(), good),
        ("two batches", [three(), three()].concat(), invalid_before),
        ("magic 1", magic_1, invalid_before),
        ("magic 3", patched(three(), 16, &[3]), corrupt),
        ("no bytes", vec![], invalid_before),
        ("60 bytes", three()[..60].to_vec(), invalid_before),
        ("17 bytes", three()[..17].to_vec(), invalid_before),
        ("cut short", three()[..70].to_vec(), invalid_before),
        ("one byte more", [three(), vec![0]].concat(), good),
        ("length too small", patched(three(), 8, &be32(40)), corrupt),
        ("length of 0", patched(three(), 8, &be32(0)), corrupt),
        ("length below 0", patched(three(), 8, &be32(-1)), corrupt),
        ("length too large", patched(three(), 8, &be32(1000)), invalid_before),
        ("last offset delta 1 of 3", patched(three(), 23, &be32(1)), invalid),
        ("last offset delta 5 of 3", patched(three(), 23, &be32(5)), invalid),
        ("last offset delta -1", patched(three(), 23, &be32(-1)), invalid),
        ("count 0 with records", patched(three(), 57, &be32(0)), invalid),
        ("count 0 and delta -1", patched(patched(three(), 23, &be32(-1)), 57, &be32(0)), invalid),
        ("count -1", patched(three(), 57, &be32(-1)), invalid),
        ("count 4 and delta 3", patched(patched(three(), 23, &be32(3)), 57, &be32(4)), invalid),
        ("count 2 and delta 1", patched(patched(three(), 23, &be32(1)), 57, &be32(2)), invalid),
        ("count i32::MAX", patched(patched(three(), 23, &be32(i32::MAX - 1)), 57, &be32(i32::MAX)), invalid),
        ("no records, count 0", built(Compression::None, &[]), invalid),
        ("base offset 5", patched(three(), 7, &[5]), invalid),
        ("base offset -1", patched(three(), 0, &[0xff; 8]), invalid),
        ("control bit", with_attributes(three(), 0x20), invalid),
        ("delete horizon bit", with_attributes(three(), 0x40), good),
        ("attribute bit 7", with_attributes(three(), 0x80), good),
        ("attribute bit 15", with_attributes(three(), i16::MIN), good),
        ("sequence -2", producer(1, 0, -2), invalid),
        ("sequence -1", producer(1, 0, -1), invalid),
        ("producer epoch -1", producer(1, -1, 0), good),
        ("producer -2", producer(-2, 0, 0), good),
        ("sequence without a producer", producer(-1, -1, 0), good),
        ("partition leader epoch 9", patched(three(), 12, &be32(9)), good),
        ("record attributes 1", patched(three(), 62, &[1]), good),
        ("record offset delta 1 first", patched(three(), 64, &[2]), good),
        ("record length too large", patched(three(), 61, &[126]), invalid),
        ("record length 0", patched(three(), 61, &[0]), invalid),
        ("record length below 0", patched(three(), 61, &[1]), invalid),
        ("gzip with delta 5", patched(gzip_three(), 23, &be32(5)), invalid),
        ("gzip with count 4", patched(patched(gzip_three(), 23, &be32(3)), 57, &be32(4)), invalid),
        ("gzip with count 2", patched(patched(gzip_three(), 23, &be32(1)), 57, &be32(2)), invalid),
    ] {
        assert_eq!(answer(batch), want, "{name}");
    }
}

#[test]
fn a_flipped_bit_is_corruption() {
    for at in [17, 20, 21, 40, 61, 66] {
        let mut batch = three();
        batch[at] ^= 4;
        assert_eq!(answer(batch), (2, false), "byte {at}");
    }
}

#[test]
fn zstd_needs_produce_7() {
    let batch: Bytes = built(Compression::Zstd, &[(NOW, None, b"a")]).into();
    assert_eq!(single_batch(&batch, 6), Err(Refusal::CodecTooNew));
    assert!(single_batch(&batch, 7).is_ok());
    let unknown: Bytes = with_attributes(three(), 5).into();
    let refusal = single_batch(&unknown, 6).expect_err("an unknown codec");
    assert_eq!((refusal.error_code(), refusal.names_log_start()), (-1, false));
    assert!(single_batch(&unknown, 7).is_ok());
}

#[test]
fn only_the_first_batch_tells_of_a_transaction() {
    let plain = three();
    let transactional = with_attributes(three(), 0x10);
    let mut short = three();
    short[8..12].copy_from_slice(&13_i32.to_be_bytes());
    let mut unknown = three();
    unknown[16] = 3;
    assert_eq!(first_is_transactional(&[]), Ok(false));
    assert_eq!(first_is_transactional(&plain[..20]), Ok(false));
    assert_eq!(first_is_transactional(&transactional), Ok(true));
    assert_eq!(first_is_transactional(&[&plain[..], &transactional[..]].concat()), Ok(false));
    assert_eq!(first_is_transactional(&[&plain[..], &short[..]].concat()), Ok(false));
    assert_eq!(first_is_transactional(&short), Err(RecordError::BatchLength(13)));
    assert_eq!(first_is_transactional(&unknown), Err(RecordError::UnsupportedMagic(3)));
}

#[test]
fn the_size_limit_is_exact_and_counts_the_header() {
    let size = three().len();
    for (limit, want) in [(size, 0), (size - 1, 10), (0, 10)] {
        let rules = Rules { max_message_bytes: limit, ..Rules::default() };
        let code = produce(three(), &rules).map_or_else(|refusal| refusal.error_code(), |_| 0);
        assert_eq!(code, want, "limit {limit}");
    }
}

#[test]
fn timestamps_have_bounds_on_both_sides() {
    let rules = Rules { timestamp_before_max_ms: 1_000, timestamp_after_max_ms: 2_000, ..Rules::default() };
    for codec in CODECS {
        for (timestamp, good) in [
            (NOW - 1_000, true),
            (NOW - 1_001, false),
            (NOW + 2_000, true),
            (NOW + 2_001, false),
            (-1, true),
            (-2, false),
            (i64::MAX, false),
            (i64::MIN, false),
        ] {
            let batch = built(codec, &[(NOW, None, b"a"), (timestamp, None, b"b")]);
            match produce(batch, &rules) {
                Ok(_) => assert!(good, "{codec} {timestamp}"),
                Err(refusal) => {
                    assert!(!good, "{codec} {timestamp}");
                    assert_eq!(refusal.error_code(), 32);
                    assert_eq!(refusal.refused_records().iter().map(|r| r.index).collect::<Vec<_>>(), [1]);
                }
            }
        }
    }
}

#[test]
fn compacted_topics_need_keys() {
    let rules = Rules { keys_required: true, ..Rules::default() };
    let refusal = produce(
        built(Compression::None, &[(NOW, None, b"a"), (NOW, Some(b""), b"b"), (NOW, None, b"c")]),
        &rules,
    )
    .expect_err("no key");
    assert_eq!((refusal.error_code(), refusal.names_log_start()), (87, true));
    let text = "One or more records have been rejected due to 2 record errors in total, and only showing the first \
                three errors at most: [RecordError(batchIndex=0, message='Compacted topic cannot accept message \
                without key in topic partition t-3'), RecordError(batchIndex=2, message='Compacted topic cannot \
                accept message without key in topic partition t-3')]";
    assert_eq!(refusal.message("t", 3).as_deref(), Some(text));
    assert_eq!(refusal.refused_records().iter().map(|r| r.index).collect::<Vec<_>>(), [0, 2]);
    assert!(produce(built(Compression::None, &[(NOW, Some(b"k"), b"a")]), &rules).is_ok());
}

#[test]
fn the_producer_does_not_choose_the_timestamp_type() {
    let claimed = with_attributes(three(), 8);
    let stamping = Rules { timestamp_type: TimestampType::LogAppendTime, ..Rules::default() };
    let refusal = produce(claimed.clone(), &stamping).expect_err("claimed");
    assert_eq!((refusal.error_code(), refusal.refused_records().len()), (32, 3));
    let (batch, validated) = produce(claimed, &Rules::default()).expect("good");
    assert_eq!(validated.needs, Needs::Restamp);
    let ready = ready(&batch, &validated, &Rules::default(), CompressionLevels::default()).expect("ready");
    assert_eq!(ready.header.timestamp_type(), TimestampType::CreateTime);
    read_back(ready.to_bytes().expect("small"));
}

fn read_back(bytes: Bytes) -> (BatchHeader, Vec<Record>) {
    let batch = RecordBatch::parse(bytes).expect("whole");
    batch.verify_crc().expect("sealed");
    let records = batch.records().expect("readable").collect::<Result<Vec<_>, _>>().expect("good");
    (batch.header, records)
}

#[test]
fn max_timestamp_is_the_records_own() {
    let batch = patched(
        built(Compression::None, &[(NOW, None, b"a"), (NOW + 7, None, b"b"), (NOW + 7, None, b"c")]),
        35,
        &(NOW + 100).to_be_bytes(),
    );
    let batch = with_attributes(batch, 0x40 | 0x80);
    let (batch, validated) = produce(batch, &Rules::default()).expect("good");
    assert_eq!((validated.max_timestamp, validated.max_timestamp_offset_delta), (NOW + 7, 1));
    assert_eq!(validated.needs, Needs::Restamp);
    let ready = ready(&batch, &validated, &Rules::default(), CompressionLevels::default()).expect("ready");
    let (header, _) = read_back(ready.to_bytes().expect("small"));
    assert_eq!(header.max_timestamp, NOW + 7);
    assert_eq!(header.attributes, 0x40, "the unknown bit goes, the delete horizon stays");
}

#[test]
fn a_good_batch_is_not_copied() {
    for codec in CODECS {
        let bytes = Bytes::from(built(codec, &[(NOW, Some(b"k"), b"a"), (NOW + 1, None, b"b")]));
        let batch = single_batch(&bytes, 13).expect("one batch");
        let rules = Rules::default();
        let validated = validate(&batch, &rules, NOW).expect("good");
        assert_eq!(validated.needs, Needs::Nothing, "{codec}");
        let ready = ready(&batch, &validated, &rules, CompressionLevels::default()).expect("ready");
        assert_eq!(ready.payload.as_ptr(), bytes[HEADER_SIZE..].as_ptr());
        let mut header: [u8; HEADER_SIZE] = ready.header.to_bytes();
        patch_header(&mut header, 77, 5);
        let (stored, records) = read_back([&header[..], &ready.payload].concat().into());
        assert_eq!((stored.base_offset, stored.partition_leader_epoch), (77, 5));
        assert_eq!(
            records.iter().map(|r| (r.offset, r.timestamp)).collect::<Vec<_>>(),
            [(77, NOW), (78, NOW + 1)]
        );
    }
}

#[test]
fn every_codec_becomes_every_other_and_is_stamped() {
    for from in CODECS {
        for to in CODECS {
            for timestamp_type in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
                let rules = Rules { compression: Some(to), timestamp_type, ..Rules::default() };
                let bytes = built(from, &[(NOW - 5, Some(b"k"), &[b'x'; 300]), (NOW - 9, None, b"b")]);
                let (batch, validated) = produce(bytes, &rules).expect("good");
                let ready = ready(&batch, &validated, &rules, CompressionLevels::default()).expect("ready");
                let (header, records) = read_back(ready.to_bytes().expect("small"));
                assert_eq!(header.compression(), Ok(to));
                assert_eq!(header.timestamp_type(), timestamp_type);
                let times: Vec<_> = records.iter().map(|r| r.timestamp).collect();
                if timestamp_type == TimestampType::LogAppendTime {
                    assert_eq!((times, validated.log_append_time_ms), (vec![NOW, NOW], NOW));
                } else {
                    assert_eq!((times, validated.log_append_time_ms), (vec![NOW - 5, NOW - 9], -1));
                }
                assert_eq!(records[0].value.as_deref(), Some(&[b'x'; 300][..]));
            }
        }
    }
}

#[test]
fn compressed_offsets_that_do_not_count_up_are_renumbered() {
    let mut body = BytesMut::new();
    for delta in [8_u8, 4] {
        // Size 7, attributes, timestamp delta, offset delta, no key, value "v", no headers: all zigzag.
        body.put_slice(&[14, 0, 0, delta, 1, 2, b'v', 0]);
    }
    let payload = compress(Compression::Gzip, CompressionLevels::default(), &body).expect("compressed");
    let mut header = BatchHeader::parse(&built(Compression::Gzip, &[(NOW, None, b"v"), (NOW, None, b"v")]))
        .expect("a header");
    header.batch_length = (payload.len() + HEADER_SIZE - 12) as i32;
    header.seal(&payload);
    let (batch, validated) =
        produce([&header.to_bytes()[..], &payload].concat(), &Rules::default()).expect("good");
    assert_eq!(validated.needs, Needs::Rebuild);
    let ready = ready(&batch, &validated, &Rules::default(), CompressionLevels::default()).expect("ready");
    let (_, records) = read_back(ready.to_bytes().expect("small"));
    assert_eq!(records.iter().map(|r| r.offset).collect::<Vec<_>>(), [0, 1]);
}
