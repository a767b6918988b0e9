//! Tracks PodDisruptionBudgets (PDBs) that block pods, and decides which of these pods to evict next. Pure.
//!
//! A budget allows a number of disruptions. Spillway requests that number of evictions, beginning with the pods that have
//! waited longest. Every few seconds at least one request is sent as a probe, in case the watch has missed a change of the
//! budget. After an edit of the budget, one request is sent for each blocked pod, because an edit may release pods without a
//! change of `disruptionsAllowed`.
//!
//! All allowed evictions are sent concurrently: fifty pods took 4.4 s, instead of 7.9 s in sequence.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_core::{Selector, SelectorExt as _};
use tokio::time::Instant;

use super::plan::PodUid;
use super::pod::blocker::{Blocker, BudgetName};
use super::pod::{PodState, Tracked};
use crate::kube::budget::DisruptionBudget;
use crate::kube::change::Change;

/// Pause between two probes. A probe requests the eviction of one blocked pod, even if its PDB seems to allow no
/// disruption.
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// Maximum number of budgets that a message names for one pod.
const MOST_NAMED: usize = 4;

/// Pods of one PDB that are blocked, or whose eviction is under way.
#[derive(Debug, Default)]
struct BudgetQueue<'a> {
    /// Number of evictions under way.
    requested: usize,
    /// Blocked pods, each with the time of its last request.
    blocked: Vec<(Instant, &'a PodUid)>,
}

/// Last known state of each budget.
#[derive(Debug, Default)]
pub struct KnownBudgets(BTreeMap<BudgetName, DisruptionsAllowed>);

#[derive(Debug)]
struct DisruptionsAllowed {
    /// Number of pods that may be evicted.
    pods: usize,
    /// Time at which the budget's status was last observed.
    reported_at: Instant,
    probe_at: Instant,
    /// `status.observedGeneration` of the budget, if known.
    generation: Option<i64>,
    /// Selector of the budget's pods, if known.
    selector: Option<Selector>,
}

impl DisruptionsAllowed {
    /// Creates the state of a budget whose status has not been observed. No disruption is allowed.
    fn unknown(reported_at: Instant, now: Instant) -> Self {
        Self { pods: 0, reported_at, probe_at: now + PROBE_EVERY, generation: None, selector: None }
    }
}

impl KnownBudgets {
    /// Returns the blocked pods to evict now: as many as each budget allows, and one pod every `PROBE_EVERY` even if the
    /// budget allows none. Pods for which `has_turn` returns `false` are left out.
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

    /// Returns the time of the next probe of a budget. Before this time, [`released`](Self::released) returns a pod only if a
    /// budget has changed.
    pub fn next_due(&self, pods: &BTreeMap<PodUid, Tracked>, has_turn: impl Fn(&Tracked) -> bool) -> Option<Instant> {
        let queues = queues(pods, has_turn).into_iter().filter(|(_, queue)| !queue.blocked.is_empty());
        queues.filter_map(|(budget, _)| Some(self.0.get(budget)?.probe_at)).min()
    }

    /// Returns the number of the budget's pods to evict now: the allowed disruptions minus the evictions under way. If a probe of
    /// the budget is due, the number is at least one.
    fn count(&self, budget: &BudgetName, queue: &BudgetQueue<'_>, now: Instant) -> usize {
        let Some(allowed) = self.0.get(budget) else { return 0 };
        allowed.pods.saturating_sub(queue.requested).max(usize::from(allowed.probe_at <= now))
    }

    pub fn requested(&mut self, budget: &BudgetName, now: Instant) {
        if let Some(allowed) = self.0.get_mut(budget) {
            allowed.probe_at = now + PROBE_EVERY;
        }
    }

    /// Records that the budget blocked an eviction that was sent at `requested_at`. Does nothing if the budget's status was
    /// observed after this time.
    pub fn refused(&mut self, budget: &BudgetName, requested_at: Instant, now: Instant) {
        let allowed = self.0.entry(budget.clone()).or_insert_with(|| DisruptionsAllowed::unknown(requested_at, now));
        if allowed.reported_at <= requested_at {
            allowed.pods = 0;
        }
    }

    /// Records an accepted eviction of one of the budget's pods. If the budget's status is unknown, another pod's eviction is
    /// tried at once.
    pub fn evicted(&mut self, budget: &BudgetName, now: Instant) {
        if let Some(allowed) = self.0.get_mut(budget) {
            if allowed.generation.is_none() {
                allowed.probe_at = now;
            }
            allowed.pods = allowed.pods.saturating_sub(1);
        }
    }

    /// Records a change of a namespace's budgets. Returns the deleted and edited budgets. The evictions of their blocked pods are
    /// due now.
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

    /// Records the state of a budget. Returns the budget's name if `status.observedGeneration` has increased.
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

    /// Returns the names of at most `MOST_NAMED` known budgets that select the pod.
    pub fn covering(&self, pod: &Tracked) -> Vec<String> {
        let covers = |budget: &BudgetName, selector: &Option<Selector>| {
            budget.namespace == pod.name.namespace && selector.as_ref().is_some_and(|it| it.matches(&pod.labels))
        };
        let covering = self.0.iter().filter(|(name, known)| covers(name, &known.selector));
        covering.map(|(budget, _)| budget.name.clone()).take(MOST_NAMED).collect()
    }

    fn forget(&mut self, is_gone: impl Fn(&BudgetName) -> bool) -> Vec<BudgetName> {
        let gone: Vec<BudgetName> = self.0.keys().filter(|known| is_gone(known)).cloned().collect();
        self.0.retain(|known, _| !is_gone(known));
        gone
    }
}

/// Returns the namespaces in which a PDB blocks a pod. The PDBs of these namespaces have to be watched.
pub fn namespaces_to_watch(pods: &BTreeMap<PodUid, Tracked>) -> BTreeSet<&str> {
    let blocked = pods.values().filter(|pod| match pod.blocked.by() {
        Some(Blocker::Budget(_)) => pod.state == PodState::Waits { due: None },
        // The eviction of such a pod is retried, so the pod has a `due` time.
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

/// Returns the number of disruptions that the budget allows, or 0 if the budget's controller has not yet processed the
/// last edit.
fn disruptions_allowed(budget: &DisruptionBudget) -> usize {
    let Some(status) = &budget.status else { return 0 };
    if status.observed_generation < budget.metadata.generation {
        return 0;
    }
    usize::try_from(status.disruptions_allowed).unwrap_or(0)
}
