//! Pods that come to the node after the list: its name alone says whose they are, and another instance's node may have taken
//! it by then. They wait until a look at the node has said that it is still the one that was claimed. Once it is another's,
//! it stays another's.

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client};
use spillway_core::drain::plan::{Disposition, PodUid, plan};
use spillway_core::kube::change::Change;
use spillway_core::kube::pod::Pod;
use spillway_core::node::claimant::Claim;
use tokio::time::Instant;

use crate::kube::{call, until};

/// The pods that have come, and the look at their node.
pub(super) struct Newcomers<'a> {
    client: &'a Client,
    claim: &'a Claim,
    end: Instant,
    held: Vec<Pod>,
    look: Option<Look>,
    /// Another instance's node has been seen under the name. It stays so, even when that one has gone too.
    is_anothers: bool,
}

/// A look that is under way. A pod that came after it began waits for the next one.
struct Look {
    about: usize,
    is_anothers: LocalBoxFuture<'static, bool>,
}

impl<'a> Newcomers<'a> {
    /// Of a claimed node, which is looked at until `end`.
    pub(super) fn new(client: &'a Client, claim: &'a Claim, end: Instant) -> Self {
        Self { client, claim, end, held: Vec::new(), look: None, is_anothers: false }
    }

    /// Whether some wait.
    pub(super) fn wait(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes a change and lets through what is of pods that the drain knows, or that stay in any case.
    pub(super) fn hold(&mut self, change: Change<Pod>, is_known: impl Fn(&PodUid) -> bool) -> Option<Change<Pod>> {
        let passes = |pod: &Pod| {
            plan(pod).is_none_or(|pod| is_known(&pod.uid) || matches!(pod.disposition, Disposition::Stays(_)))
        };
        match change {
            Change::Seen(pod) if !passes(&pod) => {
                self.put(*pod);
                None
            }
            Change::OnlyThese(pods) => {
                let (pass, new): (Vec<_>, Vec<_>) = pods.into_iter().partition(passes);
                for pod in new {
                    self.put(pod);
                }
                Some(Change::OnlyThese(pass))
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

    /// Those that have come to the claimed node; never, if none wait. What has come to another is let go. Can be cancelled
    /// without losing one.
    pub(super) async fn next(&mut self) -> Vec<Pod> {
        if self.held.is_empty() {
            return std::future::pending().await;
        }
        let (client, claim, end, about) = (self.client, self.claim, self.end, self.held.len());
        let look =
            self.look.get_or_insert_with(|| Look { about, is_anothers: is_anothers(client, claim, end).boxed_local() });
        self.is_anothers = (&mut look.is_anothers).await;
        let about = look.about;
        self.look = None;
        if self.is_anothers {
            self.held.clear();
            return Vec::new();
        }
        self.held.drain(..about).collect()
    }
}

/// Whether another instance's node has the claimed one's name. If the API server refuses to say, it has not.
fn is_anothers(client: &Client, claim: &Claim, end: Instant) -> impl Future<Output = bool> + use<> {
    let (nodes, claim) = (Api::<Node>::all(client.clone()), claim.clone());
    async move {
        let node = until(end, async || call(nodes.get_opt(&claim.node)).await, |_| ()).await.ok().flatten();
        let is_anothers = node.is_some_and(|node| !claim.is_of(&node));
        if is_anothers {
            let node = &claim.node;
            tracing::warn!(
                node.name = node,
                "another instance's node is called {node} by now: its pods are left alone"
            );
        }
        is_anothers
    }
}
