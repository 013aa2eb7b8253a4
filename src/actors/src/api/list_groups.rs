//! ListGroups: those that this broker coordinates.

use callboard_coordinator::group::ListGroups;
use callboard_protocol::messages::{ListGroupsRequest, ListGroupsResponse};

use super::{RequestContext, grouped};

/// Asks all shards.
pub async fn handle(cx: &RequestContext, request: ListGroupsRequest, _: i16) -> ListGroupsResponse {
    let wanted = ListGroups { states: request.states_filter, types: request.types_filter };
    match cx.services.groups.list(&grouped::caller(cx), &wanted).await {
        Ok(groups) => ListGroupsResponse { groups, ..Default::default() },
        Err(error) => ListGroupsResponse { error_code: error as i16, ..Default::default() },
    }
}
