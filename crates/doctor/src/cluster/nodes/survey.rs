//! Collects the causes that delay or block drains, and the nodes that each cause affects. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use spillway_core::drain::plan::{Disposition, Planned, plan};
use spillway_core::drain::pod::blocker::BudgetName;
use spillway_core::kube::pod::Pod;

use super::budgets::{Allows, ClusterBudgets};
use super::cause::{Cause, TooMany};
use super::fleet::{Fleet, NodeName};

/// Estimated time until a healthy pod replaces an evicted pod.
pub(super) const REPLACED_WITHIN: Duration = Duration::from_secs(30);

/// Maximum length of an object's name in Kubernetes (RFC 1123 subdomain).
const LONGEST_NAME: usize = 253;

#[derive(Debug)]
pub(super) struct Survey<'a> {
    fleet: &'a Fleet,
    budgets: &'a ClusterBudgets,
    /// Time that a spot notice leaves for pods to shut down.
    window: Duration,
    now: Timestamp,
    pub(super) held_up: BTreeMap<Cause, HeldUp>,
    /// Budgets that allow a disruption, each with one pod for a dry-run eviction.
    pub(super) covered: BTreeMap<BudgetName, Covered>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct HeldUp {
    pub(super) nodes: BTreeSet<NodeName>,
    pub(super) pods: usize,
    /// First pod that the cause affects, as `namespace/name`.
    pub(super) first: String,
    pub(super) grace: Duration,
    /// Do-not-disrupt annotation of one affected pod.
    pub(super) do_not_disrupt: Option<String>,
}

#[derive(Debug)]
pub(super) struct Covered {
    allowed: usize,
    /// Pod for the dry-run eviction.
    pub(super) pod: Planned,
    pub(super) node: NodeName,
    on_nodes: BTreeMap<NodeName, usize>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(fleet: &'a Fleet, budgets: &'a ClusterBudgets, window: Duration, now: Timestamp) -> Self {
        Self { fleet, budgets, window, now, held_up: BTreeMap::new(), covered: BTreeMap::new() }
    }

    /// Records what would delay or block the eviction of a pod. Ignores pods that a drain would not evict.
    pub(super) fn add(&mut self, pod: &Pod) {
        let Some(planned) = plan(pod) else { return };
        if !matches!(planned.disposition, Disposition::Leaves | Disposition::DoNotDisrupt(_)) {
            return;
        }
        let node = pod.spec.node_name.as_deref();
        let node = node.and_then(|node| self.fleet.ours.get(node)).cloned();
        let Some(node) = node else { return };
        if let Disposition::DoNotDisrupt(annotation) = &planned.disposition
            && annotation.until.is_none_or(|until| until > self.now)
        {
            self.hold(Cause::DoNotDisrupt(owner(pod, &planned)), &planned, &node).do_not_disrupt =
                Some(annotation.to_string());
        }
        if planned.grace > self.window {
            self.hold(Cause::Grace(owner(pod, &planned)), &planned, &node);
        }
        let budgets = self.budgets.covering(pod);
        if !budgets.is_empty() && controller(pod).is_some_and(|controller| controller.kind == "Job") {
            self.hold(Cause::NoDisruptionTarget, &planned, &node);
        }
        match budgets.as_slice() {
            [] => {}
            [budget] => {
                let name = budget.name.clone();
                match budget.allows {
                    Allows::Never | Allows::Unknown(_) => _ = self.hold(Cause::NeverAllows(name), &planned, &node),
                    Allows::NoneNow => _ = self.hold(Cause::AllowsNoneNow(name), &planned, &node),
                    Allows::Now(allowed) if planned.disposition == Disposition::Leaves => {
                        let first = || Covered { allowed, pod: planned, node: node.clone(), on_nodes: BTreeMap::new() };
                        *self.covered.entry(name).or_insert_with(first).on_nodes.entry(node).or_default() += 1;
                    }
                    Allows::Now(_) => {}
                }
            }
            several => {
                let names = several.iter().map(|budget| budget.name.clone()).collect();
                self.hold(Cause::SeveralBudgets(names), &planned, &node);
            }
        }
    }

    pub(super) fn has_jobs_behind_budgets(&self) -> bool {
        self.held_up.contains_key(&Cause::NoDisruptionTarget)
    }

    pub(super) fn clear_jobs(&mut self) {
        self.held_up.remove(&Cause::NoDisruptionTarget);
    }

    pub(super) fn hold(&mut self, cause: Cause, pod: &Planned, node: &NodeName) -> &mut HeldUp {
        let held_up = self.held_up.entry(cause).or_default();
        held_up.nodes.insert(node.clone());
        held_up.pods += 1;
        held_up.grace = held_up.grace.max(pod.grace);
        if held_up.first.is_empty() {
            held_up.first = pod.name.to_string();
        }
        held_up
    }

    /// Records budgets whose pods on one node cannot all be evicted after a spot notice. Call this after all pods are added.
    pub(super) fn record_slow_budgets(&mut self) {
        let rounds = usize::try_from(self.window.as_secs() / REPLACED_WITHIN.as_secs()).unwrap_or(usize::MAX);
        for (budget, Covered { allowed, mut on_nodes, .. }) in std::mem::take(&mut self.covered) {
            on_nodes.retain(|_, pods| *pods > allowed.saturating_mul(rounds.max(1)));
            let Some(most) = on_nodes.values().max().copied() else { continue };
            // Skips a budget that the rehearsal found to allow no disruption now.
            if !self.held_up.contains_key(&Cause::AllowsNoneNow(budget.clone())) {
                let cause = Cause::AllowsFew(budget, TooMany { at_a_time: allowed, on_a_node: most });
                let (pods, nodes) = (on_nodes.values().sum(), on_nodes.into_keys().collect());
                self.held_up.insert(cause, HeldUp { nodes, pods, ..HeldUp::default() });
            }
        }
    }
}

fn controller(pod: &Pod) -> Option<&OwnerReference> {
    pod.metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Returns kind and name of the pod's controller. If the pod has no controller, returns the pod's name.
fn owner(pod: &Pod, planned: &Planned) -> String {
    // The API server does not limit names in an owner reference.
    let shortened = |text: &str| text.chars().take(LONGEST_NAME).collect::<String>();
    match controller(pod) {
        Some(OwnerReference { kind, name, .. }) => {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            format!("{} {namespace}/{}", shortened(kind), shortened(name))
        }
        None => format!("pod {}", planned.name),
    }
}
