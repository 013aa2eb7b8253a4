//! What goes before a message on a connection: size, request header, response header.

use crate::messages::{Message, Request};
use crate::wire::{DecodeError, EncodeError, Encoded, Reader, UnknownTaggedFields, Writer};
use crate::{ApiKey, ByteString};
use bytes::Bytes;

/// The header of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The API.
    pub api_key: ApiKey,
    /// The request's version; may be one the API doesn't have.
    pub api_version: i16,
    /// What the response will carry.
    pub correlation_id: i32,
    /// The client's name for itself.
    pub client_id: Option<ByteString>,
}

/// Reads the header of a frame (without its size). The reader then stands at the request.
///
/// A version the API doesn't have is not an error here: the header is read as that of the nearest version.
pub fn decode_request_header(frame: &Bytes) -> Result<(RequestHeader, Reader<'_>), DecodeError> {
    let mut r = Reader::new(frame);
    let api_key = ApiKey::try_from(r.i16()?)?;
    let api_version = r.i16()?;
    let correlation_id = r.i32()?;
    // The client id has no compact form, whatever the header's version.
    let client_id = r.nullable_string(false)?;
    if api_key.info().request_header_version(api_version) >= 2 {
        r.read_unknown_tagged_fields(&mut UnknownTaggedFields::default())?;
    }
    Ok((RequestHeader { api_key, api_version, correlation_id, client_id }, r))
}

/// A response as it goes out: size, header, message.
pub fn encode_response<M: Message>(
    correlation_id: i32,
    api_key: ApiKey,
    version: i16,
    response: &M,
) -> Result<Encoded, EncodeError> {
    let mut w = Writer::new();
    w.i32(0);
    w.i32(correlation_id);
    if api_key.info().response_header_version(version) >= 1 {
        w.uvarint(0);
    }
    response.encode(&mut w, version)?;
    finish_frame(w)
}

/// A request as it goes out: size, header, message.
pub fn encode_request<R: Request>(
    correlation_id: i32,
    client_id: Option<&ByteString>,
    version: i16,
    request: &R,
) -> Result<Encoded, EncodeError> {
    let mut w = Writer::new();
    w.i32(0);
    w.i16(R::KEY.code());
    w.i16(version);
    w.i32(correlation_id);
    w.nullable_string(&client_id.cloned(), false)?;
    if R::KEY.info().request_header_version(version) >= 2 {
        w.uvarint(0);
    }
    request.encode(&mut w, version)?;
    finish_frame(w)
}

/// Reads a response's frame (without its size): the correlation id and the message.
pub fn decode_response<R: Request>(frame: &Bytes, version: i16) -> Result<(i32, R::Response), DecodeError> {
    let mut r = Reader::new(frame);
    let correlation_id = r.i32()?;
    if R::KEY.info().response_header_version(version) >= 1 {
        r.read_unknown_tagged_fields(&mut UnknownTaggedFields::default())?;
    }
    Ok((correlation_id, R::Response::decode(&mut r, version)?))
}

fn finish_frame(mut w: Writer) -> Result<Encoded, EncodeError> {
    let size = w.size_bytes() - 4;
    w.patch_i32(0, i32::try_from(size).map_err(|_| EncodeError::TooLong(size))?);
    Ok(w.finish())
}
