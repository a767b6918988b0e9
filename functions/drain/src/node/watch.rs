//! Whether a claim still counts while its drain goes on: AWS may call off, or put off, what the node was claimed for, or
//! somebody may uncordon it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use tokio::time::sleep;

use super::observed::ObservedNode;
use crate::kube::call;

/// How often the node is looked at: pods that have come to it by then are told to leave once more. To watch nodes would
/// be a right more.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Returns when nobody's claim is on the node any more. One that cannot be looked at, or is gone, is not in use again.
pub(crate) async fn until_given_back(nodes: &Api<Node>, name: &str) {
    loop {
        sleep(LOOK_EVERY).await;
        match call(nodes.get_opt(name)).await {
            Ok(Some(node)) if ObservedNode::of(&node).claim().is_none() => return,
            Ok(_) => {}
            Err(error) => tracing::warn!(
                node.name = name, error = %error, "cannot see whether node {name} is still claimed; looking again"
            ),
        }
    }
}
