//! Watches a node to observe whether the kubelet still reports. Before a silent node counts as dead, the zone's nodes are
//! checked.

use std::future::pending;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Api, Client, ResourceExt as _};
use spillway_core::drain::kubelet::{DEAD_AFTER, Kubelet, ZONE_LABEL, ZoneNodes, kubelet_of};
use spillway_core::node::claimant::Claim;
use spillway_startup::logs::chain;
use tokio::time::sleep;

use crate::kube::{ApiError, list};
use crate::node::{NodeWatch, ObservedNodeChange};

/// Maximum number of nodes per page of a list.
const PAGE: u32 = 100;

pub(crate) struct KubeletWatch {
    client: Client,
    watch: NodeWatch,
    claim: Claim,
    silence: Silence,
}

enum Silence {
    /// The kubelet reports its status, or Spillway has not read the node yet.
    None,
    /// The kubelet does not report its status. The future ends when the node counts as dead.
    Lasts(LocalBoxFuture<'static, ()>),
    /// The node counts as dead.
    Dead,
}

impl KubeletWatch {
    pub(crate) fn of(client: &Client, claim: &Claim) -> Self {
        let watch = NodeWatch::of(Api::all(client.clone()), &claim.node);
        Self { client: client.clone(), watch, claim: claim.clone(), silence: Silence::None }
    }

    /// The first call returns the present state of the kubelet. Each later call waits until the node changes or counts as dead
    /// ([`Kubelet::Dead`]). If the watch breaks, returns the last known state. Cancel safe.
    pub(crate) async fn next(&mut self) -> Kubelet {
        let change = tokio::select! {
            biased;
            change = self.watch.next_change() => change,
            () = self.silence.until_dead() => {
                self.silence = Silence::Dead;
                return Kubelet::Dead;
            }
        };
        let (kubelet, zone) = match change {
            // Another instance's node has the name now.
            ObservedNodeChange::Is(node) if !self.claim.is_of(&node) => (Kubelet::Silent, None),
            ObservedNodeChange::Is(node) => (kubelet_of(&node), node.labels().get(ZONE_LABEL).cloned()),
            ObservedNodeChange::NotThere => (Kubelet::Silent, None),
            ObservedNodeChange::Unknown => return self.silence.kubelet(),
        };
        match (kubelet, &self.silence) {
            (Kubelet::Answers, _) => self.silence = Silence::None,
            (_, Silence::None) => {
                let dead = until_dead(self.client.clone(), self.claim.node.clone(), zone);
                self.silence = Silence::Lasts(dead.boxed_local());
            }
            (_, Silence::Lasts(_)) => {}
            (_, Silence::Dead) => return Kubelet::Dead,
        }
        kubelet
    }
}

impl Silence {
    fn kubelet(&self) -> Kubelet {
        match self {
            Self::None => Kubelet::Answers,
            Self::Lasts(_) => Kubelet::Silent,
            Self::Dead => Kubelet::Dead,
        }
    }

    async fn until_dead(&mut self) {
        match self {
            Self::Lasts(dead) => dead.await,
            Self::None | Self::Dead => pending().await,
        }
    }
}

/// Waits for [`DEAD_AFTER`], and repeats the wait while most kubelets of the zone do not report.
async fn until_dead(client: Client, node: String, zone: Option<String>) {
    loop {
        sleep(DEAD_AFTER).await;
        // A missing node has no zone.
        let Some(zone) = &zone else { return };
        match nodes_of(&client, zone).await {
            Ok(nodes) if nodes.are_in_doubt() => {
                tracing::warn!("most nodes of zone {zone} are silent; respecting what blocks the pods of node {node}");
            }
            Ok(_) => {
                tracing::warn!("node {node} is taken for dead; no longer respecting what blocks its pods");
                return;
            }
            Err(error) => {
                let error = chain(&error);
                tracing::warn!(
                    error,
                    "cannot list the nodes of zone {zone}; respecting what blocks the pods of node {node}"
                );
            }
        }
    }
}

/// Counts the nodes of a zone, and those nodes whose kubelet does not report.
async fn nodes_of(client: &Client, zone: &str) -> Result<ZoneNodes, ApiError> {
    let (mut nodes, api) = (ZoneNodes::default(), Api::<Node>::all(client.clone()));
    let mut page = ListParams::default().labels(&format!("{ZONE_LABEL}={zone}")).limit(PAGE);
    loop {
        let request = Request::new(api.resource_url()).list(&page);
        let list = list::each(client, request, |node: Node| nodes.count(&node)).await?;
        match list.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(nodes),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::test_support::api_server::{list, node, status};
    use crate::test_support::context::{TestContext, claim, client};
    use crate::test_support::script::{Expected, call};

    fn nodes(list: Value) -> Expected {
        call("GET /api/v1/nodes").without("watch=true").says(200, list)
    }

    #[tokio::test(start_paused = true)]
    async fn node_of_another_instance_means_silent() {
        let mut successor = node();
        successor["spec"]["providerID"] = json!("aws:///us-east-1a/i-0fffffffffffffff0");
        for (now_there, kubelet) in [(node(), Kubelet::Answers), (successor, Kubelet::Silent)] {
            let watched = call("GET /api/v1/nodes").with("watch=true").perhaps();
            let context = TestContext::new(&[], [nodes(list("Node", &[now_there])), watched], []);
            assert_eq!(KubeletWatch::of(&client(&context).await, &claim("e-1")).next().await, kubelet);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn node_watch_that_breaks_does_not_end_a_silence() {
        let mut silent = node();
        silent["status"]["conditions"][0]["status"] = json!("Unknown");
        let watch = || call("GET /api/v1/nodes").with("watch=true");
        let broken = watch().says(503, status(503, "ServiceUnavailable", "nodes"));
        let script = [nodes(list("Node", &[silent])), broken, watch().perhaps(), nodes(list("Node", &[])).perhaps()];
        let context = TestContext::new(&[], script, []);
        let mut kubelet = KubeletWatch::of(&client(&context).await, &claim("e-1"));
        assert_eq!([kubelet.next().await, kubelet.next().await], [Kubelet::Silent, Kubelet::Silent]);
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_of_a_zone_are_counted_on_every_page() {
        let mut silent = node();
        silent["status"]["conditions"][0]["status"] = json!("Unknown");
        let mut first = list("Node", &[silent.clone(), silent]);
        first["metadata"]["continue"] = json!("more");
        let second = nodes(list("Node", &[node(), node()])).with("limit=100").with("continue=more");
        let context = TestContext::new(&[], [nodes(first).with("limit=100").without("continue="), second], []);
        assert!(!nodes_of(&client(&context).await, "us-east-1a").await.unwrap().are_in_doubt());
    }
}
