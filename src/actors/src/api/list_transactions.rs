//! ListTransactions: the transactional ids that this broker coordinates.

use callboard_coordinator::transaction::{List, Listed, State};
use callboard_protocol::messages::list_transactions_response::TransactionState;
use callboard_protocol::messages::{ListTransactionsRequest, ListTransactionsResponse};
use callboard_protocol::{ByteString, ErrorCode};
use regex::{Regex, RegexBuilder};

use super::RequestContext;

/// The largest program that a pattern may become, in bytes.
const PATTERN_SIZE_LIMIT_BYTES: usize = 1 << 20;

/// Lists the ids that pass the filters. Names of states that do not exist are told back, and match nothing.
pub async fn handle(
    cx: &RequestContext,
    request: ListTransactionsRequest,
    _: i16,
) -> ListTransactionsResponse {
    let wants_states = !request.state_filters.is_empty();
    let (states, unknown): (Vec<ByteString>, Vec<ByteString>) =
        request.state_filters.into_iter().partition(|name| State::is_name(name));
    let mut response = ListTransactionsResponse { unknown_state_filters: unknown, ..Default::default() };
    let pattern = match pattern(request.transactional_id_pattern.as_ref()) {
        Ok(pattern) => pattern,
        Err(error) => {
            response.error_code = error as i16;
            return response;
        }
    };
    if wants_states && states.is_empty() {
        return response;
    }
    let list = List {
        states,
        producer_ids: request.producer_id_filters,
        open_longer_than_ms: request.duration_filter,
    };
    match cx.services.transactions.list(&list).await {
        Ok(listed) => {
            let wanted = |id: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(id));
            response.transaction_states =
                listed.into_iter().filter(|found| wanted(&found.transactional_id)).map(state).collect();
        }
        Err(error) => response.error_code = error as i16,
    }
    response
}

/// The pattern must match the whole id. An empty one is none.
fn pattern(text: Option<&ByteString>) -> Result<Option<Regex>, ErrorCode> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    // Alone it must be sound, or parentheses could balance those around it.
    let build = |text: &str| RegexBuilder::new(text).size_limit(PATTERN_SIZE_LIMIT_BYTES).build();
    let whole = build(text).and_then(|_| build(&format!("^(?:{text})$")));
    whole.map(Some).map_err(|_| ErrorCode::InvalidRegularExpression)
}

fn state(listed: Listed) -> TransactionState {
    TransactionState {
        transactional_id: listed.transactional_id,
        producer_id: listed.producer_id,
        transaction_state: ByteString::from_static(listed.state.name()),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(text: &str, id: &str) -> Result<bool, ErrorCode> {
        pattern(Some(&ByteString::from(text))).map(|found| found.is_none_or(|found| found.is_match(id)))
    }

    #[test]
    fn a_pattern_matches_whole_ids() {
        assert_eq!(matches(".*-txn", "a-txn"), Ok(true));
        assert_eq!(matches("txn", "a-txn"), Ok(false));
        assert_eq!(matches("a|b", "b"), Ok(true));
        assert_eq!(matches("a|b", "bb"), Ok(false));
        assert_eq!(matches("", "anything"), Ok(true));
        for bad in ["[", "(?=x).*", "a)(b"] {
            assert_eq!(matches(bad, "a"), Err(ErrorCode::InvalidRegularExpression), "{bad}");
        }
    }
}
