//! What this node answers to requests about security while none is configured, as Kafka does:
//! SASL on a plaintext listener, ACLs without an authorizer, delegation tokens over plaintext.

use callboard_protocol::messages::create_acls_response::AclCreationResult;
use callboard_protocol::messages::delete_acls_response::DeleteAclsFilterResult;
use callboard_protocol::messages::{
    CreateAclsRequest, CreateAclsResponse, CreateDelegationTokenRequest, CreateDelegationTokenResponse,
    DeleteAclsRequest, DeleteAclsResponse, DescribeAclsRequest, DescribeAclsResponse,
    DescribeDelegationTokenRequest, DescribeDelegationTokenResponse, ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse, RenewDelegationTokenRequest, RenewDelegationTokenResponse,
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::RequestContext;

const SECURITY_DISABLED: i16 = ErrorCode::SecurityDisabled as i16;
const NO_AUTHORIZER: &str = "No Authorizer is configured.";
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
pub async fn describe_acls(_: &RequestContext, _: DescribeAclsRequest, _: i16) -> DescribeAclsResponse {
    DescribeAclsResponse {
        error_code: SECURITY_DISABLED,
        error_message: Some(ByteString::from_static(NO_AUTHORIZER)),
        ..Default::default()
    }
}

/// One refusal an ACL.
pub async fn create_acls(_: &RequestContext, request: CreateAclsRequest, _: i16) -> CreateAclsResponse {
    let refuse = |_| AclCreationResult {
        error_code: SECURITY_DISABLED,
        error_message: Some(ByteString::from_static(NO_AUTHORIZER)),
        ..Default::default()
    };
    CreateAclsResponse { results: request.creations.into_iter().map(refuse).collect(), ..Default::default() }
}

/// One refusal a filter.
pub async fn delete_acls(_: &RequestContext, request: DeleteAclsRequest, _: i16) -> DeleteAclsResponse {
    let refuse = |_| DeleteAclsFilterResult {
        error_code: SECURITY_DISABLED,
        error_message: Some(ByteString::from_static(NO_AUTHORIZER)),
        ..Default::default()
    };
    DeleteAclsResponse {
        filter_results: request.filters.into_iter().map(refuse).collect(),
        ..Default::default()
    }
}

macro_rules! token_refusals {
    ($($name:ident $request:ident $response:ident;)*) => {$(
        /// Tokens are not handed out or changed over plaintext.
        pub async fn $name(_: &RequestContext, _: $request, _: i16) -> $response {
            $response { error_code: TOKEN_NOT_ALLOWED, ..Default::default() }
        }
    )*};
}

token_refusals! {
    create_delegation_token CreateDelegationTokenRequest CreateDelegationTokenResponse;
    renew_delegation_token RenewDelegationTokenRequest RenewDelegationTokenResponse;
    expire_delegation_token ExpireDelegationTokenRequest ExpireDelegationTokenResponse;
    describe_delegation_token DescribeDelegationTokenRequest DescribeDelegationTokenResponse;
}
