//! Pods that come to the node after the list: its name alone says whose they are, and another instance's node may have taken
//! it by then. They wait until a look at the node has said that it is still the one that was claimed. Once it is another's,
//! it stays another's. One that somebody has uncordoned, and whose instance goes, is cordoned again.

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use kube::Client;
use spillway_core::drain::plan::{Disposition, PodUid, plan};
use spillway_core::kube::change::Change;
use spillway_core::kube::pod::Pod;
use spillway_core::node::claimant::Claim;
use tokio::time::Instant;

use super::look::{Looked, look};

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
    looked: LocalBoxFuture<'static, Looked>,
}

/// The pods that have come to the claimed node.
pub(super) struct Came {
    pub(super) pods: Vec<Pod>,
    /// Somebody had uncordoned it.
    pub(super) is_cordoned_again: bool,
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

    /// Those that have come to the claimed node; never, if none wait. What has come to another is let go. Can be cancelled
    /// without losing one.
    pub(super) async fn next(&mut self) -> Came {
        if self.held.is_empty() {
            return std::future::pending().await;
        }
        let (client, claim, end, about) = (self.client, self.claim, self.end, self.held.len());
        let look = self.look.get_or_insert_with(|| Look { about, looked: look(client, claim, end).boxed_local() });
        let looked = (&mut look.looked).await;
        let about = look.about;
        self.look = None;
        match looked {
            Looked::Anothers => {
                self.is_anothers = true;
                self.held.clear();
                Came { pods: Vec::new(), is_cordoned_again: false }
            }
            Looked::Claimed { cordoned_again: false } => {
                Came { pods: self.held.drain(..about).collect(), is_cordoned_again: false }
            }
            Looked::Claimed { cordoned_again: true } => {
                Came { pods: std::mem::take(&mut self.held), is_cordoned_again: true }
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
    async fn all_pods_that_wait_for_a_look_at_their_node_are_let_through_and_none_twice() {
        let context = TestContext::new(&[], [call(format!("GET {NODE_PATH}")).says(200, node())], []);
        let (client, claim) = (client(&context).await, claim("e-1"));
        let mut newcomers = Newcomers::new(&client, &claim, Instant::now() + Duration::from_mins(1));
        for name in ["a", "b", "a"] {
            let seen = Change::Applied(serde_json::from_value(pod(name)).unwrap());
            assert!(newcomers.hold(seen, |_| false).is_none(), "it waits");
        }
        let came = newcomers.next().await;
        assert!(!came.is_cordoned_again);
        let names: Vec<_> = came.pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
