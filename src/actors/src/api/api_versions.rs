//! ApiVersions: what this listener serves, and the cluster's features.

use callboard_protocol::ErrorCode;
use callboard_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use callboard_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, Message};

use super::{RequestContext, encode, table};
use crate::net::Reply;

/// From this version on the client says what software it is.
const FIRST_WITH_SOFTWARE: i16 = 3;
/// Up to this version clients refuse a supported feature whose lowest level is 0, so none is shown.
const LAST_WITHOUT_LEVEL_0: i16 = 3;
/// From this version on the client says which cluster and node it means.
const FIRST_WITH_TARGET: i16 = 5;

/// Answers with the table of this listener.
pub async fn handle(cx: &RequestContext, request: ApiVersionsRequest, version: i16) -> ApiVersionsResponse {
    if let Some(error) = refusal(cx, &request, version) {
        return ApiVersionsResponse { error_code: error as i16, ..Default::default() };
    }
    if version >= FIRST_WITH_SOFTWARE {
        let software = (request.client_software_name, request.client_software_version);
        // A repeated ApiVersions request keeps the first name.
        let _ = cx.connection.software.set(software);
    }
    let api_keys = table(cx.connection.listener.kind)
        .filter_map(|entry| {
            let (min_version, max_version) = entry.advertised()?;
            Some(ApiVersion { api_key: entry.key as i16, min_version, max_version, ..Default::default() })
        })
        .collect();
    let features = cx.services.features();
    let supported =
        features.supported.iter().filter(|(_, lowest, _)| version > LAST_WITHOUT_LEVEL_0 || *lowest > 0);
    ApiVersionsResponse {
        api_keys,
        supported_features: supported
            .map(|(name, min_version, max_version)| SupportedFeatureKey {
                name: (*name).into(),
                min_version: *min_version,
                max_version: *max_version,
                ..Default::default()
            })
            .collect(),
        finalized_features_epoch: features.finalized_epoch,
        finalized_features: features
            .finalized
            .iter()
            .map(|(name, level)| FinalizedFeatureKey {
                name: name.as_str().into(),
                max_version_level: *level,
                min_version_level: *level,
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    }
}

fn refusal(cx: &RequestContext, request: &ApiVersionsRequest, version: i16) -> Option<ErrorCode> {
    if version >= FIRST_WITH_SOFTWARE
        && !(is_software_name(&request.client_software_name)
            && is_software_name(&request.client_software_version))
    {
        return Some(ErrorCode::InvalidRequest);
    }
    if version < FIRST_WITH_TARGET {
        return None;
    }
    // Cluster and node belong together; a client that knows them from before may have reached somebody else.
    match (&request.cluster_id, request.node_id) {
        (None, -1) => None,
        (None, _) | (Some(_), -1) => Some(ErrorCode::InvalidRequest),
        (Some(cluster), node) if **cluster == *cx.services.cluster_id && node == cx.services.node_id => None,
        (Some(_), _) => Some(ErrorCode::RebootstrapRequired),
    }
}

/// Letters, digits, dots and dashes, with a letter or digit at both ends.
fn is_software_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric);
    ends && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
}

/// The answer to a version that is not served: version 0's body with only ApiVersions itself,
/// which a client of any age can read.
pub(super) fn unknown_version(cx: &RequestContext) -> Reply {
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion as i16,
        api_keys: vec![ApiVersion {
            api_key: cx.api_key as i16,
            min_version: ApiVersionsRequest::MIN_VERSION,
            max_version: ApiVersionsRequest::MAX_VERSION,
            ..Default::default()
        }],
        ..Default::default()
    };
    encode(cx, 0, &response, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::is_software_name;

    #[test]
    fn software_names() {
        for good in ["a", "A9", "ok-1.2", "a--b", "a..b", "0"] {
            assert!(is_software_name(good), "{good}");
        }
        for bad in ["", "bad name!", "-lead", "trail-", ".a", "a.", "a_b", "ä", "a\n"] {
            assert!(!is_software_name(bad), "{bad}");
        }
    }
}
