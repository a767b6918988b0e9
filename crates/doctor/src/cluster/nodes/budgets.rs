//! Finds the PodDisruptionBudgets that cover a pod, and the disruptions that each budget allows. Pure.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::{Selector, SelectorExt as _};
use serde::Deserialize;
use spillway_core::drain::pod::blocker::BudgetName;
use spillway_core::kube::pod::Pod;

#[derive(Debug, Default)]
pub(super) struct ClusterBudgets(BTreeMap<String, Vec<BudgetView>>);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct BudgetView {
    pub(super) name: BudgetName,
    selector: Selector,
    pub(super) allows: Allows,
    pub(super) pods: Count,
    /// `true` for `unhealthyPodEvictionPolicy: AlwaysAllow`.
    evicts_unhealthy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) expected: i32,
    pub(super) healthy: i32,
    pub(super) desired: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Allows {
    Now(usize),
    NoneNow,
    Never,
    /// Kubernetes cannot calculate how many disruptions the budget allows. The text is the reason.
    Unknown(String),
}

/// Budget as listed by the API server; `None` if the budget has no valid selector.
#[derive(Debug, Deserialize)]
#[serde(from = "PodDisruptionBudget")]
pub(super) struct ListedBudget(Option<BudgetView>);

impl ClusterBudgets {
    /// Adds the budget. A budget without a valid selector is ignored.
    pub(super) fn add(&mut self, ListedBudget(budget): ListedBudget) {
        if let Some(budget) = budget {
            self.0.entry(budget.name.namespace.clone()).or_default().push(budget);
        }
    }

    pub(super) fn covering(&self, pod: &Pod) -> Vec<&BudgetView> {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let none = BTreeMap::new();
        let labels = pod.metadata.labels.as_ref().unwrap_or(&none);
        self.0.get(namespace).into_iter().flatten().filter(|budget| budget.selector.matches(labels)).collect()
    }

    pub(super) fn get(&self, name: &BudgetName) -> Option<&BudgetView> {
        self.0.get(&name.namespace)?.iter().find(|budget| budget.name == *name)
    }
}

impl From<PodDisruptionBudget> for ListedBudget {
    fn from(budget: PodDisruptionBudget) -> Self {
        Self(BudgetView::of(budget))
    }
}

impl BudgetView {
    fn of(budget: PodDisruptionBudget) -> Option<Self> {
        let name = BudgetName { namespace: budget.metadata.namespace?, name: budget.metadata.name? };
        // A missing selector selects no pod. An empty selector selects every pod of the namespace.
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

    /// Returns `true` if the budget's `unhealthyPodEvictionPolicy` currently prevents the eviction of unready pods.
    pub(super) fn holds_unhealthy(&self) -> bool {
        !self.evicts_unhealthy && self.pods.healthy < self.pods.desired
    }

    /// Returns the selector in the syntax of `kubectl get pods --selector`.
    pub(super) fn selector(&self) -> String {
        self.selector.to_string()
    }
}

/// Reads the allowed disruptions. `Allows::Never` means that all pods of the budget must stay healthy.
fn allows(status: &PodDisruptionBudgetStatus) -> Allows {
    match (usize::try_from(status.disruptions_allowed), not_calculated(status)) {
        (Ok(pods @ 1..), _) => Allows::Now(pods),
        (_, Some(why)) => Allows::Unknown(why),
        _ if status.expected_pods > 0 && status.desired_healthy >= status.expected_pods => Allows::Never,
        _ => Allows::NoneNow,
    }
}

/// Returns the reason why a budget cannot be calculated (`pkg/controller/disruption/disruption.go`). Otherwise, returns `None`.
fn not_calculated(status: &PodDisruptionBudgetStatus) -> Option<String> {
    let failed = |condition: &&Condition| condition.type_ == "DisruptionAllowed" && condition.reason == "SyncFailed";
    let condition = status.conditions.iter().flatten().find(failed);
    let message = condition.map(|condition| condition.message.clone());
    let without_controller = status.expected_pods == 0 && status.current_healthy > 0;
    message.or_else(|| without_controller.then(|| "no controller makes its pods".to_owned()))
}

/// Formats the count: "it requires 3 of its 3 pods to be healthy".
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pods = if self.expected == 1 { "pod" } else { "pods" };
        write!(f, "it requires {} of its {} {pods} to be healthy", self.desired, self.expected)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Creates a budget for the pods of an app in namespace shop.
    pub(in super::super) fn budget(name: &str, app: &str, status: &Value) -> PodDisruptionBudget {
        let budget = json!({"metadata": {"name": name, "namespace": "shop"},
            "spec": {"selector": {"matchLabels": {"app": app}}}, "status": status});
        serde_json::from_value(budget).unwrap()
    }

