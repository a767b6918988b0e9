//! Lists the pods of a node.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::{Api, Client};
use spillway_core::drain::deadline::Window;
use spillway_core::drain::plan::{Planned, plan};
use spillway_core::kube::pod::Pod;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use super::name_owner::{NameOwner, check_name_owner};
use crate::kube::watch::{Listed, Selection};
use crate::kube::{ApiError, CALL_TIMEOUT, until};
use crate::node::ClaimedNode;

/// Time after a claim before a new node can take the claimed node's name. A new instance has to boot first.
const NAME_IS_KEPT: Duration = Duration::from_secs(5);

/// Maximum wait for the next data of a list response. Longer than the API server's own timeout of 60 s (`--request-timeout`).
const LIST_TIMEOUT: Duration = Duration::from_secs(65);

pub(super) fn pods_of(client: &Client, node: &str) -> Selection<Pod> {
    Selection { api: Api::all(client.clone()), field_selector: Some(format!("spec.nodeName={node}")) }
}

/// Lists the node's pods, with retries until the end of `window`.
pub(super) async fn list(client: &Client, node: &str, window: Window) -> Result<Listed<Pod>, ApiError> {
    let pods = pods_of(client, node);
    let log = |error: &ApiError| {
        tracing::warn!(node.name = node, error = chain(&error), "cannot list the node's pods; trying again");
    };
    until(window.end, async || pods.list_within(LIST_TIMEOUT).await, log).await
}

/// Lists the pods of a claimed node. Returns an empty list if another instance's node has taken the node's name.
pub(crate) async fn list_claimed(
    ClaimedNode { claim, client }: &ClaimedNode,
    claim_began: Instant,
    window: Window,
) -> Result<Listed<Pod>, ApiError> {
    let mut listed = list(client, &claim.node, window).await?;
    let is_late = claim_began.elapsed() > NAME_IS_KEPT;
    if is_late && matches!(Box::pin(check_name_owner(client, claim, window.end)).await, NameOwner::Another) {
        listed.items.clear();
    }
    Ok(listed)
}

pub(crate) async fn uids(client: &Client, node: &str) -> Result<BTreeSet<String>, ApiError> {
    let listed = pods_of(client, node).list_within(CALL_TIMEOUT).await?;
    Ok(listed.items.into_iter().filter_map(|pod| pod.metadata.uid).collect())
}

/// Returns the longest grace period of the node's pods that have to leave; zero if there are none.
pub(crate) async fn longest_grace(client: &Client, node: &str) -> Result<Duration, ApiError> {
    let listed = pods_of(client, node).list_within(CALL_TIMEOUT).await?;
    Ok(listed
        .items
        .iter()
        .filter_map(plan)
        .filter(Planned::has_to_leave)
        .map(|pod| pod.grace)
        .max()
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use spillway_core::drain::deadline::Termination;
    use tokio::time::{advance, sleep};
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::test_support::api_server::{self, NODE_PATH, node};
    use crate::test_support::context::{TestContext, claim, client};
    use crate::test_support::script::call;

    fn two_minutes() -> Window {
        Window {
            start: Instant::now(),
            end: Instant::now() + Duration::from_mins(2),
            instance_goes: Termination::MayStay,
            margin: Duration::ZERO,
            detaching: Duration::ZERO,
            dead_since: None,
        }
    }

    /// API server whose lists take these times, in order.
    fn slow<const N: usize>(takes: [Duration; N], lists: &Arc<AtomicUsize>) -> Client {
        let lists = Arc::clone(lists);
        let answer = move |_: Request<Body>| {
            let number = lists.fetch_add(1, Ordering::Relaxed);
            async move {
                sleep(takes[number]).await;
                let list = json!({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []});
                Ok::<_, BoxError>(Response::new(Body::from(list.to_string().into_bytes())))
            }
        };
        Client::new(service_fn(answer), "default")
    }

    #[tokio::test(start_paused = true)]
    async fn slow_list_is_awaited_and_a_lost_one_repeated() {
        for (takes_s, requests) in [([60, 0], 1), ([3_600, 1], 2)] {
            let (began, lists) = (Instant::now(), Arc::default());
            list(&slow(takes_s.map(Duration::from_secs), &lists), "node", two_minutes()).await.unwrap();
            assert_eq!(lists.load(Ordering::Relaxed), requests);
            assert!((60..70).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn list_over_5_s_after_the_claim_rechecks_the_node() {
        for (seconds, is_checked) in [(5, false), (6, true)] {
            let look = call(format!("GET {NODE_PATH}")).says(200, node());
            let listed = call("GET /api/v1/pods").says(200, api_server::list("Pod", &[]));
            let context = TestContext::new(&[], [listed].into_iter().chain(is_checked.then_some(look)), []);
            let (claimed, claim_began) =
                (ClaimedNode { claim: claim("e-1"), client: client(&context).await }, Instant::now());
            advance(Duration::from_secs(seconds)).await;
            list_claimed(&claimed, claim_began, two_minutes()).await.unwrap();
        }
    }
}
