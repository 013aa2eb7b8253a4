//! What is refused: lengths that lie, too many elements, values a version has no field for.

use bytes::Bytes;
use callboard_protocol::header::{decode_request_header, decode_response, encode_request, encode_response};
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    self, ApiVersionsRequest, ApiVersionsResponse, FetchResponse, HeartbeatRequest, Message, MetadataRequest,
    ProduceRequest, TopicRecord, TransactionLogValue, VoteResponse,
};
use callboard_protocol::messages::{fetch_response, group_record, produce_request};
use callboard_protocol::wire::{
    DecodeError, EncodeError, Payload, RawTaggedField, Reader, Records, UnknownTaggedFields, Writer,
};
use callboard_protocol::{ApiKey, ByteString, Uuid};

fn written(write: impl FnOnce(&mut Writer)) -> Bytes {
    let mut w = Writer::new();
    write(&mut w);
    w.finish().into_bytes().expect("in memory")
}

#[test]
fn arrays_longer_than_their_bytes_are_refused_unread() {
    let classic = written(|w| w.i32(1000));
    assert_eq!(MetadataRequest::from_bytes(&classic, 1), Err(DecodeError::TooManyElements(1000)));
    let compact = written(|w| w.uvarint(1001));
    assert_eq!(MetadataRequest::from_bytes(&compact, 9), Err(DecodeError::TooManyElements(1000)));
    let huge = written(|w| w.i32(i32::MAX));
    assert_eq!(MetadataRequest::from_bytes(&huge, 1), Err(DecodeError::TooManyElements(i32::MAX as u32)));
}

#[test]
fn a_million_elements_are_read_and_one_more_is_refused() {
    let array = |len: i32| {
        let bytes = written(|w| {
            w.i32(len);
            w.raw(&vec![7; len as usize]);
        });
        Reader::new(&bytes).array::<i8>(false).map(|items| items.len())
    };
    assert_eq!(array(1_000_000), Ok(1_000_000));
    assert_eq!(array(1_000_001), Err(DecodeError::TooManyElements(1_000_001)));
    let long = vec![0i8; 1_000_001];
    assert_eq!(Writer::new().array(&long, true), Err(EncodeError::TooLong(1_000_001)));
}

#[test]
fn ten_thousand_tagged_fields_are_read_and_one_more_is_refused() {
    let fields = |count: u32| {
        let bytes = written(|w| {
            w.uvarint(count);
            for tag in 0..count {
                w.uvarint(tag);
                w.uvarint(0);
            }
        });
        let mut unknown = UnknownTaggedFields::default();
        Reader::new(&bytes).read_unknown_tagged_fields(&mut unknown).map(|()| unknown.len())
    };
    assert_eq!(fields(10_000), Ok(10_000));
    assert_eq!(fields(10_001), Err(DecodeError::TooManyTaggedFields(10_001)));
}

#[test]
fn strings_are_bounded_and_utf8() {
    let long = ByteString::from("x".repeat(32_768));
    assert_eq!(Writer::new().string(&long, true), Err(EncodeError::StringTooLong(32_768)));
    let bytes = written(|w| {
        w.uvarint(32_769);
        w.raw(long.as_bytes());
    });
    assert_eq!(Reader::new(&bytes).string(true), Err(DecodeError::StringTooLong(32_768)));
    let not_text = Bytes::from_static(&[0, 1, 0xff]);
    assert_eq!(Reader::new(&not_text).string(false), Err(DecodeError::Utf8));
    let null = Bytes::from_static(&[0xff, 0xff]);
    assert_eq!(Reader::new(&null).string(false), Err(DecodeError::Null));
    assert_eq!(Reader::new(&null).nullable_string(false), Ok(None));
}

#[test]
fn varints_are_bounded() {
    for value in [0, 1, 127, 128, 16_383, 16_384, u32::MAX >> 1, u32::MAX] {
        assert_eq!(Reader::new(&written(|w| w.uvarint(value))).uvarint(), Ok(value));
    }
    for bytes in [&[0x80, 0x80, 0x80, 0x80, 0x10][..], &[0xff; 6]] {
        assert_eq!(Reader::new(&Bytes::from_static(bytes)).uvarint(), Err(DecodeError::Varint));
    }
    assert_eq!(Reader::new(&Bytes::from_static(&[0x80])).uvarint(), Err(DecodeError::Truncated));
}

