//! What was wanted, and whether it came true: a time by its ratio within a round, a count by its worst run.

use std::time::Duration;

use super::case::{Case, Tool};
use super::figures::{Figures, SPOT_WINDOW};
use super::{FAR, Results, Run};
use crate::measure::statistics::{least, median, most};

#[derive(Debug)]
pub(super) struct Goal {
    pub(super) what: String,
    pub(super) wanted: String,
    pub(super) found: String,
    pub(super) verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    NotMet,
    /// Not measured, or some rounds say one thing and some the other.
    Undecided,
}

const REQUESTS_A_POD: f64 = 1.1;
const REQUESTS_A_NODE: f64 = 4.0;
const PEAK_MIB: f64 = 24.0;

pub(super) fn goals(results: &Results) -> Vec<Goal> {
    let last_eviction = |figures: &Figures| figures.last_eviction;
    let faster = |case, tool, times| faster(results, case, tool, "last eviction", last_eviction, times);
    vec![
        faster(Case::FullNode, Tool::Kubectl, 30.0),
        all_in_the_window(results),
        faster(Case::Budget, Tool::Kubectl, 5.0),
        at_most(results, "requests a pod", REQUESTS_A_POD, |run| {
            ratio(run.figures.for_pods, run.case.nodes() * run.case.pods())
        }),
        at_most(results, "requests a node beside", REQUESTS_A_NODE, |run| ratio(run.figures.beside, run.case.nodes())),
        at_most(results, "peak memory of a process, MiB", PEAK_MIB, |run| in_mib(run.figures.peak_memory)),
    ]
}

/// How many times faster Spillway is than another, far away.
fn faster(
    results: &Results,
    case: Case,
    tool: Tool,
    what: &str,
    time: impl Fn(&Figures) -> Option<Duration>,
    wanted: f64,
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
        what: format!("{}, +{} ms: {what}, against {}", case.in_words(), FAR.as_millis(), tool.in_words()),
        wanted: format!("at least {wanted} × sooner"),
        found: spread(&times, " ×"),
        verdict: verdict(&of_all(&times, |times| times >= wanted)),
    }
}

fn all_in_the_window(results: &Results) -> Goal {
    let case = Case::FiftyNodes;
    let ends: Vec<f64> = spillways(results)
        .filter(|run| run.case == case)
        .map(|run| run.figures.end.map_or(f64::INFINITY, |end| end.as_secs_f64()))
        .collect();
    let window = SPOT_WINDOW.as_secs_f64();
    Goal {
        what: format!("{}: the last drain's end", case.in_words()),
        wanted: format!("at most {window} s"),
        found: spread(&ends, " s"),
        verdict: verdict(&of_all(&ends, |end| end <= window)),
    }
}

/// The worst of Spillway's runs of any case without a budget: one that holds a pod makes it ask again.
fn at_most(results: &Results, what: &str, wanted: f64, value: impl Fn(&Run) -> f64) -> Goal {
    let values: Vec<f64> = spillways(results).filter(|run| run.case != Case::Budget).map(value).collect();
    let worst = if values.is_empty() { Vec::new() } else { vec![most(&values)] };
    Goal {
        what: format!("{what}, at worst"),
        wanted: format!("at most {wanted}"),
        found: spread(&worst, ""),
        verdict: verdict(&of_all(&worst, |worst| worst <= wanted)),
    }
}

fn spillways(results: &Results) -> impl Iterator<Item = &Run> {
    results.runs.iter().filter(|run| run.tool == Tool::Spillway)
}

fn verdict(rounds: &[bool]) -> Verdict {
    match (rounds.contains(&true), rounds.contains(&false)) {
        (true, false) => Verdict::Met,
        (false, true) => Verdict::NotMet,
        _ => Verdict::Undecided,
    }
}

fn of_all(values: &[f64], is_met: impl Fn(f64) -> bool) -> Vec<bool> {
    values.iter().copied().map(is_met).collect()
}

/// The median, and how far the rounds spread when there are several.
fn spread(values: &[f64], unit: &str) -> String {
    match values {
        [] => "not measured".to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_only_when_every_round_says_so() {
        assert_eq!(verdict(&[true, true]), Verdict::Met);
        assert_eq!(verdict(&[false, false]), Verdict::NotMet);
        assert_eq!(verdict(&[true, false]), Verdict::Undecided);
        assert_eq!(verdict(&[]), Verdict::Undecided);
    }
}
