//! Drains one node: evicts and watches the pods until the node is empty or the time is up. Core's `drain` makes the decisions.
//!
//! Each module imports only modules before it in this order: `name_owner`, `list`, `evict`, `disruption_target`, `newcomers`,
//! `kubelet`, `budget_watch`, `volumes`, `transition`, `side_task`, `dry_run`.

mod budget_watch;
mod disruption_target;
pub(crate) mod dry_run;
pub(crate) mod evict;
mod kubelet;
mod list;
mod name_owner;
mod newcomers;
pub(crate) mod side_task;
mod transition;
pub(crate) mod volumes;

use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{FusedFuture, LocalBoxFuture};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use spillway_core::clock::Clock;
use spillway_core::drain::answer::Answer;
use spillway_core::drain::deadline::Window;
use spillway_core::drain::ending::DrainEnding;
use spillway_core::drain::kubelet::Kubelet;
use spillway_core::drain::plan::PodUid;
use spillway_core::drain::progress::Progress;
use spillway_core::drain::report::{DrainEnd, DrainReport, StopReason};
use spillway_core::drain::request::Method;
use spillway_core::drain::returns::Returns;
use spillway_core::kube::change::Change;
use spillway_core::kube::pod::Pod;
use spillway_notice::continued::History;
use spillway_startup::logs::chain;
use tokio::time::{Instant, sleep_until};

use crate::kube::watch::{Listed, Watch, WatchEvent};
use crate::node::ClaimedNode;
use budget_watch::BudgetWatch;
use disruption_target::DisruptionTarget;
use kubelet::KubeletWatch;
use list::pods_of;
pub(crate) use list::{list_claimed, longest_grace, uids};
use newcomers::{NewPods, Newcomers};
use side_task::SideTask;

/// Maximum wait for the answers to the first evictions before the pod watch begins.
const WATCH_AT_THE_LATEST: Duration = Duration::from_secs(1);

/// Delay of the first evictions if another notice holds the claim. The other notice's drain evicts first.
const HEAD_START: Duration = Duration::from_secs(3);

pub(crate) struct Drain<'a> {
    node: &'a ClaimedNode,
    progress: Progress,
    ending: DrainEnding,
    requests: FuturesUnordered<LocalBoxFuture<'a, (PodUid, Answer)>>,
    disruption_target: Rc<DisruptionTarget>,
    /// Resource version of the pod list, from which the pod watch continues.
    listed_at: String,
    watch_from: Instant,
    pods: Option<Watch<Pod>>,
    /// Error of the pod watch. `None` while the watch works.
    watch_error: Option<String>,
    newcomers: Newcomers<'a>,
    budgets: BudgetWatch,
    kubelet: Option<KubeletWatch>,
}

/// Reason why [`Drain::next`] returned.
enum WaitEnd {
    /// A response or a change in the cluster was observed, or the next step of the drain is due.
    Change,
    TimeUp,
    Stopped(StopReason),
}

impl<'a> Drain<'a> {
    /// Creates the drain of the pods in `listed` and of pods that come to the node later. `history` has the earlier invocations
    /// for the same notice.
    pub(crate) fn new(
        node: &'a ClaimedNode,
        listed: &Listed<Pod>,
        history: &History,
        claim_began: Instant,
        window: Window,
        clock: Clock,
    ) -> Self {
        let ClaimedNode { claim, client } = node;
        let now = Instant::now();
        let claimed = history.claimed().unwrap_or_else(|| clock.at(claim_began));
        let returns = if claim.denied().is_some() { Returns::for_uncordoned(claimed) } else { Returns::since(claimed) };
        // Time of the cordon. The scheduler has already observed a cordon by an earlier invocation or by another party.
        let cordoned = history.claimed().or(claim.cordoned).map_or(now, |cordoned| clock.instant(cordoned));
        let head_start = if claim.is_joined() { HEAD_START } else { Duration::ZERO };
        Self {
            node,
            progress: Progress::new(&listed.items, returns, window, clock, now + head_start)
                .with_blockage(history.blockage),
            ending: DrainEnding::after_cordon(cordoned),
            requests: FuturesUnordered::new(),
            disruption_target: Rc::new(DisruptionTarget::new(clock)),
            listed_at: listed.resource_version.clone(),
            watch_from: now + WATCH_AT_THE_LATEST,
            pods: None,
            watch_error: None,
            newcomers: Newcomers::new(client, claim, window.end),
            budgets: BudgetWatch::new(client.clone()),
            kubelet: None,
        }
    }

    /// Drains until the node is empty, the time is up or `stop` completes. `hook` resolves to the time limits that
    /// the lifecycle hook allows. `side_task` publishes messages meanwhile.
    pub(crate) async fn run(
        mut self,
        mut hook: impl FusedFuture<Output = Window> + Unpin,
        stop: impl Future<Output = StopReason>,
        side_task: &mut SideTask<'_>,
    ) -> DrainReport {
        let mut stop = std::pin::pin!(stop);
        loop {
            self.request();
            while let Some(news) = self.progress.news(Instant::now()) {
                side_task.publish(news);
            }
            let end = self.progress.end().filter(|_| !self.newcomers.wait());
            self.ending.observe(end, self.progress.last_late_pod_at(), Instant::now());
            if let Some(end) = self.ending.reached(Instant::now()) {
                return self.report(end);
            }
            self.watch();
            let broken_off = match self.next(&mut hook, stop.as_mut(), side_task).await {
                WaitEnd::Change => continue,
                WaitEnd::TimeUp => DrainEnd::TimeUp,
                WaitEnd::Stopped(reason) => DrainEnd::Stopped(reason),
            };
            let end = self.ending.end().unwrap_or(broken_off);
            return self.report(end);
        }
    }