#[test]
fn versions_that_do_not_exist_are_refused() {
    let bytes = Bytes::from_static(&[0; 64]);
    for version in [-1, 0, 2, 14] {
        assert_eq!(
            ProduceRequest::from_bytes(&bytes, version),
            Err(DecodeError::UnsupportedVersion(version))
        );
        let refused = EncodeError::UnsupportedVersion { message: "ProduceRequest", version };
        assert_eq!(ProduceRequest::default().to_bytes(version), Err(refused));
    }
    assert!(messages::LeaderAndIsrRequest::from_bytes(&bytes, 0).is_err());
}

#[test]
fn a_value_without_a_field_is_refused_unless_it_can_be_ignored() {
    let request = HeartbeatRequest { group_instance_id: Some("a".into()), ..Default::default() };
    assert_eq!(request.to_bytes(2), Err(EncodeError::Absent { field: "GroupInstanceId", version: 2 }));
    assert!(request.to_bytes(3).is_ok());
    // The rack of a fetch can be ignored.
    let fetch = messages::FetchRequest { rack_id: "r".into(), ..Default::default() };
    assert_eq!(fetch.to_bytes(4), messages::FetchRequest::default().to_bytes(4));
    // A tagged field that can't be ignored.
    let endpoint = messages::vote_response::NodeEndpoint::default();
    let vote = VoteResponse { node_endpoints: vec![endpoint], ..Default::default() };
    assert_eq!(vote.to_bytes(0), Err(EncodeError::Absent { field: "NodeEndpoints", version: 0 }));
    assert!(vote.to_bytes(1).is_ok());
}

#[test]
fn null_where_a_version_wants_a_value_is_refused() {
    let request = MetadataRequest { topics: None, ..Default::default() };
    assert_eq!(request.to_bytes(0), Err(EncodeError::Null { field: "Topics" }));
    assert!(request.to_bytes(1).is_ok());
}

fn raw(tag: u32, data: &'static [u8]) -> RawTaggedField {
    RawTaggedField { tag, data: Bytes::from_static(data) }
}

#[test]
fn unknown_tagged_fields_are_kept_among_the_known_ones() {
    let mut request = messages::FetchRequest { cluster_id: Some("c".into()), ..Default::default() };
    request.unknown_tagged_fields = vec![raw(2, b"two"), raw(9, b"")].into();
    request.replica_state.replica_id = 3;
    let bytes = request.to_bytes(17).expect("good");
    assert_eq!(messages::FetchRequest::from_bytes(&bytes, 17), Ok(request.clone()));
    assert_eq!(messages::FetchRequest::from_bytes(&bytes, 17).map(|r| r.to_bytes(17)), Ok(Ok(bytes)));

    request.unknown_tagged_fields = vec![raw(1, b"taken")].into();
    assert_eq!(request.to_bytes(17), Err(EncodeError::TagOrder(1)));
    request.unknown_tagged_fields = vec![raw(5, b""), raw(4, b"")].into();
    assert_eq!(request.to_bytes(17), Err(EncodeError::TagOrder(5)));
    let classic = HeartbeatRequest { unknown_tagged_fields: vec![raw(0, b"")].into(), ..Default::default() };
    assert!(matches!(classic.to_bytes(3), Err(EncodeError::Absent { version: 3, .. })));
}

#[test]
fn a_tagged_field_fills_its_size() {
    let mut w = Writer::new();
    ApiVersionsResponse::default().encode(&mut w, 3).expect("good");
    let mut bytes = w.finish().into_bytes().expect("in memory").to_vec();
    bytes.pop();
    // Tag 3, a boolean, in two bytes.
    bytes.extend_from_slice(&[1, 3, 2, 1, 0]);
    assert_eq!(ApiVersionsResponse::from_bytes(&bytes.into(), 3), Err(DecodeError::TaggedFieldSize));
}

