//! The page: the matrix as tables, and the receipts of the faults that last.

use std::fmt::Write as _;

use super::fault::{Fault, Lasts};
use super::result::CaseResult;
use super::step::{Server, Step};
use super::{FaultCase, FaultsResults, Tried};
use crate::measure::report::Report as _;

pub(super) fn page(results: &FaultsResults) -> String {
    let mut text = head(results);
    for (title, is_aws) in [("AWS", true), ("The API server", false)] {
        for lasts in Lasts::ALL {
            let _ = writeln!(text, "\n## {title}, {}\n", lasts.in_words());
            text.push_str(&table(results, lasts, is_aws));
        }
    }
    text.push_str(&receipts(results));
    text
}

fn head(results: &FaultsResults) -> String {
    let all = results.cases.len();
    let allowed = results.cases.iter().filter(|tried| tried.is_allowed()).count();
    let drained = results.cases.iter().filter(|tried| matches!(tried.result, CaseResult::Drained { .. })).count();
    let head = results.circumstances.head("What goes wrong, and what becomes of the drain", FaultsResults::FILE);
    let steps = Step::ALL.map(|step| format!("* {}: `{}`\n", step.in_words(), step.call()));
    format!(
        "{head}\
        * {all} cases, {at_once} at a time; {allowed} as required, {drained} ended in drained. In bold: not as required\n\
        \n\
        Each case is a drain of its own, of a node with two pods, on the real control plane: the fault is made at that\n\
        step by a gateway or a network before the API server or the AWS side ([how](development.md#faults)). **Once** is\n\
        one request, or a few seconds of a connection, and must end in *drained*; Lambda's two further tries are counted\n\
        and come without the minutes between them. **For ever** is every request of that step, with a window of ten\n\
        seconds and one try; where it cannot be drained the receipt must name the fault and the pods that are left. A dash:\n\
        the step cannot meet that fault.\n\
        \n\
        The steps, and the request that each is known by:\n\
        \n\
        {steps}\
        \n\
        *delete* and *watch budgets* are of pods that a budget blocks, *schedule* of a rebalance recommendation, *delete the\n\
        NodeClaim* of a node that is handed to Karpenter, and *uncordon* of an instance that runs again; the last two end in\n\
        *done*, which stands here as *drained*. *Heartbeat* and *schedule* have a window of 40 seconds always. What *uncordon*\n\
        or *schedule* could not do may be *continued*: a later invocation does it.\n",
        at_once = results.at_once,
        steps = steps.concat(),
    )
}

fn table(results: &FaultsResults, lasts: Lasts, is_aws: bool) -> String {
    let steps = Step::ALL.into_iter().filter(|step| matches!(step.server(), Server::Aws(_)) == is_aws);
    let steps: Vec<Step> = steps.collect();
    let mut faults: Vec<Fault> = Vec::new();
    for fault in steps.iter().flat_map(|step| Fault::of(*step)).filter(|fault| fault.can_last(lasts)) {
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    let mut text = String::from("| |");
    for step in &steps {
        let _ = write!(text, " {} |", step.in_words());
    }
    let _ = writeln!(text, "\n|{}", " --- |".repeat(steps.len() + 1));
    for fault in faults {
        let _ = write!(text, "| {} |", fault.in_words());
        for step in &steps {
            let _ = write!(text, " {} |", of(results, *step, fault, lasts));
        }
        text.push('\n');
    }
    text
}

fn of(results: &FaultsResults, step: Step, fault: Fault, lasts: Lasts) -> String {
    let case = FaultCase { step, fault, lasts };
    match results.cases.iter().find(|tried| tried.case == case) {
        Some(tried) if tried.is_allowed() => tried.result.in_words(),
        Some(tried) => format!("**{}**", tried.result.in_words()),
        None => "–".to_owned(),
    }
}

fn receipts(results: &FaultsResults) -> String {
    let mut text = "\n## What the receipts say\n\nThe reasons of those that did not end in drained.\n\n".to_owned();
    for Tried { case, result } in &results.cases {
        if let CaseResult::Told { reason, .. } = result {
            let _ = writeln!(text, "* {}: {reason}", case.in_words());
        }
    }
    text
}
