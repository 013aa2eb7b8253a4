//! What is fuzzed: every way bytes from outside come in. Each function takes any bytes, must not panic, and says
//! whether they were good; what decodes must encode, and decode to the same again.

use bytes::Bytes;
use callboard_protocol::header::decode_request_header;
use callboard_protocol::messages::group_record::{GroupRecordKey, GroupRecordValue};
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::share_record::{ShareRecordKey, ShareRecordValue};
use callboard_protocol::messages::transaction_record::{TransactionRecordKey, TransactionRecordValue};
use callboard_protocol::messages::{self, Message};
use callboard_protocol::records::legacy::any_batches;
use callboard_protocol::records::validate::{Rules, single_batch, validate};
use callboard_protocol::records::{RecordBatch, batches as walk};
use callboard_protocol::wire::{EncodeError, Reader};
use callboard_protocol::{ApiKey, for_each_message};

/// The bound on what a batch may decompress to, small enough for many runs.
const DECOMPRESSED_LIMIT_BYTES: usize = 1 << 20;

/// A request's frame: header, then the request its header names.
pub fn frame(data: &[u8]) -> bool {
    let frame = Bytes::copy_from_slice(data);
    let Ok((header, mut body)) = decode_request_header(&frame) else { return false };
    let rest = body.take_rest();
    macro_rules! by_key {
        ($($name:ident),*) => {
            $(if messages::$name::NAME.strip_suffix("Request") == Some(header.api_key.name()) {
                return round_trip::<messages::$name>(&rest, header.api_version);
            })*
        };
    }
    for_each_message!(by_key);
    false
}

/// A message of a number and a version, from the first three bytes; or a stored record.
pub fn message(data: &[u8]) -> bool {
    let Some(([high, low, version], rest)) = data.split_first_chunk::<3>() else { return false };
    let rest = Bytes::copy_from_slice(rest);
    let (number, version) = (u16::from_be_bytes([*high, *low]), i16::from(*version));
    let mut at = 0u16;
    macro_rules! by_number {
        ($($name:ident),*) => {
            $(if at == number {
                return round_trip::<messages::$name>(&rest, version);
            }
            at += 1;)*
        };
    }
    for_each_message!(by_number);
    stored((number - at) as i16, &rest)
}

fn stored(key: i16, bytes: &Bytes) -> bool {
    let mut good = false;
    if let Ok((record, version)) = MetadataRecord::decode_frame(bytes)
        && let Ok(again) = record.encode_frame(version)
    {
        assert!(MetadataRecord::decode_frame(&again).is_ok());
        good = true;
    }
    let key = key % 32;
    good |= GroupRecordKey::decode(bytes).is_ok() | GroupRecordValue::decode(key, bytes).is_ok();
    good |= ShareRecordKey::decode(bytes).is_ok() | ShareRecordValue::decode(key, bytes).is_ok();
    good | TransactionRecordKey::decode(bytes).is_ok() | TransactionRecordValue::decode(key, bytes).is_ok()
}

/// Record batches, as a producer, a leader or a file may send them.
pub fn batches(data: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(data);
    for batch in walk(bytes.clone()).map_while(Result::ok) {
        let _ = batch.verify_crc();
        if let Ok(records) = batch.records_within(DECOMPRESSED_LIMIT_BYTES) {
            records.take_while(Result::is_ok).for_each(drop);
        }
    }
    if let Ok(batch) = single_batch(&bytes, ApiKey::Produce.info().max_version) {
        produced(batch);
    }
    any_batches(bytes).next().is_some_and(|batch| batch.is_ok())
}

fn produced(batch: RecordBatch) {
    let rules = Rules { max_decompressed_bytes: DECOMPRESSED_LIMIT_BYTES, ..Rules::default() };
    let _ = validate(&batch, &rules, 0);
    // Once more with a checksum that holds, so that what lies behind it is reached.
    let mut header = batch.header;
    header.seal(&batch.payload());
    let bytes = [&header.to_bytes()[..], &batch.payload()].concat().into();
    let _ = validate(&RecordBatch { header, bytes }, &rules, 0);
}

fn round_trip<M: Message>(bytes: &Bytes, version: i16) -> bool {
    let Ok(message) = M::decode(&mut Reader::new(bytes), version) else { return false };
    // Tagged fields in a wrong order are read, but not written.
    let once = match message.to_bytes(version) {
        Err(EncodeError::TagOrder(_)) => return true,
        once => once.expect("what was read can be written"),
    };
    let again = M::from_bytes(&once, version).expect("what was written can be read");
    // Compared as bytes: a float that is not a number differs from itself.
    assert_eq!(again.to_bytes(version), Ok(once), "{} v{version}", M::NAME);
    true
}