#[test]
fn large_tagged_fields_get_longer_sizes() {
    let name = ByteString::from("n".repeat(20_000));
    let mut response = ApiVersionsResponse::default();
    let feature = messages::api_versions_response::SupportedFeatureKey { name, ..Default::default() };
    response.supported_features = vec![feature];
    response.zk_migration_ready = true;
    let bytes = response.to_bytes(4).expect("good");
    assert_eq!(ApiVersionsResponse::from_bytes(&bytes, 4), Ok(response));
}

#[test]
fn a_version_without_tags_leaves_them_out() {
    let mut value = TransactionLogValue { producer_id: 5, ..Default::default() };
    let bytes = value.to_bytes(0).expect("good");
    assert_eq!(TransactionLogValue::from_bytes(&bytes, 0), Ok(value.clone()));
    value.next_producer_id = 6;
    assert_eq!(value.to_bytes(0), Err(EncodeError::Absent { field: "NextProducerId", version: 0 }));
    assert_eq!(TransactionLogValue::from_bytes(&value.to_bytes(1).expect("good"), 1), Ok(value));
}

fn fetched(records: Records) -> FetchResponse {
    let partition = fetch_response::PartitionData { records: Some(records), ..Default::default() };
    let topic =
        fetch_response::FetchableTopicResponse { partitions: vec![partition; 2], ..Default::default() };
    FetchResponse { responses: vec![topic], ..Default::default() }
}

#[test]
fn records_are_neither_copied_in_nor_out() {
    let records = Bytes::from(vec![7u8; 5000]);
    let encoded =
        encode_response(9, ApiKey::Fetch, 12, &fetched(Records::Bytes(records.clone()))).expect("good");
    assert_eq!(encoded.splices.len(), 2);
    for splice in &encoded.splices {
        let Payload::Bytes(bytes) = &splice.payload else { panic!("in memory") };
        assert_eq!(bytes.as_ptr(), records.as_ptr());
    }
    assert!(encoded.head.len() < 200);
    let size = encoded.size_bytes();
    let frame = encoded.into_bytes().expect("in memory");
    assert_eq!(frame.len(), size);
    assert_eq!(frame[..4], i32::try_from(size - 4).unwrap().to_be_bytes());
    let (id, read) = decode_response::<messages::FetchRequest>(&frame.slice(4..), 12).expect("good");
    assert_eq!((id, &read), (9, &fetched(Records::Bytes(records))));
    let Some(Records::Bytes(slice)) = &read.responses[0].partitions[0].records else { panic!("records") };
    assert!(frame.as_ptr_range().contains(&slice.as_ptr()));
}

#[test]
fn records_left_in_the_frame_are_the_same_bytes_there() {
    let batches = [Bytes::from(vec![7u8; 3000]), Bytes::from(vec![8u8; 5000])];
    let data = |records: &Bytes| produce_request::PartitionProduceData {
        records: Some(Records::Bytes(records.clone())),
        ..Default::default()
    };
    let topic = produce_request::TopicProduceData {
        partition_data: batches.iter().map(data).collect(),
        ..Default::default()
    };
    let request = ProduceRequest { topic_data: vec![topic], ..Default::default() };
    for version in [3, 9] {
        let frame = request.to_bytes(version).expect("good");
        let read = ProduceRequest::decode(&mut Reader::in_place(&frame), version).expect("good");
        for (partition, batch) in read.topic_data[0].partition_data.iter().zip(&batches) {
            let Some(records @ Records::InFrame(_)) = &partition.records else { panic!("left in the frame") };
            let slice = records.of_frame(&frame).expect("in the frame");
            assert_eq!((records.size_bytes(), &slice), (batch.len(), batch));
            assert!(frame.as_ptr_range().contains(&slice.as_ptr()));
            assert_eq!(records.of_frame(&frame.slice(..2000)), None);
        }
        assert_eq!(read.to_bytes(version), Err(EncodeError::InFrame));
    }
}

#[test]
fn an_external_region_counts_but_is_not_bytes() {
    let region = Records::External { token: 4, size_bytes: 700 };
    let response = fetched(region);
    let encoded = encode_response(1, ApiKey::Fetch, 4, &response).expect("good");
    assert_eq!(encoded.size_bytes(), encoded.head.len() + 1400);
    assert_eq!(encoded.clone().into_bytes(), None);
    assert_eq!(encoded.splices[0].payload, Payload::External { token: 4, size_bytes: 700 });
    assert_eq!(response.to_bytes(4), Err(EncodeError::External));
}