    fn request(&mut self) {
        for request in self.progress.requests(Instant::now()) {
            let (client, disruption_target) = (self.node.client.clone(), Rc::clone(&self.disruption_target));
            let send = async move {
                if request.method == Method::Delete {
                    disruption_target.set(&client, &request).await;
                }
                (request.uid.clone(), evict::send(client, request).await)
            };
            self.requests.push(send.boxed_local());
        }
        self.progress.take_transitions().into_iter().for_each(transition::log);
    }

    fn watch(&mut self) {
        let ClaimedNode { claim, client } = self.node;
        let now = Instant::now();
        self.budgets.watch(self.progress.namespaces_to_watch());
        if self.progress.is_node_watch_due(now) {
            self.progress.node_watch_started();
            self.kubelet = Some(KubeletWatch::of(client, claim));
        }
        if self.pods.is_none() && (self.requests.is_empty() || self.watch_from <= now) {
            self.pods = Some(pods_of(client, &claim.node).watch(Some(self.listed_at.clone())));
        }
    }

    /// Waits for the next event and records it.
    async fn next(
        &mut self,
        hook: &mut (impl FusedFuture<Output = Window> + Unpin),
        stop: Pin<&mut impl Future<Output = StopReason>>,
        side_task: &mut SideTask<'_>,
    ) -> WaitEnd {
        let watch_due = self.pods.is_none().then_some(self.watch_from);
        let due = self.progress.next_due(Instant::now()).into_iter().chain(watch_due).chain(self.ending.due());
        let end = self.progress.window().end;
        let due = due.fold(end, Instant::min);
        let is_side_task_due = self.pods.is_some() && (self.ending.end().is_none() || side_task.has_begun());
        tokio::select! {
            // A fixed order makes simulations reproducible.
            biased;
            Some((uid, answer)) = self.requests.next() => self.progress.answered(&uid, answer, Instant::now()),
            event = next_event(&mut self.pods) => self.take(event),
            NewPods { pods, is_cordoned_again } = self.newcomers.next() => {
                if is_cordoned_again {
                    self.progress.cordoned_again(Instant::now());
                }
                for pod in pods {
                    self.progress.changed(Change::Applied(Box::new(pod)), Instant::now());
                }
            }
            (scope, change) = self.budgets.next() => self.progress.budgets_changed(&scope, change, Instant::now()),
            observed = next_observed(&mut self.kubelet) => self.progress.kubelet_observed(observed, Instant::now()),
            window = &mut *hook, if !hook.is_terminated() => self.progress.tighten(window),
            () = side_task.run_next(), if is_side_task_due => {}
            () = sleep_until(due) => return if due == end { WaitEnd::TimeUp } else { WaitEnd::Change },
            reason = stop => return WaitEnd::Stopped(reason),
        }
        WaitEnd::Change
    }

    /// Records an event of the pod watch.
    fn take(&mut self, event: WatchEvent<Pod>) {
        self.watch_error = None;
        match event {
            WatchEvent::Changed(change) => {
                if let Some(change) = self.newcomers.hold(change, |uid| self.progress.knows(uid)) {
                    self.progress.changed(change, Instant::now());
                }
            }
            WatchEvent::Begun => {}
            WatchEvent::Interrupted(error) => {
                let error = self.watch_error.insert(chain(&error));
                let node = &self.node.claim.node;
                tracing::warn!(node.name = node, error, "the watch of the node's pods broke; watching again");
            }
        }
    }

    fn report(self, end: DrainEnd) -> DrainReport {
        let ended_at = Instant::now();
        DrainReport {
            window: self.progress.window(),
            blockage: self.progress.published_blockage(),
            pods: self.progress.into_pods(),
            end,
            emptied_at: self.ending.since().unwrap_or(ended_at),
            ended_at,
            watch_error: self.watch_error,
        }
    }
}

/// Returns the next event of the pod watch. Never returns if `watch` is `None`.
async fn next_event(watch: &mut Option<Watch<Pod>>) -> WatchEvent<Pod> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

/// Returns the next state of the kubelet. Never returns if `watch` is `None`.
async fn next_observed(watch: &mut Option<KubeletWatch>) -> Kubelet {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Default limit of the API server for a connection (kubernetes, `secure_serving.go`).
    const STREAMS: usize = 100;

    #[test]
    fn concurrent_requests_of_a_drain_fit_in_a_connection() {
        let (pods_watch, kubelet_watch) = (1, 1);
        // The watch for an uncordon; or a claim beside the drain and the list of the zone.
        let of_the_node = 2;
        let watches = pods_watch + kubelet_watch + of_the_node + budget_watch::NAMESPACES_WATCHED;
        assert!(watches + spillway_core::drain::progress::REQUESTS_AT_ONCE + side_task::REQUESTS_AT_ONCE < STREAMS);
    }
}
