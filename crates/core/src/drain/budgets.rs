//! Pods that PodDisruptionBudgets block, the time of their next eviction, and the budgets to watch for that. Pure.
//!
//! A budget that allows a number of disruptions gets that many evictions, of the pods first that have waited the longest, and no
//! more until it allows more. One of its pods is tried every few seconds in turn, in case a change of the budget is missed. After
//! an edit all of its pods are tried once: the number of disruptions does not show that unhealthy pods may go now, or that the
//! budget no longer selects a pod.
//!
//! All allowed evictions are requested at once. The API server delays an eviction for half a second when the budget changes under
//! it (kubernetes, `eviction.go`, `EvictionsRetry`), by another eviction or by the budget's controller. In sequence these delays
//! add up: fifty pods took 7.9 s instead of 4.4 s.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_core::{Selector, SelectorExt as _};
use tokio::time::Instant;

use super::plan::PodUid;
use super::pod::blocker::{Blocker, BudgetName};
use super::pod::{PodState, Tracked};
use crate::kube::budget::DisruptionBudget;
use crate::kube::change::Change;

/// Pause between two evictions of a budget that allows no disruption: kubectl's own pause after a refusal.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// Most budgets of one pod that are named: two are one too many, and a tenant may create very many.
const NAMED: usize = 4;

/// The pods of one budget that still have to leave.
#[derive(Debug, Default)]
struct BudgetQueue<'a> {
    /// Number of evictions under way.
    requested: usize,
    /// Waiting pods, with the time of their last request.
    blocked: Vec<(Instant, &'a PodUid)>,
}

/// Disruptions that each budget allows, as far as is known.
#[derive(Debug, Default)]
pub struct KnownBudgets(BTreeMap<BudgetName, DisruptionsAllowed>);

#[derive(Debug)]
struct DisruptionsAllowed {
    pods: usize,
    /// Time of the budget's last report.
    reported_at: Instant,
    probe_at: Instant,
    /// Observed generation of its specification, as far as is known.
    generation: Option<i64>,
    /// Selector of the pods that it covers, as far as is known.
    selector: Option<Selector>,
}

impl DisruptionsAllowed {
    /// Budget that allows no disruption; nothing else is known.
    fn unknown(reported_at: Instant, now: Instant) -> Self {
        Self { pods: 0, reported_at, probe_at: now + PROBE_EVERY, generation: None, selector: None }
    }
}

impl KnownBudgets {
    /// Blocked pods to evict now, of those that have their turn: as many as their budgets allow, or a single one as a probe.
    pub fn released(
        &self,
        pods: &BTreeMap<PodUid, Tracked>,
        has_turn: impl Fn(&Tracked) -> bool,
        now: Instant,
    ) -> BTreeSet<PodUid> {
        let released = queues(pods, has_turn).into_iter().flat_map(|(budget, mut queue)| {
            queue.blocked.sort_unstable();
            let count = self.count(budget, &queue, now);
            queue.blocked.into_iter().map(|(_, uid)| uid.clone()).take(count)
        });
        released.collect()
    }

    /// Next time at which [`released`](Self::released) may return a pod without a change of a budget.
    pub fn next_due(&self, pods: &BTreeMap<PodUid, Tracked>, has_turn: impl Fn(&Tracked) -> bool) -> Option<Instant> {
        let queues = queues(pods, has_turn).into_iter().filter(|(_, queue)| !queue.blocked.is_empty());
        queues.filter_map(|(budget, _)| Some(self.0.get(budget)?.probe_at)).min()
    }

    /// Number of a budget's pods to evict now, beside those whose evictions are under way.
    fn count(&self, budget: &BudgetName, queue: &BudgetQueue<'_>, now: Instant) -> usize {
        let Some(allowed) = self.0.get(budget) else { return 0 };
        allowed.pods.saturating_sub(queue.requested).max(usize::from(allowed.probe_at <= now))
    }

    pub fn requested(&mut self, budget: &BudgetName, now: Instant) {
        if let Some(allowed) = self.0.get_mut(budget) {
            allowed.probe_at = now + PROBE_EVERY;
        }
    }

    /// Notes the budget's refusal of a request of that time. A later report of the budget takes precedence.
    pub fn refused(&mut self, budget: &BudgetName, requested_at: Instant, now: Instant) {
        let allowed = self.0.entry(budget.clone()).or_insert_with(|| DisruptionsAllowed::unknown(requested_at, now));
        if allowed.reported_at <= requested_at {
            allowed.pods = 0;
        }
    }

