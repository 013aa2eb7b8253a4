//! ListConfigResources.

use callboard_protocol::messages::ListConfigResourcesRequest;

use crate::stage::Stage;

/// Every kind of resource.
pub fn kinds(s: &mut Stage<'_>) {
    let cases: [&[i8]; 12] =
        [&[], &[2], &[4], &[8], &[16], &[32], &[0], &[1], &[3], &[-1], &[16, 32], &[4, 4, 99]];
    for resource_types in cases {
        let request =
            ListConfigResourcesRequest { resource_types: resource_types.to_vec(), ..Default::default() };
        s.send(&format!("kinds {resource_types:?}"), &request);
    }
}
