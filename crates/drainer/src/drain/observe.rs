//! A drain that others do, watched until the pods have gone, the node is deleted, or the time is up. Nothing is written.

use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt as _};
use spillway_core::clock::Clock;
use spillway_core::drain::blockage::BlockageNews;
use spillway_core::drain::deadline::{Termination, Window};
use spillway_core::drain::progress::Progress;
use spillway_core::drain::put_back::PutBack;
use spillway_core::drain::report::{DrainEnd, DrainReport};
use spillway_core::instance::Instance;
use spillway_core::kube::change::Change;
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep_until};

use super::budget_watch::BudgetWatch;
use super::list::{list, pods_of};
use crate::kube::ApiError;
use crate::kube::watch::WatchEvent;
use crate::node::{NodeWatch, ObservedNodeChange, is_of};

/// What was seen of the drain.
pub(crate) struct Observed {
    pub(crate) report: DrainReport,
    /// Whether the node was deleted meanwhile.
    pub(crate) is_deleted: bool,
}

/// Watches the node's pods. `publish` is told what blocks them for long.
pub(crate) async fn observe(
    client: &Client,
    (node, instance): (&Node, &Instance),
    window: Window,
    clock: Clock,
    publish: impl AsyncFn(BlockageNews),
) -> Result<Observed, ApiError> {
    let name = node.name_any();
    let listed = list(client, &name, window).await?;
    let put_back = PutBack::of(&listed.items, None, clock.now());
    // Whoever drains the node forces what is blocked, or does not: we know of no time.
    let unforced = Window { instance_goes: Termination::Unknown, ..window };
    let mut progress = Progress::new(&listed.items, put_back, unforced, clock, Instant::now());
    let mut pods = pods_of(client, &name).watch(Some(listed.resource_version));
    let mut budgets = BudgetWatch::new(client.clone());
    let mut node_watch = NodeWatch::of(Api::all(client.clone()), &name);
    let (mut blind, mut is_deleted) = (None, false);
    let end = loop {
        progress.note_blockers(Instant::now());
        if let Some(news) = progress.news(Instant::now()) {
            publish(news).await;
        }
        if let Some(end) = progress.end() {
            break end;
        }
        budgets.watch(progress.namespaces_to_observe());
        let due = progress.news_due().into_iter().fold(window.end, Instant::min);
        tokio::select! {
            biased;
            event = pods.next() => match event {
                WatchEvent::Changed(change) => {
                    blind = None;
                    progress.changed(change, Instant::now());
                }
                WatchEvent::Begun => blind = None,
                WatchEvent::Interrupted(error) => {
                    let error = blind.insert(chain(&error));
                    tracing::warn!(node.name = name, error, "the watch of the node's pods broke; watching again");
                }
            },
            (scope, change) = budgets.next() => progress.budgets_changed(&scope, change, Instant::now()),
            change = node_watch.next_change() => {
                is_deleted = match change {
                    ObservedNodeChange::Is(now) => !is_of(instance, &now),
                    ObservedNodeChange::NotThere => true,
                    ObservedNodeChange::NotSeen => false,
                };
                if is_deleted {
                    // The watch of its pods may not have told the last of it.
                    if let Ok(left) = list(client, &name, window).await {
                        progress.changed(Change::OnlyThese(left.items), Instant::now());
                    }
                    break progress.end().unwrap_or(DrainEnd::Silent);
                }
            }
            () = sleep_until(due) => if due == window.end { break DrainEnd::TimeUp },
        }
    };
    let over_at = Instant::now();
    let (put_back, blockage) = (progress.put_back(), progress.published_blockage());
    let report = DrainReport { pods: progress.into_pods(), put_back, blockage, end, over_at, ended_at: over_at, blind };
    Ok(Observed { report, is_deleted })
}
