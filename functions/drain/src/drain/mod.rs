//! The drain of one node: plan, evict, watch, until it is empty or the time is up.
//!
//! * `plan`: which pods leave, which stay, and why (pure)
//! * `deadline`: how long there is, and what that means for a pod's grace (pure)
//! * `progress`: what is to be asked next, and what became of each pod (pure)
//! * `evict`: telling one pod to leave, and the meaning of the answer
//! * `watch`: the node's pods, without a gap
//! * `beside`: their list, asked for beside the claim
//!
//! This file ties them together and decides nothing itself.

pub(crate) mod beside;
pub(crate) mod deadline;
pub(crate) mod evict;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod watch;

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use kube::Client;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use crate::backoff::Backoff;
use crate::kubernetes::ApiError;
use deadline::Window;
use plan::PodUid;
use progress::{News, Progress, Tracked};
use watch::{Change, Listed, Watch};

/// Evictions go first: the watch begins when all that can be asked for at once are answered, so
/// that the API server does not tell of each pod while it should evict the next. One that is slow
/// to be answered does not keep it for longer than this.
const WATCH_AT_THE_LATEST: Duration = Duration::from_secs(1);

/// How a drain ended.
#[derive(Debug)]
pub(crate) struct Report {
    /// Every pod that was on the node.
    pub(crate) pods: BTreeMap<PodUid, Tracked>,
    /// Why it ended.
    pub(crate) end: End,
}

/// Why a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Every pod that had to leave has gone.
    Empty,
    /// The window ended before.
    TimeUp,
    /// The instance need not wait any more.
    Stopped,
}

/// Drains the node until it is empty or the window ends, or until `stop` is there, which says
/// that the instance need not wait any more. Its pods are listed unless they have been, beside
/// the claim; it fails only if they cannot be.
pub(crate) async fn drain(
    client: &Client,
    node: &str,
    listed: Option<Listed>,
    window: Window,
    stop: impl Future<Output = ()>,
) -> Result<Report, ApiError> {
    let listed = match listed {
        Some(listed) => listed,
        None => list(client, node, window).await?,
    };
    let mut progress = Progress::new(&listed.pods, window, Instant::now());
    // It goes on from the list's version, so that nothing is missed until it begins.
    let mut watch = None;
    let watch_from = Instant::now() + WATCH_AT_THE_LATEST;
    let mut evictions = FuturesUnordered::new();
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
        progress.take_news().into_iter().for_each(tell);
        if progress.is_empty() {
            break End::Empty;
        }
        if watch.is_none() && (evictions.is_empty() || watch_from <= now) {
            watch = Some(Watch::start(client.clone(), node, listed.resource_version.clone()));
        }
        let watch_due = watch.is_none().then_some(watch_from);
        let next_due = progress.next_due(now).into_iter().chain(watch_due).fold(window.end, Instant::min);
        tokio::select! {
            Some((uid, answer)) = evictions.next() => {
                progress.answered(&uid, answer, Instant::now());
            }
            change = next_change(&mut watch) => {
                if let Change::Interrupted(error) = &change {
                    tracing::warn!(node.name = node, error = %error, "the watch of the node's pods broke; watching again");
                }
                progress.changed(change, Instant::now());
            }
            () = sleep_until(next_due) => {
                if next_due == window.end {
                    break End::TimeUp;
                }
            }
            () = &mut stop => break End::Stopped,
        }
    };
    Ok(Report { pods: progress.into_pods(), end })
}

/// The next change; never, before the watch has begun.
async fn next_change(watch: &mut Option<Watch>) -> Change {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

/// The list has to succeed: it is tried until the window ends.
async fn list(client: &Client, node: &str, window: Window) -> Result<Listed, ApiError> {
    let mut backoff = Backoff::new();
    loop {
        match watch::list(client, node).await {
            Err(error) if error.is_transient() => {
                let pause = sleep(backoff.next_pause());
                if timeout_at(window.end, pause).await.is_err() {
                    return Err(error);
                }
                tracing::warn!(node.name = node, error = %error, "cannot list the node's pods; trying again");
            }
            answer => return answer,
        }
    }
}

fn tell(news: News) {
    match news {
        News::Evicted(pod) => tracing::info!(pod.name = %pod, "evicted pod {pod}: it is shutting down"),
        News::Forced(pod) => tracing::warn!(
            pod.name = %pod,
            "deleted pod {pod} past its PodDisruptionBudget: any later, and it would not shut down cleanly"
        ),
        News::Gone(pod) => tracing::info!(pod.name = %pod, "pod {pod} has gone"),
        News::Held(pod, budget) => tracing::info!(
            pod.name = %pod, budget,
            "PodDisruptionBudget {budget} holds pod {pod}; asking again until it has room"
        ),
        News::Failed(pod, why) => tracing::warn!(
            pod.name = %pod, error = why,
            "cannot evict pod {pod}; trying again"
        ),
    }
}
