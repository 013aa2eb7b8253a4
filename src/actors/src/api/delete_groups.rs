//! DeleteGroups.

use std::collections::BTreeSet;

use callboard_coordinator::group::DeleteGroup;
use callboard_protocol::messages::delete_groups_response::DeletableGroupResult;
use callboard_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

use super::{RequestContext, grouped};

/// Asks each group's coordinator.
pub async fn handle(cx: &RequestContext, request: DeleteGroupsRequest, _: i16) -> DeleteGroupsResponse {
    let mut results = Vec::with_capacity(request.groups_names.len());
    // One that is named twice is deleted once.
    let mut seen = BTreeSet::new();
    for group_id in request.groups_names.into_iter().filter(|name| seen.insert(name.clone())) {
        let answer = grouped::ask(cx, &group_id, DeleteGroup { group_id: group_id.clone() }).await;
        results.push(answer.unwrap_or_else(|error| DeletableGroupResult {
            group_id,
            error_code: error as i16,
            ..Default::default()
        }));
    }
    DeleteGroupsResponse { results, ..Default::default() }
}
