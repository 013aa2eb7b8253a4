//! Whether the consumer group protocol is to be had: by the cluster's `group.version`, and by this broker's settings.

use callboard_metadata::config::Value;

use super::RequestContext;

/// The feature that brings the protocol, from level 1 on.
const GROUP_VERSION: &str = "group.version";

/// Whether the protocol is to be had.
pub(super) fn is_enabled(cx: &RequestContext) -> bool {
    let metadata = cx.services.metadata.current();
    let has_protocol = match metadata.settings.value("group.coordinator.rebalance.protocols") {
        Some(Value::List(protocols)) => protocols.iter().any(|protocol| protocol == "consumer"),
        _ => false,
    };
    has_protocol && metadata.image.features.level(GROUP_VERSION) >= 1
}
