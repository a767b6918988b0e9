//! Creates one finding for each cause that delays or blocks drains. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use spillway_core::drain::pod::blocker::BudgetName;

use super::budgets::{BudgetView, ClusterBudgets};
use super::cause::{Cause, TooMany};
use super::survey::{HeldUp, REPLACED_WITHIN};
use crate::catalogue::FindingId;
use crate::report::{Finding, Severity, quoted};

#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances<'a> {
    /// Time that a spot notice leaves for pods to shut down.
    pub(super) window: Duration,
    pub(super) budgets: &'a ClusterBudgets,
    pub(super) hook_wait: Duration,
}

pub(super) fn finding(cause: &Cause, held_up: &HeldUp, circumstances: Circumstances<'_>) -> Finding {
    let text = FindingText { object: cause.object(), held_up, circumstances };
    let finding = match cause {
        Cause::NeverAllows(budget) => text.never_allows(budget),
        Cause::AllowsNoneNow(budget) => text.allows_none_now(budget),
        Cause::AllowsFew(budget, too_many) => text.allows_few(budget, *too_many),
        Cause::SeveralBudgets(budgets) => text.several_budgets(budgets),
        Cause::Refused(budget, why) => text.refused(budget, why),
        Cause::Grace(_) => text.grace(),
        Cause::DoNotDisrupt(_) => text.do_not_disrupt(),
        Cause::NoDisruptionTarget => text.no_disruption_target(),
    };
    finding.on(held_up.nodes.iter())
}

/// Returns advice if the budget blocks the eviction of unready pods. Otherwise, returns an empty text.
fn held_unhealthy(budget: Option<&BudgetView>) -> String {
    let budget = budget.filter(|budget| budget.holds_unhealthy());
    budget.map(|budget| format!("; {}", budget.name.unready_pods_advice())).unwrap_or_default()
}

struct FindingText<'a> {
    object: String,
    held_up: &'a HeldUp,
    circumstances: Circumstances<'a>,
}

