//! Combines all findings about nodes and pods into one check. Pure.

use std::collections::BTreeMap;

use spillway_core::drain::pod::blocker::BudgetName;
use spillway_drainer::kube::ApiError;
use spillway_startup::logs::chain;

use super::findings::{Circumstances, finding, first_names};
use super::fleet::{Fleet, NodeName};
use super::rehearsal::{Rehearsal, Unanswered};
use super::survey::Survey;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, HeldUpNode, Severity};

const NODES: usize = 50;

#[derive(Debug)]
pub(super) struct Pods {
    pub(super) listed: Result<(), ApiError>,
    pub(super) rehearsal: Rehearsal,
}

pub(super) fn check(
    fleet: &Fleet,
    survey: &Survey<'_>,
    circumstances: Circumstances<'_>,
    Pods { listed, rehearsal }: &Pods,
    tagged: Vec<Finding>,
) -> Check {
    let held_up = survey.held_up.iter();
    let mut findings: Vec<_> = held_up.map(|(cause, held_up)| finding(cause, held_up, circumstances)).collect();
    findings.extend(tagged);
    if let Err(error) = listed {
        let what = format!("could not all be listed, so that there may be more findings: {}", chain(&error));
        let to_do = "run the doctor for this cluster alone: tools/spillway doctor CLUSTER";
        findings.push(Finding::new(FindingId::NotAllPodsListed, Severity::Unknown, "pods", what, to_do));
    }
    if let Rehearsal::Made { unanswered, .. } = rehearsal {
        findings.extend(budgets_unknown(unanswered));
    }
    let nodes = nodes(survey);
    let names = first_names(nodes.keys().map(AsRef::as_ref), nodes.len());
    let drained = match (nodes.len(), rehearsal) {
        _ if fleet.ours.is_empty() => String::new(),
        (0, _) if listed.is_err() => "; not all of their pods could be listed".to_owned(),
        (0, Rehearsal::Skipped) => "; none of them could be drained without the right to evict pods".to_owned(),
        (0, Rehearsal::Made { unanswered, .. }) if !unanswered.is_empty() => {
            "; the eviction of some pods could not be rehearsed".to_owned()
        }
        (0, Rehearsal::Made { left_out: 0, .. }) => {
            "; each of them could be drained in two minutes right now".to_owned()
        }
        (0, Rehearsal::Made { left_out, .. }) => format!(
            "; each of them could be drained in two minutes right now, with {left_out} budgets that were not rehearsed"
        ),
        (held_up, _) => format!("; {held_up} of them could not be drained in two minutes right now: {names}"),
    };
    let nodes = nodes.into_iter().take(NODES);
    let nodes = nodes.map(|(node, because)| HeldUpNode { node: node.to_string(), because });
    Check::made(CheckId::Nodes, format!("{fleet}{drained}"), findings).with_nodes(nodes.collect())
}

fn nodes<'a>(survey: &'a Survey<'_>) -> BTreeMap<&'a NodeName, Vec<String>> {
    let mut nodes = BTreeMap::<_, Vec<String>>::new();
    for (cause, held_up) in survey.held_up.iter().filter(|(cause, _)| cause.prevents_drain()) {
        for node in &held_up.nodes {
            nodes.entry(node).or_default().push(cause.object());
        }
    }
    nodes
}

/// Returns one finding about all budgets whose dry-run eviction got no response.
fn budgets_unknown(unanswered: &[Unanswered]) -> Option<Finding> {
    let [Unanswered { why: first, .. }, ..] = unanswered else { return None };
    let count = unanswered.len();
    let names: Vec<_> = unanswered
        .iter()
        .map(|Unanswered { budget: BudgetName { namespace, name }, .. }| format!("{namespace}/{name}"))
        .collect();
    let names = first_names(names.iter().map(String::as_str), count);
    let what = format!("could not be rehearsed ({names}): {first}");
    let to_do = "run the doctor again; if the finding persists, check the load of the API server";
    let object = if count == 1 { "1 budget" } else { &format!("{count} budgets") };
    Some(Finding::new(FindingId::BudgetsUnknown, Severity::Unknown, object, what, to_do))
}

#[cfg(test)]
mod tests;
