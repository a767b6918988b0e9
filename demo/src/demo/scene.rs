//! What is on the stage, and what a change of it means in words. Pure: changes in, lines out.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt as _;
use kube::api::WatchEvent;
use spillway_bed::audit::Request;
use spillway_bed::pods;

/// One line of the live view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) tone: Tone,
    pub(super) who: String,
    pub(super) what: String,
}

impl Line {
    pub(super) fn new(tone: Tone, who: impl Into<String>, what: impl Into<String>) -> Self {
        Self { tone, who: who.into(), what: what.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// AWS does something.
    Cloud,
    Leaves,
    Blocked,
    Gone,
    Good,
    Bad,
}

/// The cluster as last seen, while one node is drained.
#[derive(Debug)]
pub(super) struct Scene {
    drained: String,
    /// Whether each node takes no new pods.
    nodes: BTreeMap<String, bool>,
    /// By UID: a StatefulSet's next pod has the same name.
    pods: BTreeMap<String, Seen>,
    budgets: Vec<PodDisruptionBudget>,
}

#[derive(Debug)]
struct Seen {
    name: String,
    node: Option<String>,
    labels: BTreeMap<String, String>,
    /// Whether a controller replaces it elsewhere.
    replaced: bool,
    held_by: Option<String>,
    stage: PodStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PodStage {
    Waiting,
    Starting,
    Running,
    Finished,
    Leaving,
}

impl Scene {
    pub(super) fn new(drained: &str, nodes: &[Node], pods: &[Pod], budgets: Vec<PodDisruptionBudget>) -> Self {
        Self {
            drained: drained.to_owned(),
            nodes: nodes.iter().map(|node| (node.name_any(), takes_no_pods(node))).collect(),
            pods: pods.iter().map(|pod| (pod.uid().unwrap_or_default(), Seen::new(pod))).collect(),
            budgets,
        }
    }

    /// How many pods run that would be replaced elsewhere.
    pub(super) fn replicas(&self) -> usize {
        self.pods.values().filter(|pod| pod.replaced && pod.stage == PodStage::Running).count()
    }

    pub(super) fn has_pod(&self, uid: &str) -> bool {
        self.pods.contains_key(uid)
    }

    pub(super) fn has_node(&self, name: &str) -> bool {
        self.nodes.contains_key(name)
    }

    pub(super) fn node(&mut self, event: &WatchEvent<Node>) -> Option<Line> {
        let (node, now) = match event {
            WatchEvent::Added(node) | WatchEvent::Modified(node) => (node, Some(takes_no_pods(node))),
            WatchEvent::Deleted(node) => (node, None),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return None,
        };
        let name = node.name_any();
        let before = match now {
            Some(cordoned) => self.nodes.insert(name.clone(), cordoned),
            None => self.nodes.remove(&name),
        };
        let (tone, what) = match (before, now) {
            (Some(true), Some(false)) => (Tone::Plain, "uncordoned"),
            (Some(false) | None, Some(true)) => (Tone::Leaves, "cordoned: no new pods come here"),
            (Some(_), None) => (Tone::Gone, "gone, with its instance"),
            _ => return None,
        };
        Some(Line::new(tone, format!("node {}", short(&name)), what))
    }

    pub(super) fn pod(&mut self, event: &WatchEvent<Pod>) -> Option<Line> {
        match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => self.pod_changed(pod),
            WatchEvent::Deleted(pod) => self.pod_gone(pod),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => None,
        }
    }

    fn pod_changed(&mut self, pod: &Pod) -> Option<Line> {
        let mut now = Seen::new(pod);
        let uid = pod.uid().unwrap_or_default();
        let before = self.pods.get(&uid);
        now.held_by = before.and_then(|before| before.held_by.clone());
        if now.stage == PodStage::Leaving && before.is_none_or(|before| before.stage == PodStage::Waiting) {
            // It never got anywhere: there is nothing to tell of its end.
            now.stage = PodStage::Waiting;
        }
        let line = now.line_after(before.map(|before| before.stage), pod, &self.drained);
        self.pods.insert(uid, now);
        line
    }

    fn pod_gone(&mut self, pod: &Pod) -> Option<Line> {
        let before = self.pods.remove(&pod.uid().unwrap_or_default())?;
        let what = match before.stage {
            PodStage::Leaving => "gone",
            PodStage::Finished => "evicted and gone at once: it had finished",
            PodStage::Starting | PodStage::Running => "evicted and gone at once",
            PodStage::Waiting => return None,
        };
        Some(Line::new(Tone::Gone, before.name, what))
    }

    /// What the API server refused: no watch shows it, its audit log does. Each pod is told of once.
    pub(super) fn refused(&mut self, requests: &[Request]) -> Vec<Line> {
        let mut lines = Vec::new();
        for request in requests.iter().filter(|request| request.subresource == "eviction") {
            let name = format!("{}/{}", request.namespace, request.name);
            let pod = self.pods.values_mut().find(|pod| pod.name == name && pod.held_by.is_none());
            let (Some(code), Some(pod)) = (request.code.filter(|code| *code >= 400), pod) else { continue };
            let budget = self.budgets.iter().find(|budget| covers(budget, &request.namespace, &pod.labels));
            let (why, what) = match budget {
                Some(budget) if code == 429 => {
                    let budget = budget.name_any();
                    let what = format!("blocked by budget {budget}, requested until it may leave");
                    (format!("budget {budget}"), what)
                }
                _ => {
                    let what = format!("its eviction was answered with {code}, asked again");
                    (format!("answer {code}"), what)
                }
            };
            pod.held_by = Some(why);
            lines.push(Line::new(Tone::Blocked, name, what));
        }
        lines
    }
}

impl Seen {
    fn new(pod: &Pod) -> Self {
        let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
        Self {
            name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            replaced: owner.is_some_and(|owner| ["ReplicaSet", "StatefulSet"].contains(&owner.kind.as_str())),
            held_by: None,
            stage: PodStage::of(pod),
        }
    }

    fn line_after(&self, before: Option<PodStage>, pod: &Pod, drained: &str) -> Option<Line> {
        if before == Some(self.stage) {
            return None;
        }
        let here = self.node.as_deref() == Some(drained);
        let node = short(self.node.as_deref().unwrap_or_default());
        let (tone, what) = match self.stage {
            PodStage::Waiting => return None,
            PodStage::Starting => (Tone::Plain, format!("new, starting on {node}")),
            PodStage::Running => (Tone::Good, format!("running on {node}")),
            PodStage::Finished => (Tone::Plain, "finished".to_owned()),
            PodStage::Leaving if before == Some(PodStage::Finished) => {
                (Tone::Leaves, "evicted: it had finished".to_owned())
            }
            PodStage::Leaving => {
                let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
                let done = match &self.held_by {
                    Some(_) if here => "evicted at last",
                    None if here => "evicted",
                    _ => "deleted",
                };
                (Tone::Leaves, format!("{done}: shuts down, and may take {grace} s"))
            }
        };
        Some(Line::new(tone, self.name.clone(), what))
    }
}

impl PodStage {
    fn of(pod: &Pod) -> Self {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        if pod.metadata.deletion_timestamp.is_some() {
            Self::Leaving
        } else if matches!(phase, Some("Succeeded" | "Failed")) {
            Self::Finished
        } else if pods::is_running(pod) {
            Self::Running
        } else if bound {
            Self::Starting
        } else {
            Self::Waiting
        }
    }
}

/// A node's name without its domain, which all of a cluster share.
pub(super) fn short(node: &str) -> &str {
    node.split('.').next().unwrap_or(node)
}

/// Whether a budget is for a pod with these labels.
pub(super) fn covers(budget: &PodDisruptionBudget, namespace: &str, labels: &BTreeMap<String, String>) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let wanted = selector.and_then(|selector| selector.match_labels.as_ref());
    budget.namespace().as_deref() == Some(namespace)
        && wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value)))
}

