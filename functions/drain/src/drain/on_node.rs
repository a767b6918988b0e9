//! The pods of the node when its drain begins: those that were listed beside the claim, or else listed now.

use kube::Client;

use super::deadline::Window;
use super::plan::{Disposition, PodName, plan};
use super::progress::Known;
use super::{list, pods_of};
use crate::kube::ApiError;
use crate::kube::pod::Pod;
use crate::kube::watch::Listed;
use crate::node::Claim;

/// The node's pods, and since when what we know of them is whole.
#[derive(Debug)]
pub(crate) struct OnNode {
    pub(super) listed: Listed<Pod>,
    pub(super) known: Known,
}

impl OnNode {
    /// Those that came with the claim; if none did, it asks for them until the window ends.
    pub(crate) async fn of(
        client: &Client,
        claim: &Claim,
        beside: Option<Listed<Pod>>,
        window: Window,
    ) -> Result<Self, ApiError> {
        let (listed, known) = match beside {
            Some(listed) => (listed, Known::BesideTheClaim),
            None => (list(&pods_of(client, &claim.node), &claim.node, window).await?, Known::AfterTheClaim),
        };
        Ok(Self { listed, known })
    }

    /// The pods that have to leave.
    pub(crate) fn leaving(&self) -> Vec<PodName> {
        let has_to_leave = |place: &Disposition| match place {
            Disposition::Leaves | Disposition::DoNotDisrupt(_) | Disposition::Leaving { .. } => true,
            Disposition::Stays(_) | Disposition::Stopped => false,
        };
        let planned = self.listed.items.iter().filter_map(plan);
        planned.filter(|pod| has_to_leave(&pod.place)).map(|pod| pod.name).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use serde_json::json;

    use super::*;

    #[test]
    fn the_pods_that_have_to_leave_are_those_that_are_evicted_or_waited_for() {
        let pods = json!([
            {"metadata": {"name": "web-0"}},
            {"metadata": {"name": "batch-0", "annotations": {"karpenter.sh/do-not-disrupt": "true"}}},
            {"metadata": {"name": "leaving", "deletionTimestamp": "2026-11-21T03:12:00Z", "deletionGracePeriodSeconds": 30}},
            {"metadata": {"name": "stopped", "deletionTimestamp": "2026-11-21T03:12:00Z", "deletionGracePeriodSeconds": 0}},
            {"metadata": {"name": "static", "annotations": {"kubernetes.io/config.mirror": "hash"}}},
        ]);
        let mut items: Vec<Pod> = serde_json::from_value(pods).unwrap();
        for pod in &mut items {
            pod.metadata.namespace = Some("shop".to_owned());
            pod.metadata.uid.clone_from(&pod.metadata.name);
        }
        let on_node =
            OnNode { listed: Listed { items, resource_version: "1".to_owned() }, known: Known::BesideTheClaim };
        let leaving: Vec<_> = on_node.leaving().iter().map(ToString::to_string).collect();
        assert_eq!(leaving, ["shop/web-0", "shop/batch-0", "shop/leaving"]);
    }
}
