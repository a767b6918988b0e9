//! The drain of one node: evict, watch, until it is empty or the time is up. What is decided stands in core's `drain`.
//!
//! From the ground up; none imports a later one:
//! * `list`: the node's pods
//! * `evict`: requesting one pod to leave
//! * `newcomers`: whether pods that come later have come to the claimed node
//! * `kubelet`: a watch of the node, for whether anybody is there to report a pod's end
//! * `budget_watch`: the watches of budgets that block pods
//! * `volumes`: waiting until volumes are detached
//! * `transition`: the log's lines about pods
//! * `side_task`: what is done beside a drain once it is under way
//! * `dry_run`: what a drain would come to
//!
//! This file ties them together and decides nothing itself.

mod budget_watch;
pub(crate) mod dry_run;
pub(crate) mod evict;
mod kubelet;
mod list;
mod newcomers;
pub(crate) mod side_task;
mod transition;
pub(crate) mod volumes;

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use kube::Client;
use spillway_core::clock::Clock;
use spillway_core::drain::deadline::Window;
use spillway_core::drain::kubelet::Kubelet;
use spillway_core::drain::progress::Progress;
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::kube::change::Change;
use spillway_core::kube::pod::Pod;
use spillway_core::node::claimant::Claim;
use spillway_notice::continued::PodsPutBack;
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep_until};

use crate::kube::watch::{Listed, Watch, WatchEvent};
use budget_watch::BudgetWatch;
use kubelet::KubeletWatch;
pub(crate) use list::list;
use list::pods_of;
use newcomers::Newcomers;
use side_task::SideTask;

/// Evictions go first: the watch begins when all that can be requested at once are answered, so
/// that the API server does not report each pod while it should evict the next. One that is slow
/// to be answered does not delay it for longer than this.
const WATCH_AT_THE_LATEST: Duration = Duration::from_secs(1);

/// Who joins lets the claim's holder begin: a pod is requested to leave only if the holder has not done so
/// by then. Time enough for a full node at a busy API server; three seconds of two minutes, should the
/// holder be dead.
const HEAD_START: Duration = Duration::from_secs(3);

/// How long the pods are watched after the claim, though none has to leave: the scheduler may have bound one just before it
/// saw the cordon. It sees that by a watch of its own, which is behind by a second or so.
const LATE_PODS: Duration = Duration::from_secs(5);

/// Drains the node of the pods that were `listed` after the claim and of those that come, until it is empty or the window
/// ends, or until something is there to `stop` it. Some were `put_back` in earlier invocations. Once its first evictions are answered, the `side_task` is done beside it.
pub(crate) async fn drain(
    client: &Client,
    claim: &Claim,
    (listed, put_back): (&Listed<Pod>, Option<&PodsPutBack>),
    (window, clock): (Window, Clock),
    stop: impl Future<Output = StopReason>,
    side_task: &mut SideTask<'_>,
) -> DrainReport {
    let node = &claim.node;
    let late_until = Instant::now() + LATE_PODS;
    let mut over_at = None;
    let head_start = if claim.is_joined() { HEAD_START } else { Duration::ZERO };
    let mut progress = Progress::new(&listed.items, put_back, (window, clock), Instant::now() + head_start);
    // It goes on from the list's version, so that nothing is missed until it begins.
    let mut watch = None;
    let watch_from = Instant::now() + WATCH_AT_THE_LATEST;
    let mut budgets = BudgetWatch::new(client.clone());
    let mut evictions = FuturesUnordered::new();
    let mut newcomers = Newcomers::new(client, claim, window.end);
    let mut kubelet = None;
    let mut blind = None;
    let mut stop = std::pin::pin!(stop);
    let end = loop {
        let now = Instant::now();
        for request in progress.requests(now) {
            let client = client.clone();
            evictions.push(async move {
                let uid = request.uid.clone();
                (uid, evict::send(client, request).await)
            });
        }
        budgets.watch(progress.namespaces_to_watch());
        progress.take_transitions().into_iter().for_each(transition::log);
        let over = progress.end().filter(|_| !newcomers.wait());
        over_at = over.map(|_| over_at.unwrap_or(now));
        match over {
            // No pod is bound to a node that does not answer.
            Some(DrainEnd::Silent) => break DrainEnd::Silent,
            Some(end) if late_until <= now => break end,
            _ => {}
        }
        if progress.is_node_watch_due(now) {
            progress.node_watch_begins();
            kubelet = Some(KubeletWatch::of(client, claim));
        }
        if watch.is_none() && (evictions.is_empty() || watch_from <= now) {
            watch = Some(pods_of(client, node).watch(Some(listed.resource_version.clone())));
        }
        let watch_due = watch.is_none().then_some(watch_from);
        let late_due = over.map(|_| late_until);
        let next_due =
            progress.next_due(now).into_iter().chain(watch_due).chain(late_due).fold(window.end, Instant::min);
        // What has come is taken before the time is up: in one order, so that a simulation repeats itself.
        tokio::select! {
            biased;
            Some((uid, answer)) = evictions.next() => {
                progress.answered(&uid, answer, Instant::now());
            }
            event = next_event(&mut watch) => {
                blind = None;
                match event {
                    WatchEvent::Changed(change) => {
                        if let Some(change) = newcomers.hold(change, |uid| progress.knows(uid)) {
                            progress.changed(change, Instant::now());
                        }
                    }
                    WatchEvent::Begun => {}
                    WatchEvent::Interrupted(error) => {
                        let error = blind.insert(chain(&error));
                        tracing::warn!(node.name = node, error, "the watch of the node's pods broke; watching again");
                    }
                }
            }
            pods = newcomers.next() => {
                for pod in pods {
                    progress.changed(Change::Seen(Box::new(pod)), Instant::now());
                }
            }
            (scope, change) = budgets.next() => {
                progress.budgets_changed(&scope, change, Instant::now());
            }
            seen = next_seen(&mut kubelet) => {
                progress.kubelet_seen(seen, Instant::now());
            }
            () = side_task.go_on(), if watch.is_some() && (over.is_none() || side_task.has_begun()) => {}
            () = sleep_until(next_due) => {
                if next_due == window.end {
                    break over.unwrap_or(DrainEnd::TimeUp);
                }
            }
            stop = &mut stop => break over.unwrap_or(DrainEnd::Stopped(stop)),
        }
    };
    let ended_at = Instant::now();
    let put_back = progress.put_back();
    DrainReport { pods: progress.into_pods(), put_back, end, over_at: over_at.unwrap_or(ended_at), ended_at, blind }
}

/// The next event; never, before the watch has begun.
async fn next_event(watch: &mut Option<Watch<Pod>>) -> WatchEvent<Pod> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

/// What is seen of the kubelet next; nothing, before it is watched.
async fn next_seen(watch: &mut Option<KubeletWatch>) -> Kubelet {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an API server allows on a connection by its defaults (kubernetes, `secure_serving.go`).
    const STREAMS: usize = 100;

    #[test]
    fn all_that_a_drain_has_under_way_at_once_finds_a_stream() {
        // The node's kubelet, and whether it was given back.
        let (pods_watch, node_watches) = (1, 2);
        let watches = pods_watch + node_watches + budget_watch::NAMESPACES_WATCHED;
        assert!(watches + spillway_core::drain::progress::REQUESTS_AT_ONCE + side_task::REQUESTS_AT_ONCE < STREAMS);
    }
}
