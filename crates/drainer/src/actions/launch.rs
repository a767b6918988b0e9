//! Completes launch hooks when the node of the launched instance is Ready.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt as _};
use spillway_core::cluster::ClusterName;
use spillway_core::decision::Reason;
use spillway_core::instance::Instance;
use spillway_core::node::readiness::Readiness;
use spillway_core::outcome::Outcome;
use spillway_retry::Transient as _;
use spillway_settings::LifecycleResult;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::lifecycle;
use super::uncordon::give_back_at_notice;
use crate::context::{Context, Target};
use crate::failure::Failure;
use crate::kube::ApiError;
use crate::node::{NodeWatch, by_likely_names, find, is_of};
use crate::receipt::StepName;
use crate::receipt::record::{HookStatus, Record};

/// Poll interval until the node joins the cluster. A node usually needs about a minute.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time from the start to the first search of all nodes. Further searches follow after twice this time, four times, and so on.
const FIRST_SEARCH: Duration = Duration::from_secs(60);

/// Scope of a search for the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    /// Searches for the node by the names that EKS usually gives.
    LikelyNames,
    /// Searches for the node by these names, then among all nodes of the cluster.
    AllNodes,
}

/// Completes the launch hook when the node is Ready. Fails if the node is not Ready before the hook's time limit.
pub(crate) async fn await_ready(
    context: &Context,
    target: &Target<'_>,
    record: &mut Record,
) -> Result<Outcome, Failure> {
    let attempt = target.attempt;
    if let Some(action) = &attempt.action {
        action.confirm_ours();
    }
    let outcome = tokio::select! {
        biased;
        ready = until_ready(context, target, record) => ready?,
        () = attempt.wait_until_action_is_over() => {
            record.hook = HookStatus::AlreadyOver(None);
            // The node is given back even if another system completes the hook.
            if attempt.notice.kind.comes_back() {
                return Ok(give_back_at_notice(context, target, record).await?.into());
            }
            return Ok(Outcome::Ignored(Reason::LaunchIsOver));
        }
    };
    record.step(StepName::Ready, attempt.invocation.clock.now());
    lifecycle::complete(attempt, LifecycleResult::Continue, record).await?;
    Ok(outcome)
}

/// Completes the hook of an instance that enters the warm pool, without waiting for a node.
pub(crate) async fn complete_for_warm_pool(target: &Target<'_>, record: &mut Record) -> Result<Outcome, Failure> {
    lifecycle::complete(target.attempt, LifecycleResult::Continue, record).await?;
    Ok(Outcome::NotANode { reason: Reason::IntoWarmPool(target.instance.id.clone()) })
}

/// Waits until the node is Ready. If the instance comes back from the warm pool or with a new root volume, first uncordons the
/// node.
async fn until_ready(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Outcome, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    let mut uncordoned = None;
    if attempt.notice.kind.comes_back() {
        uncordoned = Some(give_back_at_notice(context, target, record).await?);
    }
    let end = attempt.window_of_hook().await.end;
    let readiness = observe_until(end, context, cluster, instance).await?;
    if let Some(node) = readiness.node() {
        record.found(node);
    }
    match readiness {
        Readiness::Ready { node } => {
            let after_s = attempt.invocation.clock.now().duration_since(attempt.notice.time).as_secs();
            Ok(Outcome::Ready { node, after_s, uncordoned })
        }
        readiness => {
            let (instance, cluster) = (instance.id.to_string(), (*cluster).clone());
            Err(Failure::NotReady { instance, cluster, readiness })
        }
    }
}

/// Watches the node until the node is Ready, or until `end`. If the API server still fails at `end`, returns the last known
/// readiness.
async fn observe_until(
    end: Instant,
    context: &Context,
    cluster: &ClusterName,
    instance: &Instance,
) -> Result<Readiness, Failure> {
    let mut latest = None;
    let doing = format!("look for the node of instance {}", instance.id);
    let waited = context.in_cluster(cluster, end, &doing, async |client| {
        let nodes = Api::all(client);
        loop {
            let look = async |search| match search {
                Search::LikelyNames => by_likely_names(&nodes, instance).await,
                Search::AllNodes => find(&nodes, instance).await,
            };
            let Some(node) = until_joined(end, look).await? else { return Ok(Readiness::NotJoined) };
            let mut watch = NodeWatch::of(nodes.clone(), &node.name_any());
            let mut now = Some(node);
            // A deleted node is searched again.
            while let Some(node) = now.filter(|node| is_of(instance, node)) {
                let readiness = latest.insert(Readiness::of(Some(&node)));
                if let Readiness::Ready { .. } = readiness {
                    return Ok(readiness.clone());
                }
                match timeout_at(end, watch.next()).await {
                    Ok(changed) => now = changed,
                    Err(_) => return Ok(readiness.clone()),
                }
            }
        }
    });
    match (waited.await, latest) {
        (Err(Failure::Kubernetes { error, .. }), Some(latest)) if error.is_transient() => Ok(latest),
        (waited, _) => waited,
    }
}

/// Polls until the node joins the cluster. Returns `None` if the node has not joined by `end`.
async fn until_joined(
    end: Instant,
    mut look: impl AsyncFnMut(Search) -> Result<Option<Node>, ApiError>,
) -> Result<Option<Node>, ApiError> {
    let began = Instant::now();
    let mut search_after = FIRST_SEARCH;
    let mut search = Search::LikelyNames;
    loop {
        let next = Instant::now() + LOOK_EVERY;
        let node = look(search).await?;
        if next >= end || node.is_some() {
            return Ok(node);
        }
        sleep_until(next).await;
        search = if began.elapsed() >= search_after { Search::AllNodes } else { Search::LikelyNames };
        if search == Search::AllNodes {
            search_after *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVOCATION: Duration = Duration::from_secs(895);

    #[tokio::test(start_paused = true)]
    async fn joined_node_is_found_within_two_seconds_by_its_likely_names() {
        let began = Instant::now();
        let mut searches = Vec::new();
        let joined = until_joined(began + INVOCATION, async |search| {
            searches.push(search);
            Ok((began.elapsed().as_secs() >= 33).then(Node::default))
        });
        assert!(joined.await.is_ok_and(|node| node.is_some()));
        assert_eq!(began.elapsed(), Duration::from_secs(34));
        assert!(searches.iter().all(|search| *search == Search::LikelyNames), "{searches:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn node_that_never_joins_costs_four_searches_of_all_nodes() {
        let began = Instant::now();
        let mut searches = Vec::new();
        let joined = until_joined(began + INVOCATION, async |search| {
            if search == Search::AllNodes {
                searches.push(began.elapsed().as_secs());
            }
            Ok(None)
        });
        assert!(joined.await.is_ok_and(|node| node.is_none()));
        assert_eq!(searches, [60, 120, 240, 480]);
    }
}
