//! What this node answers to requests about security while none is configured, as Kafka does:
//! SASL on a plaintext listener, ACLs without an authorizer, delegation tokens over plaintext.

use callboard_protocol::messages::create_acls_request::AclCreation;
use callboard_protocol::messages::create_acls_response::AclCreationResult;
use callboard_protocol::messages::delete_acls_request::DeleteAclsFilter;
use callboard_protocol::messages::delete_acls_response::DeleteAclsFilterResult;
use callboard_protocol::messages::{
    CreateAclsRequest, CreateAclsResponse, CreateDelegationTokenRequest, CreateDelegationTokenResponse,
    DeleteAclsRequest, DeleteAclsResponse, DescribeAclsRequest, DescribeAclsResponse,
    DescribeDelegationTokenRequest, DescribeDelegationTokenResponse, ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse, RenewDelegationTokenRequest, RenewDelegationTokenResponse,
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::{Answer, RequestContext};
use crate::net::CloseReason;

const SECURITY_DISABLED: i16 = ErrorCode::SecurityDisabled as i16;
const NO_AUTHORIZER: &str = "No Authorizer is configured.";
/// The code of what a client names but nobody knows.
const UNKNOWN: i8 = 0;
/// From this version on an answer about a token names who asked for it.
const FIRST_WITH_REQUESTER: i16 = 3;
const TOKEN_NOT_ALLOWED: i16 = ErrorCode::DelegationTokenRequestNotAllowed as i16;

/// A plaintext listener has no SASL mechanism.
pub async fn sasl_handshake(_: &RequestContext, _: SaslHandshakeRequest, _: i16) -> SaslHandshakeResponse {
    SaslHandshakeResponse { error_code: ErrorCode::IllegalSaslState as i16, ..Default::default() }
}

/// Nor can anyone authenticate on it.
pub async fn sasl_authenticate(
    _: &RequestContext,
    _: SaslAuthenticateRequest,
    _: i16,
) -> SaslAuthenticateResponse {
    SaslAuthenticateResponse {
        error_code: ErrorCode::IllegalSaslState as i16,
        error_message: Some(ByteString::from_static(
            "SaslAuthenticate request received after successful authentication",
        )),
        ..Default::default()
    }
}

/// There are no ACLs to describe.
pub async fn describe_acls(
    _: &RequestContext,
    request: DescribeAclsRequest,
    _: i16,
) -> Answer<DescribeAclsResponse> {
    let r = &request;
    if [r.resource_type_filter, r.pattern_type_filter, r.operation, r.permission_type].contains(&UNKNOWN) {
        return unknown_element("DescribeAcls");
    }
    let response = DescribeAclsResponse {
        error_code: SECURITY_DISABLED,
        error_message: Some(ByteString::from_static("No Authorizer is configured on the broker")),
        ..Default::default()
    };
    response.into()
}

/// One refusal an ACL.
pub async fn create_acls(
    _: &RequestContext,
    request: CreateAclsRequest,
    _: i16,
) -> Answer<CreateAclsResponse> {
    let is_unknown = |a: &AclCreation| {
        [a.resource_type, a.resource_pattern_type, a.operation, a.permission_type].contains(&UNKNOWN)
    };
    if request.creations.iter().any(is_unknown) {
        return unknown_element("CreateAcls");
    }
    let refuse = |_| AclCreationResult {
        error_code: SECURITY_DISABLED,
        error_message: Some(ByteString::from_static(NO_AUTHORIZER)),
        ..Default::default()
    };
    let results = request.creations.into_iter().map(refuse).collect();
    CreateAclsResponse { results, ..Default::default() }.into()
}

/// One refusal a filter.
pub async fn delete_acls(
    _: &RequestContext,
    request: DeleteAclsRequest,
    _: i16,
) -> Answer<DeleteAclsResponse> {
    let is_unknown = |f: &DeleteAclsFilter| {
        [f.resource_type_filter, f.pattern_type_filter, f.operation, f.permission_type].contains(&UNKNOWN)
    };
    if request.filters.iter().any(is_unknown) {
        return unknown_element("DeleteAcls");
    }
    let refuse = |_| DeleteAclsFilterResult {
        error_code: SECURITY_DISABLED,
        error_message: Some(ByteString::from_static(NO_AUTHORIZER)),
        ..Default::default()
    };
    let filter_results = request.filters.into_iter().map(refuse).collect();
    DeleteAclsResponse { filter_results, ..Default::default() }.into()
}

/// Kafka closes the connection over an element of type UNKNOWN, which only a broken client sends.
fn unknown_element<R>(api: &str) -> Answer<R> {
    Answer::Close(CloseReason::Request(format!("{api}: an element of type UNKNOWN")))
}

/// Tokens are not handed out over plaintext. The requester is named all the same.
pub async fn create_delegation_token(
    _: &RequestContext,
    _: CreateDelegationTokenRequest,
    version: i16,
) -> CreateDelegationTokenResponse {
    let (kind, name) = (ByteString::from_static("User"), ByteString::from_static("ANONYMOUS"));
    let mut response = CreateDelegationTokenResponse {
        error_code: TOKEN_NOT_ALLOWED,
        principal_type: kind.clone(),
        principal_name: name.clone(),
        issue_timestamp_ms: -1,
        expiry_timestamp_ms: -1,
        max_timestamp_ms: -1,
        ..Default::default()
    };
    if version >= FIRST_WITH_REQUESTER {
        response.token_requester_principal_type = kind;
        response.token_requester_principal_name = name;
    }
    response
}

/// Nor renewed.
pub async fn renew_delegation_token(
    _: &RequestContext,
    _: RenewDelegationTokenRequest,
    _: i16,
) -> RenewDelegationTokenResponse {
    RenewDelegationTokenResponse {
        error_code: TOKEN_NOT_ALLOWED,
        expiry_timestamp_ms: -1,
        ..Default::default()
    }
}

/// Nor ended.
pub async fn expire_delegation_token(
    _: &RequestContext,
    _: ExpireDelegationTokenRequest,
    _: i16,
) -> ExpireDelegationTokenResponse {
    ExpireDelegationTokenResponse {
        error_code: TOKEN_NOT_ALLOWED,
        expiry_timestamp_ms: -1,
        ..Default::default()
    }
}

/// Nor shown.
pub async fn describe_delegation_token(
    _: &RequestContext,
    _: DescribeDelegationTokenRequest,
    _: i16,
) -> DescribeDelegationTokenResponse {
    DescribeDelegationTokenResponse { error_code: TOKEN_NOT_ALLOWED, ..Default::default() }
}
