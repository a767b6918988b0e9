//! The cluster's PodDisruptionBudgets: which pods each covers, and whether it ever lets one go. Pure.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::{Selector, SelectorExt as _};
use serde::Deserialize;
use spillway_core::drain::pod::blocker::BudgetName;
use spillway_core::kube::pod::Pod;

#[derive(Debug, Default)]
pub(super) struct ClusterBudgets(BTreeMap<String, Vec<Budget>>);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Budget {
    pub(super) name: BudgetName,
    selector: Selector,
    pub(super) allows: Allows,
    pub(super) pods: Count,
    /// Whether its policy lets pods that are not Ready go in any case.
    evicts_unhealthy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) expected: i32,
    pub(super) healthy: i32,
    pub(super) desired: i32,
}

/// How many pods a budget lets go: its disruptions allowed, and why there are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Allows {
    Now(usize),
    NoneNow,
    Never,
    /// None, because its controller cannot count its pods, for that reason.
    Unknown(String),
}

/// A budget as it comes in a list, of which no more is kept than the [`Budget`].
#[derive(Debug, Deserialize)]
#[serde(from = "PodDisruptionBudget")]
pub(super) struct ListedBudget(Option<Budget>);

impl ClusterBudgets {
    /// Takes a budget. One whose selector chooses nothing, or that cannot be read, holds nothing.
    pub(super) fn see(&mut self, ListedBudget(budget): ListedBudget) {
        if let Some(budget) = budget {
            self.0.entry(budget.name.namespace.clone()).or_default().push(budget);
        }
    }

    pub(super) fn covering(&self, pod: &Pod) -> Vec<&Budget> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let none = BTreeMap::new();
        let labels = pod.metadata.labels.as_ref().unwrap_or(&none);
        self.0.get(namespace).into_iter().flatten().filter(|budget| budget.selector.matches(labels)).collect()
    }

    pub(super) fn get(&self, name: &BudgetName) -> Option<&Budget> {
        self.0.get(&name.namespace)?.iter().find(|budget| budget.name == *name)
    }
}

impl From<PodDisruptionBudget> for ListedBudget {
    fn from(budget: PodDisruptionBudget) -> Self {
        Self(Budget::of(budget))
    }
}

impl Budget {
    fn of(budget: PodDisruptionBudget) -> Option<Self> {
        let name = BudgetName { namespace: budget.metadata.namespace?, name: budget.metadata.name? };
        // A missing selector chooses no pod, an empty one every pod of the namespace.
        let spec = budget.spec?;
        let evicts_unhealthy = spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow");
        let selector = spec.selector?.try_into().ok()?;
        let status = budget.status.unwrap_or_default();
        let pods =
            Count { expected: status.expected_pods, healthy: status.current_healthy, desired: status.desired_healthy };
        Some(Self { name, selector, allows: allows(&status), pods, evicts_unhealthy })
    }

    pub(super) fn not_calculated(&self) -> Option<&str> {
        match &self.allows {
            Allows::Unknown(why) => Some(why),
            Allows::Now(_) | Allows::NoneNow | Allows::Never => None,
        }
    }

    /// Whether it keeps pods that are not Ready: by default it does while fewer are healthy than it wants (`IfHealthyBudget`).
    pub(super) fn holds_unhealthy(&self) -> bool {
        !self.evicts_unhealthy && self.pods.healthy < self.pods.desired
    }

    /// The selector as kubectl takes it.
    pub(super) fn selector(&self) -> String {
        self.selector.to_string()
    }
}

/// The budget's controller turns `minAvailable` and `maxUnavailable`, numbers and percentages, into how many are to stay
/// healthy. For `maxUnavailable` and percentages it has to know how many there are to be, and asks whoever makes the pods.
fn allows(status: &PodDisruptionBudgetStatus) -> Allows {
    match (usize::try_from(status.disruptions_allowed), not_calculated(status)) {
        (Ok(pods @ 1..), _) => Allows::Now(pods),
        (_, Some(why)) => Allows::Unknown(why),
        _ if status.expected_pods > 0 && status.desired_healthy >= status.expected_pods => Allows::Never,
        _ => Allows::NoneNow,
    }
}

/// Why the controller cannot calculate, if it cannot: it asked in vain, or nobody makes the pods, of which it then counts none
/// (kubernetes 1.36, `pkg/controller/disruption/disruption.go`).
fn not_calculated(status: &PodDisruptionBudgetStatus) -> Option<String> {
    let failed = |condition: &&Condition| condition.type_ == "DisruptionAllowed" && condition.reason == "SyncFailed";
    let condition = status.conditions.iter().flatten().find(failed);
    let message = condition.map(|condition| condition.message.clone());
    let nobody_makes_them = status.expected_pods == 0 && status.current_healthy > 0;
    message.or_else(|| nobody_makes_them.then(|| "no controller makes its pods".to_owned()))
}