fn takes_no_pods(node: &Node) -> bool {
    node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const DRAINED: &str = "ip-10-0-0-1.ec2.internal";

    /// A Deployment's pod that runs on a node, but for these changes of it.
    fn pod(name: &str, node: &str, changes: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": name, "namespace": "shop", "uid": name, "labels": {"app": "web"},
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": true},
                ],
            },
            "spec": {"containers": [], "nodeName": node},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        for (path, value) in changes.as_object().into_iter().flatten() {
            let (parent, key) = path.split_once('.').expect("a path has two parts");
            pod[parent][key] = value.clone();
        }
        serde_json::from_value(pod).expect("it is a pod")
    }

    fn leaving(name: &str) -> Pod {
        let at = json!("2026-11-21T12:00:00Z");
        pod(name, DRAINED, &json!({"metadata.deletionTimestamp": at, "metadata.deletionGracePeriodSeconds": 30}))
    }

    fn refusal(pod: &str) -> Request {
        Request {
            user: String::new(),
            user_agent: String::new(),
            verb: "create".to_owned(),
            uri: String::new(),
            resource: "pods".to_owned(),
            subresource: "eviction".to_owned(),
            namespace: "shop".to_owned(),
            name: pod.to_owned(),
            code: Some(429),
            received: jiff::Timestamp::UNIX_EPOCH,
            done: None,
        }
    }

    fn scene(pods: &[Pod]) -> Scene {
        Scene::new(DRAINED, &[], pods, vec![pods::budget("shop", "web", 1)])
    }

    fn what(line: Option<Line>) -> String {
        line.map(|line| format!("{} {}", line.who, line.what)).unwrap_or_default()
    }

    #[test]
    fn a_pod_is_followed_from_its_refusal_to_its_end_and_so_is_its_successor() {
        let mut scene = scene(&[pod("old", DRAINED, &json!({}))]);
        assert_eq!(scene.replicas(), 1);
        let refused = scene.refused(&[refusal("old"), refusal("old")]);
        assert_eq!(refused.len(), 1, "told once");
        assert_eq!(what(refused.into_iter().next()), "shop/old blocked by budget web, requested until it may leave");
        assert_eq!(scene.refused(&[refusal("old")]), []);
        let line = scene.pod(&WatchEvent::Modified(leaving("old")));
        assert_eq!(what(line), "shop/old evicted at last: shuts down, and may take 30 s");
        assert_eq!(scene.pod(&WatchEvent::Modified(leaving("old"))), None);
        assert_eq!(scene.replicas(), 0);

        let starting = pod("new", "other.ec2.internal", &json!({"status.phase": "Pending"}));
        assert_eq!(what(scene.pod(&WatchEvent::Added(starting))), "shop/new new, starting on other");
        let running = pod("new", "other.ec2.internal", &json!({}));
        assert_eq!(what(scene.pod(&WatchEvent::Modified(running))), "shop/new running on other");
        assert_eq!(what(scene.pod(&WatchEvent::Deleted(leaving("old")))), "shop/old gone");
        assert_eq!((scene.replicas(), scene.has_pod("old")), (1, false));
    }

    #[test]
    fn a_finished_pod_that_goes_at_once_has_one_line() {
        let finished = pod("job", DRAINED, &json!({"status.phase": "Succeeded"}));
        let mut scene = scene(std::slice::from_ref(&finished));
        let line = scene.pod(&WatchEvent::Deleted(finished));
        assert_eq!(what(line), "shop/job evicted and gone at once: it had finished");
    }

    #[test]
    fn a_node_is_told_of_when_it_is_cordoned_and_when_it_goes_and_not_when_it_beats() {
        let node = |cordoned: bool| -> Node {
            serde_json::from_value(json!({"metadata": {"name": DRAINED}, "spec": {"unschedulable": cordoned}}))
                .expect("it is a node")
        };
        let mut scene = Scene::new(DRAINED, &[node(false)], &[], Vec::new());
        assert_eq!(scene.node(&WatchEvent::Modified(node(false))), None);
        assert_eq!(
            what(scene.node(&WatchEvent::Modified(node(true)))),
            "node ip-10-0-0-1 cordoned: no new pods come here"
        );
        assert_eq!(scene.node(&WatchEvent::Modified(node(true))), None);
        assert_eq!(what(scene.node(&WatchEvent::Deleted(node(true)))), "node ip-10-0-0-1 gone, with its instance");
        assert!(!scene.has_node(DRAINED));
    }
}