    fn allows_of(allowed: i32, healthy: i32, desired: i32, expected: i32) -> Allows {
        let status = json!({"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired,
            "expectedPods": expected});
        BudgetView::of(budget("web", "web", &status)).unwrap().allows
    }

    #[test]
    fn budget_that_requires_all_pods_never_allows_a_disruption() {
        assert_eq!(allows_of(0, 3, 3, 3), Allows::Never, "maxUnavailable 0, or minAvailable 100 %");
        assert_eq!(allows_of(0, 1, 1, 1), Allows::Never, "minAvailable 1 of one replica");
        assert_eq!(allows_of(0, 2, 5, 2), Allows::Never, "minAvailable above the number of pods");
        assert_eq!(allows_of(0, 1, 2, 3), Allows::NoneNow, "two pods are not healthy");
        assert_eq!(allows_of(1, 3, 2, 3), Allows::Now(1));
        assert_eq!(allows_of(0, 0, 0, 0), Allows::NoneNow, "no pod, or not calculated yet");
    }

    #[test]
    fn budget_with_too_few_healthy_pods_blocks_unready_ones() {
        let of = |healthy: i32, policy: Option<&str>| {
            let status =
                json!({"disruptionsAllowed": 0, "currentHealthy": healthy, "desiredHealthy": 2, "expectedPods": 3});
            let mut budget = budget("web", "web", &status);
            budget.spec.as_mut().unwrap().unhealthy_pod_eviction_policy = policy.map(str::to_owned);
            BudgetView::of(budget).unwrap().holds_unhealthy()
        };
        assert!(of(1, None) && of(1, Some("IfHealthyBudget")));
        assert!(!of(1, Some("AlwaysAllow")));
        assert!(!of(2, None), "enough healthy pods");
    }

    #[test]
    fn budget_that_cannot_be_calculated_allows_no_disruption() {
        let why = "configmaps does not implement the scale subresource";
        let failed = json!({"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": why,
            "lastTransitionTime": "2026-11-21T03:12:00Z"});
        let status = |allowed: i32, healthy: i32, conditions: &[&Value]| {
            json!({"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": 0, "expectedPods": 0,
                "conditions": conditions})
        };
        let allows = |status: &Value| BudgetView::of(budget("web", "web", status)).unwrap().allows;
        assert_eq!(allows(&status(0, 0, &[&failed])), Allows::Unknown(why.to_owned()));
        assert_eq!(allows(&status(0, 2, &[])), Allows::Unknown("no controller makes its pods".to_owned()));
        assert_eq!(allows(&status(0, 0, &[])), Allows::NoneNow, "not calculated yet");
        assert_eq!(allows(&status(1, 2, &[])), Allows::Now(1));
    }

    /// An empty selector covers the whole namespace. A missing selector covers no pod.
    #[test]
    fn budget_covers_selected_pods_of_its_namespace() {
        let mut budgets = ClusterBudgets::default();
        budgets.add(ListedBudget::from(budget("web", "web", &json!(null))));
        for (name, spec) in [("all", json!({"selector": {}})), ("none", json!({}))] {
            let budget = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
            budgets.add(serde_json::from_value(budget).unwrap());
        }
        let names = |namespace: &str, app: &str| {
            let pod = json!({"metadata": {"name": "p", "namespace": namespace, "labels": {"app": app}}});
            let pod = serde_json::from_value::<Pod>(pod).unwrap();
            budgets.covering(&pod).iter().map(|budget| budget.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names("shop", "web"), ["web", "all"]);
        assert_eq!(names("shop", "db"), ["all"]);
        assert!(names("other", "web").is_empty());
    }
}