#[test]
fn requests_carry_their_header() {
    let data = produce_request::TopicProduceData { name: "t".into(), ..Default::default() };
    let request = ProduceRequest { topic_data: vec![data], ..Default::default() };
    for version in [3, 9] {
        let client = ByteString::from_static("me");
        let frame =
            encode_request(77, Some(&client), version, &request).expect("good").into_bytes().expect("memory");
        let frame = frame.slice(4..);
        let (header, mut body) = decode_request_header(&frame).expect("good");
        assert_eq!(
            (header.api_key, header.api_version, header.correlation_id),
            (ApiKey::Produce, version, 77)
        );
        assert_eq!(header.client_id, Some(client));
        assert_eq!(ProduceRequest::decode(&mut body, version), Ok(request.clone()));
        assert_eq!(body.remaining(), 0);
    }
}

#[test]
fn a_header_of_an_unknown_version_is_read_and_of_an_unknown_api_refused() {
    let header = |key: i16, version: i16| {
        written(|w| {
            w.i16(key);
            w.i16(version);
            w.i32(5);
            w.i16(-1);
            w.uvarint(0);
        })
    };
    let frame = header(18, 42);
    let (read, _) = decode_request_header(&frame).expect("good");
    assert_eq!((read.api_key, read.api_version, read.client_id), (ApiKey::ApiVersions, 42, None));
    assert_eq!(decode_request_header(&header(95, 0)).err(), Some(DecodeError::UnknownApiKey(95)));
    assert_eq!(decode_request_header(&Bytes::from_static(&[0, 0])).err(), Some(DecodeError::Truncated));
}

#[test]
fn api_versions_is_answered_under_header_zero() {
    let encoded = encode_response(3, ApiKey::ApiVersions, 4, &ApiVersionsResponse::default()).expect("good");
    let frame = encoded.into_bytes().expect("in memory").slice(4..);
    let body = ApiVersionsResponse::default().to_bytes(4).expect("good");
    assert_eq!(frame, [&3i32.to_be_bytes()[..], &body].concat());
    assert!(decode_response::<ApiVersionsRequest>(&frame, 4).is_ok());
}

#[test]
fn metadata_records_travel_in_frames() {
    let topic = TopicRecord { name: "t".into(), topic_id: Uuid::from_u128(8), ..Default::default() };
    let record = MetadataRecord::from(topic);
    assert_eq!((record.api_key(), record.name(), record.max_version()), (2, "TopicRecord", 0));
    let frame = record.encode_frame(0).expect("good");
    assert_eq!(frame[..3], [1, 2, 0]);
    assert_eq!(MetadataRecord::decode_frame(&frame), Ok((record, 0)));
    let unknown = |bytes: &'static [u8]| MetadataRecord::decode_frame(&Bytes::from_static(bytes)).err();
    assert_eq!(unknown(&[1, 13, 0]), Some(DecodeError::UnknownRecord(13)));
    assert_eq!(unknown(&[0, 2, 0]), Some(DecodeError::UnknownFrame(0)));
    assert_eq!(unknown(&[1, 2, 1]), Some(DecodeError::UnsupportedVersion(1)));
    assert_eq!(unknown(&[1]), Some(DecodeError::Truncated));
}

#[test]
fn coordinator_records_start_with_type_and_version() {
    use group_record::{GroupRecordKey, GroupRecordValue};
    let key = messages::OffsetCommitKey { group: "g".into(), topic: "t".into(), partition: 1 };
    let key = GroupRecordKey::from(key);
    let bytes = key.encode().expect("good");
    assert_eq!(bytes[..2], [0, 1]);
    assert_eq!(GroupRecordKey::decode(&bytes), Ok(key.clone()));
    let value = GroupRecordValue::from(messages::OffsetCommitValue { offset: 44, ..Default::default() });
    let bytes = value.encode(3).expect("good");
    assert_eq!(bytes[..2], [0, 3]);
    assert_eq!(GroupRecordValue::decode(key.api_key(), &bytes), Ok((value, 3)));
    assert_eq!(GroupRecordValue::decode(999, &bytes).err(), Some(DecodeError::UnknownRecord(999)));
}