impl FindingText<'_> {
    fn never_allows(&self, name: &BudgetName) -> Finding {
        let budget = self.budget(name);
        let not_calculated = budget.and_then(BudgetView::not_calculated);
        let why = match (not_calculated, budget) {
            (Some(why), _) => format!(": its controller cannot calculate how many pods may be disrupted: {why}"),
            (None, Some(budget)) => format!(": {}", budget.pods),
            (None, None) => String::new(),
        };
        let nodes = self.nodes();
        let what = format!(
            "never allows a disruption{why}. {nodes}. Its pods are deleted anyway: at the end of a spot notice, or of the longest \
             wait of a lifecycle hook"
        );
        let (namespace, name) = (quoted(&name.namespace), quoted(&name.name));
        let (to_do, command) = match not_calculated {
            Some(_) => (
                "set minAvailable to a number, which needs no controller; or run the pods in a Deployment or a StatefulSet",
                format!("kubectl --namespace {namespace} describe poddisruptionbudget {name}"),
            ),
            None => (
                "allow one disruption: set maxUnavailable to 1, or add a replica",
                format!(
                    "kubectl --namespace {namespace} patch poddisruptionbudget {name} --type merge --patch \
                     '{{\"spec\":{{\"minAvailable\":null,\"maxUnavailable\":1}}}}'"
                ),
            ),
        };
        let to_do = format!("{to_do}{}", held_unhealthy(budget));
        self.finding(FindingId::BudgetAllowsNoDisruptions, Severity::Fail, what, &to_do).with_command(command)
    }

    fn allows_none_now(&self, budget: &BudgetName) -> Finding {
        let known = self.budget(budget);
        let count =
            known.map_or_else(String::new, |budget| format!(": {}, and has {}", budget.pods, budget.pods.healthy));
        let what = format!("allows no disruption now{count}. {}", self.nodes());
        let to_do = "find out why its other pods are not healthy; the budget allows a disruption again when they are";
        let to_do = format!("{to_do}{}", held_unhealthy(known));
        self.finding(FindingId::BudgetAllowsNoDisruptionsNow, Severity::Warn, what, &to_do)
            .with_command(self.show_pods(budget))
    }

    fn allows_few(&self, budget: &BudgetName, TooMany { at_a_time, on_a_node }: TooMany) -> Finding {
        let what = format!(
            "allows {at_a_time} of its pods to be disrupted at a time, and the next only after a replacement is healthy, but one \
             node has {on_a_node} of them. At {} s for each replacement, {}. At the end of a spot notice the other pods are \
             deleted anyway",
            REPLACED_WITHIN.as_secs(),
            self.nodes()
        );
        let to_do = "allow more disruptions at a time (such as maxUnavailable 25%), or spread the pods over more nodes \
                     (topologySpreadConstraints)";
        self.finding(FindingId::BudgetAllowsFewDisruptions, Severity::Warn, what, to_do)
            .with_command(self.show_pods(budget))
    }

    fn several_budgets(&self, budgets: &BTreeSet<BudgetName>) -> Finding {
        let what =
            format!("all cover {}, and Kubernetes evicts no pod with several budgets. {}", self.pods(), self.nodes());
        let to_do = "change their selectors, so that one budget covers each pod";
        let namespace = quoted(budgets.first().map(|budget| budget.namespace.as_str()).unwrap_or_default());
        let names: Vec<_> = budgets.iter().map(|budget| quoted(&budget.name)).collect();
        self.finding(FindingId::SeveralBudgets, Severity::Fail, what, to_do)
            .with_command(format!("kubectl --namespace {namespace} describe poddisruptionbudget {}", names.join(" ")))
    }

    fn refused(&self, budget: &BudgetName, why: &str) -> Finding {
        let what = format!("covers {}, whose eviction the API server refuses: {why}. {}", self.pods(), self.nodes());
        let to_do = "find the admission webhook or policy that refuses the eviction";
        self.finding(FindingId::EvictionRefused, Severity::Fail, what, to_do).with_command(format!(
            "kubectl --namespace {} describe poddisruptionbudget {}; kubectl get validatingwebhookconfigurations",
            quoted(&budget.namespace),
            quoted(&budget.name)
        ))
    }

    fn grace(&self) -> Finding {
        let (grace, window) = (self.held_up.grace.as_secs(), self.circumstances.window.as_secs());
        let what = format!(
            "{} has a grace period of {grace} s, but a spot notice leaves {window} s: unfinished work is lost. {}",
            self.pods(),
            self.nodes()
        );
        let hook_wait = self.circumstances.hook_wait;
        let hook = if self.held_up.grace <= hook_wait {
            "a lifecycle hook waits long enough".to_owned()
        } else {
            format!("a lifecycle hook waits {} s, so raise HookMaxWaitS, too", hook_wait.as_secs())
        };
        let to_do =
            format!("shorten terminationGracePeriodSeconds to {window}, or keep the pods off spot instances: {hook}");
        self.finding(FindingId::GracePeriodTooLong, Severity::Warn, what, &to_do)
    }

    fn do_not_disrupt(&self) -> Finding {
        let what = format!(
            "{} must not be disrupted, by {}: a drain waits as long as is safe, and then evicts the pod. {}",
            self.pods(),
            self.held_up.do_not_disrupt.as_deref().unwrap_or("its annotation"),
            self.nodes()
        );
        let to_do = "remove the annotation, or limit it to a time (karpenter.sh/do-not-disrupt: 30m)";
        self.finding(FindingId::DoNotDisrupt, Severity::Warn, what, to_do)
    }

    fn no_disruption_target(&self) -> Finding {
        let what = format!(
            "Spillway may not patch pods/status, and a budget covers {} of a Job: if the budget blocks the pod to the end, the pod \
             is deleted without the condition DisruptionTarget, and its Job counts a failure",
            self.pods()
        );
        let to_do = "give Spillway this right; the policy that comes with it allows this condition only";
        self.finding(FindingId::MissingRight, Severity::Warn, what, to_do)
            .with_command("kubectl apply -f deploy/optional/disruption-target.yaml")
    }

    fn finding(&self, id: FindingId, severity: Severity, what: String, to_do: &str) -> Finding {
        Finding::new(id, severity, &self.object, what, to_do)
    }

    fn budget(&self, name: &BudgetName) -> Option<&BudgetView> {
        self.circumstances.budgets.get(name)
    }

    fn show_pods(&self, budget: &BudgetName) -> String {
        let selector = quoted(self.budget(budget).map(BudgetView::selector).unwrap_or_default());
        format!("kubectl --namespace {} get pods --selector {selector} --output wide", quoted(&budget.namespace))
    }

    /// Returns a text such as "3 nodes cannot be drained in time: a, b, c".
    fn nodes(&self) -> String {
        let nodes = &self.held_up.nodes;
        let names = first_names(nodes.iter().map(AsRef::as_ref), nodes.len());
        let noun = if nodes.len() == 1 { "node" } else { "nodes" };
        format!("{} {noun} cannot be drained in time: {names}", nodes.len())
    }

    /// Returns a text such as "pod shop/web-0 (and 3 more)".
    fn pods(&self) -> String {
        match self.held_up.pods {
            0 | 1 => format!("pod {}", self.held_up.first),
            pods => format!("pod {} (and {} more)", self.held_up.first, pods - 1),
        }
    }
}

/// Joins the first five of `count` names: "a, b, c, d, e and 2 more".
pub(super) fn first_names<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    const NAMED: usize = 5;
    let first = names.take(NAMED).collect::<Vec<_>>().join(", ");
    if count > NAMED { format!("{first} and {} more", count - NAMED) } else { first }
}
