//! Whether pods can come to a node. Pure.

use std::fmt;

use k8s_openapi::api::core::v1::Node;
use kube_core::ResourceExt as _;

/// The taint of a node whose kubelet has not yet said that it is ready, or says so no more.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// Its kubelet says that pods can run.
    Yes,
    /// Its kubelet says that they cannot, and why.
    No(Option<String>),
    /// The node controller has set it: the kubelet has not reported for its grace period (40 or 50 s).
    Unknown(Option<String>),
    /// The kubelet has not reported yet.
    NotReported,
}

pub fn ready(node: &Node) -> Ready {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    match conditions.find(|condition| condition.type_ == "Ready") {
        Some(condition) if condition.status == "True" => Ready::Yes,
        Some(condition) if condition.status == "Unknown" => Ready::Unknown(condition.message.clone()),
        Some(condition) => Ready::No(condition.message.clone()),
        None => Ready::NotReported,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// The cluster has no such node yet.
    NotJoined,
    /// It has, and no pod can come.
    NotReady { node: String, why: String },
    /// Pods can come.
    Ready { node: String },
}

impl Readiness {
    /// What the node says of itself: its condition `Ready`, and the taint that is taken off a moment later.
    pub fn of(node: Option<&Node>) -> Self {
        let Some(node) = node else { return Self::NotJoined };
        let name = node.name_any();
        let why = match ready(node) {
            Ready::Yes => is_tainted(node).then(|| format!("it has the taint {NOT_READY}")),
            Ready::No(message) | Ready::Unknown(message) => message.or_else(|| Some("it does not say why".to_owned())),
            Ready::NotReported => Some("its kubelet has not reported yet".to_owned()),
        };
        match why {
            Some(why) => Self::NotReady { node: name, why },
            None => Self::Ready { node: name },
        }
    }

    pub fn node(&self) -> Option<&str> {
        match self {
            Self::NotJoined => None,
            Self::NotReady { node, .. } | Self::Ready { node } => Some(node),
        }
    }
}

fn is_tainted(node: &Node) -> bool {
    let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.any(|taint| taint.key == NOT_READY)
}

impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJoined => f.write_str("it has not joined"),
            Self::NotReady { node, why } => write!(f, "its node {node} is not Ready: {why}"),
            Self::Ready { node } => write!(f, "its node {node} is Ready"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(conditions: &Value, taints: &Value) -> String {
        let node = json!({"metadata": {"name": "n"}, "spec": {"taints": taints}, "status": {"conditions": conditions}});
        Readiness::of(Some(&serde_json::from_value(node).unwrap())).to_string()
    }

    #[test]
    fn a_node_is_ready_when_its_condition_and_its_taints_say_so() {
        let pressure = json!({"type": "DiskPressure", "status": "True", "message": "full"});
        let ready = json!({"type": "Ready", "status": "True"});
        assert_eq!(
            of(&json!([pressure, ready]), &json!([{"key": "gpu", "effect": "NoSchedule"}])),
            "its node n is Ready"
        );
        let tainted = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
        let reason = "its node n is not Ready: it has the taint node.kubernetes.io/not-ready";
        assert_eq!(of(&json!([ready]), &tainted), reason);
    }

    #[test]
    fn a_node_has_a_name_once_it_has_joined() {
        assert_eq!(Readiness::Ready { node: "n".to_owned() }.node(), Some("n"));
        assert_eq!(Readiness::of(None).node(), None);
    }

    #[test]
    fn a_node_that_is_not_ready_says_why() {
        let not = json!({"type": "Ready", "status": "False", "message": "cni plugin not initialized"});
        assert_eq!(of(&json!([not]), &json!([])), "its node n is not Ready: cni plugin not initialized");
        assert_eq!(of(&json!([]), &json!([])), "its node n is not Ready: its kubelet has not reported yet");
        let silent = json!({"type": "Ready", "status": "Unknown"});
        assert_eq!(of(&json!([silent]), &json!([])), "its node n is not Ready: it does not say why");
        assert_eq!(Readiness::of(None).to_string(), "it has not joined");
    }
}
