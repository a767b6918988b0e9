//! What holds a drain up, told to people: one finding for each cause, whatever it holds. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use spillway_core::drain::pod::blocker::BudgetName;

use super::budgets::{Budget, ClusterBudgets};
use super::cause::{Cause, TooMany};
use super::survey::{HeldUp, REPLACED_WITHIN};
use crate::catalogue::FindingId;
use crate::report::{Finding, Severity, quoted};

#[derive(Debug, Clone, Copy)]
pub(super) struct Circumstances<'a> {
    /// How long a pod has to shut down that is told to at once.
    pub(super) window: Duration,
    pub(super) budgets: &'a ClusterBudgets,
    pub(super) hook_wait: Duration,
}

pub(super) fn finding(cause: &Cause, held_up: &HeldUp, circumstances: Circumstances<'_>) -> Finding {
    let telling = Telling { object: cause.object(), held_up, circumstances };
    let finding = match cause {
        Cause::NeverAllows(budget) => telling.never_allows(budget),
        Cause::AllowsNoneNow(budget) => telling.allows_none_now(budget),
        Cause::AllowsFew(budget, too_many) => telling.allows_few(budget, *too_many),
        Cause::SeveralBudgets(budgets) => telling.several_budgets(budgets),
        Cause::Refused(budget, why) => telling.refused(budget, why),
        Cause::Grace(_) => telling.grace(),
        Cause::DoNotDisrupt(_) => telling.do_not_disrupt(),
        Cause::JobsAreNotTold => telling.jobs_are_not_told(),
    };
    finding.on(held_up.nodes.iter())
}

/// What lets those pods of a budget go that nobody is served by, if it holds them.
fn held_unhealthy(budget: Option<&Budget>) -> String {
    let budget = budget.filter(|budget| budget.holds_unhealthy());
    budget.map(|budget| format!("; {}", budget.name.unready_pods_advice())).unwrap_or_default()
}

struct Telling<'a> {
    object: String,
    held_up: &'a HeldUp,
    circumstances: Circumstances<'a>,
}

