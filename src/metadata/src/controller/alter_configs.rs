//! AlterConfigs: replaces all configs of a resource by those given.

use callboard_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, alter_configs_request as request,
    alter_configs_response as response,
};

use super::alteration::{Answer, Asked, Change, alteration};
use super::incremental_alter_configs::SET;

alteration! {
    AlterConfigsRequest, AlterConfigsResponse,
    request::AlterConfigsResource, response::AlterConfigsResourceResponse,
    replaces: true, config: request::AlterableConfig, operation: |config| SET
}
