//! DescribeCluster.

use callboard_protocol::messages::DescribeClusterRequest;

use crate::stage::Stage;

/// Brokers and controllers, from both listeners.
pub fn kinds(s: &mut Stage<'_>) {
    for on_controller in [false, true] {
        if on_controller {
            s.visit_controller();
        }
        let at = if on_controller { "controller" } else { "broker" };
        for endpoint_type in [1, 2, 0, 3, -1] {
            let request = DescribeClusterRequest { endpoint_type, ..Default::default() };
            s.send(&format!("{at}: type {endpoint_type}"), &request);
        }
        let rights =
            DescribeClusterRequest { include_cluster_authorized_operations: true, ..Default::default() };
        s.send(&format!("{at}: what is allowed"), &rights);
        let rights = DescribeClusterRequest { endpoint_type: 2, ..rights };
        s.send(&format!("{at}: what is allowed, of controllers"), &rights);
        let fenced = DescribeClusterRequest { include_fenced_brokers: true, ..Default::default() };
        s.send(&format!("{at}: fenced ones too"), &fenced);
        let fenced = DescribeClusterRequest { endpoint_type: 2, ..fenced };
        s.send(&format!("{at}: fenced controllers"), &fenced);
    }
}