impl Telling<'_> {
    fn never_allows(&self, name: &BudgetName) -> Finding {
        let budget = self.budget(name);
        let not_calculated = budget.and_then(Budget::not_calculated);
        let why = match (not_calculated, budget) {
            (Some(why), _) => format!(": its controller cannot calculate how many pods may be disrupted: {why}"),
            (None, Some(budget)) => format!(": {}", budget.pods),
            (None, None) => String::new(),
        };
        let nodes = self.nodes();
        let what = format!(
            "it never allows a disruption{why}. {nodes}. Before a spot instance goes its pods are deleted past it; for a lifecycle \
             hook they are deleted at the end of its longest wait"
        );
        let (namespace, name) = (quoted(&name.namespace), quoted(&name.name));
        let (to_do, command) = match not_calculated {
            Some(_) => (
                "set minAvailable to a number, for which it need not know the pods' controller; or run the pods by a Deployment or a StatefulSet",
                format!("kubectl --namespace {namespace} describe poddisruptionbudget {name}"),
            ),
            None => (
                "let it allow one disruption: maxUnavailable 1, or one replica more than it wants healthy",
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
        let wants =
            known.map_or_else(String::new, |budget| format!(": {}, and has {}", budget.pods, budget.pods.healthy));
        let what = format!("it allows no disruption at the moment{wants}. {}", self.nodes());
        let to_do = "see why its other pods are not healthy; it allows a disruption again when they are";
        let to_do = format!("{to_do}{}", held_unhealthy(known));
        self.finding(FindingId::BudgetAllowsNoDisruptionsNow, Severity::Warn, what, &to_do)
            .with_command(self.show_pods(budget))
    }

    fn allows_few(&self, budget: &BudgetName, TooMany { at_a_time, on_a_node }: TooMany) -> Finding {
        let what = format!(
            "it allows {at_a_time} of its pods to be disrupted at a time, more only once a replacement is healthy, and {on_a_node} of them are \
             on one node. How soon that is nobody knows; at {} s each {}. Before a spot instance goes \
             the others are deleted past it",
            REPLACED_WITHIN.as_secs(),
            self.nodes()
        );
        let to_do = "let more of them be disrupted at a time (maxUnavailable 25%, say), or have fewer of them on one node \
                     (topologySpreadConstraints)";
        self.finding(FindingId::BudgetAllowsFewDisruptions, Severity::Warn, what, to_do)
            .with_command(self.show_pods(budget))
    }

    fn several_budgets(&self, budgets: &BTreeSet<BudgetName>) -> Finding {
        let what = format!(
            "each of them covers {}, and Kubernetes evicts no pod that more than one budget covers. {}",
            self.pods(),
            self.nodes()
        );
        let to_do = "change their selectors, so that each pod is covered by one of them";
        let namespace = quoted(budgets.first().map(|budget| budget.namespace.as_str()).unwrap_or_default());
        let names: Vec<_> = budgets.iter().map(|budget| quoted(&budget.name)).collect();
        self.finding(FindingId::SeveralBudgets, Severity::Fail, what, to_do)
            .with_command(format!("kubectl --namespace {namespace} describe poddisruptionbudget {}", names.join(" ")))
    }

    fn refused(&self, budget: &BudgetName, why: &str) -> Finding {
        let what = format!("the API server would not evict {}, which it covers: {why}. {}", self.pods(), self.nodes());
        let to_do = "see who refuses it: an admission webhook, most likely";
        self.finding(FindingId::EvictionRefused, Severity::Fail, what, to_do).with_command(format!(
            "kubectl --namespace {} describe poddisruptionbudget {}; kubectl get validatingwebhookconfigurations",
            quoted(&budget.namespace),
            quoted(&budget.name)
        ))
    }

    fn grace(&self) -> Finding {
        let (asked, window) = (self.held_up.grace.as_secs(), self.circumstances.window.as_secs());
        let what = format!(
            "{} asks for {asked} s to shut down, and a spot notice leaves {window} s: what is not done by then is lost. {}",
            self.pods(),
            self.nodes()
        );
        let hook_wait = self.circumstances.hook_wait;
        let hook = if self.held_up.grace <= hook_wait {
            "a lifecycle hook waits for it".to_owned()
        } else {
            format!("a lifecycle hook waits for {} s, so raise HookMaxWaitS too", hook_wait.as_secs())
        };
        let to_do = format!(
            "let it shut down within {window} s (terminationGracePeriodSeconds), or keep it on nodes that are not spot: {hook}"
        );
        self.finding(FindingId::GracePeriodTooLong, Severity::Warn, what, &to_do)
    }

    fn do_not_disrupt(&self) -> Finding {
        let what = format!(
            "{} is not to be disrupted, by {}: a drain waits for as long as it safely can, and then has it leave. {}",
            self.pods(),
            self.held_up.do_not_disrupt.as_deref().unwrap_or("its annotation"),
            self.nodes()
        );
        let to_do = "take the annotation away from what may be disrupted, or say for how long it may not \
                     (karpenter.sh/do-not-disrupt: 30m)";
        self.finding(FindingId::DoNotDisrupt, Severity::Warn, what, to_do)
    }

    fn jobs_are_not_told(&self) -> Finding {
        let what = format!(
            "a budget covers {}, of a Job, and Spillway may not patch pods/status: if the budget blocks it to its last safe moment it is \
             deleted, and without the condition DisruptionTarget its Job counts a failure",
            self.pods()
        );
        let to_do = "give Spillway this one right; a policy that comes with it lets it set this one condition only";
        self.finding(FindingId::MissingRight, Severity::Warn, what, to_do)
            .with_command("kubectl apply -f deploy/optional/disruption-target.yaml")
    }

    fn finding(&self, id: FindingId, severity: Severity, what: String, to_do: &str) -> Finding {
        Finding::new(id, severity, &self.object, what, to_do)
    }

    fn budget(&self, name: &BudgetName) -> Option<&Budget> {
        self.circumstances.budgets.get(name)
    }

    fn show_pods(&self, budget: &BudgetName) -> String {
        let selector = quoted(self.budget(budget).map(Budget::selector).unwrap_or_default());
        format!("kubectl --namespace {} get pods --selector {selector} --output wide", quoted(&budget.namespace))
    }

    /// "3 nodes cannot be drained in time: a, b, c".
    fn nodes(&self) -> String {
        let nodes = &self.held_up.nodes;
        let names = listed(nodes.iter().map(AsRef::as_ref), nodes.len());
        let noun = if nodes.len() == 1 { "node" } else { "nodes" };
        format!("{} {noun} cannot be drained in time: {names}", nodes.len())
    }

    /// "pod shop/web-0 (and 3 more)".
    fn pods(&self) -> String {
        match self.held_up.pods {
            0 | 1 => format!("pod {}", self.held_up.first),
            pods => format!("pod {} (and {} more)", self.held_up.first, pods - 1),
        }
    }
}

/// The first few of them, as a sentence has room for.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>, count: usize) -> String {
    const NAMED: usize = 5;
    let first = names.take(NAMED).collect::<Vec<_>>().join(", ");
    if count > NAMED { format!("{first} and {} more", count - NAMED) } else { first }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::budgets::ListedBudget;
    use super::super::budgets::tests::budget;
    use super::*;

    #[test]
    fn budget_with_too_few_healthy_pods_names_the_policy() {
        let of = |healthy: i32| {
            let status =
                json!({"disruptionsAllowed": 0, "currentHealthy": healthy, "desiredHealthy": 2, "expectedPods": 3});
            let mut budgets = ClusterBudgets::default();
            budgets.see(ListedBudget::from(budget("web", "web", &status)));
            let name = BudgetName { namespace: "shop".to_owned(), name: "web".to_owned() };
            held_unhealthy(budgets.get(&name))
        };
        assert!(
            of(1).starts_with(
                "; budget web protects pods that are not Ready; set unhealthyPodEvictionPolicy: AlwaysAllow"
            )
        );
        assert_eq!(of(2), "");
    }
}
