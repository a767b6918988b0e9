//! Holds back new pods of the node until a check shows that the node is still the claimed one. Without the check, the drain might
//! evict the pods of another instance's node with the same name.

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use kube::Client;
use spillway_core::drain::plan::{Disposition, PodUid, plan};
use spillway_core::kube::change::Change;
use spillway_core::kube::pod::Pod;
use spillway_core::node::claimant::Claim;
use tokio::time::Instant;

use super::name_owner::{NameOwner, check_name_owner};

/// New pods that are held back until a check shows that their node is still the claimed node.
pub(super) struct Newcomers<'a> {
    client: &'a Client,
    claim: &'a Claim,
    end: Instant,
    held: Vec<Pod>,
    check: Option<NameOwnerCheck>,
    /// `true` after a check has found that the node belongs to another instance.
    is_anothers: bool,
}

/// Unfinished check of the node. `checked_pods` is the number of pods that were held back before the check.
struct NameOwnerCheck {
    checked_pods: usize,
    owner: LocalBoxFuture<'static, NameOwner>,
}

pub(super) struct NewPods {
    pub(super) pods: Vec<Pod>,
    /// `true` if the node was uncordoned and the check has cordoned the node again.
    pub(super) is_cordoned_again: bool,
}

impl<'a> Newcomers<'a> {
    /// Creates an empty list of new pods. Checks of the node's name are retried until `end`.
    pub(super) fn new(client: &'a Client, claim: &'a Claim, end: Instant) -> Self {
        Self { client, claim, end, held: Vec::new(), check: None, is_anothers: false }
    }

    pub(super) fn wait(&self) -> bool {
        !self.held.is_empty()
    }

    /// Holds back each new pod that may have to leave. Returns the change without these pods, or `None` if nothing remains.
    pub(super) fn hold(&mut self, change: Change<Pod>, is_known: impl Fn(&PodUid) -> bool) -> Option<Change<Pod>> {
        let passes = |pod: &Pod| {
            plan(pod).is_none_or(|pod| is_known(&pod.uid) || matches!(pod.disposition, Disposition::Stays(_)))
        };
        match change {
            Change::Applied(pod) if !passes(&pod) => {
                self.put(*pod);
                None
            }
            Change::Listed(pods) => {
                let (pass, new): (Vec<_>, Vec<_>) = pods.into_iter().partition(passes);
                for pod in new {
                    self.put(pod);
                }
                Some(Change::Listed(pass))
            }
            change => Some(change),
        }
    }

    fn put(&mut self, pod: Pod) {
        if self.is_anothers {
            return;
        }
        match self.held.iter_mut().find(|held| held.metadata.uid == pod.metadata.uid) {
            Some(held) => *held = pod,
            None => self.held.push(pod),
        }
    }

    /// Checks that the node's name still belongs to the claimed node, then returns the pods that were held back. If the name
    /// belongs to another node, drops the pods. If no pod is held back, waits forever. Cancel safe.
    pub(super) async fn next(&mut self) -> NewPods {
        if self.held.is_empty() {
            return std::future::pending().await;
        }
        let (client, claim, end, checked_pods) = (self.client, self.claim, self.end, self.held.len());
        let check = self.check.get_or_insert_with(|| NameOwnerCheck {
            checked_pods,
            owner: check_name_owner(client, claim, end).boxed_local(),
        });
        let owner = (&mut check.owner).await;
        let checked_pods = check.checked_pods;
        self.check = None;
        match owner {
            NameOwner::Another => {
                self.is_anothers = true;
                self.held.clear();
                NewPods { pods: Vec::new(), is_cordoned_again: false }
            }
            NameOwner::Claimed { cordoned_again: false } => {
                NewPods { pods: self.held.drain(..checked_pods).collect(), is_cordoned_again: false }
            }
            NameOwner::Claimed { cordoned_again: true } => {
                NewPods { pods: std::mem::take(&mut self.held), is_cordoned_again: true }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::test_support::api_server::{NODE_PATH, node, pod};
    use crate::test_support::context::{TestContext, claim, client};
    use crate::test_support::script::call;

    #[tokio::test(start_paused = true)]
    async fn one_check_of_the_node_releases_each_pod_once() {
        let context = TestContext::new(&[], [call(format!("GET {NODE_PATH}")).says(200, node())], []);
        let (client, claim) = (client(&context).await, claim("e-1"));
        let mut newcomers = Newcomers::new(&client, &claim, Instant::now() + Duration::from_mins(1));
        for name in ["a", "b", "a"] {
            let change = Change::Applied(serde_json::from_value(pod(name)).unwrap());
            assert!(newcomers.hold(change, |_| false).is_none(), "it waits");
        }
        let came = newcomers.next().await;
        assert!(!came.is_cordoned_again);
        let names: Vec<_> = came.pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
