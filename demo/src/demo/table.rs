//! The cluster as a table: a row for each workload, a column for each node. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt as _;
use spillway_bed::TestNode;

use super::scene::{covers, short};

/// The first column, and each of the others.
const WORKLOADS: usize = 31;
const PODS: usize = 22;

/// The nodes with what lies under them.
pub(super) fn nodes(nodes: &[TestNode], group: &str) -> Vec<String> {
    let mut lines = vec![format!("{:<30} {:<12} {:<21} {}", "NODE", "ZONE", "INSTANCE", "")];
    for (index, node) in nodes.iter().enumerate() {
        let market = if index == 0 { "spot, " } else { "" };
        lines.push(format!("{:<30} {:<12} {:<21} {market}group {group}", node.name, node.zone, node.instance_id));
    }
    lines
}

/// The pods by workload and node.
pub(super) fn pods(nodes: &[TestNode], pods: &[Pod], budgets: &[PodDisruptionBudget]) -> Vec<String> {
    let mut workloads: BTreeMap<(String, String), Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        let app = pod.labels().get("app").cloned().unwrap_or_else(|| pod.name_any());
        workloads.entry((pod.namespace().unwrap_or_default(), app)).or_default().push(pod);
    }
    let mut lines = vec![row("PODS", nodes.iter().map(|node| short(&node.name)))];
    // What the cluster is for comes first, then what runs it.
    let mut ordered: Vec<_> = workloads.iter().collect();
    ordered.sort_by_key(|((namespace, app), pods)| (namespace == "kube-system", usize::MAX - pods.len(), app.clone()));
    for ((namespace, app), pods) in ordered {
        let first = workload(namespace, app, pods, budgets);
        let columns: Vec<Vec<String>> = nodes.iter().map(|node| names_on(&node.name, pods)).collect();
        let height = columns.iter().map(Vec::len).chain([first.len()]).max().unwrap_or_default();
        let cell = |column: &[String], line: usize| column.get(line).cloned().unwrap_or_default();
        lines.extend((0..height).map(|line| row(&cell(&first, line), columns.iter().map(|column| cell(column, line)))));
    }
    lines
}

fn row<T: AsRef<str>>(first: &str, others: impl Iterator<Item = T>) -> String {
    let others: Vec<String> = others.map(|text| format!("{:<PODS$}", text.as_ref())).collect();
    format!("{first:<WORKLOADS$} {}", others.join(" "))
}

fn names_on(node: &str, pods: &[&Pod]) -> Vec<String> {
    let here = |pod: &&&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
    let mut names: Vec<_> = pods.iter().filter(here).map(|pod| pod.name_any()).collect();
    names.sort();
    names
}

/// What it is, and below that what a drain has to mind.
fn workload(namespace: &str, app: &str, pods: &[&Pod], budgets: &[PodDisruptionBudget]) -> Vec<String> {
    let Some(pod) = pods.first() else { return Vec::new() };
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    let kind = match owner.map(|owner| owner.kind.as_str()) {
        None => "bare pod",
        Some("ReplicaSet") => "Deployment",
        Some(kind) => kind,
    };
    let mut lines = vec![format!("{kind} {namespace}/{app}")];
    let class = pod.spec.as_ref().and_then(|spec| spec.priority_class_name.as_deref()).unwrap_or_default();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if let Some(budget) = budgets.iter().find(|budget| covers(budget, namespace, pod.labels())) {
        let wanted = budget.spec.as_ref().and_then(|spec| spec.min_available.as_ref());
        let wanted = wanted.map_or_else(String::new, |wanted| format!(", {} of {} stay", int_or(wanted), pods.len()));
        lines.push(format!("  PDB {}{wanted}", budget.name_any()));
    }
    match (kind, phase) {
        ("DaemonSet", _) => {}
        ("bare pod", _) => lines.push("  nothing replaces it".to_owned()),
        (_, Some("Succeeded")) => lines.push("  finished".to_owned()),
        _ if class.starts_with("system-") => lines.push("  critical, leaves last".to_owned()),
        _ => {}
    }
    lines
}

fn int_or(value: &k8s_openapi::apimachinery::pkg::util::intstr::IntOrString) -> String {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::{Int, String as Text};
    match value {
        Int(number) => number.to_string(),
        Text(text) => text.clone(),
    }
}
