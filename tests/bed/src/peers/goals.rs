//! What was wanted, and whether it came true: a time by its ratios within a round, a count by its worst run.

use std::time::Duration;

use super::case::{Case, Tool};
use super::figures::{Figures, SPOT_WINDOW};
use super::{FAR, Results, Run, how_far};
use crate::measure::goal::{Goal, Verdict};
use crate::measure::statistics::{least, median, most};

const NOT_MEASURED: &str = "not measured";
const REQUESTS_A_POD: f64 = 1.1;
const REQUESTS_A_NODE: f64 = 4.0;
const PEAK_MIB: f64 = 24.0;

pub(super) fn goals(results: &Results) -> Vec<Goal> {
    let eviction = |case, tool, times| sooner(results, case, tool, "last eviction", times, |of| of.last_eviction);
    let cordon = |case, tool, times| sooner(results, case, tool, "last cordon", times, |of| of.last_cordon);
    vec![
        eviction(Case::FullNode, Tool::Kubectl, 30.0),
        eviction(Case::FullNode, Tool::Nth, 30.0),
        eviction(Case::FullNode, Tool::NthTuned, 2.5),
        cordon(Case::FiftyNodes, Tool::NthTuned, 5.0),
        eviction(Case::FiftyNodes, Tool::NthTuned, 2.0),
        all_in_the_window(results),
        eviction(Case::Budget, Tool::Kubectl, 5.0),
        eviction(Case::Budget, Tool::Nth, 5.0),
        eviction(Case::Budget, Tool::NthTuned, 5.0),
        at_worst(results, "requests a pod", REQUESTS_A_POD, |run| {
            ratio(run.figures.for_pods, run.case.nodes() * run.case.pods())
        }),
        at_worst(results, "requests a node beside", REQUESTS_A_NODE, |run| ratio(run.figures.beside, run.case.nodes())),
        at_worst(results, "peak memory of a process, MiB", PEAK_MIB, |run| in_mib(run.figures.peak_memory)),
    ]
}

/// How many times sooner Spillway is than another, far away.
fn sooner(
    results: &Results,
    case: Case,
    tool: Tool,
    what: &str,
    wanted: f64,
    time: fn(&Figures) -> Option<Duration>,
) -> Goal {
    let of = |round: usize, tool: Tool| {
        let is_it = |run: &&Run| run.case == case && run.distance == FAR && run.round == round && run.tool == tool;
        results.runs.iter().find(is_it).and_then(|run| time(&run.figures))
    };
    let rounds = results.runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
    let times: Vec<f64> = (0..rounds)
        .filter_map(|round| Some(of(round, tool)?.as_secs_f64() / of(round, Tool::Spillway)?.as_secs_f64()))
        .collect();
    Goal {
        what: format!("{}, {}: {what}, against {}", case.in_words(), how_far(FAR), tool.in_words()),
        wanted: format!("at least {wanted} × sooner"),
        found: spread(&times, " ×"),
        verdict: judged(&times, |times| Verdict::at_least(wanted, times)),
    }
}

fn all_in_the_window(results: &Results) -> Goal {
    let case = Case::FiftyNodes;
    let ends: Vec<f64> =
        spillways(results).filter(|run| run.case == case).map(|run| run.figures.end.as_secs_f64()).collect();
    let window = SPOT_WINDOW.as_secs_f64();
    Goal {
        what: format!("{}: the last drain's end", case.in_words()),
        wanted: format!("at most {window} s"),
        found: spread(&ends, " s"),
        verdict: judged(&ends, |ends| Verdict::of(most(ends) <= window)),
    }
}

/// Of Spillway's runs of every case without a budget: a pod that one holds is asked for again.
fn at_worst(results: &Results, what: &str, wanted: f64, value: impl Fn(&Run) -> f64) -> Goal {
    let values: Vec<f64> = spillways(results).filter(|run| run.case != Case::Budget).map(value).collect();
    Goal {
        what: format!("{what}, without a budget, at worst"),
        wanted: format!("at most {wanted}"),
        found: if values.is_empty() { NOT_MEASURED.to_owned() } else { format!("{:.1}", most(&values)) },
        verdict: judged(&values, |values| Verdict::of(most(values) <= wanted)),
    }
}

fn judged(values: &[f64], judge: impl Fn(&[f64]) -> Verdict) -> Verdict {
    if values.is_empty() { Verdict::Undecided } else { judge(values) }
}

fn spillways(results: &Results) -> impl Iterator<Item = &Run> {
    results.runs.iter().filter(|run| run.tool == Tool::Spillway)
}

/// The median, and how far the rounds spread when there are several.
fn spread(values: &[f64], unit: &str) -> String {
    match values {
        [] => NOT_MEASURED.to_owned(),
        [only] => format!("{only:.1}{unit}"),
        many => format!("{:.1}{unit} ({:.1} to {:.1})", median(many), least(many), most(many)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a drain has fewer requests than would lose one")]
fn ratio(count: usize, of: usize) -> f64 {
    count as f64 / of as f64
}

#[expect(clippy::cast_precision_loss, reason = "a process has fewer bytes than would lose one")]
pub(super) fn in_mib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}
