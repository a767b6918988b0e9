//! Checks that a claimed node has not been replaced by another instance's node with the same name.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use spillway_core::node::claimant::Claim;
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep, timeout_at};

use crate::kube::{call, until};
use crate::node::cordon_again;

/// Pause after a refused read. An API server that has just started may refuse allowed requests.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// Node that now has the claimed node's name.
pub(super) enum NameOwner {
    /// The node of another instance has the name.
    Another,
    /// The claimed node has the name. Also used if no node has the name, or the read failed.
    Claimed { cordoned_again: bool },
}

/// Checks whether the claimed node's name now belongs to the node of another instance. Retries until `end`. If the claimed node
/// was uncordoned, cordons it again.
pub(super) fn check_name_owner(
    client: &Client,
    claim: &Claim,
    end: Instant,
) -> impl Future<Output = NameOwner> + use<> {
    let (nodes, claim) = (Api::<Node>::all(client.clone()), claim.clone());
    async move {
        let Ok(Some(node)) = timeout_at(end, read(&nodes, &claim.node, end)).await else {
            return NameOwner::Claimed { cordoned_again: false };
        };
        if claim.is_of(&node) {
            return NameOwner::Claimed { cordoned_again: cordon_again(&nodes, &node, &claim).await };
        }
        let node = &claim.node;
        tracing::warn!(node.name = node, "another instance's node has the name {node} now; leaving its pods alone");
        NameOwner::Another
    }
}

/// Reads the node. Returns `None` if the node does not exist. Retries failed and refused reads until `end`.
async fn read(nodes: &Api<Node>, name: &str, end: Instant) -> Option<Node> {
    let mut is_logged = false;
    loop {
        match until(end, async || call(nodes.get_opt(name)).await, |_| ()).await {
            Ok(node) => return node,
            Err(_) if is_logged => {}
            Err(error) => {
                is_logged = true;
                let error = chain(&error);
                tracing::warn!(
                    node.name = name,
                    error,
                    "cannot read node {name} to check that it is still the drained one; its new pods wait (apply deploy/rbac.yaml)"
                );
            }
        }
        sleep(AFTER_REFUSAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::test_support::api_server::{NODE_PATH, node, status};
    use crate::test_support::context::{TestContext, claim, client};
    use crate::test_support::script::call;

    #[tokio::test(start_paused = true)]
    async fn repeated_refusal_is_logged_once() {
        // Without it, a line that another test reaches first is disabled (tokio-rs/tracing#2874).
        tracing::subscriber::set_global_default(tracing_subscriber::registry()).unwrap();
        let lines = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&lines);
        let writer = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            std::io::sink()
        };
        let log = tracing_subscriber::registry().with(spillway_startup::logs::lines(writer));
        let _captured = tracing::subscriber::set_default(log);

        let refused = || call(format!("GET {NODE_PATH}")).says(403, status(403, "Forbidden", "nodes"));
        let allowed = call(format!("GET {NODE_PATH}")).says(200, node());
        let context = TestContext::new(&[], [refused(), refused(), refused(), allowed], []);
        let began = Instant::now();
        check_name_owner(&client(&context).await, &claim("e-1"), began + Duration::from_mins(1)).await;
        assert_eq!((began.elapsed().as_secs(), lines.load(Ordering::Relaxed)), (3 * 5, 1));
    }
}
