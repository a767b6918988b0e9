//! Whether the node by the claimed one's name is still the claimed one: pods name their node and nothing else.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use spillway_core::node::claimant::Claim;
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep, timeout_at};

use crate::kube::{call, until};
use crate::node::cordon_again;

/// How long to wait after a refusal. An API server that has just started may refuse for a moment what it allows.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// What a look has said.
pub(super) enum Looked {
    /// Another instance's node has the claimed one's name.
    Anothers,
    /// It is the claimed one.
    Claimed { cordoned_again: bool },
}

/// Looks at the node, until the API server says whose it is: meanwhile none of its pods is touched. At `end` it is the claimed one.
pub(super) fn look(client: &Client, claim: &Claim, end: Instant) -> impl Future<Output = Looked> + use<> {
    let (nodes, claim) = (Api::<Node>::all(client.clone()), claim.clone());
    async move {
        let Ok(Some(node)) = timeout_at(end, read(&nodes, &claim.node, end)).await else {
            return Looked::Claimed { cordoned_again: false };
        };
        if claim.is_of(&node) {
            return Looked::Claimed { cordoned_again: cordon_again(&nodes, &node, &claim).await };
        }
        let node = &claim.node;
        tracing::warn!(node.name = node, "another instance's node is called {node} by now: its pods are left alone");
        Looked::Anothers
    }
}

/// The node by that name, if there is one.
async fn read(nodes: &Api<Node>, name: &str, end: Instant) -> Option<Node> {
    let mut is_told = false;
    loop {
        match until(end, async || call(nodes.get_opt(name)).await, |_| ()).await {
            Ok(node) => return node,
            Err(_) if is_told => {}
            Err(error) => {
                is_told = true;
                let error = chain(&error);
                tracing::warn!(
                    node.name = name,
                    error,
                    "cannot see whether node {name} is still the one that is drained; its new pods wait (apply deploy/rbac.yaml)"
                );
            }
        }
        sleep(AFTER_REFUSAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::api_server::{NODE, NODE_PATH, node, status};
    use crate::test_support::context::{TestContext, claim, client};
    use crate::test_support::log::logged_in_time;
    use crate::test_support::script::call;

    #[test]
    fn a_look_that_is_refused_again_and_again_is_told_once() {
        let refused = || call(format!("GET {NODE_PATH}")).says(403, status(403, "Forbidden", "nodes"));
        let seen = call(format!("GET {NODE_PATH}")).says(200, node());
        let lines = logged_in_time(async {
            let context = TestContext::new(&[], [refused(), refused(), refused(), seen], []);
            let began = Instant::now();
            look(&client(&context).await, &claim("e-1"), began + Duration::from_mins(1)).await;
            assert_eq!(began.elapsed().as_secs(), 3 * 5);
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(&format!("whether node {NODE} is still the one that is drained")), "{lines:?}");
    }
}
