//! The drain of one node: plan, evict, watch, until it is empty or the time is up.
//!
//! * `plan`: which pods leave, which stay, and why (pure)
//! * `wishes`: which pods wish not to be disturbed (pure)
//! * `deadline`: how long there is, and what that means for a pod's grace (pure)
//! * `hold`: what holds a pod (pure)
//! * `tracked`: one pod: what it was told, what was answered, what comes next (pure)
//! * `rooms`: which pods that a budget holds are asked for again, and when (pure)
//! * `shares`: how many pods of one owner are asked for at once (pure)
//! * `progress`: all of them: what is to be asked next, and what became of each (pure)
//! * `evict`: telling one pod to leave, and the meaning of the answer
//! * `watch`: objects of one kind, without a gap
//! * `beside`: the node's pods, listed beside the claim
//! * `on_node`: the node's pods when its drain begins
//! * `budgets`: the watches of budgets that hold pods
//! * `kubelet`: whether anybody is there to tell of a pod's end
//! * `news`: what the log says
//! * `under_way`: what is done beside a drain once it is under way
//! * `preview`: what a drain would come to, for a dry run
//!
//! This file ties them together and decides nothing itself.

pub(crate) mod beside;
pub(crate) mod blocker;
mod budgets;
pub(crate) mod deadline;
pub(crate) mod disruptions_allowed;
mod do_not_disrupt;
pub(crate) mod dry_run;
pub(crate) mod evict;
mod kubelet;
mod on_node;
pub(crate) mod plan;
pub(crate) mod pod;
mod progress;
mod shares;
mod transition;
mod under_way;

use spillway_startup::logs::chain;
use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use kube::{Api, Client};
use tokio::time::{Instant, sleep_until};

use crate::invocation::clock::Clock;
use crate::kube::pod::Pod;
use crate::kube::watch::{Change, Listed, Selection, Watch};
use crate::kube::{ApiError, until};
use crate::node::Claim;
use budgets::Budgets;
use deadline::Window;
use kubelet::Kubelet;
pub(crate) use on_node::OnNode;
use plan::PodUid;
use pod::Tracked;
use progress::Progress;
use transition::Transition;
pub(crate) use under_way::UnderWay;

/// Evictions go first: the watch begins when all that can be asked for at once are answered, so
/// that the API server does not tell of each pod while it should evict the next. One that is slow
/// to be answered does not keep it for longer than this.
const WATCH_AT_THE_LATEST: Duration = Duration::from_secs(1);

/// Who joins lets the claim's holder begin: a pod is told to leave only if the holder has not told it
/// by then. Time enough for a full node at a busy API server; three seconds of two minutes, should the
/// holder be dead.
const HEAD_START: Duration = Duration::from_secs(3);

/// How a drain ended.
#[derive(Debug)]
pub(crate) struct DrainReport {
    /// Every pod that was on the node.
    pub(crate) pods: BTreeMap<PodUid, Tracked>,
    /// Why it ended.
    pub(crate) end: DrainEnd,
    /// Why the pods could not be watched at the end, if they could not.
    pub(crate) blind: Option<String>,
}

/// What ends a drain before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The lifecycle hook waits no longer, and the instance goes.
    HookIsOver,
    /// The node is in use again.
    GivenBack,
}

/// Why a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrainEnd {
    /// Every pod that had to leave has gone.
    Empty,
    /// So it has, or was shutting down when the node stopped answering.
    Silent,
    /// The window ended before.
    TimeUp,
    /// Nobody wants it any more.
    Stopped(StopReason),
}