/// "it wants 3 of its 3 pods healthy".
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pods = if self.expected == 1 { "pod" } else { "pods" };
        write!(f, "it wants {} of its {} {pods} healthy", self.desired, self.expected)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A budget of namespace shop, which covers the pods of an app.
    pub(in super::super) fn budget(name: &str, app: &str, status: &Value) -> PodDisruptionBudget {
        let budget = json!({"metadata": {"name": name, "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"app": app}}}, "status": status});
        serde_json::from_value(budget).unwrap()
    }

    fn allows_of(allowed: i32, healthy: i32, desired: i32, expected: i32) -> Allows {
        let status = json!({"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired,
            "expectedPods": expected});
        Budget::of(budget("web", "web", &status)).unwrap().allows
    }

    #[test]
    fn a_budget_that_wants_all_of_its_pods_never_lets_one_go() {
        assert_eq!(allows_of(0, 3, 3, 3), Allows::Never, "maxUnavailable 0, or minAvailable 100 %");
        assert_eq!(allows_of(0, 1, 1, 1), Allows::Never, "minAvailable 1 of one replica");
        assert_eq!(allows_of(0, 2, 5, 2), Allows::Never, "minAvailable more than there are");
        assert_eq!(allows_of(0, 1, 2, 3), Allows::NoneNow, "two of its pods are not healthy");
        assert_eq!(allows_of(1, 3, 2, 3), Allows::Now(1));
        assert_eq!(allows_of(0, 0, 0, 0), Allows::NoneNow, "it covers no pod, or has not been looked at yet");
    }

    #[test]
    fn a_budget_with_too_few_healthy_pods_holds_those_that_are_not_unless_its_policy_lets_them_go() {
        let of = |healthy: i32, policy: Option<&str>| {
            let status =
                json!({"disruptionsAllowed": 0, "currentHealthy": healthy, "desiredHealthy": 2, "expectedPods": 3});
            let mut budget = budget("web", "web", &status);
            budget.spec.as_mut().unwrap().unhealthy_pod_eviction_policy = policy.map(str::to_owned);
            Budget::of(budget).unwrap().holds_unhealthy()
        };
        assert!(of(1, None) && of(1, Some("IfHealthyBudget")));
        assert!(!of(1, Some("AlwaysAllow")));
        assert!(!of(2, None), "what is not healthy is not counted, and may go");
    }

    #[test]
    fn a_budget_whose_controller_cannot_calculate_never_lets_a_pod_go() {
        let why = "configmaps does not implement the scale subresource";
        let failed = json!({"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": why,
            "lastTransitionTime": "2026-11-21T03:12:00Z"});
        let status = |allowed: i32, healthy: i32, conditions: &[&Value]| {
            json!({"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": 0, "expectedPods": 0,
                "conditions": conditions})
        };
        let allows = |status: &Value| Budget::of(budget("web", "web", status)).unwrap().allows;
        assert_eq!(allows(&status(0, 0, &[&failed])), Allows::Unknown(why.to_owned()));
        assert_eq!(allows(&status(0, 2, &[])), Allows::Unknown("no controller makes its pods".to_owned()));
        assert_eq!(allows(&status(0, 0, &[])), Allows::NoneNow, "it has not been looked at yet");
        assert_eq!(allows(&status(1, 2, &[])), Allows::Now(1));
    }

    #[test]
    fn a_budget_covers_the_pods_of_its_namespace_that_its_selector_chooses() {
        let mut budgets = ClusterBudgets::default();
        budgets.see(ListedBudget::from(budget("web", "web", &json!(null))));
        let pod = |namespace: &str, app: &str| {
            let pod = json!({"metadata": {"name": "p", "namespace": namespace, "labels": {"app": app}}});
            serde_json::from_value::<Pod>(pod).unwrap()
        };
        let names = |pod: &Pod| budgets.covering(pod).iter().map(|budget| budget.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&pod("shop", "web")), ["web"]);
        assert!(names(&pod("shop", "db")).is_empty());
        assert!(names(&pod("other", "web")).is_empty());
    }

    #[test]
    fn a_budget_with_an_empty_selector_covers_its_whole_namespace_and_one_without_covers_nothing() {
        let mut budgets = ClusterBudgets::default();
        for (name, spec) in [("all", json!({"selector": {}})), ("none", json!({}))] {
            let budget = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
            budgets.see(serde_json::from_value(budget).unwrap());
        }
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "shop"}})).unwrap();
        let names: Vec<_> = budgets.covering(&pod).iter().map(|budget| budget.name.to_string()).collect();
        assert_eq!(names, ["all"]);
    }
}
