//! Waiting until the node of a launched instance is Ready, then completing its launch hook.

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

/// How often a node that has not joined is looked for: until then there is nothing to watch. An instance needs a minute to
/// become a node.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// When all nodes are searched for one of an unusual name, and then after twice the time: four times in an
/// invocation, and no node is found later than after twice the time that it took to join.
const FIRST_SEARCH: Duration = Duration::from_secs(60);

/// Where the node is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    /// By the names that EKS gives nodes.
    LikelyNames,
    /// By those, and then among all nodes of the cluster.
    AllNodes,
}

/// Lets the instance into service when its node is Ready. One that never is gets the answer of the setting, and is
/// a failure: nobody else would say that a group's instances do not become nodes.
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
        comes = comes(context, target, record) => comes?,
        () = attempt.wait_until_action_is_over() => {
            record.hook = HookStatus::AlreadyOver(None);
            // Whoever completes the hook, the node is given back.
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

/// Completes the hook of an instance that goes into its warm pool, whose kubelet may never run there.
pub(crate) async fn into_warm_pool(target: &Target<'_>, record: &mut Record) -> Result<Outcome, Failure> {
    lifecycle::complete(target.attempt, LifecycleResult::Continue, record).await?;
    Ok(Outcome::NotANode { reason: Reason::IntoWarmPool(target.instance.id.to_string()) })
}

/// Waits until the node is Ready. One that was taken out is given back first, which waits for its new boot: until the
/// control plane misses the old kubelet, it takes the node for Ready.
async fn comes(context: &Context, target: &Target<'_>, record: &mut Record) -> Result<Outcome, Failure> {
    let Target { attempt, instance, cluster, .. } = target;
    let mut uncordoned = None;
    if attempt.notice.kind.comes_back() {
        uncordoned = Some(give_back_at_notice(context, target, record).await?);
    }
    let end = attempt.window_of_hook().await.end;
    let readiness = until_ready(context, cluster, instance, end).await?;
    if let Some(node) = readiness.node() {
        record.found(node);
    }
    match readiness {
        Readiness::Ready { node } => Ok(Outcome::Ready { node, uncordoned }),
        readiness => {
            let (instance, cluster) = (instance.id.to_string(), (*cluster).clone());
            Err(Failure::NotReady { instance, cluster, readiness })
        }
    }
}

/// Waits for the node until `end`. What was seen last counts, if nothing can be seen then.
async fn until_ready(
    context: &Context,
    cluster: &ClusterName,
    instance: &Instance,
    end: Instant,
) -> Result<Readiness, Failure> {
    let mut seen = None;
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
            // A node that is lost again is looked for once more.
            while let Some(node) = now.filter(|node| is_of(instance, node)) {
                let readiness = seen.insert(Readiness::of(Some(&node)));
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
    match (waited.await, seen) {
        (Err(Failure::Kubernetes { error, .. }), Some(seen)) if error.is_transient() => Ok(seen),
        (waited, _) => waited,
    }
}

/// Looks until the node has joined; `None`: it had not when there was no time for another look.
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
    async fn a_node_that_joins_is_seen_within_two_seconds_by_its_likely_names() {
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
    async fn a_node_that_never_joins_costs_four_searches_in_an_invocation() {
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
