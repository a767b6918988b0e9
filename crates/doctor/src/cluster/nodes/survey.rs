//! The cluster's pods, one after the other: what each would mean for a drain of its node. Pure.
//!
//! Nothing is kept of a pod that means nothing.

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

/// How soon a pod that left is replaced by a healthy one, so that its budget lets the next one go. Nobody knows: it is what
/// pulling an image, starting and a readiness probe come to.
pub(super) const REPLACED_WITHIN: Duration = Duration::from_secs(30);

/// Longest name of an object: a DNS subdomain (RFC 1123).
const LONGEST_NAME: usize = 253;

#[derive(Debug)]
pub(super) struct Survey<'a> {
    fleet: &'a Fleet,
    budgets: &'a ClusterBudgets,
    /// How long a pod has to shut down that is told to at once.
    window: Duration,
    now: Timestamp,
    pub(super) held_up: BTreeMap<Cause, HeldUp>,
    /// The budgets that let a pod go, with a pod of each to ask for.
    pub(super) covered: BTreeMap<BudgetName, Covered>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct HeldUp {
    pub(super) nodes: BTreeSet<NodeName>,
    pub(super) pods: usize,
    /// The first of the pods, as `namespace/name`.
    pub(super) first: String,
    pub(super) grace: Duration,
    /// The do-not-disrupt of the last of them.
    pub(super) do_not_disrupt: Option<String>,
}

#[derive(Debug)]
pub(super) struct Covered {
    /// How many of them it lets go.
    allowed: usize,
    /// The first of its pods, and where that runs.
    pub(super) pod: Planned,
    pub(super) node: NodeName,
    /// How many of them each node has.
    on_nodes: BTreeMap<NodeName, usize>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(fleet: &'a Fleet, budgets: &'a ClusterBudgets, window: Duration, now: Timestamp) -> Self {
        Self { fleet, budgets, window, now, held_up: BTreeMap::new(), covered: BTreeMap::new() }
    }

    /// Takes a pod. One that stays on its node whatever happens, or that is leaving anyway, means nothing.
    pub(super) fn see(&mut self, pod: &Pod) {
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
            self.holds(Cause::DoNotDisrupt(owner(pod, &planned)), &planned, &node).do_not_disrupt =
                Some(annotation.to_string());
        }
        if planned.grace > self.window {
            self.holds(Cause::Grace(owner(pod, &planned)), &planned, &node);
        }
        let budgets = self.budgets.covering(pod);
        if !budgets.is_empty() && controller(pod).is_some_and(|controller| controller.kind == "Job") {
            self.holds(Cause::JobsAreNotTold, &planned, &node);
        }
        match budgets.as_slice() {
            [] => {}
            [budget] => {
                let name = budget.name.clone();
                match budget.allows {
                    Allows::Never | Allows::Unknown(_) => _ = self.holds(Cause::NeverAllows(name), &planned, &node),
                    Allows::NoneNow => _ = self.holds(Cause::AllowsNoneNow(name), &planned, &node),
                    Allows::Now(allowed) if planned.disposition == Disposition::Leaves => {
                        let first = || Covered { allowed, pod: planned, node: node.clone(), on_nodes: BTreeMap::new() };
                        *self.covered.entry(name).or_insert_with(first).on_nodes.entry(node).or_default() += 1;
                    }
                    Allows::Now(_) => {}
                }
            }
            several => {
                let names = several.iter().map(|budget| budget.name.clone()).collect();
                self.holds(Cause::SeveralBudgets(names), &planned, &node);
            }
        }
    }

    pub(super) fn has_jobs_behind_budgets(&self) -> bool {
        self.held_up.contains_key(&Cause::JobsAreNotTold)
    }

    pub(super) fn jobs_are_told(&mut self) {
        self.held_up.remove(&Cause::JobsAreNotTold);
    }

    pub(super) fn holds(&mut self, cause: Cause, pod: &Planned, node: &NodeName) -> &mut HeldUp {
        let held_up = self.held_up.entry(cause).or_default();
        held_up.nodes.insert(node.clone());
        held_up.pods += 1;
        held_up.grace = held_up.grace.max(pod.grace);
        if held_up.first.is_empty() {
            held_up.first = pod.name.to_string();
        }
        held_up
    }

    /// Takes it that all pods have been seen: which of the budgets that let a pod go let too few go at a time for a node to be
    /// empty in time?
    pub(super) fn hold_by_few_allowed(&mut self) {
        let rounds = usize::try_from(self.window.as_secs() / REPLACED_WITHIN.as_secs()).unwrap_or(usize::MAX);
        for (budget, Covered { allowed, mut on_nodes, .. }) in std::mem::take(&mut self.covered) {
            on_nodes.retain(|_, pods| *pods > allowed.saturating_mul(rounds.max(1)));
            let Some(most) = on_nodes.values().max().copied() else { continue };
            // By now it may let none go, which is told already.
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

/// Controller of a pod with its kind, or the pod itself without a controller.
fn owner(pod: &Pod, planned: &Planned) -> String {
    // Users write owner references, of any length.
    let shortened = |text: &str| text.chars().take(LONGEST_NAME).collect::<String>();
    match controller(pod) {
        Some(OwnerReference { kind, name, .. }) => {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            format!("{} {namespace}/{}", shortened(kind), shortened(name))
        }
        None => format!("pod {}", planned.name),
    }
}
