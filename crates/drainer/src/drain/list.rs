//! The node's pods, as the API server lists them.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::{Api, Client};
use spillway_core::drain::deadline::Window;
use spillway_core::drain::plan::{Planned, plan};
use spillway_core::kube::pod::Pod;
use spillway_startup::logs::chain;
use tokio::time::Instant;

use super::look::{Looked, look};
use crate::kube::watch::{Listed, Selection};
use crate::kube::{ApiError, CALL_TIMEOUT, until};
use crate::node::ClaimedNode;

/// This soon after the claim, no other instance can have the node's name: it would have to boot first.
const NAME_IS_KEPT: Duration = Duration::from_secs(5);

/// Longest wait for the list, and between two parts of it. The API server itself ends a list after 60 s (kube-apiserver,
/// `--request-timeout`). A connection that has gone silent is found within 10 s by its pings, and the list is repeated.
const LIST_TIMEOUT: Duration = Duration::from_secs(65);

/// The pods of a node, to be listed or watched.
pub(super) fn pods_of(client: &Client, node: &str) -> Selection<Pod> {
    Selection { api: Api::all(client.clone()), field_selector: Some(format!("spec.nodeName={node}")) }
}

/// Lists the node's pods. Tried until the window ends: without them there is no drain. In a storm a list takes longer than any
/// other call, and a second one would take as long.
pub(super) async fn list(client: &Client, node: &str, window: Window) -> Result<Listed<Pod>, ApiError> {
    let pods = pods_of(client, node);
    let log = |error: &ApiError| {
        tracing::warn!(node.name = node, error = chain(&error), "cannot list the node's pods; trying again");
    };
    until(window.end, async || pods.list_within(LIST_TIMEOUT).await, log).await
}

/// Lists the pods of a node whose claim began then. If the list comes late, and another instance's node has the name by now,
/// there are none.
pub(crate) async fn list_claimed(
    ClaimedNode { claim, client }: &ClaimedNode,
    claim_began: Instant,
    window: Window,
) -> Result<Listed<Pod>, ApiError> {
    let mut listed = list(client, &claim.node, window).await?;
    let is_late = claim_began.elapsed() > NAME_IS_KEPT;
    if is_late && matches!(Box::pin(look(client, claim, window.end)).await, Looked::Anothers) {
        listed.items.clear();
    }
    Ok(listed)
}

/// UIDs of the pods on a node.
pub(crate) async fn uids(client: &Client, node: &str) -> Result<BTreeSet<String>, ApiError> {
    let listed = pods_of(client, node).list_within(CALL_TIMEOUT).await?;
    Ok(listed.items.into_iter().filter_map(|pod| pod.metadata.uid).collect())
}

/// The longest grace period of the pods that have to leave a node.
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
            instance_goes: Termination::Unknown,
            margin: Duration::ZERO,
            detaching: Duration::ZERO,
            dead_since: None,
        }
    }

    /// An API server whose lists take so long, one after the other.
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
    async fn slow_list_is_waited_for_and_not_repeated() {
        let (began, lists) = (Instant::now(), Arc::default());
        list(&slow([Duration::from_mins(1)], &lists), "node", two_minutes()).await.unwrap();
        assert_eq!((began.elapsed(), lists.load(Ordering::Relaxed)), (Duration::from_mins(1), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn swallowed_list_is_repeated_within_the_window() {
        let (began, lists) = (Instant::now(), Arc::default());
        let takes = [Duration::from_hours(1), Duration::from_secs(1)];
        list(&slow(takes, &lists), "node", two_minutes()).await.unwrap();
        assert_eq!(lists.load(Ordering::Relaxed), 2);
        assert!(began.elapsed() < Duration::from_mins(1) + Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn whose_the_node_is_by_now_is_asked_if_the_list_comes_more_than_five_seconds_after_the_claim() {
        for (seconds, is_asked) in [(5, false), (6, true)] {
            let look = call(format!("GET {NODE_PATH}")).says(200, node());
            let listed = call("GET /api/v1/pods").says(200, api_server::list("Pod", &[]));
            let context = TestContext::new(&[], [listed].into_iter().chain(is_asked.then_some(look)), []);
            let (claimed, claim_began) =
                (ClaimedNode { claim: claim("e-1"), client: client(&context).await }, Instant::now());
            advance(Duration::from_secs(seconds)).await;
            list_claimed(&claimed, claim_began, two_minutes()).await.unwrap();
        }
    }
}