    /// Notes an accepted eviction of one of the budget's pods. An unwatched budget may allow another, which is tried at once.
    pub fn evicted(&mut self, budget: &BudgetName, now: Instant) {
        if let Some(allowed) = self.0.get_mut(budget) {
            if allowed.generation.is_none() {
                allowed.probe_at = now;
            }
            allowed.pods = allowed.pods.saturating_sub(1);
        }
    }

    /// Takes an observed change of the budgets of a namespace. Returns the budgets that no longer block anything, as far as is
    /// known: they were deleted or edited.
    pub fn changed(&mut self, namespace: &str, change: Change<DisruptionBudget>, now: Instant) -> Vec<BudgetName> {
        match change {
            Change::Applied(budget) => self.observe(&budget, now).into_iter().collect(),
            Change::Deleted(budget) => self.forget(|known| name(&budget).as_ref() == Some(known)),
            Change::Listed(budgets) => {
                let there: BTreeSet<BudgetName> = budgets.iter().filter_map(name).collect();
                let edited: Vec<BudgetName> = budgets.iter().filter_map(|budget| self.observe(budget, now)).collect();
                let gone = self.forget(|known| known.namespace == namespace && !there.contains(known));
                edited.into_iter().chain(gone).collect()
            }
        }
    }

    /// Returns the budget if it was edited since the last observation and its controller has processed the edit.
    fn observe(&mut self, budget: &DisruptionBudget, now: Instant) -> Option<BudgetName> {
        let name = name(budget)?;
        let allowed = self.0.entry(name.clone()).or_insert_with(|| DisruptionsAllowed::unknown(now, now));
        allowed.selector = budget.spec.selector.clone().and_then(|selector| selector.try_into().ok());
        allowed.pods = disruptions_allowed(budget);
        allowed.reported_at = now;
        let before = allowed.generation;
        allowed.generation = before.max(budget.status.as_ref().and_then(|status| status.observed_generation));
        (before.is_some() && before < allowed.generation).then_some(name)
    }

    /// Names of the first few budgets that cover a pod, as far as is known.
    pub fn covering(&self, pod: &Tracked) -> Vec<String> {
        let covers = |budget: &BudgetName, selector: &Option<Selector>| {
            budget.namespace == pod.name.namespace && selector.as_ref().is_some_and(|it| it.matches(&pod.labels))
        };
        let covering = self.0.iter().filter(|(name, known)| covers(name, &known.selector));
        covering.map(|(budget, _)| budget.name.clone()).take(NAMED).collect()
    }

    fn forget(&mut self, is_gone: impl Fn(&BudgetName) -> bool) -> Vec<BudgetName> {
        let gone: Vec<BudgetName> = self.0.keys().filter(|known| is_gone(known)).cloned().collect();
        self.0.retain(|known, _| !is_gone(known));
        gone
    }
}

/// Namespaces with a budget that blocks a pod.
pub fn namespaces_to_watch(pods: &BTreeMap<PodUid, Tracked>) -> BTreeSet<&str> {
    let blocked = pods.values().filter(|pod| match pod.blocked.by() {
        Some(Blocker::Budget(_)) => pod.state == PodState::Waits { due: None },
        Some(Blocker::SeveralBudgets(_)) => pod.waits(),
        _ => false,
    });
    blocked.map(|pod| pod.name.namespace.as_str()).collect()
}

fn queues(
    pods: &BTreeMap<PodUid, Tracked>,
    has_turn: impl Fn(&Tracked) -> bool,
) -> BTreeMap<&BudgetName, BudgetQueue<'_>> {
    let mut queues = BTreeMap::<_, BudgetQueue<'_>>::new();
    for (uid, pod) in pods {
        let Some(budget) = pod.budget().filter(|_| !pod.is_returned) else { continue };
        match pod.state {
            PodState::Requested => queues.entry(budget).or_default().requested += 1,
            PodState::Waits { due: None } if has_turn(pod) => {
                queues.entry(budget).or_default().blocked.push((pod.history.last_requested_at(), uid));
            }
            _ => {}
        }
    }
    queues
}

fn name(budget: &DisruptionBudget) -> Option<BudgetName> {
    let metadata = &budget.metadata;
    Some(BudgetName { namespace: metadata.namespace.clone()?, name: metadata.name.clone()? })
}

/// Disruptions that the budget allows: 0 until its controller has observed its generation, because the API server refuses all.
fn disruptions_allowed(budget: &DisruptionBudget) -> usize {
    let Some(status) = &budget.status else { return 0 };
    if status.observed_generation < budget.metadata.generation {
        return 0;
    }
    usize::try_from(status.disruptions_allowed).unwrap_or(0)
}
