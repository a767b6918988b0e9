//! What was seen of nodes and pods, as a check. Pure.

use std::collections::BTreeMap;

use spillway_core::drain::pod::blocker::BudgetName;
use spillway_drainer::kube::ApiError;
use spillway_startup::logs::chain;

use super::findings::{Circumstances, finding, listed};
use super::fleet::{Fleet, NodeName};
use super::rehearsal::{Rehearsal, Unanswered};
use super::survey::Survey;
use crate::catalogue::{CheckId, FindingId};
use crate::report::{Check, Finding, HeldUpNode, Severity};

const NODES: usize = 50;

#[derive(Debug)]
pub(super) struct Pods {
    pub(super) seen: Result<(), ApiError>,
    pub(super) rehearsal: Rehearsal,
}

pub(super) fn check(
    fleet: &Fleet,
    survey: &Survey<'_>,
    circumstances: Circumstances<'_>,
    Pods { seen, rehearsal }: &Pods,
    tagged: Vec<Finding>,
) -> Check {
    let held_up = survey.held_up.iter();
    let mut findings: Vec<_> = held_up.map(|(cause, held_up)| finding(cause, held_up, circumstances)).collect();
    findings.extend(tagged);
    if let Err(error) = seen {
        let what = format!("not all pods could be looked at, so that there may be more: {}", chain(&error));
        let to_do = "ask again, for this cluster alone: detail.cluster of the event";
        findings.push(Finding::new(FindingId::NotAllPodsListed, Severity::Unknown, "pods", what, to_do));
    }
    if let Rehearsal::Held { unanswered, .. } = rehearsal {
        findings.extend(budgets_not_asked(unanswered));
    }
    let nodes = nodes(survey);
    let names = listed(nodes.keys().map(AsRef::as_ref), nodes.len());
    let drained = match (nodes.len(), rehearsal) {
        _ if fleet.ours.is_empty() => String::new(),
        (0, _) if seen.is_err() => "; not all of their pods could be looked at".to_owned(),
        (0, Rehearsal::LeftOut) => "; none of them could be drained without the right to evict pods".to_owned(),
        (0, Rehearsal::Held { unanswered, .. }) if !unanswered.is_empty() => {
            "; not all of their pods could be asked for".to_owned()
        }
        (0, Rehearsal::Held { left_out: 0, .. }) => {
            "; each of them could be drained in two minutes right now".to_owned()
        }
        (0, Rehearsal::Held { left_out, .. }) => format!(
            "; each of them could be drained in two minutes right now, by what lists show: of {left_out} budgets no pod was asked for"
        ),
        (held_up, _) => format!("; {held_up} of them could not be drained in two minutes right now: {names}"),
    };
    let nodes = nodes.into_iter().take(NODES);
    let nodes = nodes.map(|(node, because)| HeldUpNode { node: node.to_string(), because });
    Check::made(CheckId::Nodes, format!("{fleet}{drained}"), findings).with_nodes(nodes.collect())
}

fn nodes<'a>(survey: &'a Survey<'_>) -> BTreeMap<&'a NodeName, Vec<String>> {
    let mut nodes = BTreeMap::<_, Vec<String>>::new();
    for (cause, held_up) in survey.held_up.iter().filter(|(cause, _)| cause.holds_its_nodes()) {
        for node in &held_up.nodes {
            nodes.entry(node).or_default().push(cause.object());
        }
    }
    nodes
}

/// One finding for all budgets about which nobody answered: the next time the API server may answer for all.
fn budgets_not_asked(unanswered: &[Unanswered]) -> Option<Finding> {
    let [Unanswered { why: first, .. }, ..] = unanswered else { return None };
    let count = unanswered.len();
    let names: Vec<_> = unanswered
        .iter()
        .map(|Unanswered { budget: BudgetName { namespace, name }, .. }| format!("{namespace}/{name}"))
        .collect();
    let what = format!(
        "nobody said whether they allow a disruption, {}: {first}",
        listed(names.iter().map(String::as_str), count)
    );
    let to_do = "ask again; if it stays so, see what the API server is busy with";
    let object = if count == 1 { "1 budget" } else { &format!("{count} budgets") };
    Some(Finding::new(FindingId::BudgetsUnknown, Severity::Unknown, object, what, to_do))
}

#[cfg(test)]
mod tests;