/// Drains the node of these pods and of those that come, until it is empty or the window ends, or until something is
/// there to `stop` it. It fails only if its pods have to be listed once more and cannot be. Once its first evictions are
/// answered, what is to be done then is `under_way`.
pub(crate) async fn drain(
    client: &Client,
    claim: &Claim,
    on_node: &OnNode,
    window: Window,
    clock: Clock,
    stop: impl Future<Output = StopReason>,
    under_way: &mut UnderWay<'_>,
) -> Result<DrainReport, ApiError> {
    let node = &claim.node;
    let pods = pods_of(client, node);
    let OnNode { listed, known } = on_node;
    let head_start = if claim.is_joined() { HEAD_START } else { Duration::ZERO };
    let mut progress = Progress::new(&listed.items, *known, window, clock, Instant::now() + head_start);
    // It goes on from the list's version, so that nothing is missed until it begins.
    let mut watch = None;
    let watch_from = Instant::now() + WATCH_AT_THE_LATEST;
    let mut budgets = Budgets::new(client.clone());
    let mut evictions = FuturesUnordered::new();
    let mut looks = FuturesUnordered::new();
    let mut blind = None;
    let mut stop = std::pin::pin!(stop);
    let end = loop {
        let now = Instant::now();
        for request in progress.requests(now) {
            let client = client.clone();
            evictions.push(async move {
                let answer = evict::tell(client, request.way, request.name, request.uid.clone(), request.grace).await;
                (request.uid, answer)
            });
        }
        if progress.look(now) {
            looks.push(kubelet::look(client.clone(), node.to_owned()));
        }
        if progress.is_to_be_listed() {
            tokio::select! {
                listed = list(&pods, node, window) => {
                    progress.changed(Change::OnlyThese(listed?.items), Instant::now());
                }
                stop = &mut stop => break DrainEnd::Stopped(stop),
            }
        }
        budgets.watch(progress.namespaces_held());
        progress.take_news().into_iter().for_each(Transition::tell);
        if let Some(end) = progress.end() {
            break end;
        }
        if watch.is_none() && (evictions.is_empty() || watch_from <= now) {
            watch = Some(pods.clone().watch(Some(listed.resource_version.clone())));
        }
        let watch_due = watch.is_none().then_some(watch_from);
        let next_due = progress.next_due(now).into_iter().chain(watch_due).fold(window.end, Instant::min);
        tokio::select! {
            Some((uid, answer)) = evictions.next() => {
                progress.answered(&uid, answer, Instant::now());
            }
            change = next_change(&mut watch) => {
                blind = match &change {
                    Change::Interrupted(error) => Some(error.to_string()),
                    _ => None,
                };
                if let Some(error) = &blind {
                    tracing::warn!(node.name = node, error, "the watch of the node's pods broke; watching again");
                }
                progress.changed(change, Instant::now());
            }
            (namespace, change) = budgets.next() => {
                progress.budgets_changed(&namespace, change, Instant::now());
            }
            Some(kubelet) = looks.next() => {
                progress.looked(seen(kubelet, node), Instant::now());
            }
            () = under_way.go_on(), if watch.is_some() => {}
            () = sleep_until(next_due) => {
                if next_due == window.end {
                    break DrainEnd::TimeUp;
                }
            }
            stop = &mut stop => break DrainEnd::Stopped(stop),
        }
    };
    Ok(DrainReport { pods: progress.into_pods(), end, blind })
}

fn pods_of(client: &Client, node: &str) -> Selection<Pod> {
    Selection { api: Api::all(client.clone()), field_selector: Some(format!("spec.nodeName={node}")) }
}

/// A node that cannot be looked at is given the benefit of the doubt.
fn seen(kubelet: Result<Kubelet, ApiError>, node: &str) -> Kubelet {
    kubelet.unwrap_or_else(|error| {
        tracing::warn!(
            node.name = node,
            error = chain(&error),
            "cannot see whether node {node} still answers; looking again"
        );
        Kubelet::Answers
    })
}

/// The next change; never, before the watch has begun.
async fn next_change(watch: &mut Option<Watch<Pod>>) -> Change<Pod> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

/// The list has to succeed: it is tried until the window ends.
async fn list(pods: &Selection<Pod>, node: &str, window: Window) -> Result<Listed<Pod>, ApiError> {
    let tell = |error: &ApiError| {
        tracing::warn!(node.name = node, error = chain(&error), "cannot list the node's pods; trying again");
    };
    until(window.end, async || pods.list().await, tell).await
}
