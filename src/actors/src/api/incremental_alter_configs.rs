//! IncrementalAlterConfigs: changes single configs, in the way of AlterConfigs.

use callboard_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use super::RequestContext;
use super::alter_configs::alter;

/// Changes configs; each resource gets its own error.
pub async fn handle(
    cx: &RequestContext,
    request: IncrementalAlterConfigsRequest,
    version: i16,
) -> IncrementalAlterConfigsResponse {
    alter(cx, &request, version).await
}
