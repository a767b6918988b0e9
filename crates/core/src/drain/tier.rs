//! Sorts pods into tiers, which leave one after the other: ordinary pods, critical pods, pods annotated as last. Pure.

use crate::kube::metadata::annotation::DRAIN;
use crate::kube::pod::Pod;

/// Group of pods that leave together. The variants are in the order in which the groups leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Ordinary,
    /// Pods with the priority class `system-cluster-critical` or `system-node-critical`.
    Critical,
    /// Pods with the annotation `spillway/drain=last`.
    Last,
}

const CRITICAL_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

pub fn tier(pod: &Pod) -> Tier {
    let class = pod.spec.priority_class_name.as_deref();
    if is_last(pod) {
        Tier::Last
    } else if class.is_some_and(|class| CRITICAL_CLASSES.contains(&class)) {
        Tier::Critical
    } else {
        Tier::Ordinary
    }
}

fn is_last(pod: &Pod) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.and_then(|annotations| annotations.get(DRAIN)).is_some_and(|annotated| annotated == "last")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tier_of(metadata: &Value, class: Option<&str>) -> Tier {
        tier(&serde_json::from_value(json!({"metadata": metadata, "spec": {"priorityClassName": class}})).unwrap())
    }

    #[test]
    fn ordinary_pods_leave_before_critical_ones() {
        let by_class = |class| tier_of(&json!({}), class);
        assert_eq!([None, Some("high")].map(by_class), [Tier::Ordinary; 2]);
        assert_eq!(CRITICAL_CLASSES.map(|class| by_class(Some(class))), [Tier::Critical; 2]);
        assert!(Tier::Ordinary < Tier::Critical && Tier::Critical < Tier::Last);
    }

    #[test]
    fn annotation_makes_a_pod_the_last() {
        let annotated = |value: &str| tier_of(&json!({"annotations": {"spillway/drain": value}}), None);
        assert_eq!(
            ["last", "Last", "", "wait"].map(annotated),
            [Tier::Last, Tier::Ordinary, Tier::Ordinary, Tier::Ordinary]
        );
    }
}
