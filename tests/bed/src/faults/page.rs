//! The page: the matrix as tables, and the receipts of the faults that last.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::Results;
use super::fault::{Fault, Lasts};
use super::step::{Server, Step};
use super::verdict::Verdict;
use crate::measure::machine::Machine;

pub(super) fn page(results: &Results, machine: &Machine) -> String {
    let mut text = head(results, machine);
    for (title, is_aws) in [("AWS", true), ("The API server", false)] {
        for lasts in Lasts::ALL {
            let _ = writeln!(text, "\n## {title}, {}\n", lasts.in_words());
            text.push_str(&table(results, lasts, is_aws));
        }
    }
    text.push_str(&receipts(results));
    text
}

fn head(results: &Results, machine: &Machine) -> String {
    let all = results.cells.len();
    let allowed = results.cells.iter().filter(|(cell, verdict)| verdict.is_allowed(cell.lasts)).count();
    let drained = results.cells.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Drained { .. })).count();
    format!(
        "# What goes wrong, and what becomes of the drain\n\
        \n\
        Written by `make faults`, which makes every fault anew; nothing here is typed by hand.\n\
        \n\
        * {date}, {all} cells in {took} s, on {machine}\n\
        * {allowed} of {all} as wanted; {drained} ended in drained. In bold: not as wanted\n\
        \n\
        Each cell is a drain of its own, of a node with two pods, on the real control plane: the fault is made at that\n\
        step by a gateway or a network before the API server or the AWS side ([how](development.md#faults)). **Once** is\n\
        one request, or a few seconds of a connection, and must end in *drained*; Lambda's two further tries are counted\n\
        and come without the minutes between them. **For ever** is every request of that step, with a window of ten\n\
        seconds and one try; where it cannot be drained the receipt must name the fault and the pods that are left. A dash:\n\
        the step cannot meet that fault.\n",
        date = Timestamp::now().strftime("%Y-%m-%d"),
        took = results.took.as_secs(),
        machine = machine.in_words(),
    )
}

fn table(results: &Results, lasts: Lasts, is_aws: bool) -> String {
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

fn of(results: &Results, step: Step, fault: Fault, lasts: Lasts) -> String {
    let is_it = |cell: &super::Cell| (cell.step, cell.fault, cell.lasts) == (step, fault, lasts);
    match results.cells.iter().find(|(cell, _)| is_it(cell)) {
        Some((cell, verdict)) if verdict.is_allowed(cell.lasts) => verdict.in_words(),
        Some((_, verdict)) => format!("**{}**", verdict.in_words()),
        None => "–".to_owned(),
    }
}

fn receipts(results: &Results) -> String {
    let mut text = "\n## What the receipts say\n\nThe reasons of those that did not end in drained.\n\n".to_owned();
    for (cell, verdict) in &results.cells {
        if let Verdict::Told { reason, .. } = verdict {
            let _ = writeln!(text, "* {}: {reason}", cell.in_words());
        }
    }
    text
}
