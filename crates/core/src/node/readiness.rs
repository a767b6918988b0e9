//! Readiness of a node for pods. Pure.

use std::fmt;

use k8s_openapi::api::core::v1::Node;
use kube_core::ResourceExt as _;

/// Taint of a node that is not Ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// The kubelet reports that pods can run.
    Yes,
    /// The kubelet reports that pods cannot run. The field has the reason, if any.
    No(Option<String>),
    /// The kubelet has stopped reporting. The node controller sets this status after 40 or 50 s.
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
    /// The cluster has no node of the instance yet.
    NotJoined,
    /// The cluster has the node, but no pod can run there yet.
    NotReady {
        node: String,
        why: String,
    },
    Ready {
        node: String,
    },
}

impl Readiness {
    /// Reads the readiness from the condition `Ready` and the taint `not-ready`.
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
    fn readiness_names_the_condition_or_the_taint() {
        let pressure = json!({"type": "DiskPressure", "status": "True", "message": "full"});
        let ready = json!({"type": "Ready", "status": "True"});
        let not = json!({"type": "Ready", "status": "False", "message": "cni plugin not initialized"});
        let silent = json!({"type": "Ready", "status": "Unknown"});
        let gpu = json!([{"key": "gpu", "effect": "NoSchedule"}]);
        let tainted = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
        let none = json!([]);
        for (conditions, taints, text) in [
            (json!([pressure, ready]), &gpu, "its node n is Ready"),
            (json!([ready]), &tainted, "its node n is not Ready: it has the taint node.kubernetes.io/not-ready"),
            (json!([not]), &none, "its node n is not Ready: cni plugin not initialized"),
            (json!([]), &none, "its node n is not Ready: its kubelet has not reported yet"),
            (json!([silent]), &none, "its node n is not Ready: it does not say why"),
        ] {
            assert_eq!(of(&conditions, taints), text);
        }
        assert_eq!(Readiness::of(None).to_string(), "it has not joined");
        assert_eq!((Readiness::of(None).node(), Readiness::Ready { node: "n".to_owned() }.node()), (None, Some("n")));
    }
}
