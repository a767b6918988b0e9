//! Previews a drain: sends an eviction with `dryRun` for each pod.
//!
//! Each pod is previewed separately: if a budget allows one disruption, all pods of the budget count as evictable.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use jiff::Timestamp;
use kube::Client;
use spillway_core::drain::answer::Answer;
use spillway_core::drain::deadline::Window;
use spillway_core::drain::dry_run::{
    PodPreview, Predicted, Preview, dry_run_name, is_inconclusive, predicted, without_request,
};
use spillway_core::drain::plan::{Planned, PodName, PodUid, plan};
use spillway_core::drain::request::EVICTIONS_AT_ONCE;
use spillway_retry::Backoff;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::evict;
use super::list::list;
use crate::kube::ApiError;

/// Maximum time for retries while the API server is busy or does not answer.
const TRIED_FOR: Duration = Duration::from_secs(10);

/// Previews the node's pods. Fails only if the pods cannot be listed.
pub(crate) async fn preview(client: &Client, node: &str, window: Window, now: Timestamp) -> Result<Preview, ApiError> {
    let listed = list(client, node, window).await?;
    let end = window.end.min(Instant::now() + TRIED_FOR);
    let previews = stream::iter(listed.items.iter().filter_map(plan))
        .map(async |pod| (pod.uid.clone(), preview_pod(client, pod, now, end).await))
        .buffer_unordered(EVICTIONS_AT_ONCE);
    Ok(Preview { pods: previews.collect().await })
}

/// Previews one pod, with retries until `end`. Sends no request for a pod that a drain would not evict.
pub async fn preview_pod(client: &Client, pod: Planned, now: Timestamp, end: Instant) -> PodPreview {
    let Planned { uid, name, grace, disposition, .. } = pod;
    let mut answers = BTreeMap::new();
    let would = match without_request(disposition, now) {
        Some(would) => would,
        None => evict(client, &name, &uid, end, &mut answers).await,
    };
    PodPreview { name, grace, would, answers }
}

async fn evict(
    client: &Client,
    name: &PodName,
    uid: &PodUid,
    end: Instant,
    answers: &mut BTreeMap<&'static str, u32>,
) -> Predicted {
    let mut backoff = Backoff::new();
    loop {
        // The invocation may end before the call's own timeout.
        let answer = timeout_at(end, evict::dry_run(client, name, uid)).await;
        let answer = answer.unwrap_or_else(|_| Answer::Unanswered { message: "no answer came in time".to_owned() });
        *answers.entry(dry_run_name(&answer)).or_default() += 1;
        let again = Instant::now() + backoff.next_pause();
        if !is_inconclusive(&answer) || again > end {
            return predicted(answer, name);
        }
        sleep_until(again).await;
    }
}
