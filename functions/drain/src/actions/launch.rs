//! Waiting until the node of a launched instance is Ready, then completing its launch hook.

use std::pin::pin;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Api;
use spillway_eks::ClusterName;
use tokio::time::{Instant, sleep_until};

use super::cannot;
use crate::aws::instance::Instance;
use crate::context::target::Attempt;
use crate::decision::Reason;
use crate::failure::Failure;
use crate::handler::Spillway;
use crate::kube::{ApiError, until};
use crate::node::readiness::Readiness;
use crate::node::{by_likely_names, by_name, find};
use crate::receipt::ending::{self, Outcome, ignored};
use crate::receipt::{Receipt, StepName};
use crate::settings::LifecycleResult;

/// How often the node is looked at. An instance needs a minute to become a node.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// When all nodes are searched for one of an unusual name, and then after twice the time: four times in an
/// invocation, and no node is found later than after twice the time that it took to join.
const FIRST_SEARCH: Duration = Duration::from_secs(60);

/// Where the node is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Where {
    /// By the name that it had a moment ago.
    Named(String),
    /// By the names that EKS gives nodes.
    LikelyNames,
    /// By those, and then among all nodes of the cluster.
    Anywhere,
}

impl Spillway {
    /// Lets the instance into service when its node is Ready. One that never is gets the answer of the setting, and is
    /// a failure: nobody else would say that a group's instances do not become nodes.
    pub(crate) async fn await_ready(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        cluster: ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let mut held = pin!(attempt.hold(&self.settings));
        let ended = tokio::select! {
            came = self.comes(attempt, instance, &cluster, receipt) => came?,
            () = &mut held => {
                receipt.hook_is_over();
                // Whoever completes the hook, the node is given back.
                if attempt.notice.kind.comes_back() {
                    return self.undo(attempt, instance, cluster, receipt).await;
                }
                return Ok(ignored(&Reason::LaunchIsOver));
            }
        };
        receipt.step(StepName::Ready, attempt.invocation.clock.now());
        self.complete(attempt, LifecycleResult::Continue, held, receipt).await?;
        Ok(ended)
    }

    /// Waits until the node is Ready. One that was taken out is given back first, which waits for its new boot: until the
    /// control plane misses the old kubelet, it takes the node for Ready.
    async fn comes(
        &self,
        attempt: &Attempt<'_>,
        instance: &Instance,
        cluster: &ClusterName,
        receipt: &mut Receipt,
    ) -> Outcome {
        let mut undone = None;
        if attempt.notice.kind.comes_back() {
            undone = Some(self.undo(attempt, instance, cluster.clone(), receipt).await?);
        }
        let readiness = self.until_ready(cluster, instance, attempt.window(&self.settings).end).await?;
        receipt.node = readiness.node().map(str::to_owned);
        match (readiness, undone) {
            (Readiness::Ready { node }, Some(undone)) => Ok(ending::ready_again(&node, undone)),
            (Readiness::Ready { node }, None) => Ok(ending::ready(&node)),
            (readiness, _) => {
                Err(Failure::NotReady { instance: instance.id.to_string(), cluster: cluster.clone(), readiness })
            }
        }
    }

    /// Connects and looks, again and again until `end`. What was seen last counts, if nothing can be seen then.
    async fn until_ready(
        &self,
        cluster: &ClusterName,
        instance: &Instance,
        end: Instant,
    ) -> Result<Readiness, Failure> {
        let tell = |error: &ApiError| {
            tracing::warn!(cluster.name = %cluster, error = %error, "cannot look for the node; trying again");
        };
        let mut seen = None;
        let connected = async || {
            let nodes = match self.access.connect(cluster, end).await {
                Ok(connection) => Api::all(connection.client),
                Err(failure) => return Ok(Err(failure)),
            };
            until_ready(end, async |place| {
                let node = look(&nodes, instance, place).await?;
                seen = Some(Readiness::of(node.as_ref()));
                Ok(node)
            })
            .await
            .map(Ok)
        };
        match (until(end, connected, tell).await, seen) {
            (Ok(readiness), _) => readiness,
            (Err(error), Some(seen)) if error.is_transient() => Ok(seen),
            (Err(error), _) => Err(cannot(format!("look for the node of instance {}", instance.id), cluster, error)),
        }
    }
}

async fn look(nodes: &Api<Node>, instance: &Instance, place: Where) -> Result<Option<Node>, ApiError> {
    match place {
        Where::Named(name) => by_name(nodes, &name, instance).await,
        Where::LikelyNames => by_likely_names(nodes, instance).await,
        Where::Anywhere => find(nodes, instance).await,
    }
}

/// Looks until the node is Ready; answers how far it is when there is no time for another look.
async fn until_ready(
    end: Instant,
    mut look: impl AsyncFnMut(Where) -> Result<Option<Node>, ApiError>,
) -> Result<Readiness, ApiError> {
    let began = Instant::now();
    let mut search_after = FIRST_SEARCH;
    let mut place = Where::LikelyNames;
    loop {
        let next = Instant::now() + LOOK_EVERY;
        let readiness = Readiness::of(look(place).await?.as_ref());
        if next >= end || matches!(readiness, Readiness::Ready { .. }) {
            return Ok(readiness);
        }
        sleep_until(next).await;
        place = match readiness.node() {
            Some(node) => Where::Named(node.to_owned()),
            None if began.elapsed() >= search_after => {
                search_after *= 2;
                Where::Anywhere
            }
            None => Where::LikelyNames,
        };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const INVOCATION: Duration = Duration::from_secs(895);

    fn node(ready: bool) -> Node {
        let status = if ready { "True" } else { "False" };
        let conditions = json!([{"type": "Ready", "status": status, "message": "not yet"}]);
        serde_json::from_value(json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}})).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_joins_and_becomes_ready_is_seen_within_two_seconds() {
        let began = Instant::now();
        let mut looks = Vec::new();
        let readiness = until_ready(began + INVOCATION, async |place| {
            looks.push(place);
            let after = began.elapsed().as_secs();
            Ok((after >= 31).then(|| node(after >= 41)))
        });
        assert_eq!(readiness.await.unwrap(), Readiness::Ready { node: "n".to_owned() });
        assert_eq!(began.elapsed(), Duration::from_secs(42));
        assert!(looks[..=16].iter().all(|place| *place == Where::LikelyNames), "{looks:?}");
        assert!(looks[17..].iter().all(|place| *place == Where::Named("n".to_owned())), "{looks:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_never_joins_costs_four_searches_in_an_invocation() {
        let began = Instant::now();
        let mut searches = Vec::new();
        let readiness = until_ready(began + INVOCATION, async |place| {
            if place == Where::Anywhere {
                searches.push(began.elapsed().as_secs());
            }
            Ok(None)
        });
        assert_eq!(readiness.await.unwrap(), Readiness::NotJoined);
        assert_eq!(searches, [60, 120, 240, 480]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_lost_again_is_looked_for_anew() {
        let began = Instant::now();
        let mut looks = Vec::new();
        let readiness = until_ready(began + Duration::from_secs(7), async |place| {
            looks.push(place);
            Ok((looks.len() == 1).then(|| node(false)))
        });
        assert_eq!(readiness.await.unwrap(), Readiness::NotJoined);
        let named = Where::Named("n".to_owned());
        assert_eq!(looks, [Where::LikelyNames, named, Where::LikelyNames, Where::LikelyNames]);
    }
}
